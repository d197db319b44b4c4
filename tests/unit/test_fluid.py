"""The fluid model: what it must give where the answer can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from neurotier.model.fluid import simulate
from neurotier.model.machine import Machine, PageCache, Processors, TierSpeed, cache_of
from neurotier.model.workload import LAUNCH, Job, Step, Workload

GB = 1e9
FAST = TierSpeed(10 * GB, 10 * GB, 10 * GB, 10 * GB)
LINK = TierSpeed(1 * GB, 0.5 * GB, 1 * GB, 0.5 * GB)
DISK = replace(LINK, write_back=True)
LARGE = PageCache(available_bytes=1000 * GB)


def machine(tier: TierSpeed, cache: PageCache = LARGE, processors: Processors | None = None) -> Machine:
    return Machine(processors or Processors(64, 64), cache, {"tier": tier, cache_of("tier"): FAST})


def copies(count: int, size: float = GB) -> Workload:
    return Workload([(Step("read", "read", size, "tier"), Step("write", "write", size, "tier"))] * count)


@pytest.mark.parametrize(
    ("tasks", "tier", "parallelism", "expected_s"),
    [
        (copies(10), LINK, 1, 10 / 1 + 10 / 0.5),  # one stream at a time takes what Eq. (1) says
        (copies(10), LINK, 10, 30),  # a shared link is no faster with more streams
        (copies(10), replace(LINK, read_bytes_per_s=100 * GB, write_bytes_per_s=100 * GB), 10, 1 + 2),
        (copies(10), DISK, 10, 10 + 1),  # write-back hides writing
        (Workload([(Step("read", "read", GB, "tier", cached=True),)] * 4), DISK, 1, 0.4),
    ],
)
def test_copying_takes(tasks: Workload, tier: TierSpeed, parallelism: int, expected_s: float) -> None:
    found = simulate(tasks, machine(tier), parallelism)
    assert found.makespan_s == pytest.approx(expected_s)
    assert found.mean_parallelism == pytest.approx(sum(found.phase_sums_s.values()) / expected_s)


def test_while_one_computes_others_copy_and_those_who_wait_take_nobody_s_time() -> None:
    """Four read for 1 s and compute for 3 s, one at a time: 16 s; with one beside, only the first read is seen."""
    read, compute = Step("read", "read", GB, "tier"), Step("compute", "compute", 3.0)
    take, give = (replace(compute, kind=kind, amount=0.0) for kind in ("take", "give"))
    in_turns = Workload([(read, compute) * 4], jobs=[Job([0])])
    assert simulate(in_turns, machine(LINK), parallelism=1).makespan_s == pytest.approx(16)
    beside = Workload([(read, take, compute, give) * 2] * 2, jobs=[Job([0, 1], slots={"compute": 1}, counts_for=1)])
    found = simulate(beside, machine(LINK), parallelism=1)
    assert found.makespan_s == pytest.approx(2 + 4 * 3), "the first two share the tier"
    assert found.phase_sums_s == pytest.approx({"read": 2 + 2 + 1 + 1, "compute": 12})
    both = simulate(replace(beside, jobs=[Job([0, 1], slots={"compute": 2})]), machine(LINK), parallelism=2)
    assert both.makespan_s == pytest.approx(2 * (2 + 3))


def test_what_reads_and_writes_at_once_overlaps_only_on_a_duplex_link() -> None:
    tasks = [(Step("read", "read", 10 * GB, "tier"),), (Step("write", "write", 5 * GB, "tier"),)]
    for mixed, expected_s in ((1.0, 20), (2.0, 10), (0.5, 40)):
        found = simulate(Workload(tasks), machine(replace(LINK, mixed=mixed)), parallelism=2)
        assert found.makespan_s == pytest.approx(expected_s), mixed


def test_what_is_dirty_for_too_long_takes_half_the_disk_from_readers() -> None:
    """One block every second; from 30 s after the first write on, reading has half the disk."""
    cache = replace(LARGE, expiry_s=30)
    found = simulate(copies(60), machine(DISK, cache), parallelism=1)
    alone = 27.3  # each of the first blocks takes 1 s to read and 0.1 s to write
    reads = [end - start for _, phase, start, end in found.spans_s if phase == "read"]
    assert reads[10] == pytest.approx(1.0)
    assert reads[-10] == pytest.approx(2.0)
    assert sum(1 for read in reads if read < 1.5) == pytest.approx(alone, abs=2)


def test_writers_wait_for_the_disk_when_too_much_is_dirty() -> None:
    """Of 100 GB written 15 may be dirty; the rest goes at the speed of the disk."""
    cache = PageCache(available_bytes=100 * GB, background_ratio=0.1, ratio=0.2)
    tasks = [(Step("write", "write", GB, "tier"),)] * 100
    found = simulate(Workload(tasks), machine(DISK, cache), parallelism=4)
    assert found.makespan_s == pytest.approx((100 - 15) / 0.5, rel=0.05)
    assert found.limit == "tier write"


def test_a_makespan_begins_after_the_first_launch() -> None:
    tasks = [(replace(LAUNCH, amount=1.0), Step("wait", "wait", 1.0))] * 5
    assert simulate(Workload(tasks), machine(FAST), 1).makespan_s == pytest.approx(9)


def test_a_job_holds_its_slots_until_the_last_of_its_tasks_is_over() -> None:
    """Jobs of two tasks, of 1 s and 3 s, two slots: the second begins after 3 s, launched once for both."""
    tasks = [(Step("compute", "compute", seconds),) for seconds in (1.0, 3.0, 1.0, 3.0)]
    launch = (Step(LAUNCH.phase, "compute", 0.5),)
    jobs = [Job((0, 1), launch), Job((2, 3), launch)]
    held = Workload(tasks, jobs=jobs)
    found = simulate(held, machine(LINK), parallelism=2)
    assert found.makespan_s == pytest.approx(3.0 + 0.5 + 3.0)
    assert found.phase_sums_s == pytest.approx({"compute": 8.0})
    assert simulate(held, machine(LINK), parallelism=4).makespan_s == pytest.approx(3.0)
    assert simulate(held, machine(LINK), parallelism=1).makespan_s == pytest.approx(6.5)  # larger than the machine
