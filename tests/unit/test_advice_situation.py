"""What the advice reads of results and machine: who fetches, who shares a job, what others took, what is cached."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.advice.calibration import QUANTITIES, ObservedJob, analysis, choose_calibration, read_observed, size_of
from neurotier.advice.placements import AdvicePlan, Candidate, free_gib
from neurotier.advice.predict import Inputs
from neurotier.advice.rehearsal import loading_s
from neurotier.advice.room import free_on, room_for
from neurotier.advice.situation import Situation, choose_first
from neurotier.advice.table import at_parallelism, room_of
from neurotier.advice.workload import Fetching
from neurotier.core.errors import InputError, SettingsError
from neurotier.core.files import write_json
from neurotier.core.tables import read_table, write_table
from neurotier.core.tiers import Tier
from neurotier.model.machine import PageCache, Processors
from neurotier.model.this_machine import Probed
from neurotier.run.plan import Plan
from probed_tiers import tier_figures
from report_data import make_results

ROLES = ("dataset", "work", "images", "results")


def situation(folder: Path, **sections: Any) -> Situation:
    """Of five participants, none of whom is done."""
    places, settings = make_results(folder, 5)
    return Situation(replace(settings_at(folder, **sections), results=settings.results), places)


def job(name: str = "sub-01", **changes: Any) -> ObservedJob:
    """A job of 4 s, 2 s of them on a processor."""
    phases = {"compute": dict.fromkeys(QUANTITIES, 0.0) | {"cpu_s": 2.0}}
    return replace(ObservedJob(name, "r", 100, phases, 10.0, 14.0, 1.0, 1), **changes)


def fetching(folder: Path, jobs: list[ObservedJob], checks: list[Path] | None = None, **sections: Any) -> Fetching:
    """How images are fetched, by jobs that have been run."""
    found = replace(situation(folder, **sections), checks=checks or [])
    vars(found).update(observed=jobs, is_folder=False)
    return found.fetching


def fetched(size_bytes: int, wait_s: float, files: int = 1) -> ObservedJob:
    return job(size_bytes=size_bytes, get_cpu_s=1.0, get_wait_s=wait_s, fetched_files=files)


def test_what_fetching_took_is_that_of_its_bytes_and_half_of_its_cpu_time(tmp_path: Path) -> None:
    """2 s for 100 bytes and 4 s for 300: 1 s, and 0.01 s a byte; so many at once as were fetched, two of four."""
    found = fetching(tmp_path, [fetched(100, 2.0), fetched(300, 4.0)], dataset={"concurrent_gets": 4})
    assert (found.cpu_s, found.at_once) == (0.5, 2)
    assert (found.wait_s, found.s_per_byte) == pytest.approx((1.0, 0.01))
    one = fetching(tmp_path, [fetched(100, 2.0), fetched(300, 4.0)], dataset={"concurrent_gets": 1})
    assert one.at_once == 1


def test_where_nothing_had_to_be_fetched_it_is_not_known(tmp_path: Path) -> None:
    here = fetching(tmp_path, [fetched(100, 0.0, 0), fetched(300, 0.0, 0)], dataset={"concurrent_gets": 4})
    assert here == Fetching(0.0, 0.0, 0.0, 4)
    assert fetching(tmp_path, [job()]) == Fetching()
    assert fetching(tmp_path, [fetched(100, 2.0)], [tmp_path / "checked.tsv"]) == Fetching(), "the head fetches"
    campaign = {"placements": {"here": {"work": "disk"}}, "parallelism": [1]}
    assert fetching(tmp_path, [fetched(100, 2.0)], campaign=campaign) == Fetching(), "all is there before it"
    other = fetching(tmp_path, [fetched(100, 2.0)], advice={"calibration": "x"}, dataset={"concurrent_gets": 3})
    assert other == Fetching(at_once=3)


def test_participants_share_jobs_largest_first_as_many_as_compute_and_copy(tmp_path: Path) -> None:
    """Five of 1, 3, 2, 2 and 1 images: in one job here, three sequences with a slot more than two compute."""
    alone = situation(tmp_path)
    sizes = [size_of(alone.participants[name]) // 9_000_000 for name in alone.remaining]
    assert sizes == [1, 3, 2, 2, 1]
    assert alone.jobs(2) == [[[1, 3, 4], [2, 0]]]
    assert (alone.beside, alone.computing(2), alone.present(2), alone.present(9)) == (0, 0, 2, 5)
    beside = situation(tmp_path, shares={"staging_beside": 1})
    assert beside.jobs(2) == [[[1, 0], [2, 4], [3]]]
    assert (beside.computing(2), beside.present(2)) == (2, 3)
    spread = replace(situation(tmp_path, shares={"participants": 3}), checks=[tmp_path / "checked.tsv"])
    assert spread.jobs(1) == [[[1, 3, 4]], [[2, 0]]]
    assert spread.jobs(9) == [[[1], [3], [4]], [[2], [0]]]
    campaign = {"placements": {"here": {"work": "disk"}}, "parallelism": [1]}
    assert situation(tmp_path, shares={"staging_beside": 1}, campaign=campaign).beside == 0


def test_all_are_left_in_a_campaign_or_where_all_are_done(tmp_path: Path) -> None:
    found = situation(tmp_path)
    everyone = list(found.participants)
    write_json(found.places.record(everyone[0]), {})
    assert found.remaining == everyone[1:]
    campaign = {"placements": {"here": {"work": "disk"}}, "parallelism": [1]}
    settings = replace(settings_at(tmp_path, campaign=campaign), results=found.settings.results)
    assert Situation(settings, found.places).remaining == everyone


def test_what_others_took_is_that_of_the_rehearsal_the_run_or_its_readings(tmp_path: Path) -> None:
    found = situation(tmp_path)
    late = [job(run="late", start_s=start, end_s=start + 4.0) for start in (100.0, 102.0)]
    vars(found)["observed"] = [job(run="early", start_s=1.0, end_s=200.0), *late]
    assert found.others_share({"shared": {"others_cpu_share": 0.25}}) == 0.25
    assert found.others_share({"shared": {"others_cpu_share": 0}}) == 0
    facts = found.places.runs / "late.json"
    for row, share in (({"others_cpu_share": 0.5}, 0.5), ({"others_cpu_share": None}, None), ({"other": 1}, None)):
        write_json(facts, {"row": row, "cpus": 2})
        assert found.others_share({}) == share
    write_json(facts, {"cpus": 2})
    readings = found.places.readings("late")
    readings.parent.mkdir(parents=True, exist_ok=True)
    # others took 3 of the 12 s of two processors between 100 and 106 s, and all of them after that
    readings.write_text("100 0 0 0 0\n106 9 6 0 0\n200 197 6 0 0\n")
    assert found.others_share({"shared": None}) == pytest.approx(3 / 12)
    readings.write_text("103 0 0 0 0\n")
    assert found.others_share({}) is None, "not watched from its start to its end"
    other = situation(tmp_path, advice={"calibration": "x"})
    vars(other)["observed"] = late
    assert other.others_share({}) is None


def test_what_is_here_and_cached_is_not_fetched_or_read(tmp_path: Path) -> None:
    """In a plain folder 2 of 5 participants' images are there, 4 of all 9, and were just written, or never read."""
    found = situation(tmp_path)
    folder = tmp_path / "bids"
    write_json(found.places.index / "dataset.json", {"kind": "folder", "path": str(folder)})
    first, second, *others = found.remaining
    for name in (first, second):
        for image in found.participants[name]:
            (folder / image.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / image.path).write_bytes(bytes(1000))
    missing = found.to_fetch("disk")
    assert [missing[name] for name in (first, second)] == [0, 0]
    assert [missing[name] for name in others] == [size_of(found.participants[name]) for name in others]
    assert (found.resident("cold", "disk"), found.resident("warm", "disk")) == (0, 1)
    assert found.resident("as found", "disk") == pytest.approx(1.0, abs=1e-3)
    for name in (first, second):
        for image in found.participants[name]:
            (folder / image.path).unlink()
            with (folder / image.path).open("wb") as file:
                file.truncate(image.size_bytes)  # no page of it was ever read or written
    assert found.resident("as found", "disk") == pytest.approx(5 / 9), "what is yet to be fetched will be cached"
    assert found.is_folder
    assert found.clone_on("disk") == folder
    clone = situation(tmp_path)
    write_json(clone.places.index / "dataset.json", {"kind": "demo", "path": str(folder)})
    assert clone.clone_on("disk") == Tier.from_settings(clone.settings.tiers["disk"]).folder("datasets") / "bids"


def test_the_model_is_given_what_was_found(tmp_path: Path) -> None:
    found = situation(tmp_path)
    write_json(found.places.index / "dataset.json", {"kind": "folder", "path": str(tmp_path / "bids")})
    jobs = [job(queue_s=1.0), job("sub-02", queue_s=3.0)]  # computing took 1.5 and 2.5 times as long as alone: twice
    vars(found)["observed"] = jobs
    given = found.inputs(
        [], {"shared": {"records": [], "others_cpu_share": 0.25}, "load_s": {"compute": 1.0}, "why": ""}
    )
    assert given.processors.others == pytest.approx(0.25 * len(os.sched_getaffinity(0)) * 2)
    assert (given.observed, given.load_s, given.others_cpu_share) == (jobs, None, 0.25)
    assert [one.size_bytes // 9_000_000 for one in given.participants] == [1, 3, 2, 2, 1]
    assert [one.to_fetch_bytes for one in given.participants] == [one.size_bytes for one in given.participants]
    write_json(found.places.runs / "r.json", {"row": {"others_cpu_share": None}})
    unknown = found.inputs([], {"shared": None, "load_s": {}, "why": ""})
    assert (unknown.processors.others, unknown.others_cpu_share) == (0, None)
    cold = {"placements": {"here": {"work": "disk"}}, "parallelism": [1], "cache": ["cold"]}
    campaign = Situation(replace(settings_at(tmp_path, campaign=cold), results=found.settings.results), found.places)
    vars(campaign)["observed"] = jobs
    known = campaign.inputs(
        [], {"shared": {"records": [], "others_cpu_share": 0.0}, "load_s": {"compute": 1.0}, "why": "w"}
    )
    assert (known.load_s, known.load_unknown_because) == ({"compute": 1.0}, "w")
    probe = Probed(*[replace(tier_figures("disk", "block", {1: 1.0}, {1: 1.0}), make_s=0.5, look_s=0.25)] * 3)
    ready = replace(known, probes={"disk": probe}, page_cache=PageCache(1.0, expiry_s=7.0))
    candidate = Candidate("here", dict.fromkeys(ROLES, "disk"), True)
    storage = campaign.storage(candidate, "cold", ready)
    assert (storage.make_s, storage.open_s, storage.expiry_s) == ({"disk": 0.5}, {"disk": 0.25}, 7.0)
    assert (storage.resident, storage.load_s) == (0, {"compute": 1.0})
    assert campaign.storage(candidate, "warm", ready).load_s == {}
    assert campaign.storage(candidate, "cold", replace(ready, load_s=None)).load_s == {}


def test_who_is_analysed_first(tmp_path: Path) -> None:
    """Those who are done, if there are enough; of five whose images are nowhere, nobody."""
    found = situation(tmp_path, advice={"participants": 2})
    everyone = list(found.participants)
    for name in everyone[:3]:
        write_json(found.places.record(name), {})
    assert choose_first(found, {"parallelism": 2}) == choose_calibration(
        found.participants, found.settings, found.places
    )
    assert set(choose_first(found, {"parallelism": 2})) < set(everyone[:3])
    campaign = {"placements": {"here": {"work": "disk"}}, "parallelism": [1]}
    with pytest.raises(SettingsError, match="the runs of a campaign are not predicted for a cluster"):
        choose_first(situation(tmp_path, campaign=campaign), {"parallelism": None})
    assert choose_first(replace(found, settings=found.settings), {"parallelism": None})
    other = situation(tmp_path, advice={"calibration": str(tmp_path / "gone")})
    with pytest.raises((SettingsError, InputError)):
        choose_first(other, {"parallelism": 2})
    vars(other)["observed"] = [job()]
    assert choose_first(other, {"parallelism": 2}) == []


def test_nothing_is_rehearsed_of_whom_nothing_is_here(tmp_path: Path) -> None:
    found = situation(tmp_path)
    dataset = {"source": "x", "kind": "folder", "path": str(tmp_path / "bids"), "sites": {}}
    write_json(found.places.index / "dataset.json", dataset)
    vars(found)["observed"] = [job()]
    for chosen, why in (
        ([], "its calibration is that of another results folder"),
        (["sub-01"], "images of sub-01 are not here any more"),
    ):
        assert found.rehearse(chosen, tmp_path / "log") == {"shared": None, "load_s": {}, "why": why}


def test_programs_are_waited_for_with_storage_or_off_a_core() -> None:
    usage = {"wall_s": 3.0, "cpu_s": 1.0, "run_queue_s": None, "account_block_io_s": None}
    assert loading_s([{"phase": "container_start", **usage}]) == {"container_start": 2.0}
    assert loading_s([{"phase": "compute", **usage, "cpu_s": 4.0}]) == {"compute": 0.0}
    assert loading_s([{"phase": "stage_out", **usage}]) == {}


def test_the_room_of_each_tier_is_set_against_its_roles(tmp_path: Path) -> None:
    tier = Tier.from_settings(settings_at(tmp_path).tiers["disk"])
    assert 0 < (free_on(tier) or 0) <= tier.usable_bytes() + (1 << 30)
    assert free_on(replace(tier, path=tmp_path / "gone")) is None
    found = room_for({"dataset": "a", "work": "a", "results": "a"}, {"dataset": 3, "work": 4, "results": 0}, {"a": 7})
    assert (found["fits"], found["reason"]) == (True, None)
    assert (found["work_needed_bytes"], found["results_free_bytes"]) == (4, 7)
    room = free_gib(settings_at(tmp_path), Candidate("here", dict.fromkeys(ROLES, "disk"), True))["free_gib"]
    assert len(room) == len(ROLES)
    assert all(abs(one - tier.free_bytes() / (1 << 30)) < 2 for one in room)


def test_memory_bounds_how_many_are_predicted_at_once_and_each_takes_the_most_that_one_took(tmp_path: Path) -> None:
    """Room for two and a half of the five: two; and for one where there is not even that."""
    found = situation(tmp_path)
    need_mb = found.plan.of(found.remaining[0]).mem_mb
    given = Inputs([job(max_rss_bytes=1 << 20)], [], Fetching(), {}, Processors(2, 2), PageCache(1.0))
    for limit_mb, expected in ((2.5 * need_mb, 2), (0.5 * need_mb, 1), (99 * need_mb, 4)):
        assert at_parallelism(found, given, 4, {"mem_mb": int(limit_mb)})[1] == expected
    few, at_once = at_parallelism(found, given, 4, {})
    assert (at_once, few.jobs, few.computing) == (4, found.jobs(4), 0)
    much = replace(given, observed=[job(max_rss_bytes=1 << 20), job(max_rss_bytes=1 << 50)])
    taken = at_parallelism(found, much, 1, {})[0].page_cache.available_bytes
    assert taken == pytest.approx(0.1 * few.page_cache.available_bytes, rel=0.2), "a tenth is always left"


def test_the_room_of_a_placement_is_what_is_fetched_worked_on_and_left(tmp_path: Path) -> None:
    found = situation(tmp_path)
    dataset = found.places.index / "dataset.json"
    write_json(dataset, {"kind": "demo", "path": str(tmp_path / "bids")})
    left = job(size_bytes=9_000_000)
    left.phases["stage_out"] = dict.fromkeys(QUANTITIES, 0.0) | {"written_bytes": 900.0}
    given = Inputs([left, left], [], Fetching(), {}, Processors(2, 2), PageCache(1.0))
    candidate = Candidate("here", dict.fromkeys(ROLES, "disk"), True)
    row = room_of(found, given, candidate, 1)
    whole = sum(size_of(images) for images in found.participants.values())
    assert row["dataset_needed_bytes"] == whole == 81_000_000
    one, two, everyone = (room_of(found, given, candidate, count)["work_needed_bytes"] for count in (1, 2, 9))
    assert 0 < one < two < everyone
    write_json(dataset, {"kind": "folder", "path": str(tmp_path / "bids")})
    vars(found).pop("is_folder")
    assert room_of(found, given, candidate, 1)["dataset_needed_bytes"] == 0, "a plain folder is read in place"


def test_an_image_without_a_known_size_counts_nothing(tmp_path: Path) -> None:
    found = situation(tmp_path)
    name, *_ = found.participants
    table = found.places.index / "images.tsv"
    rows = [row | {"size_bytes": None} if row["participant"] == name else row for row in read_table(table, "images")]
    write_table(table, "images", rows)
    facts = {"started_s": 1.0, "settings": found.settings.to_json(), "row": {"valid": "valid"}}
    write_json(found.places.runs / "r.json", facts)
    phase = {"phase": "compute", "traffic": [], "input_bytes": 5, "max_rss_bytes": 9, "run_queue_s": 0.0}
    phase |= {"start_s": 0.0, "end_s": 1.0, "cpu_s": 0.5, "account_other_s": 0.0}
    record = {"participant": name, "run": "r", "slot_wait_s": 0.0, "tool": "t", "phases": [phase]}
    got = {"cpu_s": 2.0, "wall_s": 1.0, "run_queue_s": 0.0}
    write_json(found.places.record(name), record | {"got": got})
    (read,) = read_observed(found.settings, found.places, None)
    assert (read.size_bytes, read.get_wait_s) == (0, 0), "several threads took more than the time that passed"
    assert size_of(Situation(found.settings, found.places).participants[name]) == 0


def test_those_whose_images_are_here_are_analysed_first(tmp_path: Path) -> None:
    found = situation(tmp_path, advice={"participants": 2})
    folder = tmp_path / "bids"
    dataset = {"source": "x", "kind": "folder", "path": str(folder), "sites": {}}
    write_json(found.places.index / "dataset.json", dataset)
    third, fourth = list(found.participants)[2:4]
    for image in (*found.participants[third], *found.participants[fourth]):
        (folder / image.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / image.path).write_bytes(b"1")
    assert set(choose_calibration(found.participants, found.settings, found.places)) == {third, fourth}


def test_an_analysis_is_known_by_its_tool_its_options_and_its_image_in_containers() -> None:
    tool = {"name": "bet", "options": ["-f"], "image": "docker://x"}
    for in_containers in (False, True):
        settings = {"app": {"image": None}, "tool": tool, "in_containers": in_containers}
        assert analysis(settings) == {"name": "bet", "options": ["-f"], "image": in_containers}
    app = {"image": "docker://y", "arguments": ["a"]}
    assert analysis({"app": app, "tool": tool}) == {"name": "docker://y", "arguments": ["a"]}


def plan_of(found: Situation, cores: int | None, elsewhere: bool = False) -> AdvicePlan:
    return AdvicePlan(Plan(found.settings, found.places, elsewhere, cluster_class="c1"), cores)


def test_as_many_at_once_are_judged_as_there_are_cores_for_or_the_cluster_is_let_have(tmp_path: Path) -> None:
    """Participants take a core each."""
    assert [plan_of(situation(tmp_path), cores).parallelism for cores in (None, 1, 4)] == [[1], [1], [4]]
    few = situation(tmp_path, shares={"at_once": 2})
    assert [plan_of(few, 4).parallelism, plan_of(few, 4, elsewhere=True).parallelism] == [[4], [2]]
    assert plan_of(situation(tmp_path), 4, elsewhere=True).parallelism == [1]
    campaign = {"placements": {"here": {"work": "disk"}}, "parallelism": [3, 1]}
    assert plan_of(situation(tmp_path, campaign=campaign), 4).parallelism == [3, 1]


def test_the_advice_asks_for_probes_of_used_tiers_and_for_a_rehearsal_on_this_machine(tmp_path: Path) -> None:
    tiers = {"tmpfs": {"path": "/dev/shm", "kind": "tmpfs"}, "gone": {"path": str(tmp_path / "no"), "kind": "block"}}
    found = situation(tmp_path, tiers=tiers)
    here, there = plan_of(found, 2), plan_of(found, 2, elsewhere=True)
    assert [table.stem for table in here.probed("")] == ["disk", "tmpfs"]
    images = situation(tmp_path, tiers=tiers, placement={"images": "gone"})
    assert [table.stem for table in plan_of(images, 2).probed("")] == ["disk", "tmpfs"], "of images only with an image"
    assert here.rehearsal() == [found.places.advice / "rehearsal.json"]
    assert (here.checks, there.rehearsal()) == ([], [])
    assert there.checks == [found.places.checked("c1")]
    calibration = tmp_path / "calibration.json"
    write_json(calibration, {"participants": []})
    assert here.analysed(calibration) == []
    write_json(calibration, {"participants": ["sub-01"]})
    assert here.analysed(calibration) == here.plan.calibrated() != []


def test_the_advice_is_made_again_when_what_it_depends_on_has_changed(tmp_path: Path) -> None:
    found = situation(tmp_path)
    asked = plan_of(found, 2).asked()
    assert asked == plan_of(found, 2).asked()
    assert (asked["parallelism"], asked["cache"], asked["newest_record_s"]) == ([2], ["as found"], None)
    assert "free_gib" in asked["candidates"][0]
    assert "free_gib" not in str(plan_of(found, 2, elsewhere=True).asked()["candidates"])
    for name, second in (("sub-01", 5), ("sub-02", 7)):
        write_json(found.places.record(name), {})
        os.utime(found.places.record(name), (second, second))
    assert plan_of(found, 2).asked()["newest_record_s"] == 7
    other = situation(tmp_path, advice={"calibration": str(found.places.results)})
    assert len(plan_of(other, 2).others()) == 2
    assert plan_of(found, 2).others() == []
