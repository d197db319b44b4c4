"""Sample the live threads of a tree: their states, and their waits if there are no exit records.

The interval starts at 10 ms and grows with the age of the phase, to a twentieth of it, and with the cost of a sample:
at first sampling may take 2 ms and 2 % of a core, and in the long run 0.2 % of the time, or 0.1 % if there are exit
records. Without exit records, what a thread does after its last sample is missed, and so is a thread that lives between
two samples; how much that can be is bounded by the share of the tree's CPU time that was seen.
"""

from __future__ import annotations

import os
import time

from neurotier.meter.activity import Activity, Books
from neurotier.meter.tree import TICKS_PER_S, descendants, read_proc, stat_fields

IO_URING, AIO = "io_uring", "aio"
RING, CONTEXT = "anon_inode:[io_uring]", b"/[aio]"


class AsynchronousCalls:
    """Looks for processes that make asynchronous calls, whose bytes are not in the counts of read and write calls.

    Linux counts those bytes only where they reach a device. Processes that make such calls are recognised by what they
    hold: a ring is an open file, an AIO context is mapped memory. A process is first examined after 10 ms, and then
    less and less often; one that has ended by then is not recognised. Source: ``io_uring(7)``, ``io_setup(2)``,
    ``proc(5)`` (``fs/aio-nr``).

    Attributes
    ----------
    found
        ``io_uring`` or ``aio``, once a process was seen with it; ``None`` before.
    """

    found: str | None = None

    def __init__(self) -> None:
        self.looks: dict[int, int] = {}

    def look(self, pids: list[int]) -> None:
        """Examine the processes that are due: each at its 1st, 2nd, 4th, 8th, ... look."""
        if self.found:
            return
        self.looks = {pid: self.looks.get(pid, 0) + 1 for pid in pids}
        due = [pid for pid, count in self.looks.items() if not count & (count - 1)]
        contexts = bool(due) and contexts_exist()
        for pid in due:
            try:
                if has_ring(pid):
                    self.found = IO_URING
                elif contexts and CONTEXT in read_proc(f"/proc/{pid}/maps"):
                    self.found = AIO
            except OSError:  # it has ended, or is another user's
                continue


def has_ring(pid: int) -> bool:
    """Whether a process has an io_uring open."""
    folder = f"/proc/{pid}/fd"
    for file in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{file}") == RING:
                return True
        except FileNotFoundError:  # closed meanwhile
            continue
    return False


def contexts_exist() -> bool:
    """Whether any process of the machine has an AIO context; this is cheaper to find out than to examine each
    process."""
    try:
        return read_proc("/proc/sys/fs/aio-nr").strip() != b"0"
    except OSError:  # a kernel without AIO
        return False


FIRST_INTERVAL_S, LONGEST_INTERVAL_S = 0.01, 1.0
COST_SHARE, COST_SHARE_BESIDE_RECORDS, FIRST_COST_SHARE = 0.002, 0.001, 0.02
FIRST_COST_S = 0.002
"""What samples may take before a share limits them, s: the first takes longest, and short phases need the next ones."""

AGE_SHARE = 0.05
"""A sample is taken whenever the phase has grown by this share, if the cost allows that."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from neurotier.meter.exits import ExitRecords


class Sampler:
    """Samples all descendants of a process.

    Parameters
    ----------
    root
        Process whose descendants are sampled.
    exits
        The exit records, if there are any; otherwise the waits of each thread are kept for summing.
    delays
        Whether the kernel accounts for waits for storage.

    Attributes
    ----------
    looked_s, disk_threads_s
        Time until the last sample, and thread-seconds of uninterruptible sleep (as for storage) in it, s.
    cost_s
        CPU time that the samples took, s.
    most_active
        Largest number of threads that were running, ready or waiting for storage in one sample.
    due_s
        When the next sample is due, s, by the monotonic clock.
    activity
        Bounds of the time in which at least one thread was active.
    asynchronous
        Looks for processes that move bytes by asynchronous calls.
    """

    looked_s = disk_threads_s = cost_s = 0.0
    most_active = 0

    def __init__(self, root: int, exits: ExitRecords | None, delays: bool) -> None:
        self.root, self.exits, self.delays = root, exits, delays
        self.activity, self.asynchronous = Activity(delays), AsynchronousCalls()
        self.gone: list[tuple[int, Books]] = []
        self.family: set[int] = set()
        self.first_look_s = self.last_look_s = time.monotonic()
        self.due_s = self.first_look_s + FIRST_INTERVAL_S
        self.threads: dict[tuple[int, int], tuple[float, float, float, int, int]] = {}

    def look(self) -> None:
        """Take one sample."""
        begin = time.thread_time()
        alive: dict[int, Books] = {}
        active = disk = 0
        pids = descendants(self.root)
        for pid in pids:
            try:
                threads = os.listdir(f"/proc/{pid}/task")
            except OSError:
                continue
            for thread in threads:
                # the first thread's file outside of `task` has the ticks of all threads, including those that have
                # ended
                state, books = self.look_at(f"/proc/{pid}" + f"/task/{thread}" * (int(thread) != pid), int(thread))
                active += state in (b"R", b"")  # a thread that vanishes meanwhile was active to its end
                disk += state == b"D"
                if books:
                    alive[int(thread)] = books
        if not active and descendants(self.root) != pids:
            active = 1  # a tree that changed was not entirely asleep
        self.asynchronous.look(pids)
        passed_s = self.add_interval(alive, pids, awake=bool(active or disk), now=time.monotonic())
        self.disk_threads_s += disk * passed_s
        self.looked_s += passed_s
        self.most_active = max(self.most_active, active + disk)
        cost_s = time.thread_time() - begin
        self.cost_s += cost_s
        age_s = self.last_look_s - self.first_look_s
        allowed_s = (self.cost_s - FIRST_COST_S) / FIRST_COST_SHARE - age_s
        share = COST_SHARE_BESIDE_RECORDS if self.exits else COST_SHARE
        wanted_s = min(AGE_SHARE * age_s, cost_s / share)
        self.due_s = self.last_look_s + min(max(FIRST_INTERVAL_S, wanted_s, allowed_s), LONGEST_INTERVAL_S)

    def add_interval(self, alive: dict[int, Books], pids: list[int], awake: bool, now: float) -> float:
        """Add the time since the last look to the bounds of activity; returns its length, s."""
        passed_s, self.last_look_s = max(0.0, now - self.last_look_s), now
        ended, self.gone = self.gone, []
        if self.exits:
            self.exits.drain()
            records = self.exits.branches.take_ended(self.family.union(pids))
            ended = [(thread, Books(active_s, runtime_s, awake=False)) for thread, active_s, runtime_s in records]
        for thread, _ in ended:
            alive.pop(thread, None)  # the thread ended while others were sampled
        self.activity.add(passed_s, alive, ended, awake)
        self.family = set(pids)
        return passed_s

    def finish(self, ended_s: float) -> None:
        """Add the time between the last look and the phase's end, by the monotonic clock, s."""
        self.add_interval({}, [], awake=True, now=ended_s)

    def look_at(self, folder: str, thread: int) -> tuple[bytes, Books | None]:
        """The state of one thread, empty if it has ended, and its books; notes the books."""
        try:
            fields = stat_fields(f"{folder}/stat")
            runtime_ns, run_queue_ns, _ = read_proc(f"{folder}/schedstat").split()
        except OSError:
            return b"", None
        # the start time (field 22 of proc(5)) distinguishes a thread from a later one with the same ID
        start_ticks, waited_s = int(fields[19]), int(fields[39]) / TICKS_PER_S
        runtime_s, run_queue_s = int(runtime_ns) / 1e9, int(run_queue_ns) / 1e9
        if not self.exits:
            ticks = (0, 0) if "/task/" in folder else (int(fields[11]), int(fields[12]))
            seen = (runtime_s, run_queue_s, waited_s, *ticks)
            self.threads[thread, start_ticks] = seen
        active_s = runtime_s + run_queue_s + (waited_s if self.delays else 0.0)
        return fields[0], Books(active_s, runtime_s, fields[0] in (b"R", b"D"))

    def look_at_ended(self, pid: int) -> None:
        """Sample a process that has ended but has not been waited for yet: its main thread's figures are then
        complete."""
        if not self.exits:
            _, books = self.look_at(f"/proc/{pid}", pid)
            if books:
                self.gone.append((pid, books))

    def seen(self) -> list[float]:
        """Totals of all threads that were seen: time on a core, waiting for a core, and booked as waiting for storage,
        s (the last rounded to clock ticks per thread); and ticks in user and in system mode."""
        return [sum(figures) for figures in zip(*self.threads.values(), strict=True)] or [0.0] * 5

    def waiting_s(self, wall_s: float) -> float | None:
        """Thread-seconds of uninterruptible sleep in a phase, s, judging by states; ``None`` without a sample.

        The result is extrapolated to the whole phase, so that the time after the last sample, up to an interval, is not
        lost: in a phase of 1.5 s, that was up to 0.4 s.
        """
        return self.disk_threads_s * max(1.0, wall_s / self.looked_s) if self.looked_s else None
