"""Saving while jobs go on: a batch that is over is committed before the others, and a killed run keeps it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from batch_jobs import prepared_results
from neurotier.analysis.staging import manifest_of
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.dataset.health import ask_git
from neurotier.dataset.source import Dataset
from neurotier.provenance.saving import save_derivatives
from neurotier.run.jobs import dataset_json, load_dataset, load_settings
from support import ENVIRONMENT, PATIENCE_S, git

LABELS = ["01", "02", "03"]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Results of three participants, who are a batch each; the first batch is over."""
    results = prepared_results(tmp_path, LABELS, results_dataset=True)
    settings = load_settings(results)
    places = Places.from_settings(settings)
    raw = tmp_path / "bids"
    git(raw, "init", "--quiet")
    git(raw, "add", ".")
    git(raw, "commit", "--quiet", "--message", "raw")
    git(raw, "remote", "add", "origin", str(raw))
    write_json(places.index / "dataset.json", dataset_json(Dataset(str(raw), raw, "datalad", {"": {}})))
    write_json(places.runs / "1.json", {"settings": settings.to_json(), "versions": {"neurotier": "1"}})
    for label in LABELS:
        folder = places.derivatives / f"sub-{label}" / "anat"
        folder.mkdir(parents=True)
        (folder / "mask.nii.gz").write_bytes(b"\x00" + label.encode())
        made = {"run": "1", "tool_version": "1", "derivatives": manifest_of(folder.parent)}
        write_json(places.record(f"sub-{label}"), made)
    write_json(places.derivatives / "dataset_description.json", {"Name": "masks"})
    write_json(places.batches_file, {"next": 3, "batches": {str(n): [f"sub-{x}"] for n, x in enumerate(LABELS)}})
    write_json(places.batch("0"), {})
    return places


def start(places: Places) -> subprocess.Popen[bytes]:
    words = ["-m", "neurotier", "save-rounds", "--results", str(places.results), "--log", str(places.logs / "rounds")]
    return subprocess.Popen([sys.executable, *words], env=ENVIRONMENT, stdin=subprocess.PIPE)


def history(places: Places) -> list[str]:
    """Who was saved, in order."""
    said = (
        ask_git(places.derivatives, "log", "--grep", "RUNCMD", "--reverse", "--format=%s") or ""
    )  # none before a commit
    return [line.rpartition(" ")[2] for line in said.splitlines()]


def wait_for(places: Places, names: list[str]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while history(places) != names:
        assert time.monotonic() < until_s, (places.logs / "rounds").read_text()
        time.sleep(0.2)


def test_batches_are_saved_as_they_end_and_who_is_killed_is_followed(places: Places) -> None:
    settings, derivatives = load_settings(places.results), places.derivatives
    first = start(places)
    wait_for(places, ["sub-01"])
    assert git(derivatives, "status", "--porcelain", "--", "sub-01") == ""
    write_json(places.batch("1"), {})
    wait_for(places, ["sub-01", "sub-02"])
    first.kill()  # as with the run
    first.wait()
    assert first.stdin is not None
    first.stdin.close()

    write_json(places.batch("2"), {})
    last = start(places)
    last.communicate(timeout=PATIENCE_S)  # its input ends: a last round
    assert last.returncode == 0
    assert history(places) == ["sub-01", "sub-02", "sub-03"]
    assert not places.saving.exists()
    saved = git(derivatives, "rev-parse", "HEAD")
    assert save_derivatives(load_dataset(places), settings, places, print) == {"": saved}
    assert git(derivatives, "status", "--porcelain") == ""
    assert git(derivatives, "annex", "fsck", "--quiet") == ""


def test_it_waits_for_what_describes_a_site_and_tells_what_fails(places: Places) -> None:
    description = places.derivatives / "dataset_description.json"
    text = description.read_text()
    description.unlink()
    done = start(places)
    done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0
    assert not (places.derivatives / ".git").exists()

    description.write_text(text)
    (places.derivatives / ".git").symlink_to("elsewhere")
    done = start(places)
    done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 0  # nothing depends on it
    assert "is no folder" in (places.logs / "rounds").read_text()
