"""Fetching while others are analysed: no more ahead than allowed, nobody waits for ever, whatever is killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_jobs import prepared_results
from neurotier.core.files import remove_whatever, write_json
from neurotier.core.places import Places, file_of
from neurotier.core.tables import write_table
from neurotier.dataset.index import index_dataset
from neurotier.dataset.source import obtain
from neurotier.run.batches import read_batches
from neurotier.run.fetching import Fetcher
from neurotier.run.jobs import dataset_json, drop_batch_images, load_dataset, load_settings
from neurotier.run.participants import selected_by
from neurotier.run.turns import fetching, note_fetched, noted, take_turn, working, works
from support import ENVIRONMENT, PATIENCE_S, ROOT, git, t1w

RUN = "run-that-fetches"
LABELS = ("01", "02", "03", "04", "05")
NAMES = [f"sub-{label}" for label in LABELS]
BROKEN = "sub-02"
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small tier: root")
ENOUGH_S = 0.7
"""How long to watch that nothing happens."""


def fetched_run(
    folder: Path, sleep_s: float = 0.2, tiers: dict[str, Any] | None = None, alike: Sequence[str] = (), **dataset: Any
) -> Places:
    """A results folder whose dataset is a clone without contents; one image is no image, and some are alike."""
    tool = {"name": "noop", "noop": {"sleep_s": sleep_s}}
    results = prepared_results(folder, LABELS, tool=tool, dataset=dataset, **(tiers or {}))
    source = folder / "bids"
    image = source / t1w(BROKEN.removeprefix("sub-"))
    image.write_bytes(b"no image" + image.read_bytes()[8:])
    for label in alike:
        (source / t1w(label)).write_bytes((source / t1w(alike[0])).read_bytes())
    for words in (("init", "--quiet"), ("annex", "init", "--quiet"), ("annex", "add", "--quiet", "."), ("add", ".")):
        git(source, *words)
    git(source, "commit", "--quiet", "-m", "heads")
    settings = load_settings(results)
    places = Places.from_settings(settings)
    places.datasets.mkdir(parents=True, exist_ok=True)
    cloned = obtain(settings.dataset, str(source), places.datasets, lambda _: None)
    write_json(places.index / "dataset.json", dataset_json(cloned))
    write_json(places.batches_file, {"next": 1, "batches": {"0": NAMES}})
    return places


def largest_bytes(folder: Path) -> int:
    return max((folder / "bids" / t1w(label)).stat().st_size for label in LABELS)


def allow_ahead(places: Places, size_bytes: int) -> None:
    """Set ``dataset.ahead``, once it is known how large images are."""
    settings = json.loads(places.settings_file.read_text())
    settings["dataset"]["ahead"] = size_bytes
    write_json(places.settings_file, settings)


def job(places: Places, command: str, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A job of the run, under way; words before its command may trace it."""
    results = ["--results", str(places.results), "--log", str(places.results / f"{command}.log")]
    return subprocess.Popen(
        [*before, sys.executable, "-m", "neurotier", command, *words, *results],
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT / "workflow"), "NEUROTIER_RUN": RUN},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def fetcher(places: Places) -> Iterator[subprocess.Popen[str]]:
    """The job that fetches, gone afterwards."""
    process = job(places, "fetch-images", "--marker", str(places.fetched_all))
    try:
        wait_for(lambda: works(fetching(places)) or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.communicate()


def analysis(places: Places, *before: str) -> subprocess.Popen[str]:
    return job(places, "analyze-participants", *NAMES, "--batch", "0", "--analysis", "analysis", before=before)


def here(places: Places) -> dict[str, int]:
    """Participants whose images are on the dataset tier, with the size of each, bytes."""
    clone = Path(json.loads((places.index / "dataset.json").read_text())["path"])
    found = {}
    for label in LABELS:
        with suppress(FileNotFoundError):
            found[f"sub-{label}"] = (clone / t1w(label)).stat().st_size
    return found


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def watched(places: Places, process: subprocess.Popen[str]) -> list[dict[str, int]]:
    """What was on the dataset tier until a process ended, each time all at the same moment."""
    seen = []
    while process.poll() is None:
        first, second = here(places), here(places)  # each takes a while: what both have was there in between
        seen.append({name: size for name, size in first.items() if name in second})
        time.sleep(0.005)
    return seen


def done(places: Places) -> list[str]:
    return sorted(file.stem for file in places.records.rglob("*.json"))


@pytest.mark.parametrize("ahead", [0, 2])
def test_no_more_is_on_the_tier_than_allowed_and_what_is_computed(tmp_path: Path, ahead: int) -> None:
    """With 0, everyone is larger than what is allowed, and comes all the same: at its turn."""
    places = fetched_run(tmp_path, drop=True)
    size_bytes = largest_bytes(tmp_path)
    allow_ahead(places, ahead * size_bytes)
    with fetcher(places):
        batch = analysis(places)
        seen = watched(places, batch)
        output, _ = batch.communicate()
        assert batch.returncode == 0, output
    assert done(places) == [name for name in NAMES if name != BROKEN]
    assert json.loads(file_of(places.failures, BROKEN).read_text())["exit_code"] == 65
    apart = [{name: size for name, size in each.items() if name != BROKEN} for each in seen]  # who failed is kept
    assert max(sum(each.values()) for each in apart) <= (ahead + 1) * size_bytes
    assert max(map(len, seen)) >= ahead + 1, "nothing was fetched ahead"


@contextmanager
def full_tier(folder: Path, **dataset: Any) -> Iterator[tuple[Places, Path]]:
    """A run whose dataset tier is full, and the file that fills it; needs root."""
    tier = folder / "tier"
    tier.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(tier)], check=True)
    try:
        tiers = {"small": {"path": str(tier), "kind": "tmpfs"}, "disk": {"path": str(folder), "kind": "block"}}
        placement = {"dataset": "small", **dict.fromkeys(("work", "images", "results"), "disk")}
        places = fetched_run(folder / "run", tiers={"tiers": tiers, "placement": placement}, **dataset)
        filler = tier / "filler"
        filler.write_bytes(bytes(80_000_000))
        yield places, filler
    finally:
        subprocess.run(["umount", "-l", str(tier)], check=True)


@NEEDS_ROOT
def test_whose_turn_has_come_waits_for_a_drop_if_the_tier_is_full(tmp_path: Path) -> None:
    """Without one it goes, and git-annex says what is missing."""
    with full_tier(tmp_path, drop=True) as (places, filler):
        run = dropping_one(places, tmp_path / "log")
        assert run.next_up() is None
        run.dropping.clear()
        assert run.next_up() == "sub-04"
        filler.unlink()
        run = dropping_one(places, tmp_path / "log")
        assert run.next_up() == "sub-04"


def dropping_one(places: Places, log: Path) -> Fetcher:
    """While images of one are dropped, another's turn comes."""
    selected = selected_by(places.index / "images.tsv")
    run = Fetcher(load_settings(places.results), places, {name: selected[name] for name in ("sub-03", "sub-04")}, log)
    del run.waiting["sub-03"]
    run.dropping[os.getpid()] = "sub-03"
    run.called.append("sub-04")
    return run


def test_contents_that_others_wait_for_are_not_dropped(tmp_path: Path) -> None:
    """git-annex drops contents, and those of sidecars are often the same for everyone."""
    places = fetched_run(tmp_path, drop=True, alike=("03", "04"))
    clone = Path(json.loads((places.index / "dataset.json").read_text())["path"])
    git(clone, "annex", "get", "--quiet", ".")
    selected = selected_by(places.index / "images.tsv")
    images = {
        name: [replace(image, content=os.readlink(clone / image.path).rpartition("/")[2]) for image in selected[name]]
        for name in ("sub-03", "sub-04", "sub-05")
    }
    log = tmp_path / "log"
    log.touch()
    dropper = Fetcher(load_settings(places.results), places, images, log)
    dropper.waiting.clear()
    dropper.ahead = {"sub-04"}
    dropper.drop("sub-03")
    assert {"sub-03", "sub-04"} <= here(places).keys()
    dropper.drop("sub-05")
    assert "sub-05" not in here(places)
    dropper.ahead = set()
    dropper.drop("sub-04")
    assert not {"sub-03", "sub-04"} & here(places).keys()


def test_a_batch_keeps_contents_that_another_still_needs(tmp_path: Path) -> None:
    """As on a cluster, where batch 1 has been fetched and waits when batch 0 ends."""
    places = fetched_run(tmp_path, drop=True, alike=("03", "04"))
    table, settings = places.index / "images.tsv", load_settings(places.results)
    git(load_dataset(places).path, "annex", "get", "--quiet", ".")
    write_table(table, "images", index_dataset(load_dataset(places), settings.dataset).rows())
    write_json(places.batches_file, {"next": 2, "batches": {"0": ["sub-03", "sub-05"], "1": ["sub-04"]}})
    log = tmp_path / "log"
    for number, names in read_batches(places).items():
        for name in names:
            write_json(places.record(name), {})
        write_json(places.batch(number), {})
        assert drop_batch_images(places.results, names, places.dropped(number), log) == 0
        assert ({"sub-03", "sub-04"} <= here(places).keys()) == (number == "0")
        assert "sub-05" not in here(places)
    assert not {"sub-03", "sub-04"} & here(places).keys()


def test_what_a_killed_run_has_fetched_counts_and_is_not_fetched_again(tmp_path: Path) -> None:
    places = fetched_run(tmp_path)
    allow_ahead(places, 2 * largest_bytes(tmp_path))
    with fetcher(places):
        wait_for(lambda: len(here(places)) == 2)
    remove_whatever(places.fetch)  # as the next start does
    with fetcher(places):
        wait_for(lambda: noted(places, NAMES[0]) and noted(places, NAMES[1]))
        time.sleep(ENOUGH_S)
        assert list(here(places)) == NAMES[:2]
        take_turn(places, NAMES[4])  # whose turn has come is not ahead, whoever else is
        wait_for(lambda: noted(places, NAMES[4]))
        assert list(here(places)) == [*NAMES[:2], NAMES[4]]
    assert [noted(places, name)["fetched_files"] for name in (*NAMES[:2], NAMES[4])] == [0, 0, 1]  # type: ignore[index]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_who_waits_looks_once_a_second_and_makes_nothing(tmp_path: Path) -> None:
    """Its results may lie on a tier that 25 of them share with others."""
    places, log = fetched_run(tmp_path), tmp_path / "calls"
    lock = fetching(places)
    with working(lock):  # somebody fetches, and is slow
        batch = analysis(places, "strace", "-D", "-f", "-qq", "-P", str(lock), "-P", str(lock.parent), "-o", str(log))
        try:
            wait_for(lambda: log.exists() and log.read_text().count("flock") > 1)
            began_s, before = time.monotonic(), log.read_text()
            time.sleep(5 * ENOUGH_S)
            calls, took_s = log.read_text()[len(before) :], time.monotonic() - began_s
        finally:
            batch.kill()
            batch.communicate()
    assert "mkdir" not in calls
    assert "O_CREAT" not in calls
    assert 1 <= calls.count("flock") <= 5 + took_s


def test_if_the_job_that_fetches_is_killed_each_is_fetched_at_its_turn(tmp_path: Path) -> None:
    places = fetched_run(tmp_path, sleep_s=0.5, ahead=1)
    with fetcher(places) as fetching_job:
        batch = analysis(places)
        wait_for(lambda: done(places))
        fetching_job.kill()
        output, _ = batch.communicate(timeout=2 * PATIENCE_S)
    assert batch.returncode == 0, output
    assert done(places) == [name for name in NAMES if name != BROKEN]
    assert "nobody else fetches its images" in (places.results / "analyze-participants.log").read_text()


def test_a_fetch_that_is_killed_fails_its_participant_alone(tmp_path: Path) -> None:
    places = fetched_run(tmp_path)
    with fetcher(places) as process:
        wait_for(lambda: all(noted(places, name) for name in NAMES) or process.poll() is not None)
    note_fetched(places, "sub-03", {"failed": 137})  # as of a copy that was killed
    batch = analysis(places)
    output, _ = batch.communicate()
    assert batch.returncode == 0, output
    assert done(places) == ["sub-01", "sub-04", "sub-05"]
    assert "was killed" in json.loads(file_of(places.failures, "sub-03").read_text())["reason"]


def test_who_cannot_be_fetched_fails_alone(tmp_path: Path) -> None:
    places = fetched_run(tmp_path, get_attempts=1)
    git(tmp_path / "bids", "annex", "drop", "--force", t1w("03"))
    with fetcher(places):
        batch = analysis(places)
        output, _ = batch.communicate()
    assert batch.returncode == 0, output
    assert json.loads(file_of(places.failures, "sub-03").read_text())["exit_code"] == 69
    assert done(places) == ["sub-01", "sub-04", "sub-05"]
    assert json.loads((places.batch("0")).read_text())["failed"] == {"sub-02": 65, "sub-03": 69}


def test_damaged_notes_are_no_notes(tmp_path: Path) -> None:
    places = Places(*[tmp_path] * 5)
    note_fetched(places, "A/sub-01", {"end_s": 1.0})
    assert noted(places, "A/sub-01") == {"end_s": 1.0}
    places.fetched("A/sub-01").write_text('{"end_s": ')
    assert noted(places, "A/sub-01") is None


@NEEDS_ROOT
def test_a_tier_without_room_gets_nobody_ahead_of_its_turn(tmp_path: Path) -> None:
    with full_tier(tmp_path) as (places, filler), fetcher(places):
        time.sleep(ENOUGH_S)
        assert not here(places)
        take_turn(places, "sub-01")
        wait_for(lambda: noted(places, "sub-01"))
        assert noted(places, "sub-01")["failed"] == 69  # type: ignore[index]
        assert "free space" in json.loads(file_of(places.failures, "sub-01").read_text())["reason"]
        filler.unlink()
        wait_for(lambda: len(here(places)) == 4)
