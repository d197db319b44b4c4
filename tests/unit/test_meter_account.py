"""The accounts of the meter, from books and records whose sums are worked out by hand.

Whatever is given, the parts of an account add up to the wall time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from resource import struct_rusage
from typing import Any

import pytest
from neurotier.meter.activity import TICK_S, Activity, Books
from neurotier.meter.records import FIELDS, RECORD, Branch, Branches
from neurotier.meter.sampling import Sampler
from neurotier.meter.usage import ACCOUNT, Usage

NS = 1_000_000_000


def usage(wall_s: float = 10.0, **figures: Any) -> Usage:
    """A phase of 10 s whose waits are known: 2 s and 1 s of CPU time, 1.5 s for a core, 0.5 s for storage."""
    found = Usage(100.0)
    known = {"user_s": 2.0, "system_s": 1.0, "run_queue_s": 1.5, "block_io_s": 0.5, "memory_stall_s": 0.25}
    vars(found).update({"wall_s": wall_s, "wait_source": "taskstats", **known, **figures})
    return found


def sampler(delays: bool = True, **activity: Any) -> Sampler:
    """What samples have found."""
    found = Sampler(os.getpid(), None, delays)
    vars(found.activity).update(activity)
    return found


def account(found: Usage) -> list[float | None]:
    """User, system, core, storage, memory, asleep, unexplained: in all, the wall time."""
    parts = [getattr(found, name) for name in (*ACCOUNT, "residual_s")]
    assert sum(part or 0.0 for part in parts) == pytest.approx(found.wall_s)
    return [None if part is None else round(part, 6) for part in parts]


BETWEEN_4_AND_6: dict[str, Any] = {"least_s": 4.0, "most_s": 6.0, "seen_s": 5.0, "turned_squared": 1.0}
"""The tree was active for 5 s, give or take 1."""


def test_one_thread_is_asleep_for_the_rest() -> None:
    found = usage()
    found.divide(Branch(), sampler())
    assert found.account == "exact"
    assert account(found) == [2, 1, 1.5, 0.5, 0.25, 4.75, 0]
    looked_at = sampler()
    looked_at.most_active = 2
    exact = usage()
    exact.divide(Branch(), looked_at)
    assert exact.account == "exact", "two that were awake by turns in one look: what is booked counts"
    itself = usage(wait_source="sampled")
    itself.divide(None, None)
    assert (itself.account, itself.account_other_s) == ("sampled", 4.75)


@pytest.mark.parametrize(("late_s", "parts"), [(0.5, (2.0, 4.25)), (6.0, (6.25, 0.0))])
def test_what_the_meter_noticed_late_was_waiting_for_a_core(late_s: float, parts: tuple[float, float]) -> None:
    found = usage()
    found.divide(None, None, late_s)
    assert (found.account_run_queue_s, found.account_other_s) == pytest.approx(parts)
    account(found)


def test_without_waits_for_a_core_there_is_no_account() -> None:
    found = usage(run_queue_s=None)
    found.divide(Branch(), sampler())
    assert (found.account, found.account_user_s, found.residual_s) == (None, None, None)


def test_where_waiting_for_storage_is_not_known_it_is_not_told_from_sleep() -> None:
    found = usage(block_io_s=None, memory_stall_s=None)
    found.divide(Branch(), None)
    assert account(found) == [2, 1, 1.5, None, None, None, 5.5]
    asynchronous = usage(block_io_s=None, bytes_reason="aio")
    asynchronous.divide(Branch(), None)
    assert account(asynchronous) == [2, 1, 1.5, None, 0.25, 5.25, 0], "what waits for asynchronous calls is asleep"
    bare = usage(block_io_s=None, memory_stall_s=None, bytes_reason="aio")
    bare.divide(None, None)
    assert account(bare) == [2, 1, 1.5, None, None, 5.5, 0]
    busy = usage(user_s=8.6, block_io_s=None, memory_stall_s=None, bytes_reason="aio", run_queue_s=0.5)
    busy.divide(Branch(), sampler(**BETWEEN_4_AND_6))
    assert account(busy) == [8.6, 1, 0.5, None, None, 0, -0.1], "1 % more than the wall time: nothing was slept"


@pytest.mark.parametrize(("user_s", "kind"), [(6.84, "exact"), (6.87, "scaled")])
def test_clocks_that_differ_by_a_hundredth_are_of_one_thread(user_s: float, kind: str) -> None:
    """With 3.25 s of other causes, of 10 s: 10.09 is within 1 % and 5 ms, and 10.12 is not."""
    found = usage(user_s=user_s)
    found.divide(None, None)
    assert found.account == kind
    assert account(found)[-2:] == [0, -0.09 if kind == "exact" else 0]


def test_several_threads_are_scaled_to_the_time_in_which_one_was_active() -> None:
    """Of 5.25 s of activity 3 s overlapped: at least 2.25 s; by the samples 4 to 6 s, by the books no more than 5.25.

    So it was active for 4 s for certain, asleep for 10 - 5.25, and 1.25 s are not explained.
    """
    branch = Branch()
    branch.overlap_ns = 3 * NS
    found = usage()
    found.divide(branch, sampler(**BETWEEN_4_AND_6))
    assert found.account == "scaled"
    scale = 4 / 5.25
    assert account(found) == pytest.approx([2 * scale, scale, 1.5 * scale, 0.5 * scale, 0.25 * scale, 4.75, 1.25])
    unbooked = usage()
    unbooked.divide(branch, sampler(delays=False, **BETWEEN_4_AND_6))
    assert account(unbooked)[-2:] == [4, 2], "who knows what was not booked: up to 6 s"
    busy = usage(user_s=12.0)
    busy.divide(branch, sampler(least_s=10.0, most_s=10.0, seen_s=10.0))
    assert account(busy)[-2:] == [0, 0], "some thread was active all the time"
    little = usage()
    branch.overlap_ns = NS
    little.divide(branch, sampler(**BETWEEN_4_AND_6))
    assert account(little)[-2:] == [4.75, 1.0], "only 1 s overlapped: it was active for 4.25 s"
    branch.overlap_ns = NS // 10
    exact = usage()
    exact.divide(branch, sampler(**BETWEEN_4_AND_6))
    assert exact.account == "exact"


@pytest.mark.parametrize(
    ("lifetime_s", "active_s", "kind"),
    [(10.0, 5.0, "exact"), (13.0, 5.0, "scaled"), (13.0, 0.1, "exact"), (13.0, 0.15, "scaled")],
)
def test_children_that_lived_longer_than_the_phase_were_beside_it(
    lifetime_s: float, active_s: float, kind: str
) -> None:
    """Together 13 s in 10: for 3 of them two were there, and did something for as long as they were active."""
    branch = Branch()
    branch.children_lifetime_ns, branch.children_active_ns = int(lifetime_s * NS), int(active_s * NS)
    found = usage()
    found.divide(branch, sampler(**BETWEEN_4_AND_6))
    assert found.account == kind
    account(found)


def seen(found: Sampler, runtime_s: float, run_queue_s: float = 0.0, booked_s: float = 0.0) -> Sampler:
    """A sampler that has seen a thread; three ticks of user time to one of system time."""
    found.threads[7, 1] = (runtime_s, run_queue_s, booked_s, 3, 1)
    return found


def test_a_sampled_account_says_what_it_does_not_know() -> None:
    """Of 3 s on cores samples saw 2: the other second waited like it, 0.5 s for a core; 4 to 6 s, so up to 7.75.

    More than 4.5 + 0.25 s that are known and the 1.5 s is not booked: at most 6.75 s active, 3.25 asleep.
    """
    found = usage(wait_source="sampled", run_queue_s=1.0)
    found.divide(None, seen(sampler(**BETWEEN_4_AND_6), 2.0, 1.0))
    assert found.account == "sampled"
    assert account(found) == [2, 1, 1, 0.5, 0.25, 3.75, 1.5]
    misbooked = usage(wait_source="sampled", run_queue_s=1.0)
    misbooked.divide(None, seen(sampler(**BETWEEN_4_AND_6, misbooked=True), 2.0, 1.0))
    assert account(misbooked)[-2:] == [2.5, 2.75], "what is in the books says nothing then"
    unseen = usage(wait_source="sampled", run_queue_s=1.0)
    unseen.divide(None, sampler(**BETWEEN_4_AND_6))
    assert account(unseen)[-2:] == [2.25, 3.0], "no thread seen: 3 s more, and no word of their waits"


def test_samples_tell_that_several_were_active() -> None:
    """In the books are 4.75 s, for certain 4 s of them apart."""
    found, samples = usage(wait_source="sampled", run_queue_s=1.0), seen(sampler(**BETWEEN_4_AND_6), 3.0, 1.0)
    samples.most_active = 2
    found.divide(None, samples)
    assert found.account == "sampled"
    assert account(found) == pytest.approx([2 * 4 / 4.75, 4 / 4.75, 4 / 4.75, 2 / 4.75, 1 / 4.75, 5.25, 0.75], abs=1e-6)


def test_bytes_are_what_was_moved_in_between_and_unknown_where_calls_are_not_counted() -> None:
    found = usage()
    found.take_bytes([10, 20, 30, 40], [1, 2, 3, 50])
    moved = [found.logical_read_bytes, found.logical_written_bytes, found.device_read_bytes, found.device_written_bytes]
    assert (moved, found.bytes_source) == ([9, 18, 27, 0], "procfs")
    found.refuse_bytes(None)
    assert vars(found)["logical_read_bytes"] == 9
    found.refuse_bytes("io_uring")
    assert (found.logical_read_bytes, found.device_read_bytes, found.bytes_reason) == (None, 27, "io_uring")
    whole = usage()
    whole.take_bytes([5, 6, 7, 8])
    moved = [whole.logical_read_bytes, whole.logical_written_bytes, whole.device_read_bytes, whole.device_written_bytes]
    assert moved == [5, 6, 7, 8], "of what began without any"
    unknown = usage()
    unknown.take_bytes(None)
    unknown.refuse_bytes("aio")
    assert (unknown.bytes_source, unknown.bytes_reason, unknown.device_read_bytes) == (None, None, None)
    assert (found.record()["cpu_s"], found.record()["io_s"]) == (3, 7)


def branch_of(**figures: int) -> Branch:
    found = Branch()
    vars(found).update(figures)
    return found


def test_exit_records_tell_waits_and_what_nobody_waited_for() -> None:
    """4 s on cores, of which wait4 knows 3: by ticks, three quarters are user time."""
    own = {"runtime_ns": 4 * NS, "run_queue_ns": 2 * NS, "block_io_ns": NS, "memory_ns": NS // 2}
    ticks = {"user_us": 3_000_000, "system_us": 1_000_000, "lifetime_us": 9_000_000, "major_faults": 5}
    found = usage(block_io_s=None, memory_stall_s=None, wait_source=None)
    found.take_exits(branch_of(**own, **ticks, processes=3, threads=4, max_rss_bytes=77), sampler(), True, True)
    assert (found.user_s, found.system_s, found.cpu_source, found.major_faults) == (3, 1, "taskstats", 5)
    assert (found.run_queue_s, found.block_io_s, found.memory_stall_s) == (2, 1, 0.5)
    assert (found.wait_source, found.seen_share, found.thread_s) == ("taskstats", 1, 9)
    assert (found.processes, found.threads, found.max_rss_bytes, found.memory_source) == (3, 4, 77, "taskstats")
    same = usage()
    same.take_exits(branch_of(runtime_ns=3_040_000_000, major_faults=5), sampler(), True, True)
    assert (same.user_s, same.cpu_source, same.major_faults) == (2, "wait4", 0), "within 1 % and 20 ms"
    more = usage()
    more.take_exits(branch_of(runtime_ns=3_060_000_000), sampler(), True, True)
    assert (more.user_s, more.system_s, more.cpu_source) == (3.06, 0, "taskstats"), "without ticks, it is user time"


def sampled_waits(looked_s: float = 5.0, disk_threads_s: float = 1.0, most_active: int = 1) -> Sampler:
    found = sampler()
    found.looked_s, found.disk_threads_s, found.most_active = looked_s, disk_threads_s, most_active
    return found


@pytest.mark.parametrize(
    ("branch", "delays", "samples", "expected"),
    [
        ({"misbooked_ns": 100_000_000}, True, sampled_waits(), ("taskstats", 3.0)),  # 10 ms a second, and 5 ms
        ({"misbooked_ns": 110_000_000}, True, sampled_waits(), ("sampled", 2.0)),  # 1 of 5 s: 2 of 10
        ({}, False, sampled_waits(), ("sampled", 2.0)),
        ({}, False, sampled_waits(20.0), ("sampled", 1.0)),
        ({}, False, sampled_waits(0.0), ("sampled", None)),
        ({}, False, sampled_waits(1.0), ("sampled", 6.0)),  # one thread, off a core for 10 - 3 - 1 s at most
        ({}, False, sampled_waits(1.0, most_active=2), ("sampled", 10.0)),
    ],
)
def test_where_the_kernel_books_no_or_wrong_waits_states_tell_of_them(
    branch: Mapping[str, int], delays: bool, samples: Sampler, expected: tuple[str, float | None]
) -> None:
    own = {"runtime_ns": 3 * NS, "run_queue_ns": NS, "block_io_ns": 3 * NS}
    found = usage(block_io_s=None, memory_stall_s=None)
    found.take_exits(branch_of(**{**own, **branch}), samples, True, delays)
    assert (found.wait_source, found.block_io_s) == expected
    assert found.memory_stall_s == (0 if delays else None)
    samples.asynchronous.found = "aio"
    asleep = usage(block_io_s=None)
    asleep.take_exits(branch_of(**own), samples, True, False)
    assert asleep.block_io_s is None, "who waits for asynchronous calls looks asleep"


def test_records_tell_bytes_of_processes_that_nobody_waited_for() -> None:
    moved = {"logical_read_bytes": 2048, "logical_written_bytes": 1024, "device_read_bytes": 512}
    for exact, source in ((3000, "taskstats"), (3072, "procfs"), (4000, "procfs")):
        found = usage()
        found.take_bytes([exact, 0, 7, 7])
        found.take_exits(branch_of(**moved), sampler(), True, True)
        assert (found.bytes_source, found.device_read_bytes) == (source, 512 if source == "taskstats" else 7), exact


def test_without_other_counts_bytes_are_those_of_records() -> None:
    found = usage()
    found.take_exits(branch_of(logical_read_bytes=1), sampler(), True, True)
    assert (found.logical_read_bytes, found.logical_written_bytes, found.bytes_source) == (1, 0, "taskstats")
    none = usage()
    none.take_exits(Branch(), sampler(), True, True)
    assert (none.logical_read_bytes, none.bytes_source) == (None, None)


def test_without_records_samples_tell_waits() -> None:
    """Of 3 s on cores samples have seen 2.4; of what is booked, 1.5 s for a core and 0.75 s for storage."""
    found = usage(run_queue_s=None, block_io_s=None, wait_source=None)
    found.take_samples(seen(sampler(), 2.4, 1.5, 0.75), True, True)
    assert (found.run_queue_s, found.wait_source, found.block_io_s) == (1.5, "sampled", 0.75)
    assert found.seen_share == pytest.approx(0.8)
    more = usage(block_io_s=None)
    more.take_samples(seen(sampler(), 4.0, 1.5, 0.75), True, True)
    assert (more.user_s, more.system_s, more.cpu_source, more.seen_share) == (3, 1, "sampled", None)
    same = usage(block_io_s=None)
    same.take_samples(seen(sampler(), 3.04, 1.5, 0.75), True, True)
    assert (same.user_s, same.cpu_source, same.seen_share) == (2, "wait4", 1)
    none = usage(user_s=0.0, system_s=0.0, block_io_s=None)
    none.take_samples(sampler(), True, True)
    assert (none.seen_share, none.cpu_source) == (1, "wait4")


@pytest.mark.parametrize(
    ("delays", "misbooked", "asynchronous", "expected"),
    [
        (True, False, None, 0.75),
        (True, True, None, 2.0),
        (False, False, None, 2.0),
        (False, False, "aio", None),
        (True, False, "aio", 0.75),
    ],
)
def test_sampled_waits_for_storage_are_booked_or_seen(
    delays: bool, misbooked: bool, asynchronous: str | None, expected: float | None
) -> None:
    samples = seen(sampled_waits(), 3.0, 1.5, 0.75)
    samples.activity.misbooked, samples.asynchronous.found = misbooked, asynchronous
    found = usage(block_io_s=None)
    found.take_samples(samples, True, delays)
    assert found.block_io_s == expected
    unknown = usage(run_queue_s=None, block_io_s=None, wait_source=None)
    unknown.take_samples(samples, False, delays)
    assert (unknown.run_queue_s, unknown.block_io_s, unknown.wait_source) == (None, None, None)


ROOT, PARENT, CHILD, GRANDCHILD = 10, 20, 30, 40


def record(pid: int, parent: int, group: int | None = None, **figures: int) -> bytes:
    """An exit record of a thread that lived for 10 s; of a process if it has no other group."""
    given = {"version": 12, "pid": pid, "parent": parent, "group": pid if group is None else group}
    given |= {"lifetime_us": 10_000_000, **figures}
    return RECORD.pack(*(given.get(name, 0) for name in FIELDS))


def test_records_add_up_the_tree() -> None:
    """A grandchild and a child whose records come first; the sums stay with whoever is alive."""
    branches = Branches(ROOT)
    branches.add(record(GRANDCHILD, CHILD, runtime_ns=1, run_queue_ns=10, rss_kib=5, logical_read_bytes=100))
    assert branches.branch(CHILD).runtime_ns == 1
    branches.add(record(CHILD, PARENT, runtime_ns=2, run_queue_ns=20, rss_kib=3, device_written_bytes=9))
    branches.add(record(PARENT, ROOT, runtime_ns=4, rss_kib=4, cancelled_bytes=2, device_written_bytes=7))
    found = branches.branch(ROOT)
    assert (found.runtime_ns, found.run_queue_ns, found.processes, found.threads) == (7, 30, 3, 3)
    assert (found.max_rss_bytes, found.logical_read_bytes, found.device_written_bytes) == (5 * 1024, 100, 14)
    assert found.lifetime_us == 30_000_000
    assert set(branches.pending) == {ROOT}, "who has ended is forgotten"
    branches.add(record(ROOT, 1, runtime_ns=1000))
    assert branches.branch(ROOT).runtime_ns == 7, "the root's own threads do not count"


def test_records_of_another_layout_are_refused() -> None:
    branches = Branches(ROOT)
    for version in (7, 15):
        with pytest.raises(OSError, match=f"taskstats version {version} has another layout"):
            branches.add(record(CHILD, ROOT, version=version))
    for version in (8, 14, 16):
        branches.add(record(CHILD, ROOT, version=version))
    assert branches.branch(ROOT).processes == 3
    branches.add(record(CHILD, ROOT, version=8, group=0)[: RECORD.size - 12])
    assert branches.branch(ROOT).processes == 4, "a short record, of a kernel before groups: each thread is a process"


def test_waits_are_told_apart_and_too_long_ones_are_not_believed() -> None:
    """Of 10 s of life, 4 on a core and 1 waiting for one, 5 s are left to wait for storage."""
    own = {"runtime_ns": 4 * NS, "run_queue_ns": NS}
    for storage_s, expected in ((3, (3, 0)), (5, (5, 0)), (6, (0, 5))):
        branches = Branches(ROOT)
        branches.add(record(CHILD, ROOT, **own, block_io_ns=storage_s * NS))
        found = branches.branch(ROOT)
        assert (found.block_io_ns / NS, found.misbooked_ns / NS) == expected
    branches = Branches(ROOT)
    memory = {"swap_in_ns": NS, "thrashing_ns": NS // 2, "reclaim_ns": NS // 4, "compaction_ns": NS // 8}
    branches.add(record(CHILD, ROOT, **own, block_io_ns=2 * NS, **memory))
    found = branches.branch(ROOT)
    assert (found.memory_ns / NS, found.block_io_ns / NS) == (1.875, 0.5), "pages that were swapped out, once"
    assert found.active_ns / NS == branches.ended[0][3] == 4 + 1 + 1.875 + 0.5
    branches = Branches(ROOT)
    branches.add(record(CHILD, ROOT, **own, block_io_ns=NS // 2, swap_in_ns=NS))
    assert branches.branch(ROOT).block_io_ns == 0
    branches.add(record(CHILD, ROOT, runtime_ns=11 * NS, block_io_ns=500_000))
    assert (branches.branch(ROOT).block_io_ns, branches.branch(ROOT).misbooked_ns) == (500_000, 0), "half a millisecond"
    branches.add(record(CHILD, ROOT, runtime_ns=11 * NS, block_io_ns=1_500_000))
    assert branches.branch(ROOT).block_io_ns == 500_000, "more than one is not believed"


@pytest.mark.parametrize(
    ("children", "parent_s", "expected_s"),
    [
        ([(5, 2)], 3, 0),  # one child of 5 s beside 3 s in 10: one after the other, perhaps
        ([(5, 2)], 8, 2),  # 8 + 5 > 10 by 3: as much as the child did
        ([(5, 4)], 8, 3),
        ([(10, 1), (10, 1)], 4, 2),
    ],
)
def test_at_most_so_long_a_process_was_active_beside_its_children(
    children: list[tuple[int, int]], parent_s: int, expected_s: int
) -> None:
    branches = Branches(ROOT)
    for number, (lifetime_s, active_s) in enumerate(children, start=CHILD):
        times = {"lifetime_us": lifetime_s * 1_000_000, "runtime_ns": active_s * NS}
        branches.add(record(number, PARENT, **times))
    branches.add(record(PARENT, ROOT, runtime_ns=parent_s * NS))
    assert branches.branch(ROOT).overlap_ns / NS == expected_s
    assert branches.branch(ROOT).children_lifetime_ns / NS == 10
    assert branches.branch(ROOT).children_active_ns / NS == parent_s + sum(active_s for _, active_s in children)


def test_threads_count_to_their_process_which_may_live_longer_than_its_first() -> None:
    branches = Branches(ROOT)
    branches.add(record(31, ROOT, group=CHILD, runtime_ns=3 * NS))
    branches.add(record(CHILD, ROOT, runtime_ns=2 * NS, group_lifetime_us=12_000_000))
    found = branches.branch(ROOT)
    assert (found.processes, found.threads, found.runtime_ns / NS, found.overlap_ns / NS) == (1, 2, 5, 3)
    assert found.children_lifetime_ns / NS == 12
    rest = Branches(ROOT)
    rest.add(record(CHILD, ROOT, runtime_ns=2 * NS))
    rest.add(record(31, ROOT, group=CHILD, runtime_ns=3 * NS))
    assert rest.branch(ROOT).runtime_ns / NS == 2, "the leader's end is not that of the process"
    rest.close_group(CHILD)
    rest.close_group(99)
    found = rest.branch(ROOT)
    assert (found.runtime_ns / NS, found.threads, found.children_lifetime_ns / NS) == (5, 2, 10)


def test_only_the_tree_s_own_threads_are_taken() -> None:
    branches = Branches(ROOT)
    branches.add(record(GRANDCHILD, CHILD, runtime_ns=NS, run_queue_ns=NS))
    branches.add(record(CHILD, PARENT, runtime_ns=2 * NS))
    branches.add(record(98, 97, runtime_ns=5 * NS))
    branches.add(record(51, 1, group=50, runtime_ns=3 * NS))
    assert sorted(branches.take_ended({PARENT, 50})) == [(CHILD, 2, 2), (GRANDCHILD, 2, 1), (51, 3, 3)]
    assert branches.take_ended({PARENT}) == [], "once"
    branches.add(record(PARENT, ROOT, runtime_ns=NS))
    assert branches.take_ended(set()) == [(PARENT, 1, 1)]


def activity(cores: int = 2, waits_booked: bool = True, begins_awake: bool = False) -> Activity:
    found = Activity(waits_booked)
    found.cores, found.awake = cores, begins_awake
    return found


@pytest.mark.parametrize(
    ("booked", "awake", "expected"),
    [
        ([], False, (0, 0)),
        ([(0.3, 0.2)], False, (0.3, 0.3)),  # of the second, asleep before and after
        ([(0.3, 0.2), (0.5, 0.1)], False, (0.5, 0.8)),  # beside each other, or one after the other
        ([(0.6, 0.6), (0.7, 0.7), (0.9, 0.9)], False, (1.0, 1.0)),  # 2.2 s on two cores
        ([(0.4, 0.4), (0.4, 0.4), (0.4, 0.4)], False, (0.6, 1.0)),  # 1.2 s on two cores
        ([(0.3, 0.2)], True, (0.3, 1.0)),  # awake at the end: it may not all be booked yet
    ],
)
def test_a_second_of_activity(booked: list[tuple[float, float]], awake: bool, expected: tuple[float, float]) -> None:
    found = activity()
    alive = {number: Books(*books, awake=awake) for number, books in enumerate(booked)}
    found.add(1.0, alive, [], awake)
    assert (found.least_s, found.most_s) == pytest.approx(expected)
    ended = activity()
    ended.add(1.0, {}, [(number, Books(*books, awake=awake)) for number, books in enumerate(booked)], awake)
    assert (ended.least_s, ended.most_s) == pytest.approx(expected), "who has ended counts like who is there"


def test_who_is_awake_at_two_looks_without_an_entry_was_awake_all_the_time_and_is_booked_once() -> None:
    """Waiting for storage, which is booked when it ends: after 1 s and 1 s, then 2.3 s in a third second."""
    found = activity()
    found.add(1.0, {7: Books(0.5, 0.5, awake=True)}, [], awake=True)
    found.add(1.0, {7: Books(0.5, 0.5, awake=True)}, [], awake=True)
    found.add(1.0, {7: Books(0.5, 0.5, awake=True)}, [], awake=True)
    assert (found.least_s, found.most_s) == pytest.approx((2.5, 3.0))
    found.add(1.0, {7: Books(2.8, 0.5, awake=False)}, [], awake=False)
    assert not found.misbooked
    assert found.least_s == pytest.approx(2.5 + 0.3), "two of the 2.3 s were claimed"
    assert found.most_s == pytest.approx(3.0 + 0.3 + TICK_S), "it was awake before: a tick may not be booked"


@pytest.mark.parametrize(("booked_s", "misbooked"), [(1.0 + 1.9 * TICK_S, False), (1.0 + 2.1 * TICK_S, True)])
def test_two_ticks_more_than_there_was_time_for_are_believed(booked_s: float, misbooked: bool) -> None:
    found = activity()
    found.add(1.0, {7: Books(booked_s, 0.25, awake=False)}, [], awake=False)
    assert found.misbooked == misbooked
    assert found.least_s == (0.25 if misbooked else 1.0)
    assert found.most_s == 1.0


def test_where_waits_are_not_booked_who_did_anything_may_have_waited() -> None:
    found = activity(waits_booked=False)
    found.add(1.0, {7: Books(0.2, 0.2, awake=False)}, [], awake=False)
    found.add(1.0, {7: Books(0.2, 0.2, awake=False)}, [], awake=False)
    assert (found.least_s, found.most_s) == pytest.approx((0.2, 1.0))


def test_looks_tell_where_between_the_bounds_the_truth_may_lie() -> None:
    """Four looks, one each second, at a thread of which nothing is booked but 0.1 s."""
    always = activity(begins_awake=True)
    for end in range(1, 5):
        always.add(1.0, {7: Books(0.1 * end, 0.1 * end, awake=True)}, [], awake=True)
    assert (always.least_s, always.most_s, always.seen_s) == pytest.approx((0.4, 4, 4))
    low_s, high_s = always.bounds_s()
    assert high_s == pytest.approx(4.0)
    # share 4.5 of 5 awake, of four intervals that leave 0.9 s open: sqrt(0.9 * 0.1 * 4 * 0.81) = 0.54
    assert low_s == pytest.approx(4 - 0.54)
    booked = activity(begins_awake=True)
    for end in range(1, 5):
        booked.add(1.0, {7: Books(1.0 * end, 1.0 * end, awake=True)}, [], awake=True)
    for end in range(1, 5):
        booked.add(1.0, {7: Books(4 + 0.1 * end, 4 + 0.1 * end, awake=True)}, [], awake=True)
    assert booked.bounds_s() == pytest.approx((4 + 4 - 0.54, 8.0)), "of intervals that are all booked nothing is open"
    turning = activity(begins_awake=False)
    turning.add(1.0, {7: Books(0.4, 0.4, awake=True)}, [], awake=True)
    # it woke at any moment of the 0.6 s that are open, of which 0.173 s is the standard deviation (0.6 / sqrt(12))
    assert turning.bounds_s() == pytest.approx((0.5 - 0.1, 0.5 + 0.6 / 12**0.5))
    halves = activity(begins_awake=True)
    for _ in range(2):
        halves.add(0.5, {}, [], awake=True)
    assert halves.seen_s == 1.0
    nothing = activity()
    nothing.add(1.0, {}, [], awake=False)
    assert nothing.bounds_s() == (0, 0)


def test_before_anything_has_ended_all_sums_are_nothing() -> None:
    assert set(vars(Branch()).values()) == {0}
    found = Usage(100.0)
    assert (found.start_s, found.end_s) == (100, 100)
    known = {name: value for name, value in vars(found).items() if value is not None and not name.endswith("source")}
    assert {value for name, value in known.items() if name not in ("start_s", "end_s")} == {0}


def test_what_processes_have_used_is_added_and_of_their_memory_the_most_counts() -> None:
    """Sizes of resident sets are in KiB, see getrusage(2)."""
    first = struct_rusage((1.5, 0.5, 300, 0, 0, 0, 10, 1, 0, 0, 0, 0, 0, 0, 7, 3))
    second = struct_rusage((0.5, 0.25, 200, 0, 0, 0, 20, 2, 0, 0, 0, 0, 0, 0, 1, 4))
    found = Usage(0.0)
    for spent in (first, second):
        found.add_spent(spent)
    assert (found.user_s, found.system_s, found.max_rss_bytes) == (2.0, 0.75, 300 * 1024)
    assert (found.minor_faults, found.major_faults) == (30, 3)
    assert (found.voluntary_switches, found.involuntary_switches) == (8, 7)
