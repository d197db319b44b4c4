"""What the advice gives the model: costs, steps and draws, from few records whose answers are worked out by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from neurotier.advice.calibration import QUANTITIES, ObservedJob
from neurotier.advice.predict import Inputs, draw
from neurotier.advice.scaling import Costs, Scaling, constant, costs_of, proportional, scatter, ways_of
from neurotier.advice.small_files import drawn_files
from neurotier.advice.workload import (
    Fetching,
    Participant,
    Storage,
    fetching_order,
    in_slots,
    steps,
    workload_of,
)
from neurotier.model.machine import Machine, PageCache, Processors
from neurotier.model.this_machine import Probed, machine_of
from neurotier.model.workload import Step
from neurotier.storage.probe.tier_figures import FileCost
from probed_tiers import tier_figures

NOTHING = dict.fromkeys(QUANTITIES, Scaling(0.0, 0.0))


def job(size_bytes: int, cpu_s: float, **compute: float) -> ObservedJob:
    phases = {"compute": dict.fromkeys(QUANTITIES, 0.0) | {"cpu_s": cpu_s} | compute}
    return ObservedJob("sub-1", "r", size_bytes, phases, 0.0, 9.0, 0.0, 1, work_tier="disk")


def costs(**phases: dict[str, Scaling]) -> Costs:
    return {phase: NOTHING | known for phase, known in phases.items()}


def test_extremes_of_scaling() -> None:
    """4 s for 10 bytes and 8 s for 30: 6 s for any, or 12 s for 40. Of 10 and 50 bytes, 1.6 a byte, and no base."""
    assert constant([10, 30], [4.0, 8.0]).of(1000) == 6
    assert proportional([10, 30], [4.0, 8.0]).of(1000) == pytest.approx(300)
    assert proportional([0, 0], [4.0, 8.0]).of(1000) == 6, "of images without a size"
    records = [job(10, 4.0, read_bytes=10.0), job(30, 8.0, read_bytes=50.0)]
    for way, cpu_s in (("fit", 2 + 0.2 * 100), ("constant", 6.0), ("proportional", 30.0)):
        found = costs_of(records, way)["compute"]
        assert found["cpu_s"].of(100) == pytest.approx(cpu_s), way
        assert found["read_bytes"].of(100) == pytest.approx(160), "bytes are always fitted"
    assert list(costs_of(records)) == ["compute"], "of the phases that there were"
    staged = replace(records[1], phases=records[1].phases | {"stage_in": records[1].phases["compute"]})
    # one had no such phase: of 0 s for 10 bytes and 8 s for 30 the best line from 0 on has 8 * 30 / (100 + 900) s/byte
    assert costs_of([records[0], staged], "constant")["stage_in"]["cpu_s"].of(100) == pytest.approx(24)


def test_three_ways_are_possible_with_fewer_than_four_sizes() -> None:
    assert ways_of([job(size, 1.0) for size in (1, 2, 3, 4)]) == ("fit",)
    assert len(ways_of([job(size, 1.0) for size in (1, 2, 3, 3)])) == 3


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([(100, 10.0)], 0.0),  # one tells of no scatter
        ([(100, 10.0), (100, 10 * math.e)], None),
        ([(100, 0.01), (100, 0.01 * math.e)], None),
        ([(100, 10.0), (200, 20.0)], 0.0),  # in proportion
        ([(100, 15.0), (200, 15.0)], 0.0),  # constant
        ([(100, 0.0), (200, 15.0)], math.log(1.5)),  # what took nothing has no logarithm; in proportion, 10 s for 200
    ],
)
def test_scatter_of_few_records(records: list[tuple[int, float]], expected: float | None) -> None:
    """Of 10 and 27.18 the mean is 18.59: they are off by ln(0.538) = -0.620 and ln(1.462) = 0.380, together 0.727."""
    observed = [job(size, cpu_s) for size, cpu_s in records]
    assert scatter(observed, {}) == pytest.approx(0.7272 if expected is None else expected, abs=1e-4)


def test_scatter_of_three_and_of_four_records() -> None:
    """Three have two degrees of freedom left by their mean; four have two left by base and slope."""
    fitted = costs(compute={"cpu_s": Scaling(10.0, 0.0)}, stage_in={"cpu_s": Scaling(10.0, 0.0)})
    four = [job(size, 20 * factor) for size, factor in ((1, 2.0), (2, 0.5), (3, 2.0), (4, 0.5))]
    assert scatter(four, fitted) == pytest.approx(math.log(2) * math.sqrt(4 / 2))
    three = [job(100, 10.0), job(100, 10.0), job(100, 40.0)]  # the mean is 20: off by a half, a half, and twice
    assert scatter(three, {}) == pytest.approx(math.log(2) * math.sqrt(3 / 2))


TIERS = {"dataset": "disk", "work": "net", "images": "disk", "results": "disk"}
STORAGE = Storage(
    TIERS,
    {"disk": "block", "net": "network", "memory": "tmpfs"},
    make_s={"net": 0.5, "disk": 0.25},
    files={"net": FileCost(cpu_s=0.125, wait_s=0.5), "disk": FileCost(0.25, 0.0)},
    open_s={"disk": 2.0, "net": 4.0},
    resident=0.75,
    expiry_s=30.0,
    dirty_bytes=300.0,
    load_s={"compute": 7.0},
    reread=0.25,
)


def moved(made: Sequence[Step]) -> list[tuple[Any, ...]]:
    """Steps that take time: kind, amount, and of bytes the tier and whether the page cache has it."""
    return [(one.kind, one.amount, *((one.tier, one.cached) if one.tier else ())) for one in made if one.amount]


def test_staging_reads_what_is_not_cached_opens_and_makes_files() -> None:
    """100 bytes in 4 files, three quarters cached: one is opened, for 2 s; 2 are made, for 0.5 s each."""
    known = costs(
        stage_in={
            "cpu_s": Scaling(1.0, 0.5),
            "read_bytes": Scaling(0.0, 1.0),
            "read_files": Scaling(4.0, 0.0),
            "written_bytes": Scaling(0.0, 2.0),
            "written_files": Scaling(2.0, 0.0),
        }
    )
    assert moved(steps(Participant(100, slowness=3.0), known, replace(STORAGE, expiry_s=0.0))) == [
        ("read", 75.0, "disk", True),
        ("read", 25.0, "disk", False),
        ("write", 200.0, "net", False),
        ("wait", 2.0 + 2 * 0.5),
        ("compute", 1.0),  # what grows with size is copying, which the tiers' speeds include
    ]
    memory = replace(STORAGE, tiers=dict.fromkeys(TIERS, "memory"), expiry_s=0.0)
    assert moved(steps(Participant(100), known, memory)) == [
        ("read", 100.0, "memory", False),
        ("write", 200.0, "memory", False),
        ("compute", 1.0),
    ]


def test_computing_is_slower_by_the_participant_waits_for_its_files_and_programs_and_rereads_a_part() -> None:
    known = costs(
        compute={
            "cpu_s": Scaling(1.0, 0.02),
            "wait_s": Scaling(0.5, 0.01),
            "read_bytes": Scaling(0.0, 1.0),
            "read_files": Scaling(4.0, 0.0),
            "written_bytes": Scaling(0.0, 3.0),
            "made_files": Scaling(0.0, 0.08),
        }
    )
    assert moved(steps(Participant(100, slowness=2.0), known, STORAGE)) == [
        ("read", 75.0, "net", True),
        ("read", 25.0, "net", False),  # of what it has written to a network, a quarter is not cached
        ("files", 8.0, "net", False),
        ("write", 300.0, "net", True),  # as much as may be dirty, and deleted before 30 s
        ("wait", 0.5 + 1.0 + 7.0 + 0.25 * 4 * 4.0),
        ("compute", (1.0 + 2.0) * 2.0 + 8 * 0.125),
    ]
    on_disk = replace(STORAGE, tiers=TIERS | {"work": "disk"})
    assert moved(steps(Participant(100), known, on_disk)) == [
        ("read", 100.0, "disk", True),
        ("write", 300.0, "disk", True),
        ("wait", 0.5 + 1.0 + 7.0),
        ("compute", 1.0 + 2.0 + 8 * 0.25),
    ]


@pytest.mark.parametrize(
    ("change", "slowness", "cached"),
    [
        ({}, 1.0, True),
        ({"expiry_s": 3.1}, 1.0, True),
        ({"dirty_bytes": 299.0}, 1.0, False),
        ({}, 10.0, False),
        ({"expiry_s": 3.0}, 1.0, False),
    ],
)
def test_what_is_deleted_before_it_is_written_back_stays_in_the_page_cache(
    change: dict[str, Any], slowness: float, cached: bool
) -> None:
    """3 s of computing, and 300 bytes written."""
    known = costs(compute={"cpu_s": Scaling(3.0, 0.0), "written_bytes": Scaling(0.0, 3.0)})
    found = steps(Participant(100, slowness=slowness), known, replace(STORAGE, **change))
    assert [step.cached for step in found if step.kind == "write"] == [cached]
    short = costs(compute={"cpu_s": Scaling(0.5, 0.0), "written_bytes": Scaling(0.0, 3.0)})
    unknown = steps(Participant(100), short, Storage(TIERS, STORAGE.kinds))
    assert [step.cached for step in unknown if step.kind == "write"] == [False], "unless it is known how soon that is"


def test_programs_are_loaded_by_the_first_and_once_by_those_who_share_a_job() -> None:
    """Three with a job each, two at once; then four in two jobs of two, one of whom computes at a time."""
    known = costs(start_up={"cpu_s": Scaling(0.5, 0.01)}, compute={"cpu_s": Scaling(1.0, 0.0)})
    people = [Participant(size) for size in (100, 50, 100, 25)]
    alone = workload_of(people[:3], known, STORAGE, Fetching(), first=2)
    waits = [sum(step.amount for step in task if step.kind == "wait") for task in alone.tasks]
    assert waits == [7.0, 7.0, 0.0]
    assert [job.launch for job in alone.jobs or ()] == [(), (), ()]
    assert sum(step.amount for step in alone.tasks[1] if step.kind == "compute") == 0.5 + 0.5 + 1.0
    shared = workload_of(people, known, STORAGE, Fetching(), first=2, jobs=[[[0], [1]], [[2], [3]]], computing=1)
    first, second = shared.jobs or ()
    assert [step.amount for step in first.launch] == [1.5, 7.0], "as long as the largest takes to start; and programs"
    assert [step.amount for step in second.launch] == [1.5, 0.0]
    assert (first.slots, first.counts_for, list(second.tasks)) == (
        {"stage_in": 1, "compute": 1, "stage_out": 1},
        1,
        [2, 3],
    )
    assert [step.amount for step in shared.tasks[0] if step.kind == "compute" and step.amount] == [1.0]
    assert [step.kind for step in shared.tasks[0] if step.kind in ("take", "give")] == ["take", "give"]
    every = workload_of(people, known, STORAGE, Fetching(), first=2, jobs=[[[0], [1]], [[2], [3]]], computing=2)
    free = workload_of(people, known, STORAGE, Fetching(), first=2, jobs=[[[0], [1]], [[2], [3]]])
    for each in (every, free):
        assert [(one.slots, one.counts_for) for one in each.jobs or ()] == [({}, 0)] * 2


def test_slots_are_held_for_as_long_as_one_copies_or_computes() -> None:
    def step(phase: str) -> Step:
        return Step(phase, "wait", 1.0)

    found = in_slots([step(name) for name in ("start_up", "stage_in", "stage_in", "container_start", "compute")])
    assert [(one.phase, one.kind) for one in found] == [
        ("start_up", "wait"),
        *(("stage_in", kind) for kind in ("take", "wait", "wait", "give")),
        ("compute", "take"),
        ("container_start", "wait"),
        ("compute", "wait"),
        ("compute", "give"),
    ]


@pytest.mark.parametrize(
    ("at_once", "computing", "order"),
    [(2, 0, [0, 2, 1, 3, 4]), (4, 0, [0, 4, 2, 1, 3]), (2, 1, [0, 4, 2, 1, 3]), (1, 0, [0, 2, 1, 3, 4])],
)
def test_images_are_fetched_in_the_order_in_which_they_are_analysed(
    at_once: int, computing: int, order: list[int]
) -> None:
    """A job of two sequences, [0, 1] beside [2, 3], and one of one: both jobs at once where there is room."""
    assert fetching_order([[[0, 1], [2, 3]], [[4]]], at_once, computing) == order


def test_who_waits_for_images_waits_for_its_own() -> None:
    people = [Participant(10), Participant(10, to_fetch_bytes=100), Participant(10, to_fetch_bytes=200)]
    known = costs(compute={"cpu_s": Scaling(1.0, 0.0)})
    found = workload_of(people, known, STORAGE, Fetching(1.0, 2.0, 0.5, at_once=2), first=1)
    waits = [[step.amount for step in task if step.kind == "arrival"] for task in found.tasks]
    assert waits == [[], [1], [2]]
    assert [[step.amount for step in fetch] for fetch in found.fetches] == [[1.0, 52.0], [1.0, 102.0]]
    assert found.fetches_at_once == 2
    without = workload_of(people, known, STORAGE, Fetching(), first=1)
    assert (without.fetches, without.fetches_at_once) == ([], 1)
    assert all(step.kind != "arrival" for task in without.tasks for step in task)


def probed(low: float, high: float) -> Probed:
    """A tier of 100 bytes/s, between so many times as much, where four files are made in a second."""
    files = {1: FileCost(0.0, 0.25, 0.5, 2.0)}
    return Probed(*(tier_figures("disk", "block", {1: 100.0 * by}, {1: 1e9}, files) for by in (1.0, low, high)))


def test_what_is_drawn_scatters_as_the_records_do() -> None:
    """Four records that are off by ln 2: by 0.98 from each other, and their mean by half of that.

    Speeds are between the least and the most, others' processes between none and twice as many.
    """
    observed = [job(size, 10 * factor) for size, factor in ((1, 2.0), (2, 0.5), (3, 2.0), (4, 0.5))]
    given = Inputs(
        observed=[replace(one, size_bytes=100) for one in observed],
        participants=[Participant(100)] * 60,
        fetching=Fetching(),
        probes={"disk": probed(0.5, 2.0)},
        processors=Processors(2, 2, others=3.0),
        page_cache=PageCache(1e9),
    )
    storage = Storage(dict.fromkeys(TIERS, "disk"), {"disk": "block"})
    usual, low, high = (
        machine_of({"disk": getattr(given.probes["disk"], end)}, 1, given.processors, given.page_cache)
        for end in ("usual", "low", "high")
    )
    logarithms, machines = [], list[Machine]()
    for seed in range(80):
        workload, machine = draw(given, storage, (usual, low, high), 1, np.random.default_rng(seed))
        cpu_s = [sum(step.amount for step in task if step.kind == "compute") for task in workload.tasks]
        logarithms.append([math.log(one) for one in cpu_s])
        machines.append(machine)
    spread = scatter(given.observed, costs_of(given.observed))
    assert statistics.fmean(statistics.stdev(each) for each in logarithms) == pytest.approx(spread, rel=0.05)
    assert statistics.stdev(statistics.fmean(each) for each in logarithms) == pytest.approx(spread / 2, rel=0.25)
    cpu_s = [math.exp(one) for each in logarithms for one in each]
    assert statistics.fmean(cpu_s) == pytest.approx(12.5 * math.exp((spread / 2) ** 2 / 2), rel=0.15), "the mean stays"
    others = [machine.processors.others for machine in machines]
    assert 0 <= min(others) < 0.5
    assert 5.4 < max(others) <= 6
    speeds = [machine.tiers["disk"].read_bytes_per_s for machine in machines]
    assert 50 <= min(speeds) < 55
    assert 180 < max(speeds) <= 200


def test_files_of_a_tool_take_more_or_less_than_the_probe_s() -> None:
    """By its repetitions up to twice as much, and besides within 0.61 and 1.64 times as much in nine cases of ten."""
    probes = {"disk": probed(1.0, 1.0)}
    usual = machine_of({"disk": probes["disk"].usual}, 1, Processors(1, 1), PageCache(1e9))
    tiers = [drawn_files(usual, probes, 1, np.random.default_rng(seed)).tiers["disk"] for seed in range(2000)]
    found = [one.files_per_s / 4 for one in tiers]
    assert [one.files_stream_per_s for one in tiers] == [one.files_per_s for one in tiers]
    assert statistics.median(found) == pytest.approx(1.0, abs=0.05)
    even = {"disk": Probed(*[tier_figures("disk", "block", {1: 100.0}, {1: 1e9}, {1: FileCost(0.0, 0.25)})] * 3)}
    alike = sorted(
        drawn_files(usual, even, 1, np.random.default_rng(seed)).tiers["disk"].files_per_s / 4 for seed in range(2000)
    )
    assert (alike[100], alike[-100]) == pytest.approx((0.61, 1.64), rel=0.05)
    assert statistics.stdev(map(math.log, found)) > 1.3 * statistics.stdev(map(math.log, alike))
    one_way = {
        "disk": Probed(*[tier_figures("disk", "block", {1: 100.0}, {1: 1e9}, {1: FileCost(0.0, 0.25, 1.0, 8.0)})] * 3)
    }
    slower = [
        drawn_files(usual, one_way, 1, np.random.default_rng(seed)).tiers["disk"].files_per_s / 4 for seed in range(500)
    ]
    assert statistics.fmean(one < 0.5 for one in slower) == pytest.approx(1 / 3, abs=0.06), "8 ** part > 2: a third"
