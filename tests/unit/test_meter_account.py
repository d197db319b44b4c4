"""The accounts of the meter, from books and records whose sums are worked out by hand.

Whatever is given, the parts of an account add up to the wall time. Figures in ns are given and shown in s.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from resource import struct_rusage
from types import SimpleNamespace
from typing import Any, cast

import pytest
from neurotier.meter import lap, own
from neurotier.meter.activity import Activity, Books
from neurotier.meter.records import FIELDS, RECORD, Branch, Branches
from neurotier.meter.sampling import Sampler
from neurotier.meter.tree import TICKS_PER_S, stat_fields
from neurotier.meter.usage import ACCOUNT, Usage
from shown_values import shown

NS = 1_000_000_000


def usage(**figures: Any) -> Usage:
    """A phase of 10 s whose waits are known: 2 s and 1 s of CPU time, 1.5 s for a core, 0.5 s for storage."""
    found = Usage(100.0)
    known = {"user_s": 2.0, "system_s": 1.0, "run_queue_s": 1.5, "block_io_s": 0.5, "memory_stall_s": 0.25}
    vars(found).update({"wall_s": 10.0, "wait_source": "taskstats", **known, **figures})
    return found


def sampler(*seen: float, delays: bool = True, activity: Mapping[str, Any] | None = None, **own: Any) -> Sampler:
    """What samples have found; of a thread its time on cores, waiting for one, and booked for storage.

    It has three ticks of user time to one of system time.
    """
    found = Sampler(os.getpid(), None, delays)
    vars(found).update(own)
    vars(found.activity).update(activity or {})
    if seen:
        runtime_s, run_queue_s, booked_s = seen
        user, system = (round(share * runtime_s * TICKS_PER_S) for share in (0.75, 0.25))
        found.threads[7, 1] = (runtime_s, run_queue_s, booked_s, user, system)
    return found


def in_ns(figures: Mapping[str, float]) -> dict[str, int]:
    return {name: round(value * NS) if name.endswith("_ns") else int(value) for name, value in figures.items()}


def branch(**figures: float) -> Branch:
    found = Branch()
    vars(found).update(in_ns(figures))
    return found


def account(branch: Branch | None = None, samples: Sampler | None = None, late_s: float = 0, **figures: Any) -> str:
    """The kind, then user, system, core, storage, memory, asleep, unexplained: in all, the wall time."""
    found = usage(**figures)
    found.divide(branch, samples, *[late_s] if late_s else ())
    parts = [getattr(found, name) for name in (*ACCOUNT, "residual_s")]
    assert found.account is None or sum(part or 0.0 for part in parts) == pytest.approx(found.wall_s)
    return shown(found, " ".join(["account", *ACCOUNT, "residual_s"]))


def test_a_stall_is_what_was_added_where_it_is_known_of_both_ends() -> None:
    found, pressure = usage(), SimpleNamespace(source="machine", before={"cpu": 1.0})
    pressure.read = lambda: {"cpu": 1.5, "io": 9.0}
    found.take_pressure(cast(Any, pressure))
    assert shown(found, "pressure_cpu_s pressure_io_s pressure_source") == "0.5 - machine"


APART: dict[str, Any] = {"least_s": 4.0, "most_s": 6.0, "seen_s": 5.0, "turned_squared": 1.0}
"""The tree was active for 5 s, give or take 1."""
BOOKED = branch(runtime_ns=3, run_queue_ns=1.5, block_io_ns=0.5, memory_ns=0.25)
UNBOOKED: dict[str, Any] = {"block_io_s": None, "memory_stall_s": None}


def test_one_thread_is_asleep_for_the_rest() -> None:
    in_turn: dict[str, Any] = {"most_s": 5.0}  # by the books of live threads, which lack stalls for memory
    assert account(BOOKED, sampler(activity=in_turn)) == "exact 2 1 1.5 0.5 0.25 4.75 0"
    by_turns = sampler(activity=in_turn, most_active=2)
    assert account(BOOKED, by_turns).startswith("exact"), "awake by turns in one look"
    assert account(wait_source="sampled") == "sampled 2 1 1.5 0.5 0.25 4.75 0"
    assert account(late_s=0.5) == "exact 2 1 2 0.5 0.25 4.25 0", "what the meter noticed late was waiting for a core"
    assert account(late_s=6) == "exact 2 1 6.25 0.5 0.25 0 0"
    # with 3.25 s of other causes, 10.09 of 10 s is within 1 % and 5 ms, and 10.12 is not
    assert account(user_s=6.84) == "exact 6.84 1 1.5 0.5 0.25 0 -0.09"
    assert account(user_s=6.87) == "scaled 6.788538 0.9881423 1.482213 0.4940711 0.2470356 0 0"


def test_one_thread_waited_no_longer_than_it_was_off_a_core() -> None:
    for figures, sampled_s, expected_s in (
        ({}, 8.0, 5.5),
        ({}, 1.0, 1.0),
        ({"run_queue_s": None, "user_s": 8.5}, 1.0, 0.5),
        ({"user_s": 9.5}, 1.0, 0.0),
    ):
        assert usage(**figures).off_core(sampled_s, sampler()) == expected_s
    assert usage(user_s=9.5).off_core(1.0, sampler(most_active=2)) == 1.0, "of several, another may wait meanwhile"


def test_what_is_not_known_is_not_told_from_sleep() -> None:
    assert account(branch(), sampler(), run_queue_s=None) == "- - - - - - - -", "without waits for a core, no account"
    assert account(branch(), **UNBOOKED) == "exact 2 1 1.5 - - - 5.5"
    aio: dict[str, Any] = {"block_io_s": None, "bytes_reason": "aio"}
    assert account(branch(), **aio) == "exact 2 1 1.5 - 0.25 5.25 0", "what waits for asynchronous calls is asleep"
    assert account(**UNBOOKED | aio) == "exact 2 1 1.5 - - 5.5 0"
    all_the_time = sampler(activity=APART | {"most_s": 10.1})
    busy = account(branch(), all_the_time, **UNBOOKED, user_s=8.6, bytes_reason="aio", run_queue_s=0.5)
    assert busy == "exact 8.6 1 0.5 - - 0 -0.1", "1 % more than the wall time: nothing was slept"


def test_several_threads_are_scaled_to_the_time_in_which_one_was_active() -> None:
    """Of 5.25 s of activity 3 s overlapped: at least 2.25 s; by the samples 4 to 6 s, by the books no more than 5.25.

    So it was active for 4 s for certain, asleep for 10 - 5.25, and 1.25 s are not explained.
    """
    three, apart = branch(overlap_ns=3), sampler(activity=APART)
    assert account(three, apart) == "scaled 1.52381 0.7619048 1.142857 0.3809524 0.1904762 4.75 1.25"
    assert account(three, sampler(delays=False, activity=APART)).endswith(" 4 2"), "not all may be booked: up to 6 s"
    always = sampler(activity={"least_s": 10.0, "most_s": 10.0, "seen_s": 10.0})
    assert account(three, always, user_s=12.0).endswith(" 0 0"), "some thread was active all the time"
    assert account(branch(overlap_ns=1), apart).endswith(" 4.75 1"), "only 1 s overlapped: active for 4.25 s"
    assert account(branch(overlap_ns=0.1), apart).startswith("exact")
    # lifetimes show no overlap if the parent sleeps when its children are gone; the books do: active for 3.5 of 5 s
    one_alone = sampler(activity={"least_s": 3.5, "most_s": 3.5, "seen_s": 3.5})
    overlapped = account(BOOKED, one_alone)
    assert overlapped.startswith("scaled")
    assert overlapped.endswith(" 6.25 0"), "1.5 s overlapped"
    short = branch(runtime_ns=1.5, run_queue_ns=1.5, block_io_ns=0.5)
    assert account(short, one_alone).startswith("exact"), "ending took 1.5 s, which neither records nor books have"
    # children lived for 13 s in 10: for 3 of them two were there, and did something for as long as they were active
    for lifetime_s, active_s, kind in ((10, 5, "exact"), (13, 5, "scaled"), (13, 0.1, "exact"), (13, 0.15, "scaled")):
        beside = branch(children_lifetime_ns=lifetime_s, children_active_ns=active_s)
        assert account(beside, apart).startswith(kind), (lifetime_s, active_s)


def test_a_sampled_account_says_what_it_does_not_know() -> None:
    """Of 3 s on cores samples saw 2: the other second waited like it, 0.5 s for a core; 4 to 6 s, so up to 7.75.

    More than 4.5 + 0.25 s that are known and the 1.5 s is not booked: at most 6.75 s active, 3.25 asleep.
    """
    given: dict[str, Any] = {"wait_source": "sampled", "run_queue_s": 1.0}
    assert account(None, sampler(2, 1, 0, activity=APART), **given) == "sampled 2 1 1 0.5 0.25 3.75 1.5"
    misbooked = sampler(2, 1, 0, activity=APART | {"misbooked": True})
    assert account(None, misbooked, **given).endswith(" 2.5 2.75"), "what is in the books says nothing then"
    unbooked = sampler(3, 1, 0, delays=False, activity=APART)
    unbooked.asynchronous.found = "io_uring"
    aio = given | UNBOOKED | {"bytes_reason": "io_uring"}
    assert account(None, unbooked, **aio) == "sampled 2 1 1 - - 6 0", "whoever is off the cores counts as asleep then"
    nobody = account(None, sampler(activity=APART), **given)
    assert nobody.endswith(" 2.25 3"), "no thread seen: 3 s more, and no word of their waits"
    # several were active: in the books are 4.75 s, for certain 4 s of them apart
    several = sampler(3, 1, 0, activity=APART, most_active=2)
    assert account(None, several, **given) == "sampled 1.684211 0.8421053 0.8421053 0.4210526 0.2105263 5.25 0.75"


MOVED = "logical_read_bytes logical_written_bytes device_read_bytes device_written_bytes bytes_source bytes_reason"


def test_bytes_are_what_was_moved_in_between_and_unknown_where_calls_are_not_counted() -> None:
    found, whole, unknown = usage(), usage(), usage()
    found.take_bytes([10, 20, 30, 40], [1, 2, 3, 50])
    found.refuse_bytes(None)
    assert shown(found, MOVED) == "9 18 27 0 procfs -"
    found.refuse_bytes("io_uring")
    assert shown(found, MOVED) == "- - 27 0 procfs io_uring"
    whole.take_bytes([5, 6, 7, 8])
    assert shown(whole, MOVED) == "5 6 7 8 procfs -", "of what began without any"
    unknown.take_bytes(None)
    unknown.refuse_bytes("aio")
    assert shown(unknown, MOVED) == "- - - - - -"
    assert shown(found.record(), "cpu_s io_s") == "3 7"


def exits(
    names: str,
    records: Mapping[str, float],
    samples: Sampler | None = None,
    delays: bool = True,
    counted: list[int] | None = None,
    **figures: Any,
) -> str:
    """What is known of a phase after the exit records of its processes, and the bytes counted before."""
    found, samples = usage(**figures), samples or sampler()
    if counted:
        found.take_bytes(counted)
    samples.delays = delays
    found.take_exits(branch(**records), samples, True)
    return shown(found, names)


CPU = "user_s system_s cpu_source major_faults"


def test_exit_records_tell_waits_and_what_nobody_waited_for() -> None:
    """4 s on cores, of which wait4 knows 3: by ticks, three quarters are user time."""
    waits = {"run_queue_ns": 2, "block_io_ns": 1, "memory_ns": 0.5, "processes": 3, "threads": 4, "max_rss_bytes": 77}
    ticks = {"user_us": 3_000_000, "system_us": 1_000_000, "lifetime_us": 9_000_000, "major_faults": 5}
    names = f"{CPU} run_queue_s block_io_s memory_stall_s wait_source seen_share thread_s"
    whole = exits(
        f"{names} processes threads max_rss_bytes memory_source",
        {"runtime_ns": 4, **waits, **ticks},
        **UNBOOKED,
        wait_source=None,
    )
    assert whole == "3 1 taskstats 5 2 1 0.5 taskstats 1 9 3 4 77 taskstats"
    assert exits(CPU, {"runtime_ns": 3.04, "major_faults": 5}) == "2 1 wait4 0", "within 1 % and 20 ms"
    assert exits(CPU, {"runtime_ns": 3.06}) == "3.06 0 taskstats 0", "without ticks, it is user time"


LOOKED: dict[str, Any] = {"looked_s": 5.0, "disk_threads_s": 1.0, "most_active": 1}


def test_where_the_kernel_books_no_or_wrong_waits_states_tell_of_them() -> None:
    own = {"runtime_ns": 3, "run_queue_ns": 1, "block_io_ns": 3}
    names = "wait_source block_io_s memory_stall_s"
    for misbooked_s, delays, looked, expected in (
        (0.10, True, {}, "taskstats 3 0"),  # 10 ms a second, and 5 ms
        (0.11, True, {}, "sampled 2 0"),  # 1 of 5 s: 2 of 10
        (0, False, {}, "sampled 2 -"),
        (0, False, {"looked_s": 20.0}, "sampled 1 -"),
        (0, False, {"looked_s": 0.0}, "sampled - -"),
        (0, False, {"looked_s": 1.0}, "sampled 6 -"),  # one thread, off a core for 10 - 3 - 1 s at most
        (0, False, {"looked_s": 1.0, "most_active": 2}, "sampled 10 -"),
    ):
        samples = sampler(**LOOKED | looked)
        found = exits(names, own | {"misbooked_ns": misbooked_s}, samples, delays, **UNBOOKED)
        assert found == expected, (misbooked_s, delays, looked)
    samples = sampler(**LOOKED)
    samples.asynchronous.found = "aio"
    assert exits("block_io_s", own, samples, delays=False, block_io_s=None) == "-", "who waits for such looks asleep"


def test_records_tell_bytes_of_processes_that_nobody_waited_for() -> None:
    moved = {"logical_read_bytes": 2048, "logical_written_bytes": 1024, "device_read_bytes": 512}
    for counted, expected in ((3000, "512 taskstats"), (3072, "7 procfs"), (4000, "7 procfs")):
        assert exits("device_read_bytes bytes_source", moved, counted=[counted, 0, 7, 7]) == expected, counted
    names = "logical_read_bytes logical_written_bytes bytes_source"
    assert [exits(names, {"logical_read_bytes": read}) for read in (1, 0)] == ["1 0 taskstats", "- - -"]


def sampled(names: str, samples: Sampler, delays: bool = True, alone: bool = True, **figures: Any) -> str:
    """What is known of a phase by samples alone."""
    found = usage(block_io_s=None, **figures)
    samples.delays = delays
    found.take_samples(samples, alone)
    return shown(found, names)


def test_without_records_samples_tell_waits() -> None:
    """Of 3 s on cores samples have seen 2.4; of what is booked, 1.5 s for a core and 0.75 s for storage."""
    nothing: dict[str, Any] = {"run_queue_s": None, "wait_source": None}
    waits, cpu = "run_queue_s block_io_s wait_source", "user_s system_s cpu_source seen_share"
    assert sampled(f"{waits} seen_share", sampler(2.4, 1.5, 0.75), **nothing) == "1.5 0.75 sampled 0.8"
    assert sampled(waits, sampler(2.4, 1.5, 0.75), alone=False, **nothing) == "- - -"
    assert sampled(cpu, sampler(4, 1.5, 0.75)) == "3 1 sampled -"
    assert sampled(cpu, sampler(3.04, 1.5, 0.75)) == "2 1 wait4 1"
    assert sampled(cpu, sampler(), user_s=0.0, system_s=0.0) == "0 0 wait4 1"
    for delays, misbooked, reason, expected in (
        (True, False, None, "0.75"),
        (True, True, None, "2"),
        (False, False, None, "2"),
        (False, False, "aio", "-"),
        (True, False, "aio", "0.75"),
    ):
        samples = sampler(3, 1.5, 0.75, **LOOKED, activity={"misbooked": misbooked})
        samples.asynchronous.found = reason
        assert sampled("block_io_s", samples, delays) == expected, (delays, misbooked, reason)


ROOT, PARENT, CHILD, GRANDCHILD = 10, 20, 30, 40


def record(pid: int, parent: int, group: int | None = None, **figures: Any) -> bytes:
    """An exit record of a thread that lived for 10 s; of a process if it has no other group."""
    given = {"version": 12, "pid": pid, "parent": parent, "group": pid if group is None else group}
    given |= {"lifetime_us": 10_000_000, **in_ns(figures)}
    return RECORD.pack(*(given.get(name, 0) for name in FIELDS))


def tree(*records: bytes) -> Branches:
    found = Branches(ROOT)
    for one in records:
        found.add(one)
    return found


def one(**figures: Any) -> str:
    """Of a child alone: waits for storage and memory, what is not believed, and how long it was active."""
    return shown(tree(record(CHILD, ROOT, **figures)).branch(ROOT), "block_io_ns memory_ns misbooked_ns active_ns")


def test_records_add_up_the_tree() -> None:
    """A grandchild and a child whose records come first; the sums stay with whoever is alive."""
    found = tree(record(GRANDCHILD, CHILD, runtime_ns=1, run_queue_ns=10, rss_kib=5, logical_read_bytes=100))
    assert shown(found.branch(CHILD), "runtime_ns") == "1"
    found.add(record(CHILD, PARENT, runtime_ns=2, run_queue_ns=20, rss_kib=3, device_written_bytes=9))
    found.add(record(PARENT, ROOT, runtime_ns=4, rss_kib=4, cancelled_bytes=2, device_written_bytes=7))
    names = (
        "runtime_ns run_queue_ns lifetime_us processes threads max_rss_bytes logical_read_bytes device_written_bytes"
    )
    assert shown(found.branch(ROOT), names) == "7 30 30000000 3 3 5120 100 14"
    assert set(found.pending) == {ROOT}, "who has ended is forgotten"
    found.add(record(ROOT, 1, runtime_ns=1000))
    assert shown(found.branch(ROOT), "runtime_ns") == "7", "the root's own threads do not count"


def test_records_of_another_layout_are_refused() -> None:
    for version in (7, 15):
        with pytest.raises(OSError, match=f"taskstats version {version} has another layout"):
            tree(record(CHILD, ROOT, version=version))
    short = record(CHILD, ROOT, version=8, group=0)[: RECORD.size - 12]  # of a kernel that knew no groups
    known = [record(CHILD, ROOT, version=version) for version in (8, 14, 16)]
    assert tree(short, *known).branch(ROOT).processes == 4, "each thread of the short one is a process"


def test_waits_are_told_apart_and_too_long_ones_are_not_believed() -> None:
    """Of 10 s of life, 4 on a core and 1 waiting for one, 5 s are left to wait for storage."""
    own: dict[str, Any] = {"runtime_ns": 4, "run_queue_ns": 1}
    assert [one(**own, block_io_ns=wait) for wait in (3, 5, 6)] == ["3 0 0 8", "5 0 0 10", "0 0 5 5"]
    memory: dict[str, Any] = {"swap_in_ns": 1, "thrashing_ns": 0.5, "reclaim_ns": 0.25, "compaction_ns": 0.125}
    assert one(**own, **memory, block_io_ns=2) == "0.5 1.875 0 7.375", "pages that were swapped out, once"
    assert tree(record(CHILD, ROOT, **own, **memory, block_io_ns=2)).ended[0][3] == 7.375
    assert one(**own, block_io_ns=0.5, swap_in_ns=1) == "0 1 0 6"
    assert one(runtime_ns=11, block_io_ns=0.0005) == "0.0005 0 0 11.0005", "half a millisecond"
    assert one(runtime_ns=11, block_io_ns=0.0015) == "0 0 0 11", "more than one is not believed"


def test_at_most_so_long_a_process_was_active_beside_its_children() -> None:
    for children, parent_s, expected in (
        ([(5, 2)], 3, "0 10 5"),  # one child of 5 s beside 3 s in 10: one after the other, perhaps
        ([(5, 2)], 8, "2 10 10"),  # 8 + 5 > 10 by 3: as much as the child did
        ([(5, 4)], 8, "3 10 12"),
        ([(10, 1), (10, 1)], 4, "2 10 6"),
    ):
        records = [
            record(number, PARENT, lifetime_us=lifetime_s * 1_000_000, runtime_ns=active_s)
            for number, (lifetime_s, active_s) in enumerate(children, start=CHILD)
        ]
        found = tree(*records, record(PARENT, ROOT, runtime_ns=parent_s)).branch(ROOT)
        assert shown(found, "overlap_ns children_lifetime_ns children_active_ns") == expected


def test_threads_count_to_their_process_which_may_live_longer_than_its_first() -> None:
    thread, leader = record(31, ROOT, CHILD, runtime_ns=3), record(CHILD, ROOT, runtime_ns=2)
    found = tree(thread, record(CHILD, ROOT, runtime_ns=2, group_lifetime_us=12_000_000)).branch(ROOT)
    names = "processes threads runtime_ns overlap_ns children_lifetime_ns"
    assert shown(found, names) == "1 2 5 3 12"
    rest = tree(leader, thread)
    assert shown(rest.branch(ROOT), "runtime_ns") == "2", "the leader's end is not that of the process"
    rest.close_group(CHILD)
    rest.close_group(99)
    assert shown(rest.branch(ROOT), "threads runtime_ns children_lifetime_ns") == "2 5 10"


def test_only_the_tree_s_own_threads_are_taken() -> None:
    child = [record(GRANDCHILD, CHILD, runtime_ns=1, run_queue_ns=1), record(CHILD, PARENT, runtime_ns=2)]
    found = tree(*child, record(98, 97, runtime_ns=5), record(51, 1, 50, runtime_ns=3))
    assert sorted(found.take_ended({PARENT, 50})) == [(CHILD, 2, 2), (GRANDCHILD, 2, 1), (51, 3, 3)]
    assert found.take_ended({PARENT}) == [], "once"
    found.add(record(PARENT, ROOT, runtime_ns=1))
    assert found.take_ended(set()) == [(PARENT, 1, 1)]


def activity(*looks: tuple[float, float, bool], waits_booked: bool = True, begins_awake: bool = False) -> Activity:
    """A look each second, on two cores, at what is booked for a thread, its time on cores, and whether it is awake."""
    found = Activity(waits_booked)
    found.cores, found.awake = 2, begins_awake
    for booked_s, run_s, awake in looks:
        found.add(1.0, {7: Books(booked_s, run_s, awake=awake)}, [], awake)
    return found


BOUNDS = "least_s most_s"


def test_a_second_of_activity() -> None:
    """Who has ended counts like who is there."""
    for booked, awake, expected in (
        ([], False, "0 0"),
        ([(0.3, 0.2)], False, "0.3 0.3"),  # of the second, asleep before and after
        ([(0.3, 0.2), (0.5, 0.1)], False, "0.5 0.8"),  # beside each other, or one after the other
        ([(0.6, 0.6), (0.7, 0.7), (0.9, 0.9)], False, "1 1"),  # 2.2 s on two cores
        ([(0.4, 0.4), (0.4, 0.4), (0.4, 0.4)], False, "0.6 1"),  # 1.2 s on two cores
        ([(0.3, 0.2)], True, "0.3 1"),  # awake at the end: it may not all be booked yet
    ):
        books = [(number, Books(*one, awake=awake)) for number, one in enumerate(booked)]
        alive, ended = activity(), activity()
        alive.add(1.0, dict(books), [], awake)
        ended.add(1.0, {}, books, awake)
        assert shown(alive, BOUNDS) == shown(ended, BOUNDS) == expected


def test_who_is_awake_at_two_looks_without_an_entry_was_awake_all_the_time_and_is_booked_once() -> None:
    """Waiting for storage, which is booked when it ends: after 1 s and 1 s, then 2.3 s in a third second."""
    looks, bounds = [(0.5, 0.5, True)] * 3, f"misbooked {BOUNDS}"
    assert shown(activity(*looks), BOUNDS) == "2.5 3"
    found = activity(*looks, (2.8, 0.5, False))
    # two of the 2.3 s were claimed; it was awake before: a tick, of which there are 100/s, may not be booked
    assert shown(found, bounds) == "False 2.8 3.31"
    # two ticks more than there was time for are believed
    assert shown(activity((1.019, 0.25, False)), bounds) == "False 1 1"
    assert shown(activity((1.021, 0.25, False)), bounds) == "True 0.25 1"
    assert shown(activity((0.5, 0.5, False), (9.0, 0.75, False)), bounds) == "True 0.75 1.5", (
        "its time on cores is sure"
    )
    assert shown(activity((0.4, 0.4, False), (0.2, 0.2, False)), bounds) == "False 0.6 0.6", "another of its number"
    unbooked = activity(*[(0.2, 0.2, False)] * 2, waits_booked=False)
    assert shown(unbooked, BOUNDS) == "0.2 1", "who did anything may have waited"


def test_looks_tell_where_between_the_bounds_the_truth_may_lie() -> None:
    """Four looks, one each second, at a thread of which nothing is booked but 0.1 s."""
    looks = [(0.1 * end, 0.1 * end, True) for end in range(1, 5)]
    always = activity(*looks, begins_awake=True)
    assert shown(always, f"{BOUNDS} seen_s") == "0.4 4 4"
    # share 4.5 of 5 awake, of four intervals that leave 0.9 s open: sqrt(0.9 * 0.1 * 4 * 0.81) = 0.54
    assert always.bounds_s() == pytest.approx((4 - 0.54, 4.0))
    whole = [(float(end), float(end), True) for end in range(1, 5)]
    booked = activity(*whole, *((4 + wait, 4 + run, awake) for wait, run, awake in looks), begins_awake=True)
    assert booked.bounds_s() == pytest.approx((4 + 4 - 0.54, 8.0)), "of intervals that are all booked nothing is open"
    # it woke at any moment of the 0.6 s that are open, of which 0.173 s is the standard deviation (0.6 / sqrt(12))
    assert activity((0.4, 0.4, True)).bounds_s() == pytest.approx((0.5 - 0.1, 0.5 + 0.6 / 12**0.5))
    halves, nothing = activity(begins_awake=True), activity()
    for _ in range(2):
        halves.add(0.5, {}, [], awake=True)
    nothing.add(1.0, {}, [], awake=False)
    assert (halves.seen_s, nothing.bounds_s()) == (1, (0, 0))


def test_what_processes_have_used_adds_up_and_of_memory_the_most_counts() -> None:
    """Sizes of resident sets are in KiB, see getrusage(2)."""
    found = Usage(100.0)
    found.add_spent(struct_rusage((1.5, 0.5, 300, 0, 0, 0, 10, 1, 0, 0, 0, 0, 0, 0, 7, 3)))
    found.add_spent(struct_rusage((0.5, 0.25, 200, 0, 0, 0, 20, 2, 0, 0, 0, 0, 0, 0, 1, 4)))
    spent = "user_s system_s max_rss_bytes minor_faults major_faults voluntary_switches involuntary_switches"
    assert shown(found, spent) == "2 0.75 307200 30 3 8 7"


@pytest.mark.parametrize(("waited_s", "is_known"), [(0.01, True), (1000.0, False)])
def test_a_misbooked_wait_for_storage_is_unknown_in_laps_and_starts(
    monkeypatch: pytest.MonkeyPatch, waited_s: float, is_known: bool
) -> None:
    """No thread has waited for longer than it lived; of several threads one such is enough."""

    def booked(path: str) -> list[bytes]:
        fields = stat_fields(path)
        seconds = waited_s if path in ("/proc/self/stat", f"/proc/{os.getpid()}/task/{os.getpid()}/stat") else 0.0
        return [*fields[:39], b"%d" % round(seconds * TICKS_PER_S), *fields[40:]]

    monkeypatch.setattr(lap, "stat_fields", booked)
    found = Usage(100.0)
    found.wall_s, found.block_io_s = 5.0, 0.0
    over = threading.Event()
    threading.Thread(target=over.wait).start()
    try:
        lap.take_process(found, os.getpid())
    finally:
        over.set()
    assert (found.block_io_s is not None) == is_known
    monkeypatch.setattr(own, "stat_fields", booked)
    monkeypatch.setattr(own, "record_of", lambda: None)
    monkeypatch.setattr(own, "delays_accounted", lambda: True)
    monkeypatch.setattr(own, "age_s", lambda: 500.0)
    assert (own.usage_since_birth().block_io_s is not None) == is_known
