"""The pool of a share: everyone for itself, nobody twice, no more than fits, and nothing left however it ends."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from clones import WEBDAV, note_remote
from configured import tier
from neurotier.core.errors import SourceError, TierError
from neurotier.core.files import read_json, write_json
from neurotier.core.parallelism import COMPUTING_PHASES, job_spans, peak
from neurotier.core.places import Places
from neurotier.dataset.index import index_dataset
from neurotier.dataset.source import Dataset, obtain
from neurotier.meter.measure import Interrupted
from neurotier.run.jobs import dataset_json, load_dataset, load_settings
from neurotier.run.journal import entries
from neurotier.run.needs import Granted, Needs
from neurotier.run.pool import ANALYSE, DROP, FETCH, Child, Children, Pool, Request
from pool_jobs import RUN, done_in, image, job, prepared_results, rehearsal_of, said_by, sleepers, sleeping, write_index
from support import (
    JOB_ENVIRONMENT,
    PATIENCE_S,
    committed,
    git,
    plain_dataset,
    private_folder,
    quiet,
    script,
    t1w,
    wait_for,
)


def places_of(results: Path) -> Places:
    return Places.from_settings(load_settings(results))


def record(results: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_json(places_of(results).record(name))
    return found


def begin_elsewhere(places: Places) -> None:
    """The run of the jobs has begun, on a cluster."""
    write_json(places.runs / f"{RUN}.json", {"run": RUN, "started_s": time.time(), "elsewhere": True})
    places.latest_run.write_text(f"{RUN}\n")


def test_a_job_that_comes_after_its_run_does_nothing(tmp_path: Path) -> None:
    """What Slurm starts late, for a run that is over, others do by now."""
    (tmp_path / "own.yaml").write_text(rehearsal_of(threads=2))
    tool = {"name": "rehearsal", "rehearsal": {"profile": str(tmp_path / "own.yaml")}}
    results = prepared_results(tmp_path, ["00"], tool=tool)
    places = places_of(results)
    begin_elsewhere(places)
    places.latest_run.write_text("another-run\n")
    assert "another run has begun since this job was submitted" in said_by(job(results), 75)
    assert not (results / "pool.log").exists()
    places.latest_run.write_text(f"{RUN}\n")
    said_by(job(results, SLURM_MEM_PER_NODE="7"))
    assert done_in(results) == ["sub-00"]
    begin, end = entries(places, RUN, "job")
    assert ("exit_code" in begin, end["exit_code"], end["asked_memory_bytes"]) == (False, 0, 7 << 20)
    assert (begin["slots"], begin["needed_cpus"], begin["cpus"]) == (1, 2, len(os.sched_getaffinity(0)))
    assert end["elapsed_s"] == pytest.approx(end["ended_s"] - begin["started_s"])
    made = record(results, "sub-00") | {"tool_version": "2"}
    write_json(places.record("sub-00"), made)
    write_json(results / "index/tool.json", {"name": "rehearsal", "version": "2"})  # which is not here any more
    assert said_by(job(results)) == ""
    assert record(results, "sub-00") == made, "who is done is not done again"
    assert entries(places, RUN, "job")[-1]["asked_memory_bytes"] is None


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_job_that_slurm_has_started_again_spoils_its_runs_times(tmp_path: Path, elsewhere: bool) -> None:
    """A campaign in such a job does not: it has done its run from the beginning."""
    results = prepared_results(tmp_path, ["00"])
    if elsewhere:
        begin_elsewhere(places_of(results))
    said_by(job(results, SLURM_RESTART_COUNT="1"))
    assert done_in(results) == ["sub-00"]
    assert len(entries(places_of(results), RUN, "again")) == elsewhere


@pytest.mark.parametrize(
    ("number", "whole_group", "beside"),
    [(signal.SIGTERM, False, 0), (signal.SIGINT, True, 0), (signal.SIGTERM, False, 2)],
)
def test_a_pool_that_is_ended_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, whole_group: bool, beside: int
) -> None:
    """A scheduler signals one process, a terminal all of them at the same time. Some may wait for their turn."""
    results = sleeping(tmp_path, 1000, "01", "02", "03", shares={"staging_beside": beside})
    work, computing = places_of(results).work, 1 if beside else 2
    pool = job(results, threads=computing)
    tools = sleepers(pool, computing)
    staged = computing + beside
    wait_for(lambda: len(list(work.glob("*/in/*/*/*.nii.gz"))) == staged, pool)
    family = [*tools, *psutil.Process(pool.pid).children(recursive=True)]
    for process in [psutil.Process(pool.pid), *(family if whole_group else [])]:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    assert "Traceback" not in said_by(pool, 128 + number)
    assert not [process for process in family if process.is_running()]
    assert not work.exists() or not os.listdir(work)
    assert done_in(results) == []


@pytest.mark.parametrize("parent", [False, True])
def test_children_end_with_the_pool_and_the_pool_with_its_parent(tmp_path: Path, parent: bool) -> None:
    results = sleeping(tmp_path, 1000, "01", "02")
    pool = job(results, before=["sh", "-c", '"$@" & wait', "sh"] if parent else [])
    family = [*sleepers(pool, 2), *psutil.Process(pool.pid).children(recursive=True)]
    pool.kill()
    pool.wait()  # not for the end of its output, which who is left would hold open
    _, left = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert not left, left


def test_who_fails_or_could_not_be_fetched_keeps_no_old_record(tmp_path: Path) -> None:
    """It would pass for one of the tool that is there now, and the run end as if everyone were done."""
    results = prepared_results(tmp_path, ["01", "02"])
    said_by(job(results))
    write_json(results / "index/tool.json", {"name": "noop", "version": "1"})
    write_json(results / "state/got/1-of-1", {"participants": {"sub-02": {"failed": 69}}})
    said_by(job(results, NEUROTIER_RUN="again"))
    assert done_in(results) == ["sub-01"]
    write_json(results / "index/tool.json", {"name": "noop", "version": "2"})
    assert "neurotier: sub-01: tool 'noop': its version is 1 on " in said_by(job(results, NEUROTIER_RUN="later"))
    assert done_in(results) == []
    assert read_json(places_of(results).failure("sub-01"))["exit_code"] == 70
    assert read_json(results / "state/shares/1-of-1") == {"failed": {"sub-01": 70, "sub-02": 69}}
    write_json(results / "index/tool.json", {"name": "noop", "version": "1"})
    said_by(job(results, NEUROTIER_RUN="again"))
    plain_dataset(tmp_path / "bids", {t1w("01"): b"no image"})
    write_json(results / "state/runs/forced.json", {"forced": True})
    said_by(job(results, NEUROTIER_RUN="forced"))
    assert done_in(results) == []


def test_nobody_of_a_dataset_that_must_be_valid_is_analysed_if_it_is_not_or_nobody_has_looked(tmp_path: Path) -> None:
    results = prepared_results(tmp_path, ["01"], dataset={"validation": "require"})
    places = places_of(results)
    said_by(job(results))
    assert read_json(places.failure("sub-01"))["exit_code"] == 73
    write_json(places.validation(""), {"errors": {"EMPTY_FILE": 1}})
    assert "neurotier: dataset: is not valid BIDS: EMPTY_FILE (1)" in said_by(job(results))
    assert read_json(places.failure("sub-01"))["exit_code"] == 65
    assert done_in(results) == []


def test_what_killed_jobs_have_left_in_memory_is_removed(tmp_path: Path, memory_folder: Path) -> None:
    """Whatever results they were for, and though this run has its intermediates elsewhere."""
    (tmp_path / "slow").mkdir()
    tiers = {"memory": tier(memory_folder), "slow": tier(tmp_path / "slow", kind="block")}
    results = prepared_results(tmp_path, ["01"], tiers=tiers)
    left, unused = (private_folder(path) / "work/others/sub-09" for path in (memory_folder, tmp_path / "slow"))
    for folder in (left, unused):
        folder.mkdir(parents=True)
        folder.parents[2].chmod(0o700)
        write_json(folder / "owner.json", {"host": socket.gethostname(), "locked": True})
    assert "Analysing 1 of 1 participant: sub-01\n" in said_by(job(results))
    assert (left.exists(), unused.exists()) == (False, True), "another tier is not looked at if it is not used"


def test_one_computes_while_others_copy_and_their_wait_is_no_part_of_a_phase(tmp_path: Path) -> None:
    results = sleeping(tmp_path, 2, "01", "02", "03", "04", shares={"staging_beside": 2})
    said_by(job(results, threads=1))
    found = [record(results, name) for name in done_in(results)]
    rows = [phase | {"participant": made["participant"]} for made in found for phase in made["phases"]]

    def at_once(*phases: str) -> int:
        return peak(job_spans([row for row in rows if row["phase"] in phases]))

    assert at_once(*COMPUTING_PHASES) == 1
    assert at_once(*{row["phase"] for row in rows} - {"start_up"}) == 3
    assert max(map(at_once, ("stage_in", "stage_out"))) <= 2
    waited = [made for made in found if made["slot_wait_s"] > 0.25]
    assert len(waited) == 3, "all but the first"
    for made in waited:
        ends = {phase["phase"]: phase for phase in made["phases"]}
        assert ends["compute"]["start_s"] - ends["stage_in"]["end_s"] > 0.9 * made["slot_wait_s"]


def test_who_copies_takes_little_memory_beside_those_who_compute(tmp_path: Path) -> None:
    """As much was asked for; with full memory for everyone, nobody would ever be beside."""
    own = {"command": "cp {input} {output}/brain.nii.gz", "brain": "brain.nii.gz", "memory_mb": 1000}
    results = prepared_results(tmp_path, [], tool={"name": "own", "own": own}, shares={"staging_beside": 2})
    places, names = places_of(results), [f"sub-0{number}" for number in range(5)]
    write_index(places, [image(name.removeprefix("sub-")) for name in names])
    needs = Needs(load_settings(results), places, on_cluster=False)
    needs.slots = 2
    asked = needs.share("1-of-1")
    assert asked.memory_mb == 2 * 1000 + 2 * 100
    for memory_mb, present in ((asked.memory_mb, 4), (asked.memory_mb - 1, 3), (1999, 1)):
        pool = Pool(needs, Request(share="1-of-1"), asked._replace(memory_mb=memory_mb), results / "pool.log")
        for name in names:
            if pool.may_analyse(name):
                pool.children.running[name] = Child(ANALYSE, name, 0, name)  # type: ignore
        assert len(pool.children.running) == present


LABELS = ("01", "02", "03", "04", "05")
NAMES = [f"sub-{label}" for label in LABELS]
BROKEN = "sub-02"
WHOLE = [name for name in NAMES if name != BROKEN]


def cloned(folder: Path, alike: Sequence[str] = (), padded_bytes: int = 0, **sections: Any) -> Places:
    """A results folder whose dataset is a clone without contents; one image is no image, and some are alike."""
    results = sleeping(folder, 0.2, *LABELS, **sections)
    source = folder / "bids"
    broken = source / t1w(BROKEN.removeprefix("sub-"))
    broken.write_bytes(b"no image" + broken.read_bytes()[8:])
    for label in alike:
        (source / t1w(label)).write_bytes((source / t1w(alike[0])).read_bytes())
    for number, label in enumerate(LABELS if padded_bytes else ()):
        with (source / t1w(label)).open("ab") as file:  # gzip ignores what follows its last member
            file.write(b"x" * (padded_bytes - number - file.tell()))
    committed(source, annexed=True)
    settings, places = load_settings(results), places_of(results)
    places.datasets.mkdir(parents=True, exist_ok=True)
    made = obtain(settings.dataset, str(source), places.datasets, quiet)
    write_json(places.index / "dataset.json", dataset_json(made))
    write_index(places, index_dataset(made, settings.dataset, None, quiet).images)
    return places


def here(places: Places) -> dict[str, int]:
    """Participants whose images are on the dataset tier, with the size of each, bytes."""
    found = {}
    for label in LABELS:
        with suppress(FileNotFoundError):
            found[f"sub-{label}"] = (load_dataset(places).path / t1w(label)).stat().st_size
    return found


@pytest.mark.parametrize("ahead", [0, 2])
def test_no_more_is_on_the_tier_than_allowed_and_what_is_computed(tmp_path: Path, ahead: int) -> None:
    """With 0, everyone is larger than what is allowed, and comes all the same: at its turn."""
    places = cloned(tmp_path, dataset={"drop": True})
    largest_bytes = max((tmp_path / "bids" / t1w(label)).stat().st_size for label in LABELS)
    settings = read_json(places.settings_file)
    settings["dataset"]["ahead"] = ahead * largest_bytes
    write_json(places.settings_file, settings)
    pool, seen = job(places.results, threads=1), []
    while pool.poll() is None:
        first, second = here(places), here(places)  # each takes a while: what both have was there in between
        seen.append({name: size for name, size in first.items() if name in second and name != BROKEN})
        time.sleep(0.005)
    said_by(pool)
    assert done_in(places.results) == WHOLE
    assert max(sum(each.values()) for each in seen) <= (ahead + 1) * largest_bytes
    assert max(map(len, seen)) >= ahead, "nothing was fetched ahead"
    assert set(here(places)) == {BROKEN}, "who failed is kept"


def test_what_is_fetched_before_the_analysis_stays_and_is_not_fetched_again(tmp_path: Path) -> None:
    """For the nodes of a cluster, and for the target ``ready``, though images are dropped after their analysis."""
    places = cloned(tmp_path, dataset={"drop": True})
    write_json(places.got("1-of-1"), {"participants": {"sub-01": {"failed": 69}}})  # the last time
    said_by(job(places.results, "fetch-images"))
    assert list(here(places)) == NAMES
    fetched = read_json(places.got("1-of-1"))["participants"]
    assert {name: fetched[name]["fetched_files"] for name in NAMES} == dict.fromkeys(NAMES, 1)
    said_by(job(places.results, "fetch-images"))
    again = read_json(places.got("1-of-1"))["participants"]
    assert [again[name]["fetched_files"] for name in NAMES] == [0] * len(NAMES)
    places.got("1-of-1").unlink()
    said_by(job(places.results))
    took = record(places.results, "sub-01")["got"]
    assert {took[name] for name in ("wall_s", "cpu_s", "run_queue_s", "fetched_files")} == {0}


def test_a_fetch_that_is_killed_is_tried_once_more(tmp_path: Path) -> None:
    places = cloned(tmp_path)
    pool = job(places.results)

    def fetching() -> psutil.Process | None:
        with suppress(psutil.NoSuchProcess):  # others of the family come and go meanwhile
            family = psutil.Process(pool.pid).children(recursive=True)
            return next((one for one in family if one.name() == "git-annex"), None)
        return None

    child = wait_for(fetching, pool).parent()
    assert child is not None
    child.kill()
    assert "is tried once more" in said_by(pool)
    assert done_in(places.results) == WHOLE
    assert f"{BROKEN}: failed in this run already, and is not tried again" in said_by(job(places.results, attempt=2))
    assert len(entries(places, RUN, "again")) == 1


def test_a_child_that_cannot_be_started_now_is_started_when_another_has_ended(tmp_path: Path) -> None:
    """A limit of processes or open files is met in the middle of a run: who is being analysed loses nothing."""
    waiting = f"while [ ! -e {tmp_path}/over-$(basename $1) ]; do sleep 0.1; done"
    script(tmp_path / "waits", f'{waiting}\ncp "$1" "$2/brain.nii.gz"')
    own = {"command": f"{tmp_path}/waits {{input}} {{output}}", "brain": "brain.nii.gz", "memory_mb": 1}
    results = prepared_results(tmp_path, ["01", "02", "03"], tool={"name": "own", "own": own})
    pool, work = job(results), places_of(results).work

    def staged() -> list[str]:
        return [file.name for file in work.glob("*/in/*/*/*.nii.gz")]

    sleepers(pool, 2)
    first, process = staged()[0], psutil.Process(pool.pid)
    before, few = process.rlimit(resource.RLIMIT_NOFILE), process.num_fds()
    process.rlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    (tmp_path / f"over-{first}").touch()
    wait_for(lambda: len(done_in(results)) == 1 and process.num_fds() < few, pool)
    process.rlimit(resource.RLIMIT_NOFILE, before)
    for label in ("01", "02", "03"):
        (tmp_path / f"over-{Path(t1w(label)).name}").touch()
    said_by(pool)
    assert done_in(results) == ["sub-01", "sub-02", "sub-03"]
    assert len((results / "pool.log").read_text().split("exit code 0")) == 4, "nobody was tried twice"


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pool:
    """The pool of a job on a cluster, with three participants and images of a byte each."""
    monkeypatch.setenv("NEUROTIER_RUN", RUN)
    places = places_of(prepared_results(tmp_path, ["01", "02", "03"]))
    begin_elsewhere(places)
    write_index(places, [image(label) for label in ("01", "02", "03")])
    needs = Needs(load_settings(places.results), places, on_cluster=True)
    return Pool(needs, Request(share="1-of-1"), Granted(2, 1000, 500, at_once=2), places.results / "pool.log")


def test_a_lost_dataset_tier_fails_who_fetches_and_nobody_else(pool: Pool, tmp_path: Path) -> None:
    pool.tiers["dataset"] = pool.tiers["dataset"]._replace(path=tmp_path / "gone")
    assert pool.may_fetch("sub-03")
    pool.children.running = {name: Child(ANALYSE, name, 0, name) for name in ("sub-01", "sub-02")}  # type: ignore
    assert not pool.may_fetch("sub-03"), "ahead"


def test_why_a_node_was_at_fault_is_what_its_first_participant_says_who_failed_so(pool: Pool) -> None:
    pool.job = {"members": "sub-01 sub-02 sub-03", "started_s": time.time()}
    for name, code in (("sub-01", 65), ("sub-02", TierError.exit_code), ("sub-03", TierError.exit_code)):
        write_json(pool.places.failure(name), {"run": RUN, "exit_code": code, "reason": f"{name} says why"})
    whys = {0: None, 65: None, 73: "sub-02 says why", 71: "exit code 71"}
    pool.places.latest_run.write_text("another-run\n")  # whoever waits for it needs its end
    for code in whys:
        pool.note_job(code)
    assert {one["exit_code"]: one["fault_of_node"] for one in entries(pool.places, RUN, "job")} == whys


def test_the_failure_of_a_child_that_was_killed_names_the_log_that_it_wrote(pool: Pool) -> None:
    logs = {ANALYSE: pool.places.log("sub-01"), FETCH: pool.log}
    for stage, log in logs.items():
        assert pool.note_killed("sub-01", stage, signal.SIGKILL) == 137
        assert read_json(pool.places.failure("sub-01"))["log"] == str(log)


def test_a_child_that_is_interrupted_ends_as_by_that_signal() -> None:
    def interrupted(_: object) -> int:
        raise Interrupted(signal.SIGTERM)

    children = Children()
    children.start(ANALYSE, "sub-01", interrupted)
    assert [code for _, _, code in children.wait()] == [128 + signal.SIGTERM]


def test_who_found_the_tier_full_is_analysed_again_and_whose_images_are_gone_fetched_first(pool: Pool) -> None:
    """So are both of two who fill it together; what the run took says nothing of its tier then."""
    pool.fetches, pool.fetched = True, {"sub-02": {"wall_s": 1.0}}
    pool.children.running["sub-03"] = Child(ANALYSE, "sub-03", 0, "sub-03")  # type: ignore
    for name, code in (("sub-01", TierError.exit_code), ("sub-02", SourceError.exit_code)):
        pool.handle_end(Child(ANALYSE, name, 0, name), code)  # type: ignore
    assert ([*pool.to_analyse], [*pool.to_fetch]) == (["sub-01"], ["sub-02"])
    pool.children.running.clear()
    for _ in range(2):
        pool.handle_end(Child(ANALYSE, "sub-03", 0, "sub-03"), TierError.exit_code)  # type: ignore
    assert ([*pool.to_analyse], pool.exit_codes) == (["sub-01", "sub-03"], {"sub-03": TierError.exit_code})
    assert len(entries(pool.places, RUN, "again")) == 2


def test_what_two_versions_of_a_tool_make_is_made_by_two_activities(pool: Pool) -> None:
    pool.settings, made = replace(pool.settings, results_dataset=True), set[str]()
    for version in ("1", "2"):
        pool.wanted = pool.wanted._replace(tool={"version": version})
        pool.prepare([], [])
        made.add(pool.activity)
    assert len(made) == 2


def test_the_time_left_is_estimated_from_those_who_ended_since_the_start(
    pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    pool.count, pool.known, pool.began_s = 8, 1, time.monotonic() - 3600
    for ended in (1, 3, 8):
        pool.exit_codes, pool.said_s = dict.fromkeys("abcdefgh"[:ended], 0), -1000.0
        pool.handle_end(Child(FETCH, "h", 0, "h"), 0)  # type: ignore
    counts = [f"{ended} of 8 participants done, 0 failed" for ended in (1, 3, 8)]
    assert capsys.readouterr().err.splitlines() == [counts[0], f"{counts[1]}, about 2.5 h left", counts[2]]


def test_what_just_fits_is_fetched(pool: Pool) -> None:
    pool.granted = pool.granted._replace(at_once=0)
    pool.to_analyse.append("sub-01")
    for limit_bytes, is_fetched in ((1, False), (2, True)):
        pool.limit_bytes = limit_bytes
        assert pool.may_fetch("sub-02") is is_fetched


def test_contents_that_somebody_needs_who_is_not_done_are_not_dropped(tmp_path: Path) -> None:
    """As on a cluster, where one share has been fetched and waits when another ends."""
    places = cloned(tmp_path, alike=("03", "04"), dataset={"drop": True})
    git(load_dataset(places).path, "annex", "get", ".")
    for name in ("sub-03", "sub-05", "sub-04"):
        write_json(places.record(name), {})
        assert "images stay" not in said_by(job(places.results, "drop-images"))
        assert ({"sub-03", "sub-04"} <= here(places).keys()) == (name != "sub-04")
    write_json(places.record("sub-01"), {})
    (tmp_path / "bids").rename(tmp_path / "gone")
    assert "sub-01: images stay on the dataset tier: " in said_by(job(places.results, "drop-images"))
    assert set(here(places)) == {"sub-01", BROKEN}


def test_images_stay_if_git_annex_must_not_be_asked_to_drop_them(tmp_path: Path) -> None:
    """As with a password that it would send where the dataset says, to look for another copy."""
    places = cloned(tmp_path, dataset={"drop": True})
    clone = load_dataset(places).path
    git(clone, "annex", "get", ".")
    write_json(places.record("sub-01"), {})
    note_remote(clone, WEBDAV)
    said = said_by(job(places.results, "drop-images", WEBDAV_PASSWORD=RUN))
    assert re.search(r"sub-01: images stay on the dataset tier: .* with your WEBDAV_PASSWORD", said)
    assert "sub-01" in here(places)


def test_images_that_are_gone_again_are_not_fetched_on_a_node(tmp_path: Path) -> None:
    """It may have no way to fetch them."""
    places = cloned(tmp_path)
    said_by(job(places.results, "fetch-images"))
    begin_elsewhere(places)
    git(load_dataset(places).path, "annex", "drop", "--force", t1w("03"))
    said = said_by(job(places.results), 69)
    assert "Traceback" not in said
    assert "its content is not on the dataset tier" in read_json(places.failure("sub-03"))["reason"]
    assert done_in(places.results) == ["sub-01", "sub-04", "sub-05"]


@pytest.mark.parametrize("left", ["nothing", "an empty folder"])
def test_a_node_without_the_dataset_is_at_fault(tmp_path: Path, left: str) -> None:
    """Its file system is not mounted there, or is the node's own memory: the images are not gone."""
    results = prepared_results(tmp_path, ["00", "01"])
    places = places_of(results)
    begin_elsewhere(places)
    dataset = (tmp_path / "bids").rename(tmp_path / "there")
    if left != "nothing":
        (tmp_path / "bids").mkdir()
    why = f"dataset {tmp_path}/bids: nothing is there on {socket.gethostname()}; mount it, or place it on a tier that "
    assert why in said_by(job(results), 73)
    assert entries(places, RUN, "job")[-1]["fault_of_node"].startswith(why)
    assert read_json(places.failure("sub-01"))["reason"].startswith(why)
    if left != "nothing":
        (tmp_path / "bids").rmdir()
    dataset.rename(tmp_path / "bids")
    said_by(job(results))
    assert done_in(results) == ["sub-00", "sub-01"]


@pytest.mark.parametrize("drop", [True, False])
def test_a_full_dataset_tier_waits_for_a_drop(tmp_path: Path, mount_tmpfs: Callable[..., Path], drop: bool) -> None:
    """Without one, whose turn has come goes, and git-annex says what is missing."""
    tiers = {"small": tier(mount_tmpfs(tmp_path / "small", "size=150m"))}
    dataset = {"drop": drop, "get_attempts": 1}
    places = cloned(tmp_path, (), 20_000_000, tiers=tiers, placement={"dataset": "small"}, dataset=dataset)
    said_by(job(places.results, threads=1))
    failed = read_json(places.share("1-of-1"))["failed"]
    whys = [read_json(places.failure(name))["reason"] for name, code in failed.items() if code != 65]
    assert [len(whys), "free space" in "".join(whys)] == ([0, False] if drop else [3, True]), whys


class Dice(Children):
    """Children that dice end in place of the work of processes."""

    def __init__(self, dice: random.Random, check: Callable[[], None]) -> None:
        super().__init__()
        self.dice, self.check, self.ended = dice, check, dict[str, int]()
        self.analysed, self.last = defaultdict[str, list[int]](list), dict[str, tuple[str, int]]()

    def start(self, stage: str, name: str, _work: Callable[[Any], int]) -> None:
        self.running[object()] = Child(stage, name, 0, None)  # type: ignore[index,arg-type]
        self.check()

    def wait(self) -> Iterator[tuple[Child, Any, int | None]]:
        child = self.running.pop(self.dice.choice(list(self.running)))
        code = self.ended[child.name] = self.dice.choice([0, 0, 0, 0, 65, 69, 73, 137])
        if child.stage == ANALYSE:
            self.analysed[child.name].append(code)
        if child.stage != DROP:
            self.last[child.name] = child.stage, code
        if child.stage == FETCH and not code:
            yield child, {"end_s": time.time()}, None
        yield child, None, code


@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_granted_and_fails_nobody_waits_for_ever_and_nothing_is_overfilled(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    ahead, gets = dice.choice([None, 0, 40_000_000]), dice.randint(1, 3)
    dataset = {"ahead": ahead, "drop": dice.random() < 0.5, "concurrent_gets": gets}
    places = places_of(prepared_results(tmp_path, [], dataset=dataset))
    images = [image(str(number), dice.randint(1, 30_000_000), "") for number in range(dice.randint(1, 12))]
    write_index(places, images)
    write_json(places.index / "dataset.json", dataset_json(Dataset("x", tmp_path / "gone", "datalad", {}, {})))
    keep_going = dice.random() < 0.8
    write_json(places.runs / "manual.json", {"keep_going": keep_going})
    most_mb, work_mb, at_once = dice.randint(1, 1000), dice.randint(1, 500), dice.randint(1, 4)
    granted = Granted(at_once, most_mb, work_mb, at_once=min(at_once, len(images)))
    stage, attempt = dice.choice([ANALYSE, ANALYSE, FETCH, DROP]), dice.choice([1, 2])
    request = Request(stage, share="1-of-1", marker=places.share("1-of-1"), attempt=attempt)
    settings = load_settings(places.results)
    pool = Pool(Needs(settings, places, on_cluster=False), request, granted, places.results / "pool.log")
    on_node = Pool(Needs(settings, places, on_cluster=True), request, granted, pool.log)
    assert (on_node.limits[0] or 0) < most_mb, "Snakemake takes some of what the job is granted"
    begun, largest_bytes = 0, max(each.size_bytes or 0 for each in images)

    def check() -> None:
        nonlocal begun
        begun += 1
        analysing, fetching, dropping = map(pool.children.at, (ANALYSE, FETCH, DROP))
        assert len(analysing) <= at_once
        assert len(fetching) <= gets
        assert len(dropping) <= 1
        if len(analysing) > 1:
            memory_mb, room_mb, _ = map(sum, zip(*map(pool.needs_of, analysing), strict=True))
            assert memory_mb <= most_mb
            assert room_mb <= work_mb
            assert not [name for name in analysing if (name, TierError.exit_code) in pool.retried], "it is tried alone"
        there = {*analysing, *fetching, *dropping, *pool.to_analyse, *pool.to_drop}
        if ahead is not None and fetching and stage == ANALYSE:
            assert pool.bytes_of(there) <= ahead + at_once * largest_bytes
        assert begun <= 5 * len(images), "each is fetched and analysed twice at most, and dropped"

    pool.children = children = Dice(dice, check)
    names = [each.participant for each in images]
    for name in names if stage == DROP else ():
        write_json(places.record(name), {})
    pool.prepare(names, [])
    code = pool.run()
    assert [*pool.to_fetch, *pool.to_analyse, *pool.to_drop, *pool.children.running] == []
    failed = {name: each for name, each in pool.exit_codes.items() if each}
    if stage == DROP:
        assert failed == {name: each for name, each in children.ended.items() if each}
        again = [*failed.values()]
    else:
        assert len(pool.exit_codes) == len(images) or not keep_going
    if stage == FETCH:
        again = [each for each in failed.values() if each == 137 or not keep_going]
    elif stage == ANALYSE:
        for name, ended in pool.exit_codes.items():
            last, of_last = children.last[name]
            assert ended == of_last, "a drop that fails makes nobody fail"
            is_gone = (last, ended) == (ANALYSE, SourceError.exit_code)
            assert not is_gone or len(children.analysed[name]) == 2, "its images are fetched again"
        fetched = [name for name in failed if "failed" not in pool.fetched.get(name, {})]
        again = [failed[name] for name in fetched if failed[name] == 137 and attempt == 1]
    assert code == next(iter(again), 0)
    assert all(codes[0] in (69, 73) for codes in children.analysed.values() if len(codes) > 1), "who is tried once more"
    assert (code == 0) == places.share("1-of-1").exists()
    if stage == ANALYSE and min(at_once, len(images)) > 1:
        one, other = names[:2]
        pool.limits = tuple(map(sum, zip(pool.needs_of(one), pool.needs_of(other), strict=True)))  # type: ignore[assignment]
        children.start(ANALYSE, one, lambda _: 0)
        assert pool.may_analyse(other), "what is granted for two is enough for two"


def test_a_line_is_written_at_once() -> None:
    """Else lines of participants that are analysed at once run together where Python does not buffer."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        saying = "from neurotier.run.jobs import say; say('a line')"
        subprocess.run([sys.executable, "-u", "-c", saying], check=True, stderr=theirs.fileno(), env=JOB_ENVIRONMENT)
        assert ours.recv(100) == b"a line\n"
        closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", f"{saying}; print('and went on')"]
        assert subprocess.check_output(closed, env=JOB_ENVIRONMENT).endswith(b"and went on\n"), "as a daemon has it"
