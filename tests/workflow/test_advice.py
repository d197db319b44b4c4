"""Target ``advise``: on the demonstration, and on annex keys without content; what is said where it cannot."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from conftest import missing
from devices import fuse_folder, loop_device
from support import Project, busy_loops, committed, git, plain_dataset, read_json, t1w

SMALL = {"streams": 2, "file_mib": 16, "time_s": 1, "repetitions": 1}


def keys_without_content(folder: Path) -> Path:
    """A DataLad-like dataset with sites as folders of CoRR, of which git-annex knows keys and sizes alone."""
    folder.mkdir()
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "keys", "BIDSVersion": "1.10.0"}))
    for number in range(100):
        for session in range(1, 2 + number % 2):
            name = f"sub-{25000 + number:07d}"
            image = folder / name / f"ses-{session}/anat/{name}_ses-{session}_run-1_T1w.nii.gz"
            image.parent.mkdir(parents=True)
            key = f"SHA256E-s{8_000_000 + 50_000 * number}--{number:062x}{session:02x}.nii.gz"
            image.symlink_to(f"../../../.git/annex/objects/aa/bb/{key}/{key}")
    git(committed(folder), "annex", "init")
    return folder


def test_advice(project: Project, demo_source: Path, memory_folder: Path, tmp_path: Path) -> None:
    """Two are analysed and kept; the run's report holds the rest against the advice; other datasets can build on it.

    A tier that is too small to be probed is passed over, and that is said.
    """
    (memory_folder / "small").mkdir()
    tiers = {
        "tmpfs": {"path": memory_folder, "capacity": "400 MiB"},
        "small": {"path": memory_folder / "small", "kind": "tmpfs", "capacity": "30 MiB"},
    }
    common = {"tiers": tiers, "tool": "noop", "probe": SMALL}
    ended = project.succeeds("advise", dataset=demo_source, **common)
    ended.says("local (in use)  2        as found")
    (advice,) = ended.lines("Advice: ")
    judged = project.columns("placement work_tier in_use fits", "advice/advice.tsv")
    assert judged == ["local local true true", "tmpfs tmpfs false true"]
    ended.says("Not judged, since the smallest probe has no room there: tier small.")
    for row in project.table("advice/advice.tsv"):
        assert 0 < float(row["low_s"]) <= float(row["predicted_s"]) <= float(row["high_s"])
    assert advice.removeprefix("Advice: ").rstrip(".") in project.page("advice").replace("&#39;", "'")
    assert "On local, in use: " in project.page("advice")

    (project.results / "index/images.tsv").unlink()
    project.records()[0].unlink()
    project.succeeds("advise")
    records = {path: path.read_text() for path in project.records()}
    assert len(records) == 2, "who was lost with the index is analysed again"

    project.succeeds()
    assert {path: path.read_text() for path in records} == records
    assert "Predicted and measured" in project.page("report")

    keys = keys_without_content(tmp_path / "keys")
    project.configure(dataset=keys, results="keys", advice={"calibration": "results"}, **common)
    shutil.copytree(project.results / "probe", project.folder / "keys/probe")
    ended = project.succeeds("advise", cores=32)
    ended.says("100 participants to analyse", "CPU time and bytes by 4 records of results")
    (tmpfs,) = (
        line
        for line in ended.lines(" at once, for which memory and the work tier have room")
        if line.startswith("tmpfs")
    )
    assert tmpfs.endswith("yes"), "a run there waits for room"

    project.fails("advise", dataset=keys, results="alone", **common).says(
        "cannot be analysed as a calibration: git-annex knows of no copy of its content"
    )


@pytest.fixture
def waiting_tiers() -> Iterator[dict[str, Path]]:
    """Tiers of which the page cache takes next to nothing, for they lie in memory and are slow."""
    try:
        with ExitStack() as stack:
            strict = stack.enter_context(loop_device(256, 12_000_000, "/dev/shm", strict_limit=True))
            yield {"strict": strict, "fuse": stack.enter_context(fuse_folder(12_000_000))}
    except (OSError, subprocess.CalledProcessError) as error:
        missing(f"no tiers whose writers wait: {error}")


@pytest.mark.nightly("long")
def test_a_tier_whose_writers_must_wait_is_not_advised(project: Project, waiting_tiers: dict[str, Path]) -> None:
    """Their page cache hides little: 4 MiB of a device with a strict limit, and nothing of a FUSE file system."""
    voxels = np.random.default_rng(0).integers(0, 4096, (160, 160, 120)).astype(np.int16)
    image = gzip.compress(nib.Nifti1Image(voxels, np.eye(4)).to_bytes(), compresslevel=0)
    plain_dataset(project.folder / "bids", {t1w(f"{number:02d}"): image for number in range(4)})
    ended = project.succeeds("advise", tiers=waiting_tiers, tool="noop", probe=SMALL | {"share": 0.5})
    rows = {row["placement"]: row for row in project.table("advice/advice.tsv")}
    fast, slow = ([rows[name] for name in names] for names in (("local", "tmpfs"), waiting_tiers))
    assert max(float(row["high_s"]) for row in fast) < min(float(row["low_s"]) for row in slow), ended.output
    assert {row["limit"] for row in slow} == {f"writing to {name}" for name in waiting_tiers}


@pytest.mark.nightly("long")
def test_cold_runs_are_predicted_with_what_programs_take_to_load(project: Project, demo_source: Path) -> None:
    """The calibration is tried once more by one job, and one of it from an empty page cache; neither is kept.

    Busy loops, more than there are processors, disturb it, which is said; at other times, when nothing depends on them,
    they rest.
    """
    campaign = {"placements": {"disk": {}}, "parallelism": [2], "cache": ["cold", "warm"], "repetitions": 1}
    dataset = {"source": demo_source, "drop": True}
    given = {"dataset": dataset, "tool": "noop", "probe": SMALL, "campaign": campaign}
    project.configure(**given, validity={"others_cpu_share": 0.3})
    while_trying = project.results / "advice/.rehearsal.partial"
    processors = len(os.sched_getaffinity(0))
    with busy_loops(4 * processors, str(while_trying)):
        project.succeeds("advise")
    found = read_json(project.results / "advice/rehearsal.json")
    assert found["why"] == ""
    records = found["shared"]["records"]
    assert [len(record["phases"]) for record in records] == [4, 4]
    assert found["shared"]["others_cpu_share"] > 0.3
    assert records[0]["phases"][0]["cpu_s"] < 0.05, "the start of Python is not that of a copy"
    said = project.page("advice")
    if os.geteuid() == 0:
        assert found["load_s"].keys() == {"start_up", "compute"}
        assert min(found["load_s"].values()) >= 0, "none where a start without loading took longer"
        assert "The first jobs of a cold run wait" in said
    else:
        assert found["load_s"] == {}
        assert "only root may drop all of it" in said
    assert project.columns("cache", "advice/advice.tsv") == ["cold", "warm"]
    assert len(project.records()) == 2
    assert not list((project.results / "advice").glob(".*"))
    assert not project.leftovers()
    assert "Participants share jobs: in one that was tried" in said
    assert "The calibration was disturbed: others took" in said
    (had,) = re.findall(r"Others had (\d+\.\d) busy processes", said)
    assert float(had) > 2 * processors, "those that wait for a processor count, too"
    assert not project.snakemake("advise").lines("once more")
