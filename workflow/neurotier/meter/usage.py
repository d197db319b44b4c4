"""What a phase cost: figures in groups, each with its source, and the account of its wall time.

A figure that is not available is ``None``, never 0. The groups and their sources:

========  ===============================================================  =====================================
group     figures                                                          sources
========  ===============================================================  =====================================
cpu       user, system, page faults, context switches                      ``wait4``, ``taskstats``, ``sampled``
wait      run queue, block I/O, memory stall                               ``taskstats``, ``sampled``
memory    largest resident set                                             ``taskstats``, ``wait4``
bytes     logical and device bytes, read and written                       ``procfs``, ``taskstats``
pressure  time with some thread stalled                                    ``cgroup``, ``machine``
account   wall time by cause                                               ``exact``, ``scaled``, ``sampled``
========  ===============================================================  =====================================

For the measuring process itself (:mod:`neurotier.meter.own`), CPU times come from ``getrusage``, and memory from
``procfs``, as do waits if the process may not use ``taskstats``; for a lap (:mod:`neurotier.meter.lap`), all figures
come from ``procfs``.
"""

from __future__ import annotations

from neurotier.meter.tree import TICKS_PER_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from resource import struct_rusage
    from typing import Any

    from neurotier.meter.pressure import Pressure
    from neurotier.meter.records import Branch
    from neurotier.meter.sampling import Sampler

COUNTS = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
BYTES = ("logical_read_bytes", "logical_written_bytes", "device_read_bytes", "device_written_bytes")
"""Figures that are summed over a tree. Each also has a place in :class:`Usage`, in ``FIELDS`` and ``Branch`` of
:mod:`neurotier.meter.records`, and in the table ``usage``. A count is read from ``rusage`` (:meth:`Usage.add_spent`)
and from procfs (``take_process`` in :mod:`neurotier.meter.lap`); bytes are read by
:func:`neurotier.meter.tree.read_io`, in this order."""

LABELS = {
    "account_user_s": "CPU, user",
    "account_system_s": "CPU, system",
    "account_run_queue_s": "waiting for a core",
    "account_block_io_s": "waiting for storage",
    "account_memory_stall_s": "short of memory",
    "account_other_s": "asleep",
    "residual_s": "unexplained",
}
"""The names of the causes, on the terminal and in the report."""

*ACCOUNT, _ = LABELS
"""The causes by which the wall time is divided, in the order in which they are shown; the residual comes after them."""

UNREAPED_SHARE, UNREAPED_S = 0.01, 0.02
"""CPU time in excess of that of children that were waited for, above which there must have been processes that no
parent waited for (their parent ignores SIGCHLD)."""

NOT_ROOT = "exit records need root"
SWITCHED_OFF = "kernel.task_delayacct is 0"
"""Two reasons why an account is sampled or lacks waiting for storage; for the others see
``Instruments.account_reason``."""

OVERLAP_SHARE, OVERLAP_S = 0.01, 0.005
"""Overlapping activity up to which a tree counts as having one active thread at a time."""


class Usage:
    """What a phase cost. The times of several threads or processes are added, except in wall times and in the account.

    Attributes
    ----------
    start_s, end_s
        Seconds since 1970-01-01 UTC; ``end_s`` is ``start_s + wall_s``, so that setting the clock during the phase has
        no effect.
    wall_s
        Wall-clock time until the phase's own process had ended, by the monotonic clock, s.
    user_s, system_s
        CPU time of the whole tree, s.
    run_queue_s, block_io_s, memory_stall_s
        Thread-seconds spent waiting for a CPU, for block I/O (what the kernel books as I/O wait: for devices, and for
        pages from network file systems), and for memory (swapping in, thrashing, reclaim, compaction), s.
    seen_share
        Share of the tree's CPU time that belongs to threads whose waits are known; 1 unless sampled.
    thread_s, processes, threads
        Sum of the lifetimes of all threads, s; how many processes and threads there were.
    max_rss_bytes
        Largest resident set of any one process of the tree; by ``wait4``, this includes the meter's own image in a
        child that has not yet replaced it.
    logical_read_bytes, logical_written_bytes
        Bytes moved by read and write calls, whatever they accessed (page cache, tmpfs, pipes); without mapped files.
    device_read_bytes, device_written_bytes
        Bytes fetched from, and sent on their way to, block devices and network file systems, mapped files included.
    bytes_reason
        Calls by which the tree moved bytes that are not in the counts of read and write calls: ``io_uring`` or ``aio``;
        the logical bytes are then unknown.
    pressure_cpu_s, pressure_io_s, pressure_memory_s
        Wall time in which at least one thread was stalled, s.
    left_behind
        Number of processes that still existed when the phase's own process had ended.
    input_bytes, input_resident_before, input_resident_after
        Size of the files that the phase was declared to read, and the share of them in the page cache.
    account
        How the account was made: ``exact`` (one thread was active at a time, and its parts are thread-seconds),
        ``scaled`` (several were active at once, and thread-seconds are scaled to the time in which at least one was
        certainly active), ``sampled``, or ``None`` if there is no account: the kernel does not account for waits for a
        core, or processes outlived the phase, so that their seconds lie outside its wall time, or the phase was stopped
        (Ctrl-Z) or frozen, and continued.
    account_reason
        Why the account is sampled or lacks a cause, or why there is none.
    account_user_s ... account_other_s, residual_s
        Wall time by cause, s; ``other`` is sleep: waiting for the network, locks and timers. If waiting for storage is
        unknown, it cannot be distinguished from sleep: both are ``None``, and part of the residual. The residual is the
        wall time minus all causes: what the meter's clock measured and the kernel's account does not explain and, if
        several threads were active, the time in which the tree may have been either active or asleep.
    """

    run_queue_s: float | None
    block_io_s: float | None
    memory_stall_s: float | None
    seen_share: float | None
    wait_source: str | None
    thread_s: float | None
    processes: int | None
    threads: int | None
    logical_read_bytes: int | None
    logical_written_bytes: int | None
    device_read_bytes: int | None
    device_written_bytes: int | None
    bytes_source: str | None
    bytes_reason: str | None
    pressure_cpu_s: float | None
    pressure_io_s: float | None
    pressure_memory_s: float | None
    pressure_source: str | None
    input_bytes: int | None
    input_resident_before: float | None
    input_resident_after: float | None
    account: str | None
    account_reason: str | None
    residual_s: float | None

    def __init__(self, start_s: float) -> None:
        vars(self).update(dict.fromkeys((*Usage.__annotations__, *ACCOUNT)))
        self.start_s = self.end_s = start_s
        self.wall_s = self.user_s = self.system_s = 0.0
        self.minor_faults = self.major_faults = self.voluntary_switches = self.involuntary_switches = 0
        self.max_rss_bytes = self.left_behind = 0
        self.cpu_source = self.memory_source = "wait4"

    @property
    def cpu_s(self) -> float:
        """User + system, s."""
        return self.user_s + self.system_s

    @property
    def unexplained_s(self) -> float:
        """Wall time minus all known causes, s."""
        return self.wall_s - sum(getattr(self, cause) or 0.0 for cause in ACCOUNT)

    def record(self) -> dict[str, Any]:
        """All figures by name, including those of the paper's division: CPU, and I/O = wall - CPU."""
        return vars(self) | {"cpu_s": self.cpu_s, "io_s": self.wall_s - self.cpu_s}

    def add_spent(self, spent: struct_rusage) -> None:
        """Add what a process and the children that it waited for have used: figures of ``wait4`` or ``getrusage``."""
        self.user_s += spent.ru_utime
        self.system_s += spent.ru_stime
        self.max_rss_bytes = max(self.max_rss_bytes, spent.ru_maxrss * 1024)
        self.minor_faults += spent.ru_minflt
        self.major_faults += spent.ru_majflt
        self.voluntary_switches += spent.ru_nvcsw
        self.involuntary_switches += spent.ru_nivcsw

    def take_bytes(self, after: Sequence[int] | None, before: Sequence[int] | None = (0,) * len(BYTES)) -> None:
        """Take the bytes moved between two readings of :func:`neurotier.meter.tree.read_io`."""
        if before is not None and after is not None:
            for name, first, last in zip(BYTES, before, after, strict=True):
                setattr(self, name, max(0, last - first))
            self.bytes_source = "procfs"

    def refuse_bytes(self, reason: str | None) -> None:
        """Set the logical bytes to unknown if the tree moved some by calls that the kernel does not count
        (``reason``)."""
        if reason and self.bytes_source:
            self.logical_read_bytes = self.logical_written_bytes = None
            self.bytes_reason = reason

    def take_exits(self, branch: Branch, sampler: Sampler, run_queue: bool) -> None:
        """Take the figures of exit records.

        Parameters
        ----------
        branch
            Sums over the tree.
        sampler
            Its thread states give the wait for storage if the kernel booked none, or a wrong one.
        run_queue
            Whether the kernel accounts for waits for a CPU.
        """
        cpu_s = branch.runtime_ns / 1e9
        if cpu_s > self.cpu_s * (1 + UNREAPED_SHARE) + UNREAPED_S:
            ticked_us = branch.user_us + branch.system_us
            user_share = branch.user_us / ticked_us if ticked_us else 1.0
            self.user_s, self.system_s = cpu_s * user_share, cpu_s * (1 - user_share)
            for name in COUNTS:
                setattr(self, name, getattr(branch, name))
            self.cpu_source = "taskstats"
        if run_queue:
            self.run_queue_s = branch.run_queue_ns / 1e9
            self.wait_source, self.seen_share = "taskstats", 1.0
        if sampler.delays:
            self.memory_stall_s = branch.memory_ns / 1e9
        if sampler.delays and branch.misbooked_ns / 1e9 <= self.wall_s * OVERLAP_SHARE + OVERLAP_S:
            self.block_io_s = branch.block_io_ns / 1e9
        elif run_queue:  # by default, Linux accounts for waits for a core and for no others
            self.wait_source = "sampled"
            if not sampler.asynchronous.found:  # a thread that waits for asynchronous calls looks asleep
                self.block_io_s = self.off_core(sampler.waiting_s(self.wall_s), sampler)
        self.thread_s = branch.lifetime_us / 1e6
        self.processes, self.threads = branch.processes, branch.threads
        self.max_rss_bytes, self.memory_source = branch.max_rss_bytes, "taskstats"
        moved = branch.logical_read_bytes + branch.logical_written_bytes
        if moved > (self.logical_read_bytes or 0) + (self.logical_written_bytes or 0):
            # records are rounded down to KiB per thread: if they exceed the exact sums, some processes were not waited
            # for
            self.take_bytes([getattr(branch, name) for name in BYTES])
            self.bytes_source = "taskstats"

    def take_samples(self, sampler: Sampler, run_queue: bool) -> None:
        """Take the waits that were sampled; parameters as :meth:`take_exits`."""
        runtime_s, run_queue_s, booked_s, user, system = sampler.seen()
        if run_queue:
            self.run_queue_s, self.wait_source = run_queue_s, "sampled"
            self.seen_share = min(1.0, runtime_s / self.cpu_s) if self.cpu_s else 1.0
            if (user + system) / TICKS_PER_S > self.cpu_s * (1 + UNREAPED_SHARE) + UNREAPED_S:
                self.user_s, self.system_s = user / TICKS_PER_S, system / TICKS_PER_S
                self.cpu_source, self.seen_share = "sampled", None
        if run_queue and (sampler.delays or not sampler.asynchronous.found):
            is_booked = sampler.delays and not sampler.activity.misbooked
            self.block_io_s = self.off_core(booked_s if is_booked else sampler.waiting_s(self.wall_s), sampler)

    def off_core(self, sampled_s: float | None, sampler: Sampler) -> float | None:
        """A sampled wait, s; if one thread was active at a time, at most the time in which none was on a core."""
        if sampled_s is None or sampler.most_active > 1:
            return sampled_s
        return max(0.0, min(sampled_s, self.wall_s - self.cpu_s - (self.run_queue_s or 0.0)))

    def take_pressure(self, pressure: Pressure) -> None:
        """Take the stall times that the kernel reports."""
        for name, total_s in pressure.read().items():
            if name in pressure.before:
                setattr(self, f"pressure_{name}_s", total_s - pressure.before[name])
                self.pressure_source = pressure.source

    def divide(self, branch: Branch | None, sampler: Sampler | None, noticed_late_s: float = 0.0) -> None:
        """Divide the wall time by cause, that is, fill in the account.

        Parameters
        ----------
        branch
            Sums of the exit records over the tree; ``None`` if there are none.
        sampler
            Has the bounds of how long the tree was active; ``None`` for a single thread that measures itself.
        noticed_late_s
            How long the meter waited for a core before it noticed the end of the phase, s; this is part of the wall
            time.

        If one thread was active at a time, the tree was asleep for exactly the rest of the wall time. If several were,
        the tree was active for a time between two bounds: its thread-seconds are scaled to the lower bound, it was
        asleep for the time beyond the upper bound, and the time between the bounds is not explained.
        """
        if self.run_queue_s is None:
            return
        parts = [self.user_s, self.system_s, self.run_queue_s, self.block_io_s or 0.0, self.memory_stall_s or 0.0]
        known_s, is_sampled = sum(parts), self.wait_source == "sampled"
        overlap_s = known_s - self.wall_s
        if branch:
            # daemons that ended during the phase are children of the meter, like the phase's own process
            concurrent_s = max(0.0, branch.children_lifetime_ns / 1e9 - self.wall_s)
            overlap_s = max(overlap_s, branch.overlap_ns / 1e9 + min(concurrent_s, branch.children_active_ns / 1e9))
            if sampler and not is_sampled:  # lifetimes do not show an overlap of children whose parent slept later
                # and records, like these books, lack the time that short children take to end
                overlap_s = max(overlap_s, (branch.active_ns - branch.memory_ns) / 1e9 - sampler.activity.most_s)
        several = overlap_s > self.wall_s * OVERLAP_SHARE + OVERLAP_S
        if sampler and is_sampled and sampler.most_active > 1:
            several = True
        other_s = max(0.0, self.wall_s - known_s)
        if sampler and (several or is_sampled):
            least_s, most_s = self.active_bounds_s(sampler, branch, known_s)
            if not is_sampled:
                least_s = max(least_s, min(known_s, self.wall_s) - overlap_s)
            if several and known_s > least_s:
                parts = [part * least_s / known_s for part in parts]
            other_s = max(0.0, self.wall_s - max(sum(parts), most_s))
        elif several:
            parts = [part * self.wall_s / known_s for part in parts]
        late_s = min(noticed_late_s, other_s)
        parts[2] += late_s
        other_s -= late_s
        self.account = "sampled" if is_sampled else "scaled" if several else "exact"
        waits = self.block_io_s and parts[3], self.memory_stall_s and parts[4]  # unknown ones stay ``None``
        asleep_s = None if self.block_io_s is None and self.bytes_reason is None else other_s
        vars(self).update(zip(ACCOUNT, (*parts[:3], *waits, asleep_s), strict=True))
        self.residual_s = self.unexplained_s

    def active_bounds_s(self, sampler: Sampler, branch: Branch | None, known_s: float) -> tuple[float, float]:
        """Lower and upper bound of the time in which at least one thread of the tree was active, s, given its known
        thread-seconds."""
        least_s, most_s = sampler.activity.bounds_s()
        unseen_s = 0.0
        if not branch:  # threads that were not seen may have waited like those that were
            runtime_s, *_ = sampler.seen()
            unseen_s = max(0.0, self.cpu_s - runtime_s)
            unseen_s *= 1 + (self.run_queue_s or 0.0) / runtime_s if runtime_s else 1.0
            most_s += unseen_s
        is_booked = self.wait_source != "sampled" if branch else not sampler.activity.misbooked
        # all possible activity is booked, or waiting for storage counts as sleep
        if (sampler.delays and is_booked) or sampler.asynchronous.found:
            most_s = min(most_s, known_s + unseen_s)
        most_s = min(most_s, self.wall_s)
        return min(least_s, most_s), most_s
