"""The fluid model: what it must give where the answer can be worked out by hand."""

from __future__ import annotations

import cProfile
import math
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from neurotier.model.fluid import Dirty, SimulatedRun, simulate
from neurotier.model.machine import LAUNCH, Job, Machine, PageCache, Processors, Step, TierSpeed, Workload, cache_of
from neurotier.model.prediction import MODEL_ERROR, Prediction, Situation, predict_among
from shown_values import shown

GB = 1e9
FAST = TierSpeed(10 * GB, 10 * GB, 10 * GB, 10 * GB)
LINK = TierSpeed(1 * GB, 0.5 * GB, 1 * GB, 0.5 * GB)
DISK = replace(LINK, write_back=True)
LARGE = PageCache(available_bytes=1000 * GB)


READ, WRITE = Step("read", "read", GB, "tier"), Step("write", "write", GB, "tier")


def machine(tier: TierSpeed = LINK, cache: PageCache = LARGE, processors: Processors | None = None) -> Machine:
    return Machine(processors or Processors(64, 64), cache, {"tier": tier, cache_of("tier"): FAST})


def takes(workload: Workload, parallelism: int, tier: TierSpeed = LINK, cache: PageCache = LARGE) -> float:
    """Makespan, s."""
    return simulate(workload, machine(tier, cache), parallelism).makespan_s


def computing(*each_s: float) -> list[tuple[Step, ...]]:
    """Tasks that compute for so long, each on a core of its own, s."""
    return [(Step("compute", "compute", seconds),) for seconds in each_s]


COPIES = Workload([(READ, WRITE)] * 10)


@pytest.mark.parametrize(
    ("tasks", "tier", "parallelism", "expected_s"),
    [
        (COPIES, LINK, 1, 10 / 1 + 10 / 0.5),  # one stream at a time takes what Eq. (1) says
        (COPIES, LINK, 10, 30),  # a shared link is no faster with more streams
        (COPIES, replace(LINK, read_bytes_per_s=100 * GB, write_bytes_per_s=100 * GB), 10, 1 + 2),
        (COPIES, DISK, 10, 10 + 1),  # write-back hides writing
        (Workload([(replace(READ, cached=True),)] * 4), DISK, 1, 0.4),
    ],
)
def test_copying_takes(tasks: Workload, tier: TierSpeed, parallelism: int, expected_s: float) -> None:
    assert takes(tasks, parallelism, tier) == pytest.approx(expected_s)


def test_while_one_computes_others_copy_and_those_who_wait_take_nobody_s_time() -> None:
    """Four read for 1 s and compute for 3 s, one at a time: 16 s; with one beside, only the first read is seen."""
    compute, take, give = (Step("compute", *kind) for kind in (("compute", 3.0), ("take", 1.0), ("give", 1.0)))
    in_turns = Workload([(READ, compute) * 4], jobs=[Job([0])])
    assert takes(in_turns, 1) == pytest.approx(16)
    beside = Workload([(READ, take, compute, give) * 2] * 2, jobs=[Job([0, 1], slots={"compute": 1}, at_once=2)])
    found = simulate(beside, machine(), parallelism=1)
    assert found.makespan_s == pytest.approx(2 + 4 * 3), "the first two share the tier"
    assert found.phase_sums_s == pytest.approx({"read": 2 + 2 + 1 + 1, "compute": 12})
    both = replace(beside, jobs=[Job([0, 1], slots={"compute": 2}, at_once=2)])
    assert takes(both, 2) == pytest.approx(2 * (2 + 3))


@pytest.mark.parametrize(("mixed", "expected_s"), [(1.0, 20), (2.0, 10), (0.5, 40)])
def test_what_reads_and_writes_at_once_overlaps_only_on_a_duplex_link(mixed: float, expected_s: float) -> None:
    tasks = [(READ,) * 10, (WRITE,) * 5]
    assert takes(Workload(tasks), 2, replace(LINK, mixed=mixed)) == pytest.approx(expected_s)


def test_what_is_dirty_for_too_long_takes_half_the_disk_from_readers() -> None:
    """One block every second; from 30 s after the first write on, reading has half the disk."""
    cache = replace(LARGE, expiry_s=30)
    found = simulate(Workload([(READ, WRITE)] * 60), machine(DISK, cache), parallelism=1)
    alone = 27.3  # each of the first blocks takes 1 s to read and 0.1 s to write
    reads = [end - start for _, phase, start, end in found.spans_s if phase == "read"]
    assert reads[10] == pytest.approx(1.0)
    assert reads[-10] == pytest.approx(2.0)
    assert sum(1 for read in reads if read < 1.5) == pytest.approx(alone, abs=2)


def test_writers_wait_for_the_disk_when_too_much_is_dirty() -> None:
    """Of 100 GB written 15 may be dirty; the rest goes at the speed of the disk."""
    cache = PageCache(available_bytes=100 * GB, background_ratio=0.1, ratio=0.2)
    found = simulate(Workload([(WRITE,)] * 100), machine(DISK, cache), parallelism=4)
    assert found.makespan_s == pytest.approx((100 - 15) / 0.5, rel=0.05)
    assert found.limit == "tier write"
    deleted = Workload([(replace(WRITE, cached=True),)] * 100)  # before it is written back
    assert takes(deleted, 4, DISK, cache) == pytest.approx(100 / 10)


def test_the_next_task_of_a_job_begins_when_any_of_those_before_it_is_over() -> None:
    """One of 8 s, and seven of 1 s, two at once: all others are done beside the first."""
    job = Job(range(8), at_once=2)
    assert takes(Workload(computing(8, *[1] * 7), jobs=[job]), 2) == pytest.approx(8)
    alone = Workload(computing(8, *[1] * 8), jobs=[job, Job([8])])
    assert takes(alone, 3) == pytest.approx(8)
    assert takes(alone, 2) == pytest.approx(9), "it has room when all are over"
    assert takes(Workload(computing(0, 0, 0), jobs=[Job(range(3), at_once=2)]), 2) == 0


def test_a_job_holds_its_slots_until_the_last_of_its_tasks_is_over() -> None:
    """Jobs of two tasks, of 1 s and 3 s, two slots: the second begins after 3 s, launched once for both."""
    launch = (Step(LAUNCH, "compute", 0.5),)
    jobs = [Job(tasks, launch, at_once=2) for tasks in ((0, 1), (2, 3))]
    held = Workload(computing(1, 3, 1, 3), jobs=jobs)
    found = simulate(held, machine(), parallelism=2)
    assert found.makespan_s == pytest.approx(3.0 + 0.5 + 3.0)
    assert found.phase_sums_s == pytest.approx({"compute": 8.0})
    assert takes(held, 4) == pytest.approx(3.0)
    assert takes(held, 1) == pytest.approx(6.5)  # larger than the machine


def test_the_interval_is_that_of_the_draws_and_the_model_s_errors_and_holds_what_is_predicted() -> None:
    """Of draws from 10 s to 20 s the lowest twentieth ends at 10.5 s, but for the model's error.

    A normal distribution has 90 % within 1.645 standard deviations.
    """
    error, drawn = math.exp(1.645 * MODEL_ERROR), list[float]()

    def between(usual_s: float, least_s: float, most_s: float) -> Prediction:
        def waiting(seconds: float) -> Situation:
            return Workload([(Step("wait", "wait", seconds),)]), machine()

        def draw(rng: np.random.Generator) -> Situation:
            drawn.append(rng.uniform(least_s, most_s))
            return waiting(drawn[-1])

        return predict_among(waiting(usual_s), draw, 1)

    long, short = between(100, 1000, 2000), between(100, 10, 20)
    assert len(set(drawn)) == len(drawn), "no draw is another's"
    assert (long.low_s, short.high_s) == (100, 100)
    assert 1800 < long.high_s < 2000 * error
    assert 10 / error < short.low_s < 12
    known = between(10, 10, 10)
    assert known.makespan_s == 10
    assert [known.low_s, known.high_s] == pytest.approx([10 / error, 10 * error], rel=0.005)


def test_streams_that_should_be_alike_differ_and_take_no_longer_on_average() -> None:
    """2,000 reads of 1 s one after the other: 2,000 s, and the logarithms of their times spread by 0.5."""
    uneven = machine(replace(LINK, unevenness=0.5))
    found, other = (simulate(Workload([(READ,)] * 2000), uneven, 1, seed=seed) for seed in (1, 2))
    assert found.makespan_s == pytest.approx(2000, rel=0.03)
    assert found.makespan_s != other.makespan_s
    logarithms = [math.log(end - start) for _, _, start, end in found.spans_s]
    assert statistics.stdev(logarithms) == pytest.approx(0.5, abs=0.03)


WIDE = replace(LINK, read_bytes_per_s=2 * GB, read_stream_bytes_per_s=2 * GB)
COMPUTE_AND_READ = Step("compute", "compute", 3.0), READ
WAIT = (Step("wait", "wait", 1.0),)
FILES, MAKE = replace(LINK, files_per_s=10.0, files_stream_per_s=5.0), (Step("make", "files", 20, "tier"),)


@pytest.mark.parametrize(
    ("tasks", "tier", "cores", "expected", "limits"),
    [
        # two compute on one core, and share the tier
        ([COMPUTE_AND_READ] * 2, WIDE, 1, "7 2", {"processors": 6 / 7, "tier read": 1 / 7}),
        (
            [COMPUTE_AND_READ, WAIT],
            replace(WIDE, read_stream_bytes_per_s=0.5 * GB),
            1,
            "5 1.2",
            {"processors": 3 / 6, "one stream on tier": 2 / 6, "wait": 1 / 6},
        ),
        ([MAKE] * 4, FILES, 4, "8 4", {"small files on tier": 1}),
        ([MAKE], FILES, 4, "4 1", {"small files on tier": 1}),
        ([], LINK, 1, "0 0", {}),
    ],
)
def test_limits_are_parts_of_the_tasks_time(
    tasks: list[tuple[Step, ...]], tier: TierSpeed, cores: int, expected: str, limits: dict[str, float]
) -> None:
    found = simulate(Workload(tasks), machine(tier, processors=Processors(cores, cores)), 4)
    assert shown(found, "makespan_s mean_parallelism") == expected
    assert found.limit == next(iter(limits), "")
    assert found.limits == pytest.approx(limits)


def fetched(count: int, at_once: dict[str, Any], *beside: tuple[Step, ...]) -> SimulatedRun:
    """Tasks of 1 s that each wait for a fetch of 2 s."""
    tasks = [(Step(LAUNCH, "arrival", number), *WAIT) for number in range(1, count + 1)]
    fetches = [(Step(LAUNCH, "wait", 2.0),)] * count
    return simulate(Workload([*tasks, *beside], fetches=fetches, **at_once), machine(), count + len(beside))


def test_fetches_go_on_beside_the_tasks_that_wait_for_them() -> None:
    """Three, two at once: the last begins after 4 s, and ends after 5. Of five the last is there after 6 s.

    Meanwhile somebody waits as one of them does.
    """
    found = fetched(3, {"fetches_at_once": 2})
    spans = sorted((task, start, end) for task, _, start, end in found.spans_s)
    assert spans == [(0, 2, 3), (1, 2, 3), (2, 4, 5)], "each waits for its own"
    assert found.makespan_s == 3
    assert found.limits[LAUNCH] == pytest.approx((3 * 2 + 2 + 3 * 2) / (3 * 2 + 2 + 3 * 2 + 3)), "waiting counts"
    five = fetched(5, {"fetches_at_once": 2}, (Step(LAUNCH, "wait", 2.0), Step("own", "wait", 3.0)))
    assert sorted(start for _, phase, start, _ in five.spans_s if phase == "wait") == [2, 2, 4, 4, 6]
    assert five.phase_sums_s == {"wait": 5, "own": 3}
    assert sorted(start for _, _, start, _ in fetched(2, {}).spans_s) == [2, 4], "one at a time, if nobody says"


def test_twice_as_many_fetches_take_twice_the_work() -> None:
    """At every event all fetches were looked through, whether or not anybody waited for them."""
    calls = []
    for count in (100, 200):
        with cProfile.Profile() as profile:
            fetched(count, {"fetches_at_once": 2})
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 2.5 * calls[0]


def test_a_tier_without_speed_is_said() -> None:
    with pytest.raises(ValueError, match=r"^nothing moves any more at 0\.0 s: a speed is 0$"):
        takes(COPIES, 1, replace(LINK, read_stream_bytes_per_s=1e-300, read_bytes_per_s=1e-300))


def dirty(*writes: tuple[float, float], **given: float) -> Dirty:
    """Bytes written within a second from a moment on, at most 100 of which may be dirty before any is written back."""
    found = Dirty(PageCache(1000.0, **given))
    for now_s, size_bytes in writes:
        found.advance(now_s, 1.0, size_bytes)
    return found


def advance(found: Dirty, now_s: float, elapsed_s: float, size_bytes: float, rate: float) -> float:
    """Write some back, and others anew; gives how many are dirty."""
    found.rate_bytes_per_s = rate
    found.advance(now_s, elapsed_s, size_bytes)
    return found.dirty_bytes


def due(found: Dirty, *moments_s: float) -> list[bool]:
    return [found.is_due(now_s) for now_s in moments_s]


def test_bytes_grow_old_are_written_back_and_fall_below_the_background_limit() -> None:
    """Of 100 bytes background and 150 throttling: 30 s after they became dirty they are due, the oldest first.

    So Linux ships it, see vm.rst: dirty_background_ratio 10, dirty_ratio 20, dirty_expire_centisecs 3000.
    """
    assert (dirty().dirty_bytes, dirty().is_due(0.0), dirty().until_change_s(0.0, 0.0)) == (0, False, math.inf)
    found = dirty((0.0, 40.0), (0.5, 10.0), (2.0, 5.0), (2.6, 15.0))  # those so soon after others grow old with them
    assert ([chunk[1] for chunk in found.chunks], found.dirty_bytes) == ([50, 5, 15], 70)
    assert found.until_change_s(10.0, 0.0) == 20.0, "until the oldest are 30 s old"
    assert found.until_change_s(10.0, 10.0) == pytest.approx(2.0), "until 90 of 100 are dirty"
    assert due(found, 29.9, 30.0) == [False, True]
    assert found.until_change_s(31.0, 0.0) == 0.0, "they are older than that already"
    found.rate_bytes_per_s = 5.0
    assert found.until_change_s(30.0, 0.0) == 10.0, "until the 50 that are old are written"
    assert advance(found, 30.0, 10.0, 0.0, 5.0) == 20
    assert due(found, 31.9, 32.0) == [False, True]


def test_too_much_is_written_back_until_a_tenth_is_below_the_limit() -> None:
    found = dirty((0.0, 100.0), expiry_s=1e9)
    assert due(found, 1.0) == [False], "as much as may be dirty is not too much"
    assert advance(found, 1.0, 1.0, 20.0, 0.0) == 120
    assert due(found, 2.0) == [True]
    found.rate_bytes_per_s = 10.0
    assert found.until_change_s(2.0, 0.0) == pytest.approx(2.0), "until there are 100"
    assert found.until_change_s(2.0, 15.0) == pytest.approx(6.0), "until there are 150, and writers wait"
    assert advance(found, 2.0, 2.5, 0.0, 10.0) == 95
    assert found.is_due(4.5), "it goes on below the limit"
    assert advance(found, 4.5, 0.5, 0.0, 10.0) == 90
    assert not found.is_due(5.0)
    throttles = [found.throttles for size in (59.0, 1.0) if advance(found, 5.0, 1.0, size, 0.0)]
    assert throttles == [False, True]


def test_no_more_than_there_is_is_written_back() -> None:
    """Of chunks of 10 and 10 bytes, 15 and then all go; less than a byte is none."""
    found = dirty((0.0, 10.0), (5.0, 10.0))
    left = [advance(found, 6.0, 1.0, 0.0, rate) for rate in (15.0, 3.5, 0.6)]
    assert left == [5, 1.5, 0]
    assert [advance(found, 9.0, 1.0, *given) for given in ((2.0, 0.0), (0.0, 100.0))] == [2, 0]
    assert (list(found.chunks), found.throttles) == ([], False)
