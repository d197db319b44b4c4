"""The kernel's records of threads that have ended (``struct taskstats``), summed up the tree of processes.

Source: Linux ``Documentation/accounting/taskstats-struct.rst`` and ``delay-accounting.rst``.
"""

from __future__ import annotations

import errno
import struct

from neurotier.meter.usage import BYTES, COUNTS

RECORD = struct.Struct("=H14x 8Q 48x II 8x 5Q 16x Q 8x 2Q 16x 5Q 32x Q 8x Q 16x Q I4xQ")
"""``struct taskstats`` up to version 12; later versions append, except 15, which inserted and was undone by 16."""

LEAST_VERSION, MISPLACED_VERSION = 8, 15
TOLERANCE_NS = 1_000_000
"""How much a wait may exceed the time available for it, since the clocks of several CPUs are involved."""


class Branch:
    """Sums over a process and its descendants, as far as they have ended.

    Attributes
    ----------
    runtime_ns, run_queue_ns, block_io_ns, memory_ns
        Thread-time on a CPU, waiting for one, waiting for block I/O, and stalled for memory (swapping in,
        thrashing, reclaim, compaction), ns. Waits for swapped-out pages count as memory only.
    user_us, system_us
        CPU time by the timer tick, microseconds: its sum is coarser than ``runtime_ns``.
    lifetime_us
        Sum over threads from birth to end, microseconds.
    max_rss_bytes
        Largest resident set of any one process.
    processes, threads
        How many ended.
    misbooked_ns
        Lifetime off the CPU, ns, of threads to which the kernel booked more block-I/O wait than that; how long they
        waited for storage is not known. Seen on Linux 6.18 where processes compete for a CPU: if a thread that falls
        asleep stays queued for a while, the kernel notes the start of its wait for another thread, and later measures
        the wait from an earlier start, or from boot.
    overlap_ns
        Upper bound of the active thread-time that ran while other threads of the tree were active, ns.
    children_lifetime_ns, children_active_ns
        Lifetime and active thread-time of the direct children.
    """

    def __init__(self) -> None:
        self.runtime_ns = self.run_queue_ns = self.block_io_ns = self.memory_ns = 0
        self.user_us = self.system_us = self.lifetime_us = 0
        self.minor_faults = self.major_faults = self.voluntary_switches = self.involuntary_switches = 0
        self.logical_read_bytes = self.logical_written_bytes = 0
        self.device_read_bytes = self.device_written_bytes = 0
        self.max_rss_bytes = self.processes = self.threads = 0
        self.misbooked_ns = self.overlap_ns = self.children_lifetime_ns = self.children_active_ns = 0
        self.other_threads_ns = self.parent = 0

    @property
    def active_ns(self) -> int:
        """Thread-time that was not asleep, ns."""
        return self.runtime_ns + self.run_queue_ns + self.block_io_ns + self.memory_ns

    def merge(self, ended: Branch, lifetime_ns: int) -> None:
        """Add a child that has ended, with all its descendants."""
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(ended, name))
        self.max_rss_bytes = max(self.max_rss_bytes, ended.max_rss_bytes)
        self.children_lifetime_ns += lifetime_ns
        self.children_active_ns += ended.active_ns


SUMMED = [
    *("runtime_ns", "run_queue_ns", "block_io_ns", "memory_ns", "user_us", "system_us", "lifetime_us"),
    *COUNTS,
    *BYTES,
    *("processes", "threads", "overlap_ns", "misbooked_ns"),
]


class Branches:
    """Sums below every process that is still alive; memory grows with these, not with the processes that have ended.

    A thread's record names its parent. Sums below a process are kept under its number until its own record arrives,
    and are then added to those of its parent.

    Parameters
    ----------
    root
        Process whose descendants are summed; its own threads do not count.

    Attributes
    ----------
    ended
        Of every thread that has ended since this was last taken: its number, its process, its parent, and its active
        time and time on a core, s. The records of the whole machine arrive, so some are of other trees.
    leaders
        Time on a core and waiting for one, s, of the main threads of the root's children, as their records have it.
    outliving_s
        Active time of other threads that ended later than these main threads, s: while they end, the process is there.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self.pending: dict[int, Branch] = {}
        self.ended: list[tuple[int, int, int, float, float]] = []
        self.leaders: dict[int, tuple[float, float]] = {}
        self.outliving_s = 0.0

    def branch(self, pid: int) -> Branch:
        """Sums below a process that is still alive."""
        return self.pending.setdefault(pid, Branch())

    def add(self, record: bytes) -> None:
        """Add the exit record of one thread (``struct taskstats``)."""
        values = RECORD.unpack_from(record.ljust(RECORD.size, b"\0"))
        version, _, run_queue_ns, _, block_io_ns, _, swap_in_ns, _, runtime_ns = values[:9]
        pid, parent, lifetime_us, user_us, system_us, minor, major, rss_kib = values[9:17]
        read_logical, written_logical, read_device, written_device, cancelled = values[17:22]
        voluntary, involuntary = values[22:24]
        reclaim_ns, thrashing_ns, compaction_ns, group, group_lifetime_us = values[24:]
        if version < LEAST_VERSION or version == MISPLACED_VERSION:
            raise OSError(errno.EPROTO, f"taskstats version {version} has another layout")
        if group == self.root:
            return
        leads = group in (0, pid)  # unknown before version 12: every thread then counts as a process
        branch = self.branch(pid if leads else group)
        memory_ns = swap_in_ns + thrashing_ns + reclaim_ns + compaction_ns
        room_ns = max(0, 1000 * lifetime_us - runtime_ns - run_queue_ns)
        if block_io_ns > room_ns + TOLERANCE_NS:
            branch.misbooked_ns += room_ns
            block_io_ns = 0
        storage_ns = max(0, block_io_ns - swap_in_ns - thrashing_ns)  # the kernel books those twice
        active_ns = runtime_ns + run_queue_ns + memory_ns + storage_ns
        self.ended.append((pid, group or pid, parent, active_ns / 1e9, runtime_ns / 1e9))
        if leads and parent == self.root:
            self.leaders[pid] = runtime_ns / 1e9, run_queue_ns / 1e9
        if leads:
            lifetime_ns = 1000 * (group_lifetime_us or lifetime_us)
            concurrent_ns = branch.children_lifetime_ns - (lifetime_ns - active_ns)
            branch.overlap_ns += max(0, min(branch.children_active_ns, concurrent_ns)) + branch.other_threads_ns
            branch.processes += 1
        else:
            self.outliving_s += active_ns / 1e9 if group in self.leaders else 0.0
            branch.other_threads_ns += active_ns
            branch.parent = parent
        branch.threads += 1
        branch.runtime_ns += runtime_ns
        branch.run_queue_ns += run_queue_ns
        branch.block_io_ns += storage_ns
        branch.memory_ns += memory_ns
        branch.user_us += user_us
        branch.system_us += system_us
        branch.lifetime_us += lifetime_us
        branch.minor_faults += minor
        branch.major_faults += major
        branch.voluntary_switches += voluntary
        branch.involuntary_switches += involuntary
        branch.logical_read_bytes += read_logical
        branch.logical_written_bytes += written_logical
        branch.device_read_bytes += read_device
        branch.device_written_bytes += written_device - cancelled
        branch.max_rss_bytes = max(branch.max_rss_bytes, 1024 * rss_kib)
        if leads:
            del self.pending[pid]
            self.branch(parent).merge(branch, lifetime_ns)

    def take_ended(self, family: set[int]) -> list[tuple[int, float, float]]:
        """Number, active time and time on a core, s, of the tree's threads that have ended since this was last asked.

        Parameters
        ----------
        family
            The processes of the tree that have been seen alive.
        """
        taken, family = [], family | {self.root}
        for thread, group, parent, active_s, runtime_s in reversed(self.ended):  # a child ends before its parent
            if group in family or parent in family:
                family.add(group)
                taken.append((thread, active_s, runtime_s))
        self.ended.clear()
        return taken

    def close_group(self, group: int) -> None:
        """The last thread of a process has ended: if its leader ended earlier, add the rest to the parent."""
        rest = self.pending.get(group)
        if rest is not None and rest.parent:
            self.branch(rest.parent).merge(self.pending.pop(group), 0)
