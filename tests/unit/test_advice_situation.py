"""What the advice reads of results and machine: who fetches, who shares a job, what others took, what is cached."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from configured import settings_at
from neurotier.advice import rehearsal
from neurotier.advice import situation as advice_situation
from neurotier.advice.calibration import ObservedJob, analysis
from neurotier.advice.placements import AdvicePlan, free_gib
from neurotier.advice.predict import Fetching, Participant
from neurotier.advice.rehearsal import loading_s, run_job
from neurotier.advice.room import free_on, room_for
from neurotier.advice.situation import Situation, choose_first
from neurotier.advice.table import advice_row, advice_rows, at_parallelism, room_of
from neurotier.advice.words import AT_ONCE
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.files import write_json
from neurotier.core.parallelism import PHASES
from neurotier.core.places import Places
from neurotier.core.settings import ROLES
from neurotier.core.tiers import Tier
from neurotier.dataset.bids import size_of
from neurotier.model.machine import PageCache
from neurotier.model.this_machine import Probed
from neurotier.run.jobs import clone_on, load_settings
from neurotier.run.plan import Plan
from pool_jobs import sleeping
from probed_tiers import inputs_of, job_of, spent, tier_figures
from report_data import make_results
from shown_values import shown
from support import committed, git

HERE = dict.fromkeys(ROLES, "disk")
CAMPAIGN: dict[str, Any] = {
    "campaign": {"placements": {"here": {"work": "disk"}}, "parallelism": [1], "cache": ["cold"]}
}
ELSEWHERE: dict[str, Any] = {"advice": {"calibration": "elsewhere"}}
MEMORY = {"memory": {"path": "/dev/shm", "kind": "tmpfs"}}


def situation(
    folder: Path, *jobs: ObservedJob, checks: Sequence[Path] = (), kind: str = "demo", **sections: Any
) -> Situation:
    """Of five participants, none of whom is done; and of jobs that have been run."""
    places, settings = make_results(folder, 5)
    dataset = {"source": "x", "kind": kind, "path": str(folder / "bids"), "sites": {}, "unreachable": {}}
    write_json(places.index / "dataset.json", dataset)
    found = Situation(replace(settings_at(folder, **sections), results=settings.results), places, list(checks))
    if jobs:
        vars(found)["observed"] = list(jobs)
    return found


def job(name: str = "sub-01", **changes: Any) -> ObservedJob:
    """A job of 4 s, 2 s of them on a processor."""
    usual = job_of(100, {"cpu_s": 2.0}, participant=name, start_s=10.0, end_s=14.0, queue_s=1.0)
    return replace(usual, **changes)


def fetched(size_bytes: int, wait_s: float, files: int = 1) -> ObservedJob:
    got = {"wall_s": 4.0 + wait_s, "cpu_s": 3.0, "run_queue_s": 1.0, "fetched_files": files}
    return job(size_bytes=size_bytes, got=got)


def done(found: Situation, *names: str) -> None:
    for name in names:
        write_json(found.places.record(name), {})


def put(found: Situation, *names: str, hole: bool = False) -> None:
    """Images of participants into the dataset: just written, or such that no page was read or written."""
    for image in (image for name in names for image in found.participants[name]):
        file = clone_on(found.settings, found.places, "disk") / image.path
        file.parent.mkdir(parents=True, exist_ok=True)
        size_bytes = image.size_bytes or 0
        file.write_bytes(bytes(0 if hole else size_bytes))
        os.truncate(file, size_bytes)


def gets(count: int) -> dict[str, Any]:
    return {"dataset": {"concurrent_gets": count}}


TWICE = fetched(100, 2.0), fetched(300, 4.0)
"""2 s for 100 bytes and 4 s for 300: 1 s, and 0.01 s a byte."""


@pytest.mark.parametrize(
    ("jobs", "sections", "checks", "expected"),
    [
        (TWICE, gets(4), [], Fetching(1.5, 1.0, 0.01, 2, 2)),  # so many as were fetched
        (TWICE, gets(1), [], Fetching(1.5, 1.0, 0.01, 1)),
        # two of one size do not say how much of it is for their bytes: then it is all of it
        ([fetched(100, 2.0), fetched(100, 4.0)], gets(4), [], Fetching(1.5, 0, 0.03, 2, 2)),
        # several took more than passed
        ([fetched(100, -1.0), fetched(300, 2)], gets(3), [], Fetching(1.5, 0, 0.006, 2, 1)),
        ([fetched(100, 0.0, 0)] * 2, gets(4), [], Fetching(0.0, 0.0, 0.0, 4)),
        ([job()], {}, [], Fetching(0.0, 0.0, 0.0, 0)),  # nothing had to be fetched: not known
        (TWICE, {}, [Path("checked.tsv")], Fetching()),  # the head fetches
        (TWICE, CAMPAIGN, [], Fetching()),  # all is there before it
        (TWICE, ELSEWHERE | gets(3), [], Fetching(at_once=3)),
    ],
)
def test_what_fetching_took_is_that_of_its_bytes_and_half_of_its_cpu_time(
    tmp_path: Path, jobs: Sequence[ObservedJob], sections: dict[str, Any], checks: list[Path], expected: Fetching
) -> None:
    assert vars(situation(tmp_path, *jobs, checks=checks, **sections).fetching) == pytest.approx(vars(expected))


def test_participants_share_jobs_largest_first_as_many_as_compute_and_copy(tmp_path: Path) -> None:
    """Five of 1, 3, 2, 2 and 1 images: in one job here."""
    alone = situation(tmp_path)
    assert (alone.jobs, alone.copiers) == ([[1, 2, 3, 0, 4]], 0)
    beside = situation(tmp_path, shares={"staging_beside": 1})
    assert (beside.jobs, beside.copiers) == (alone.jobs, 1)
    spread = situation(tmp_path, checks=[Path("checked.tsv")], shares={"participants": 3})
    assert spread.jobs == [[1, 3, 4], [2, 0]]
    campaign = situation(tmp_path, shares={"staging_beside": 1}, **CAMPAIGN)
    everyone = list(campaign.participants)
    for found in (alone, campaign):
        done(found, everyone[0])
    assert (campaign.copiers, campaign.remaining, replace(alone).remaining) == (0, everyone, everyone[1:]), (
        "a campaign has all"
    )


def test_what_others_took_is_that_of_the_rehearsal_the_run_or_its_readings(tmp_path: Path) -> None:
    late = [job(run="late", start_s=start, end_s=start + 4.0) for start in (100.0, 102.0)]
    found = situation(tmp_path, job(run="early", start_s=1.0, end_s=200.0), *late)
    assert [found.others_share({"shared": {"others_cpu_share": share}}) for share in (0.25, 0)] == [0.25, 0]
    facts, readings = found.places.runs / "late.json", found.places.readings("late")
    for row, share in (({"others_cpu_share": 0.5}, 0.5), ({"others_cpu_share": None}, None), ({"other": 1}, None)):
        write_json(facts, {"row": row, "cpus": 2})
        assert found.others_share({}) == share
    write_json(facts, {"cpus": 2})
    readings.parent.mkdir(parents=True, exist_ok=True)
    # others took 3 of the 12 s of two processors between 100 and 106 s, and all of them after that
    readings.write_text("100 0 0 0 0 0\n106 0 9 6 0 0\n200 0 197 6 0 0\n")
    assert found.others_share({"shared": None}) == pytest.approx(3 / 12)
    assert situation(tmp_path, *late, **ELSEWHERE).others_share({}) is None
    readings.write_text("103 0 0 0 0 0\n")
    assert found.others_share({}) is None, "not watched from its start to its end"


def test_what_is_here_and_cached_is_not_fetched_or_read(tmp_path: Path) -> None:
    """In a plain folder 2 of 5 participants' images are there, 4 of all 9, and were just written, or never read."""
    found = situation(tmp_path, kind="folder", advice={"participants": 2})
    first, second, *others = found.remaining
    assert found.resident("as found", "disk") == 1, "what is yet to be fetched will be cached"
    put(found, first, second)
    sizes = {name: size_of(found.participants[name]) for name in others}
    assert found.to_fetch("disk") == {first: 0, second: 0} | sizes
    assert [found.resident(cache, "disk") for cache in ("cold", "warm")] == [0, 1]
    assert found.resident("as found", "disk") == pytest.approx(1.0, abs=1e-3)
    put(found, first, second, hole=True)
    assert found.resident("as found", "disk") == pytest.approx(5 / 9)
    assert (found.plan.is_plain, clone_on(found.settings, found.places, "disk")) == (True, tmp_path / "bids")
    assert set(choose_first(found)) == {first, second}
    clone = situation(tmp_path)
    datasets = Tier.from_settings(clone.settings.tiers["disk"]).folder("datasets")
    assert clone_on(clone.settings, clone.places, "disk") == datasets / "bids"


CORES = len(os.sched_getaffinity(0))


def test_the_model_is_given_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing took 1.5 and 2.5 times as long as alone: twice."""
    jobs = [job(queue_s=1.0), job("sub-02", queue_s=3.0)]
    rehearsed = {"shared": {"records": [], "others_cpu_share": 0.125}, "load_s": {"compute": 1.0}, "why": "w"}
    found, campaign = situation(tmp_path, *jobs, kind="folder"), situation(tmp_path, *jobs, kind="folder", **CAMPAIGN)
    given = found.inputs([], rehearsed)
    assert given.processors.others == pytest.approx(0.125 * CORES * 2)
    assert (given.observed, given.load_s, given.others_cpu_share) == (jobs, None, 0.125)
    assert given.participants == [
        Participant(count * 9_000_000, to_fetch_bytes=count * 9_000_000, images=count) for count in (1, 3, 2, 2, 1)
    ]
    assert (given.jobs, given.copiers) == (found.jobs, 0)
    app = situation(tmp_path, *jobs, kind="folder", app={"image": "app.sif"}, in_containers=True)
    assert {one.images for one in app.inputs([], rehearsed).participants} == {1}, "an app takes all at once"

    with monkeypatch.context() as quota:  # of one core: the others have what it leaves
        quota.setattr(advice_situation, "usable_cores", lambda: 1.0)
        assert found.inputs([], rehearsed).processors.others == max(0.0, given.processors.others - CORES + 1)
    known = campaign.inputs([], rehearsed)
    assert (known.load_s, known.load_unknown_because) == ({"compute": 1.0}, "w")
    probe = Probed(*[tier_figures("block", {1: 1.0}, {1: 1.0})] * 3)
    ready = replace(known, probes={"disk": probe}, page_cache=PageCache(1.0, expiry_s=7.0))
    storage = campaign.storage(HERE, "cold", ready)
    assert (storage.figures, storage.expiry_s) == ({"disk": probe.usual}, 7.0)
    assert (storage.resident, storage.load_s) == (0, {"compute": 1.0})
    for cache, load_s in (("warm", {"compute": 1.0}), ("cold", None)):
        assert campaign.storage(HERE, cache, replace(ready, load_s=load_s)).load_s == {}


def test_who_is_analysed_first(tmp_path: Path) -> None:
    """Those who are done, if there are enough; of five whose images are nowhere, nobody."""
    found = situation(tmp_path, advice={"participants": 2})
    first, second, third, *_ = three = list(found.participants)[:3]
    done(found, first, second)
    assert set(choose_first(found)) == {first, second}
    done(found, third)
    chosen = choose_first(found)
    assert set(chosen) < set(three)
    elsewhere = situation(tmp_path / "elsewhere")
    put(elsewhere, *elsewhere.participants, hole=True)
    clone = clone_on(elsewhere.settings, elsewhere.places, "disk")
    source = committed(clone.rename(tmp_path / "source"), annexed=True)
    git(tmp_path, "clone", str(source), str(clone))
    assert choose_first(elsewhere), "whose images are known in one place"
    with pytest.raises((SettingsError, InputError)):
        choose_first(situation(tmp_path, **ELSEWHERE))
    assert choose_first(situation(tmp_path, job(), **ELSEWHERE)) == []
    nowhere = situation(tmp_path, job(), kind="folder")
    reasons = "its calibration is that of another results folder", "images of sub-01 are not here any more"
    for names, why in zip(([], ["sub-01"]), reasons, strict=True):
        assert nowhere.rehearse(names, tmp_path / "log") == {"shared": None, "load_s": {}, "why": why}


def test_those_of_the_calibration_are_analysed_once_more_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take some seconds, long after the epoch. Where the page cache is as it is found, nothing is dropped."""
    results, log, names = sleeping(tmp_path, 0.2, "1", "2"), tmp_path / "log", ["sub-1", "sub-2"]
    settings = load_settings(results)
    validity = replace(settings.validity, others_cpu_share=0.0)
    shares = iter([0.75, None])  # of the second try it is not known
    monkeypatch.setattr(rehearsal, "others_share", lambda *_: next(shares))
    found = Situation(replace(settings, validity=validity), Places.from_settings(settings))
    campaign = replace(settings.campaign, placements={"here": {}}, cache=["cold"])
    with monkeypatch.context() as kernel:
        kernel.setattr(rehearsal, "delays_accounted", lambda: True)
        kernel.setattr(rehearsal, "record_of", lambda _: SimpleNamespace(block_io_ns=250_000_000))
        assert run_job(found.places, names, log) == 0.25
    monkeypatch.setattr(rehearsal, "usable_cores", lambda: 0.4)  # of a quota
    known = found.rehearse(names, log)
    records = known["shared"]["records"]
    assert known["shared"]["others_cpu_share"] is None, "others disturbed the first"
    assert [record["participant"] for record in records] == names
    first, second = sorted((record["phases"][0]["start_s"], record["phases"][-1]["end_s"]) for record in records)
    assert first[1] <= second[0], "one after the other"
    assert (known["load_s"], known["why"]) == ({}, "")
    cold = replace(found, settings=replace(found.settings, campaign=campaign))
    vars(found)["observed"] = vars(cold)["observed"] = [job("sub-1", end_s=71.0)]
    assert found.rehearse(names, log)["shared"] is None, "that took a second more than a minute"
    for is_dropped, phases in ((False, set()), (True, {"start_up", "compute"})):
        monkeypatch.setattr(rehearsal, "drop", lambda is_dropped=is_dropped: is_dropped)
        assert set(cold.rehearse(names, log)["load_s"]) == phases, "only an empty page cache tells"
    monkeypatch.setattr(rehearsal, "run_job", lambda *given: 60.0 + 0.0 * run_job(*given))
    monkeypatch.setattr(rehearsal, "loading_s", lambda _: {"start_up": 1.0, "compute": 2.0})
    assert cold.rehearse(names, log)["load_s"] == {"start_up": 61.0, "compute": 2.0}


def test_programs_are_waited_for_with_storage_or_off_a_core() -> None:
    usage = {"wall_s": 3.0, "cpu_s": 1.0, "run_queue_s": None, "account_block_io_s": None}
    rows = [{"phase": "container_start", **usage}, {"phase": "compute", **usage, "cpu_s": 4.0}]
    assert loading_s([*rows, {"phase": "stage_out", **usage}]) == {"container_start": 2.0, "compute": 0.0}


def test_the_room_of_each_tier_is_set_against_its_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tier = Tier.from_settings(settings_at(tmp_path).tiers["disk"])
    own, free_bytes = free_on(tier)
    assert 0 < (free_bytes or 0) <= tier.usable_bytes() + (1 << 30)
    assert free_on(tier._replace(path=tmp_path / "gone"))[1] is None
    (tmp_path / "beside").mkdir()
    assert free_on(tier._replace(name="beside", path=tmp_path / "beside"))[0] == own, "it is on the same file system"
    alone = [free_on(tier._replace(name=name, capacity_bytes=5)) for name in ("disk", "beside")]
    assert len({own, *(room for room, _ in alone)}) == 3, "each may take as much"
    quota = shutil.disk_usage(tmp_path)._replace(total=9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: quota)
    assert free_on(tier)[0] != own, "another folder's free bytes are not those of a folder with a quota"
    assert free_on(tier)[0] != free_on(tier._replace(path=Path("/proc")))[0]
    monkeypatch.undo()
    tiers, needed = {"dataset": "a", "work": "a", "results": "b"}, {"dataset": 6, "work": 4, "results": 1}
    found, short = (room_for(tiers, needed, {"a": ("disk", free), "b": ("b", None)}) for free in (10, 9))
    both = room_for(tiers, needed, dict.fromkeys("ab", ("disk", 10)))
    assert both["reason"] == "needs 11 bytes (dataset and work and results) on a and b, has 10 bytes"
    assert shown(found, "fits reason work_needed_bytes work_free_bytes results_free_bytes") == "True - 4 10 -"
    assert shown(short, "fits reason") == "False needs 10 bytes (dataset and work) on a, has 9 bytes"
    settings = settings_at(tmp_path)
    room = free_gib(settings, HERE)["free_gib"]
    assert room == pytest.approx([tier.free_bytes() / (1 << 30)] * 4, abs=2)
    own = settings.tiers | {name: replace(settings.tiers[name], node=True) for name in {*HERE.values()}}
    assert free_gib(replace(settings, tiers=own), HERE) == {"free_gib": []}, "each node has room of its own"


def test_memory_bounds_how_many_are_predicted_at_once_and_each_takes_the_most_that_one_took(tmp_path: Path) -> None:
    """Room for two and a half of the five: two; and for one where there is not even that."""
    found, given = situation(tmp_path), inputs_of([job(max_rss_bytes=1 << 20)], participants=[Participant(1)] * 5)
    need_mb = found.plan.of(found.remaining[0]).mem_mb
    for room, expected, share in ((2.5, 2, 0.4), (0.5, 1, 1.0), (0, 1, 1.0), (99, 4, 0.0101)):
        inputs, at_once, _ = at_parallelism(found, given, HERE, 4, {"mem_mb": int(room * need_mb)})
        assert at_once == expected
        assert [one.share for one in inputs.participants] == pytest.approx([share] * 5, rel=0.02)
    few, at_once, _ = at_parallelism(found, given, HERE, 4, {})
    assert at_once == 4
    assert at_parallelism(found, given, HERE, 96, {})[1] == 5
    beside = situation(tmp_path, shares={"staging_beside": 1})
    assert at_parallelism(beside, given, HERE, 4, {"mem_mb": int(2.5 * need_mb)})[1] == 2
    much = at_parallelism(found, replace(given, observed=[*given.observed, job(max_rss_bytes=1 << 50)]), HERE, 1, {})[0]
    in_memory = HERE | {"work": "memory"}
    for work in ("disk", "memory"):  # what counts is where the candidate's files are, not those of the next run
        found = situation(tmp_path, tiers=MEMORY, placement={"work": work})
        fitting = [at_parallelism(found, given, one, 4, {"mem_mb": 4 * need_mb})[1] for one in (HERE, in_memory)]
        assert fitting == [4, 3]
    left = much.page_cache.available_bytes / few.page_cache.available_bytes
    assert left == pytest.approx(0.1, rel=0.2), "a tenth is always left"


EVERY_PHASE = job(phases=dict.fromkeys(PHASES, spent(cpu_s=1.0)))


def test_too_few_participants_are_not_taken_for_too_little_memory(tmp_path: Path) -> None:
    """Of five participants no more than five run at once, however many cores there are and whatever the memory."""
    found, figures = situation(tmp_path, tiers=MEMORY), tier_figures("block", {1: 1e8}, {1: 1e9})
    given = inputs_of([EVERY_PHASE], participants=[Participant(100)] * 5, probes={"disk": Probed(*[figures] * 3)})
    need_mb = found.plan.of(found.remaining[0]).mem_mb
    limits = [advice_row(found, given, HERE, "warm", 8, {"mem_mb": room * need_mb})["limit"] for room in (99, 2)]
    assert [AT_ONCE in limit for limit in limits] == [False, True]
    rows = advice_rows(found, given, [1, 8], {})
    assert [shown(row, "work_tier in_use parallelism") for row in rows] == ["disk True 1", "disk True 8"], "as probed"


def leaving(size_bytes: float) -> ObservedJob:
    """A job that leaves so much of one image."""
    left = job(size_bytes=9_000_000)
    left.phases["stage_out"] = spent(written_bytes=size_bytes)
    return left


def needed(found: Situation, work: int = 0) -> str:
    """Bytes that placing everything on the disk needs for dataset, work and results; nobody disturbed the rehearsal."""
    given = found.inputs([], {"shared": {"records": [], "others_cpu_share": 0.0}})
    return shown(room_of(found, given, HERE, work), "dataset_needed_bytes work_needed_bytes results_needed_bytes")


def test_the_room_of_a_placement_is_what_is_fetched_worked_on_and_left(tmp_path: Path) -> None:
    """900 bytes are left of each of nine images, even if two of the same size do not tell that size matters."""
    both = [leaving(900)] * 2
    assert needed(situation(tmp_path, *both), 7) == f"81000000 7 {9 * 900}"
    assert needed(situation(tmp_path, *both, kind="folder"), 7) == f"0 7 {9 * 900}", "a plain folder is read in place"


def test_a_work_tier_with_room_for_some_is_predicted_for_those_since_a_run_waits(tmp_path: Path) -> None:
    """Such a tier "did not fit" though a run on it ends well; one without room for the largest still does not.

    Further participants are copied there as far as there is room, and the largest are analysed first. Where the largest
    two or the smallest three have room, three are predicted at once, of whom some wait.
    """
    given = inputs_of([EVERY_PHASE], participants=[Participant(1)] * 5)
    alone = situation(tmp_path, shares={"staging_beside": 0})
    rooms = [at_parallelism(alone, given, HERE, count, {})[2] for count in (1, 2, 3, 4)]
    for room, beside, expected in ((2, 0, (3, 2)), (3, 1, (3, 3)), (4, 1, (3, 4)), (0, 1, (2, 1))):
        capacity = rooms[room - 1] + 1 if room else rooms[0] - 1
        tiers = {"small": {"path": str(tmp_path), "kind": "block", "capacity": f"{capacity}B"}}
        found = situation(tmp_path, shares={"staging_beside": beside}, tiers=tiers)
        small = HERE | {"work": "small"}
        inputs, at_once, work = at_parallelism(found, given, small, 3, {})
        assert (at_once, rooms.index(work) + 1) == expected
        taken = sorted((one.share for one in inputs.participants), reverse=True)
        assert sum(taken[:room]) <= 1 <= sum(taken[: room + 1]), "so many of the largest have room"
        assert room_of(found, given, small, work)["fits"] is (room > 0)


def test_an_app_needs_room_for_the_copy_of_its_group_level_on_the_work_tier_and_with_the_results(
    tmp_path: Path,
) -> None:
    """That such a placement fits was said where the group level had no room, or its outputs were stored once."""
    app: dict[str, Any] = {"app": {"image": "app.sif"}, "in_containers": True, "kind": "folder"}
    left = leaving(9)
    found = situation(tmp_path, left, **app)
    done(found, "sub-01", "sub-02")
    assert needed(found) == f"0 {5 * 9} {(3 + 5) * 9}"
    in_campaign = situation(tmp_path / "campaign", left, **app, **CAMPAIGN)
    assert needed(in_campaign) == f"0 0 {5 * 9}", "its runs have no group level"
    of_two = situation(tmp_path / "sites", left, **app)
    names = "a/1", "a/2", "b/1", "b/2", "b/3"
    vars(of_two)["participants"] = dict(zip(names, of_two.participants.values(), strict=True))
    assert needed(of_two) == f"0 {3 * 9} {(5 + 5) * 9}", "a site at a time"


def test_an_analysis_is_known_by_its_tool_its_options_and_its_image_in_containers() -> None:
    tool = {"name": "bet", "options": ["-f"], "image": "docker://x"}
    for in_containers in (False, True):
        settings = {"app": {"image": None}, "tool": tool, "in_containers": in_containers}
        assert analysis(settings) == {"name": "bet", "options": ["-f"], "image": in_containers}
    app = {"image": "docker://y", "arguments": ["a"]}
    assert analysis({"app": app, "tool": tool}) == {"name": "docker://y", "arguments": ["a"]}


def plan_of(found: Situation, cores: int | None, elsewhere: bool = False) -> AdvicePlan:
    return AdvicePlan(Plan(found.settings, found.places, elsewhere, cluster_class="c1"), cores)


@pytest.mark.parametrize(
    ("sections", "cores", "elsewhere", "expected"),
    [
        ({}, None, False, [1]),
        ({"shares": {"at_once": 2}}, 4, False, [4]),  # participants take a core each
        ({"shares": {"at_once": 2}}, 4, True, [2]),
        ({}, 4, True, [1]),
        ({"campaign": CAMPAIGN["campaign"] | {"parallelism": [3, 1]}}, 4, False, [3, 1]),
    ],
)
def test_as_many_at_once_are_judged_as_there_are_cores_for_or_the_cluster_is_let_have(
    tmp_path: Path, sections: dict[str, Any], cores: int | None, elsewhere: bool, expected: list[int]
) -> None:
    assert plan_of(situation(tmp_path, **sections), cores, elsewhere).parallelism == expected


def test_the_advice_asks_for_probes_of_used_tiers_and_for_a_rehearsal_on_this_machine(tmp_path: Path) -> None:
    tiers = MEMORY | {"gone": {"path": str(tmp_path / "no"), "kind": "block"}}
    tiers["full"] = {"path": str(tmp_path), "kind": "block", "capacity": "1 MB"}
    found = situation(tmp_path, tiers=tiers)
    here, there = plan_of(found, 2), plan_of(found, 2, elsewhere=True)
    no_image = plan_of(situation(tmp_path, tiers=tiers, placement={"images": "gone"}), 2)
    for plan in (here, no_image):
        assert [table.stem for table in plan.probe_tables("")] == ["disk", "memory"]
    assert (here.rehearsal(), here.checks) == ([found.places.advice / "rehearsal.json"], [])
    assert (there.rehearsal(), there.checks) == ([], [found.places.check_table("c1")])
    calibration = tmp_path / "calibration.json"
    for names, expected in (([], []), (["sub-01"], here.plan.calibration_markers())):
        write_json(calibration, {"participants": names})
        assert here.calibration_markers(calibration) == expected
    assert expected


def test_the_advice_is_made_again_when_what_it_depends_on_has_changed(tmp_path: Path) -> None:
    found = situation(tmp_path)
    asked = plan_of(found, 2).asked()
    assert asked == plan_of(found, 2).asked()
    assert (asked["parallelism"], asked["cache"], asked["newest_record_s"]) == ([2], ["as found"], None)
    assert "free_gib" in asked["candidates"][0]
    assert "free_gib" not in str(plan_of(found, 2, elsewhere=True).asked()["candidates"])
    for name, second in (("sub-01", 5), ("sub-02", 7)):
        done(found, name)
        os.utime(found.places.record(name), (second, second))
    assert plan_of(found, 2).asked()["newest_record_s"] == 7
    other = situation(tmp_path, advice={"calibration": str(found.places.results)})
    assert [len(plan_of(one, 2).others()) for one in (other, found)] == [2, 0]
