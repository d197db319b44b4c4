"""Sampling the live threads of a tree: their states, and their waits where there are no exit records.

The interval starts at 10 ms and grows with the cost of a sample, so that sampling takes at most 0.2 % of the time, or
0.1 % where only states are read. What a thread does after its last sample is missed, and so is a thread that lives
between two samples; the share of the tree's CPU time that was seen bounds how much that can be.
"""

from __future__ import annotations

import os
import time

from neurotier.meter.tree import TICKS_PER_S, descendants, stat_fields

FIRST_INTERVAL_S, LONGEST_INTERVAL_S = 0.01, 1.0
COST_SHARE, COST_SHARE_OF_STATES = 0.002, 0.001
TOLERANCE_S = 2 / TICKS_PER_S


class Sampler:
    """Samples all descendants of a process.

    Parameters
    ----------
    root
        Process whose descendants are sampled.
    waits
        Whether to read the waits of each thread, too: one more file per thread and sample.

    Attributes
    ----------
    active_s, disk_s, asleep_s
        Time in which at least one thread was running or ready to run; in which none was, but one was in
        uninterruptible sleep, as for storage; and in which all were asleep, s.
    looks
        Number of samples.
    misbooked
        Whether the kernel booked more block-I/O wait to a thread than it can have had (see ``records.Branch``).
    most_active
        Most threads that were running, ready or waiting for storage in one sample.
    interval_s
        Time until the next sample, s.
    """

    def __init__(self, root: int, waits: bool) -> None:
        self.root, self.waits = root, waits
        self.active_s = self.disk_s = self.asleep_s = self.disk_threads_s = 0.0
        self.misbooked = False
        self.most_active = self.looks = 0
        self.interval_s = FIRST_INTERVAL_S
        self.last_look_s = time.monotonic()
        self.threads: dict[tuple[str, str], tuple[float, float, float, int, int]] = {}

    def look(self) -> None:
        """Take one sample."""
        begin = time.thread_time()
        active = disk = 0
        pids = descendants(self.root)
        for pid in pids:
            try:
                threads = os.listdir(f"/proc/{pid}/task")
            except OSError:
                continue
            for thread in threads:
                state = self.look_at(f"/proc/{pid}/task/{thread}", thread)
                active += state in (b"R", b"")  # a thread that vanishes meanwhile was active to its end
                disk += state == b"D"
        if not active and descendants(self.root) != pids:
            active = 1  # a tree that has changed was not all asleep
        now = time.monotonic()
        passed_s, self.last_look_s = now - self.last_look_s, now
        self.disk_threads_s += disk * passed_s
        if active:
            self.active_s += passed_s
        elif disk:
            self.disk_s += passed_s
        else:
            self.asleep_s += passed_s
        self.looks += 1
        self.most_active = max(self.most_active, active + disk)
        cost_s = time.thread_time() - begin
        share = COST_SHARE if self.waits else COST_SHARE_OF_STATES
        self.interval_s = min(max(FIRST_INTERVAL_S, cost_s / share), LONGEST_INTERVAL_S)

    def look_at(self, folder: str, thread: str) -> bytes:
        """The state of one thread, empty if it has ended; its waits are noted."""
        try:
            fields = stat_fields(f"{folder}/stat")
            if self.waits:
                with open(f"{folder}/schedstat", "rb") as file:
                    runtime_ns, run_queue_ns, _ = file.read().split()
                # by its start time (field 22 of proc(5)), a thread is told from a later one of the same number
                start_ticks, waited_s = int(fields[19]), int(fields[39]) / TICKS_PER_S
                runtime_s, run_queue_s = int(runtime_ns) / 1e9, int(run_queue_ns) / 1e9
                lifetime_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / TICKS_PER_S
                if waited_s > lifetime_s - runtime_s - run_queue_s + TOLERANCE_S:
                    self.misbooked = True
                seen = (runtime_s, run_queue_s, waited_s, int(fields[11]), int(fields[12]))
                self.threads[thread, fields[19].decode()] = seen
        except OSError:
            return b""
        return fields[0]

    def look_at_ended(self, pid: int) -> None:
        """Sample a process that has ended and is not yet waited for: its main thread is complete then."""
        if self.waits:
            self.look_at(f"/proc/{pid}", str(pid))

    @property
    def asleep_share(self) -> float:
        """Share of the sampled time in which all were asleep; 0 without a sample."""
        seen_s = self.active_s + self.disk_s + self.asleep_s
        return self.asleep_s / seen_s if seen_s else 0.0

    @property
    def runtime_s(self) -> float:
        """CPU time that was seen, s."""
        return sum(seen[0] for seen in self.threads.values())

    @property
    def run_queue_s(self) -> float:
        """Waiting for a CPU that was seen, s."""
        return sum(seen[1] for seen in self.threads.values())

    def waiting_s(self, wall_s: float) -> float | None:
        """Thread-seconds of uninterruptible sleep in a phase, s, by states; ``None`` without a sample.

        The samples stand for the whole phase, so that the time after the last one, up to an interval, is not lost:
        in a phase of 1.5 s, that was up to 0.4 s.
        """
        seen_s = self.active_s + self.disk_s + self.asleep_s
        return self.disk_threads_s * max(1.0, wall_s / seen_s) if seen_s else None

    def block_io_s(self, wall_s: float) -> float | None:
        """Waiting for block I/O that was seen, s, in steps of a clock tick (10 ms) per thread; or by states."""
        return self.waiting_s(wall_s) if self.misbooked else sum(seen[2] for seen in self.threads.values())

    @property
    def user_share(self) -> float:
        """User time's share of the CPU time that was seen."""
        user = sum(seen[3] for seen in self.threads.values())
        both = user + sum(seen[4] for seen in self.threads.values())
        return user / both if both else 1.0
