"""The kernel's records of threads that have ended (``struct taskstats``), summed along the tree of processes.

Source: Linux ``Documentation/accounting/taskstats-struct.rst`` and ``delay-accounting.rst``.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping

from neurotier.meter.usage import BYTES, COUNTS

RECORD = struct.Struct("=H14x 8xQ8xQ8xQ8xQ 48x II 8x 5Q 16x Q 8x 2Q 16x 5Q 32x Q 8x Q 16x Q I4xQ")
"""``struct taskstats`` up to version 12; later versions append fields, except 15, which inserted some; 16 undid
that."""

FIELDS = (
    *("version", "run_queue_ns", "block_io_ns", "swap_in_ns", "runtime_ns", "pid", "parent"),
    *("lifetime_us", "user_us", "system_us", "minor_faults", "major_faults", "rss_kib"),
    *("logical_read_bytes", "logical_written_bytes", "device_read_bytes", "device_written_bytes", "cancelled_bytes"),
    *("voluntary_switches", "involuntary_switches", "reclaim_ns", "thrashing_ns", "compaction_ns"),
    *("group", "group_lifetime_us"),
)
"""The fields of the struct that are read."""

LEAST_VERSION, MISPLACED_VERSION = 8, 15
TOLERANCE_NS = 1_000_000
"""How much a wait may exceed the time available for it, ns, since the clocks of several CPUs are involved."""


class Branch:
    """Sums over the threads of a process and its descendants that have ended.

    Attributes
    ----------
    runtime_ns, run_queue_ns, block_io_ns, memory_ns
        Thread-time on a CPU, waiting for a CPU, waiting for block I/O, and stalled for memory (swapping in, thrashing,
        reclaim, compaction), ns. Waits for swapped-out pages count as stalls for memory only.
    user_us, system_us
        CPU time by the timer tick, microseconds; coarser than ``runtime_ns``.
    lifetime_us
        Sum of the threads' lifetimes, microseconds.
    max_rss_bytes
        Largest resident set of any one process.
    processes, threads
        How many have ended.
    misbooked_ns
        Lifetime off the CPU, ns, of the threads for which the kernel booked a longer wait for block I/O than that; how
        long these waited for storage is unknown. Seen on Linux 6.18 where processes compete for a CPU: if a thread that
        falls asleep stays queued for a while, the kernel notes the start of its wait for another thread, and later
        measures the wait from an earlier start, or from boot.
    overlap_ns
        Upper bound of the active thread-time that passed while other threads of the tree were active, ns.
    children_lifetime_ns, children_active_ns
        Lifetime and active thread-time of the direct children.
    """

    runtime_ns = run_queue_ns = block_io_ns = memory_ns = 0
    user_us = system_us = lifetime_us = 0
    minor_faults = major_faults = voluntary_switches = involuntary_switches = 0
    logical_read_bytes = logical_written_bytes = device_read_bytes = device_written_bytes = 0
    max_rss_bytes = processes = threads = 0
    misbooked_ns = overlap_ns = children_lifetime_ns = children_active_ns = 0
    other_threads_ns = parent = 0

    @property
    def active_ns(self) -> int:
        """Thread-time that was not asleep, ns."""
        return self.runtime_ns + self.run_queue_ns + self.block_io_ns + self.memory_ns

    def add(self, figures: Mapping[str, int]) -> None:
        """Add the figures of a thread, or of a process with all its descendants."""
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + figures[name])
        self.max_rss_bytes = max(self.max_rss_bytes, figures["max_rss_bytes"])

    def merge(self, ended: Branch, lifetime_ns: int) -> None:
        """Add a child that has ended, with all its descendants."""
        self.add(vars(ended))
        self.children_lifetime_ns += lifetime_ns
        self.children_active_ns += ended.active_ns


SUMMED = [
    *("runtime_ns", "run_queue_ns", "block_io_ns", "memory_ns", "user_us", "system_us", "lifetime_us"),
    *COUNTS,
    *BYTES,
    *("processes", "threads", "overlap_ns", "misbooked_ns"),
]


class Branches:
    """Sums below every process that is still alive; memory grows with the number of these, not with that of ended ones.

    The record of a thread names its parent process. The sums below a process are kept under its process ID until its
    own record arrives, and are then added to those of its parent.

    Parameters
    ----------
    root
        Process whose descendants are summed; its own threads do not count.

    Attributes
    ----------
    ended
        For every thread that has ended since this was last taken: its ID, its process and parent process, its active
        time and its time on a core, s. Records of the whole machine arrive, so some belong to other trees.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self.pending: dict[int, Branch] = {}
        self.ended: list[tuple[int, int, int, float, float]] = []

    def branch(self, pid: int) -> Branch:
        """Sums below a process that is still alive."""
        return self.pending.setdefault(pid, Branch())

    def add(self, record: bytes) -> None:
        """Add the exit record of one thread (``struct taskstats``)."""
        figures = dict(zip(FIELDS, RECORD.unpack_from(record.ljust(RECORD.size, b"\0")), strict=True))
        version, pid, parent, group = (figures[name] for name in ("version", "pid", "parent", "group"))
        if version < LEAST_VERSION or version == MISPLACED_VERSION:
            raise OSError(errno.EPROTO, f"taskstats version {version} has another layout")
        if group == self.root:
            return
        leads = group in (0, pid)  # the group is unknown before version 12: every thread then counts as a process
        branch = self.branch(pid if leads else group)
        on_core_ns = figures["runtime_ns"] + figures["run_queue_ns"]
        memory_ns = sum(figures[f"{name}_ns"] for name in ("swap_in", "thrashing", "reclaim", "compaction"))
        storage_ns, misbooked_ns = figures["block_io_ns"], 0
        room_ns = max(0, 1000 * figures["lifetime_us"] - on_core_ns)
        if storage_ns > room_ns + TOLERANCE_NS:
            storage_ns, misbooked_ns = 0, room_ns
        storage_ns = max(0, storage_ns - figures["swap_in_ns"] - figures["thrashing_ns"])  # both are booked twice
        active_ns, overlap_ns = on_core_ns + memory_ns + storage_ns, 0
        self.ended.append((pid, group or pid, parent, active_ns / 1e9, figures["runtime_ns"] / 1e9))
        if leads:
            lifetime_ns = 1000 * (figures["group_lifetime_us"] or figures["lifetime_us"])
            concurrent_ns = branch.children_lifetime_ns - (lifetime_ns - active_ns)
            overlap_ns = max(0, min(branch.children_active_ns, concurrent_ns)) + branch.other_threads_ns
        else:
            branch.other_threads_ns += active_ns
            branch.parent = parent
        figures |= {"memory_ns": memory_ns, "block_io_ns": storage_ns, "misbooked_ns": misbooked_ns}
        figures |= {"overlap_ns": overlap_ns, "processes": int(leads), "threads": 1}
        figures["device_written_bytes"] -= figures["cancelled_bytes"]
        branch.add(figures | {"max_rss_bytes": 1024 * figures["rss_kib"]})
        if leads:
            del self.pending[pid]
            self.branch(parent).merge(branch, lifetime_ns)

    def take_ended(self, family: set[int]) -> list[tuple[int, float, float]]:
        """The ID, active time and time on a core, s, of each thread of the tree that has ended since the last call.

        Parameters
        ----------
        family
            The processes of the tree that have been seen alive.
        """
        taken, family = [], family | {self.root}
        for thread, group, parent, active_s, runtime_s in reversed(self.ended):  # children end before parents
            if group in family or parent in family:
                family.add(group)
                taken.append((thread, active_s, runtime_s))
        self.ended.clear()
        return taken

    def close_group(self, group: int) -> None:
        """Note that the last thread of a process has ended: if its leader ended before, add the remaining sums to the
        parent."""
        rest = self.pending.get(group)
        if rest is not None and rest.parent:
            self.branch(rest.parent).merge(self.pending.pop(group), 0)
