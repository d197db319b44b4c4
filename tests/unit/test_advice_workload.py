"""What the advice gives the model: costs, steps and draws, from few records whose answers are worked out by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from neurotier.advice.calibration import (
    QUANTITIES,
    Costs,
    ObservedJob,
    Scaling,
    Way,
    amounts_of,
    constant,
    costs_of,
    fit,
    proportional,
    scatter,
    ways_of,
)
from neurotier.advice.predict import (
    Fetching,
    Inputs,
    Participant,
    Storage,
    draw,
    in_slots,
    steps,
    workload,
    workload_of,
)
from neurotier.advice.small_files import drawn_files
from neurotier.core.settings import ROLES
from neurotier.model.fluid import simulate
from neurotier.model.machine import Machine, PageCache, Processors, Step, Workload
from neurotier.model.this_machine import FileCost, Probed, TierFigures, machine_of, machines_of
from probed_tiers import inputs_of, job_of, spent, tier_figures

NOTHING = dict.fromkeys(QUANTITIES, Scaling(0.0, 0.0))


def job(size_bytes: int, cpu_s: float, **compute: float) -> ObservedJob:
    return job_of(size_bytes, {"cpu_s": cpu_s} | compute)


def costs(phase: str, **known: tuple[float, float]) -> Costs:
    """Of a quantity the base, and what each byte adds."""
    return {phase: NOTHING | {name: Scaling(*scaling) for name, scaling in known.items()}}


def test_extremes_of_scaling() -> None:
    """4 s for 10 bytes and 8 s for 30: 6 s for any, or 12 s for 40. Of 10 and 50 bytes, 1.6 a byte, and no base."""
    assert proportional([0, 0], [4.0, 8.0]).of(1000) == 6, "of images without a size"
    first, second = job(10, 4.0, read_bytes=10.0), job(30, 8.0, read_bytes=50.0)
    for way, cpu_s in ((fit, 22), (constant, 6), (proportional, 30)):
        ((phase, found),) = costs_of([first, second], way).items()  # the phases that there were
        assert phase == "compute"
        assert found["cpu_s"].of(100) == pytest.approx(cpu_s)
        assert found["read_bytes"].of(100) == pytest.approx(160), "bytes are always fitted"
    staged = replace(second, phases=second.phases | {"stage_in": second.phases["compute"]})
    # one had no such phase: of 0 s for 10 bytes and 8 s for 30 the best line from 0 on has 8 * 30 / (100 + 900) s/byte
    assert costs_of([first, staged], constant)["stage_in"]["cpu_s"].of(100) == pytest.approx(24)
    # three ways are possible with fewer than four sizes, and with four that are nearly the same
    for sizes, count in (((4, 5, 6, 8), 1), ((4, 6, 8, 8), 3), ((4, 5, 6, 7), 3)):
        assert len(ways_of([job(size, 1.0) for size in sizes])) == count


@pytest.mark.parametrize("way", [fit, constant, proportional])
def test_a_tool_takes_each_image_in_turn_and_starts_once(way: Way) -> None:
    """One image of 100 bytes took 2 s, and two of 50 bytes each took 4 s; the start took 1 s for either."""
    one, two = (replace(job(100, 2.0 * images), images=images) for images in (1, 2))
    known = costs_of([replace(each, phases=each.phases | {"start_up": spent(cpu_s=1.0)}) for each in (one, two)], way)
    for size, images in ((100, 1), (600, 8)):
        took = amounts_of(known, size, images)
        assert took["start_up"]["cpu_s"] == pytest.approx(1), images
        if way is not proportional:
            assert took["compute"]["cpu_s"] == pytest.approx(2.0 * images), images
    assert scatter([one, two], known) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("records", "fitted", "expected"),
    [
        ([(100, 10)], 0, 0),  # one tells of no scatter
        # of 0.01 and 0.02718 the mean is 0.01859: off by ln(0.538) = -0.620 and ln(1.462) = 0.380, together 0.727
        ([(100, 0.01), (100, 0.01 * math.e)], 0, 0.7272),
        ([(100, 10), (200, 20)], 0, 0),  # in proportion
        ([(100, 15), (200, 15)], 0, 0),  # constant
        ([(100, 0), (200, 15)], 0, math.log(1.5)),  # what took nothing has no logarithm; in proportion, 10 s for 200
        ([(1, 40), (2, 10), (3, 40), (4, 10)], 20, math.log(2) * math.sqrt(4 / 2)),  # base and slope leave two
    ],
)
def test_scatter_of_few_records(records: list[tuple[int, float]], fitted: float, expected: float) -> None:
    half = (fitted / 2, 0)
    known = costs("compute", cpu_s=half) | costs("stage_in", cpu_s=half) if fitted else {}
    assert scatter([job(*one) for one in records], known) == pytest.approx(expected, abs=1e-4)


ON_DISK = dict.fromkeys(ROLES, "disk")
TIERS = ON_DISK | {"work": "net"}


def figures(kind: str, **changes: float) -> TierFigures:
    """A tier, with what a file takes that is made or opened there, s."""
    return tier_figures(kind, {1: 1.0}, {1: 1.0}, **changes)


STORAGE = Storage(
    TIERS,
    {
        "disk": figures("block", make_s=0.25, look_s=2.0),
        "net": figures("network", make_s=0.5, look_s=4.0),
        "memory": figures("tmpfs"),
    },
    files={"net": FileCost(cpu_s=0.125, wait_s=0.5), "disk": FileCost(0.25, 0.0)},
    resident=0.75,
    expiry_s=30.0,
    dirty_bytes=300.0,
    load_s={"compute": 7.0},
    reread=0.25,
)


def moved(slowness: float, known: Costs, **storage: Any) -> list[str]:
    """Steps of 100 bytes that take time: kind, amount, and of bytes the tier and whether the page cache has it."""
    made = steps(Participant(100, slowness=slowness), known, replace(STORAGE, **storage))
    return [f"{one.kind} {one.amount:g} {one.tier}{' cached' * one.cached}".rstrip() for one in made if one.amount]


@pytest.mark.parametrize(("at_once", "stays"), [(1, True), (2, False)])
def test_what_may_be_dirty_is_shared_by_those_who_run_at_once(at_once: int, stays: bool) -> None:
    """Each writes 150 bytes, and 200 of 1,000 may be dirty."""
    cache = PageCache(1000.0, background_ratio=0.1, ratio=0.3)
    changes = {"probes": {"disk": probed(1.0, 1.0, 0.0)}, "page_cache": cache, "participants": [Participant(100)]}
    given = inputs_of([job(100, 1.0, written_bytes=150.0)], **changes)
    storage = replace(STORAGE, tiers=ON_DISK, figures={"disk": given.probes["disk"].usual})
    made = workload(given, storage, at_once, given.participants)
    assert [step.cached for step in made.tasks[0] if step.kind == "write"] == [stays]


def test_staging_reads_what_is_not_cached_opens_and_makes_files() -> None:
    """100 bytes in 4 files, three quarters cached: one is opened, for 2 s; 2 are made, for 0.5 s each.

    What grows with size is copying, which the tiers' speeds include.
    """
    written = {"written_bytes": (0, 2), "written_files": (2, 0)}
    known = costs("stage_in", cpu_s=(1, 0.5), read_bytes=(0, 1), read_files=(4, 0), **written)
    cached = ["read 75 disk cached", "read 25 disk"]
    assert moved(3.0, known, expiry_s=0.0) == [*cached, "write 200 net", "wait 3", "compute 1"]
    memory = moved(1.0, known, tiers=dict.fromkeys(TIERS, "memory"), expiry_s=0.0)
    assert memory == ["read 100 memory", "write 200 memory", "compute 1"]
    results = moved(1.0, costs("stage_out", read_bytes=(0, 1), written_bytes=(0, 2)))
    assert results == ["read 75 net cached", "read 25 net", "write 200 disk"], "what is not deleted is written back"


def test_computing_is_slower_by_the_participant_waits_for_its_files_and_programs_and_rereads_a_part() -> None:
    """Of what it has written to a network, a quarter is not cached: one of 4 files is opened, for 4 s; 8 are made.

    It writes as much as may be dirty, and deletes it before 30 s.
    """
    bytes_and_files = {"read_bytes": (0, 1), "read_files": (4, 0), "written_bytes": (0, 3), "made_files": (0, 0.08)}
    known = costs("compute", cpu_s=(1, 0.02), wait_s=(0.5, 0.01), **bytes_and_files)
    cached = ["read 75 net cached", "read 25 net", "files 8 net", "write 300 net cached"]
    assert moved(2.0, known) == [*cached, f"wait {0.5 + 1 + 7 + 4}", f"compute {(1 + 2) * 2 + 8 * 0.125:g}"]
    usual = moved(2.0, known, reread=Storage({}, {}, 1.0).reread)
    assert usual[:2] == ["read 50 net cached", "read 50 net"], "half of it, as far as is known"
    disk = moved(1.0, known, tiers=ON_DISK)
    assert disk == ["read 100 disk cached", "write 300 disk cached", "wait 8.5", f"compute {1 + 2 + 8 * 0.25:g}"]


@pytest.mark.parametrize(
    ("compute_s", "slowness", "change", "cached"),
    [
        (3, 1, {"expiry_s": 3.1}, True),
        (3, 1, {"expiry_s": 3.0}, False),
        (3, 1, {"dirty_bytes": 299.0}, False),
        (3, 10, {}, False),
        (0.5, 1, {"expiry_s": Storage({}, {}, 1.0).expiry_s}, False),  # unless it is known how soon that is
    ],
)
def test_what_is_deleted_before_it_is_written_back_stays_in_the_page_cache(
    compute_s: float, slowness: float, change: dict[str, Any], cached: bool
) -> None:
    """300 bytes written."""
    known = costs("compute", cpu_s=(compute_s, 0), written_bytes=(0, 3))
    assert f"write 300 net{' cached' * cached}" in moved(slowness, known, **change)


def amounts(made: Sequence[Step], *kinds: str) -> list[float]:
    return [step.amount for step in made if step.kind in kinds and step.amount]


def test_programs_are_loaded_by_the_first_and_once_by_those_who_share_a_job() -> None:
    """Three with a job each, two at once; then four in two jobs of two, one of whom computes at a time."""
    known = costs("start_up", cpu_s=(0.5, 0.01)) | costs("compute", cpu_s=(1, 0))
    people = [Participant(size) for size in (100, 50, 100, 25)]
    alone = workload_of(people[:3], known, STORAGE, Fetching(), 2, [[0], [1], [2]], known)
    assert [amounts(task, "wait") for task in alone.tasks] == [[7], [7], []]
    assert [job.launch for job in alone.jobs] == [(), (), ()]
    assert amounts(alone.tasks[1], "compute") == [0.5 + 0.5, 1.0]

    def shared(at_once: int) -> Workload:
        return workload_of(people, known, STORAGE, Fetching(), at_once, [[0, 1], [2, 3]], known, copiers=1)

    first, second = shared(1).jobs
    # as long as the largest takes to start; and programs
    assert [[step.amount for step in one.launch] for one in (first, second)] == [[1.5, 7], [1.5, 0]]
    assert (first.slots, first.at_once) == ({"room": 1.001, "stage_in": 1, "compute": 1, "stage_out": 1}, 2)
    assert list(second.tasks) == [2, 3]
    assert amounts(shared(1).tasks[0], "compute") == [1.0]
    (untold,) = workload_of(people[:2], costs("compute"), STORAGE, Fetching(), 1, [[0, 1]], known).jobs
    assert untold.launch[0].amount == 0, "of whom no record tells how long the start took"
    assert [(one.slots["stage_in"], one.at_once) for one in shared(2).jobs] == [(0, 2)] * 2


def test_slots_are_held_for_as_long_as_one_copies_or_computes() -> None:
    phases = ("start_up", "stage_in", "stage_in", "container_start", "compute")
    found = in_slots([Step(phase, "wait", 1.0) for phase in phases])
    assert " ".join(f"{one.phase} {one.kind}" for one in found) == (
        "start_up wait stage_in take stage_in wait stage_in wait stage_in give"
        " compute take container_start wait compute wait compute give"
    )


def test_who_needs_more_memory_or_room_than_is_left_waits_and_the_others_wait_behind() -> None:
    """Four take 8 s, of whom two, one and one have room at once, and six take 1 s: 10 s were predicted."""
    people = [Participant(8, share=0.5)] * 3 + [Participant(8, share=0.6)] + [Participant(1, share=0.2)] * 6
    known = costs("compute", wait_s=(0, 1))
    for copiers in (0, 1):  # who copies while others compute has memory and room, too
        made = workload_of(people, known, STORAGE, Fetching(), 4, [[*range(10)]], known, copiers)
        found = simulate(made, Machine(Processors(8, 8), PageCache(1e9)), parallelism=5)
        assert found.makespan_s == pytest.approx(8 + 8 + 8)
    (alone,) = workload_of([Participant(8, share=1.0)], known, STORAGE, Fetching(), 4, [[0]], known).tasks
    assert [step.kind for step in alone if step.phase == "room"] == ["take", "give"]


@pytest.mark.parametrize(
    ("fetching", "arrivals", "fetches", "at_once"),
    [
        (Fetching(1.0, 2.0, 0.5, at_once=2), [[], [1], [2]], [[1, 102], [1, 52]], 2),
        (Fetching(), [[], [], []], [], 0),
    ],
)
def test_who_waits_for_images_waits_for_its_own_and_they_are_fetched_in_the_order_of_their_analysis(
    fetching: Fetching, arrivals: list[list[int]], fetches: list[list[float]], at_once: int
) -> None:
    """Three in a job: one has its images, and so begins, though it is not the largest; then comes the last."""
    people = [Participant(10, to_fetch_bytes=size) for size in (0, 100, 200)]
    known = costs("compute", cpu_s=(1, 0))
    found = workload_of(people, known, STORAGE, fetching, 1, [[2, 0, 1]], known)
    assert [amounts(task, "arrival") for task in found.tasks] == arrivals
    assert [[step.amount for step in fetch] for fetch in found.fetches] == fetches
    assert found.fetches_at_once == at_once


def probed(low: float, high: float, *files: float) -> Probed:
    """A tier of 100 bytes/s, between so many times as much, and what a small file takes."""
    known = {1: FileCost(0.0, *files)}
    return Probed(*(tier_figures("block", {1: 100.0 * by}, {1: 1e9}, files=known) for by in (1.0, low, high)))


def test_what_is_drawn_scatters_as_the_records_do() -> None:
    """Four records that are off by ln 1.71 and ln 3.5: by 1.36, and their mean by half of that, as Student has it.

    Speeds are between the least and the most, others' processes between none and twice as many.
    """
    given = inputs_of(
        [job(100, cpu_s) for cpu_s in (30.0, 5.0, 30.0, 5.0)],
        participants=[Participant(100)] * 60,
        probes={"disk": probed(0.5, 2.0, 0.25)},
        processors=Processors(2, 2, others=3.0),
        fetching=Fetching(at_once=1, more_at_once=2),
    )
    storage = Storage(ON_DISK, {"disk": given.probes["disk"].usual}, 1.0)
    _, machine = machines_of(given.probes, 1, given.processors, given.page_cache)

    def draws(given: Inputs) -> tuple[list[tuple[Workload, Machine]], np.ndarray, list[float], float]:
        drawn = [draw(given, storage, machine(rng), 1, rng) for rng in map(np.random.default_rng, range(300))]
        cpu_s = np.array([[sum(amounts(task, "compute")) for task in workload.tasks] for workload, _ in drawn])
        means = np.quantile(np.log(cpu_s.mean(axis=1)), [0.1, 0.5, 0.9])
        return drawn, np.log(cpu_s), list(means), scatter(given.observed, costs_of(given.observed))

    drawn, logarithms, (low, middle, high), spread = draws(given)
    assert logarithms.std(axis=1, ddof=1).mean() == pytest.approx(spread, rel=0.05)
    assert (high - low) / 2 == pytest.approx(1.64 * spread / 2, rel=0.07), "and not 1.28"
    assert middle == pytest.approx(math.log(17.5), abs=0.1), "the mean stays"
    _, _, (low, _, high), spread = draws(replace(given, observed=[job(100, 11.0), job(100, 9.0)]))
    assert (high - low) / 2 == pytest.approx(3.08 * spread / math.sqrt(2), rel=0.2), "of two; and not 1.89, as of three"
    assert {workload.fetches_at_once for workload, _ in drawn} == {1, 2, 3}
    others = [machine.processors.others for _, machine in drawn]
    speeds = [machine.tiers["disk"].read_bytes_per_s for _, machine in drawn]
    assert 0 <= min(others) < 0.5 < 5.4 < max(others) <= 6
    assert 50 <= min(speeds) < 55 < 180 < max(speeds) <= 200


def test_files_of_a_tool_take_more_or_less_than_the_probe_s() -> None:
    """By its repetitions up to twice as much, and besides within 0.61 and 1.64 times as much in nine cases of ten."""

    def factors(*files: float) -> list[float]:
        probes = {"disk": probed(1.0, 1.0, *files)}
        usual = machine_of({"disk": probes["disk"].usual}, 1, Processors(1, 1), PageCache(1e9))
        tiers = [drawn_files(usual, probes, 1, np.random.default_rng(seed)).tiers["disk"] for seed in range(2000)]
        assert [one.files_stream_per_s for one in tiers] == [one.files_per_s for one in tiers]
        return sorted(one.files_per_s * files[0] for one in tiers)

    alike, found, slower = factors(0.25), factors(0.25, 0.5, 2.0), factors(0.25, 1.0, 8.0)
    assert statistics.median(found) == pytest.approx(1.0, abs=0.05)
    assert (alike[100], alike[-100]) == pytest.approx((0.61, 1.64), rel=0.05)
    assert statistics.stdev(map(math.log, found)) > 1.3 * statistics.stdev(map(math.log, alike))
    assert statistics.fmean(one < 0.5 for one in slower) == pytest.approx(1 / 3, abs=0.06), "8 ** part > 2: a third"
