"""How long at least one thread of a tree was active: a lower and an upper bound that do not depend on chance.

The kernel books each thread's time on a core and its waits; the meter reads these books at every look and, if there are
exit records, at every thread's end. Between two looks, the tree was active at least as long as its busiest thread, and
at least for its time on cores divided by the number of cores; it was active at most as long as all its threads
together. The states of the threads at the looks narrow this range. The account calls the rest unexplained.

A thread's books lag behind while it runs (by a tick of the timer) or waits (until the wait is over); a thread that was
awake at two looks and has no new entry in between was awake all the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""Resolution of the waits for storage in ``/proc``, s."""

TOLERANCE_S = 2 * TICK_S
"""How much an entry may exceed the time available for it, s."""


class Books:
    """What the kernel has booked for one thread so far.

    Attributes
    ----------
    active_s
        Time on a core, or waiting for a core, for storage or for memory, s.
    runtime_s
        Time on a core, s.
    awake
        Whether the thread was running, ready to run, or waiting for storage at the look.
    claimed_s
        Time in which the thread is known to have been awake and which is not booked yet, s.
    """

    __slots__ = ("active_s", "awake", "claimed_s", "runtime_s")

    def __init__(self, active_s: float, runtime_s: float, awake: bool) -> None:
        self.active_s, self.runtime_s, self.awake = active_s, runtime_s, awake
        self.claimed_s = 0.0


NOTHING = Books(0.0, 0.0, awake=False)
"""The books of a thread that did not exist yet."""


class Activity:
    """Computes the bounds, interval by interval.

    Parameters
    ----------
    waits_booked
        Whether the kernel books waits for storage; if not, a thread that was active may have waited, too.

    Attributes
    ----------
    least_s, most_s
        Lower and upper bound of the time in which at least one thread was active, s.
    seen_s
        An estimate of the same time from the states at the looks alone, s.
    misbooked
        Whether the kernel has booked a longer wait than there was time for (see
        :class:`neurotier.meter.records.Branch`): waits for storage are then unknown.
    """

    misbooked = False
    awake = True  # the tree begins with a process that runs
    least_s = most_s = seen_s = 0.0
    turned_squared = open_squared = open_awake = 0.0
    open_intervals = 0

    def __init__(self, waits_booked: bool) -> None:
        self.waits_booked = waits_booked
        self.cores = len(os.sched_getaffinity(0))
        self.threads: dict[int, Books] = {}

    def add(self, passed_s: float, alive: dict[int, Books], ended: Iterable[tuple[int, Books]], awake: bool) -> None:
        """Add the interval since the last look.

        Parameters
        ----------
        passed_s
            Its length, s.
        alive
            The threads that exist at its end.
        ended
            The threads that ended within it, with complete books.
        awake
            Whether any thread was awake at its end.
        """
        least_s = most_s = runtime_s = 0.0
        for thread, books in (*ended, *alive.items()):
            before = self.threads.get(thread, NOTHING)
            if books.runtime_s < before.runtime_s:  # another thread with the same ID
                before = NOTHING
            new_s = max(0.0, books.active_s - before.active_s)
            if before.awake and books.awake and new_s == 0:
                books.claimed_s = before.claimed_s + passed_s
                certain_s = possible_s = passed_s
            elif new_s > passed_s + before.claimed_s + TOLERANCE_S:
                self.misbooked = True
                certain_s, possible_s = min(passed_s, max(0.0, books.runtime_s - before.runtime_s)), passed_s
            else:
                certain_s = min(passed_s, max(0.0, new_s - before.claimed_s))
                possible_s = self.possible_s(passed_s, certain_s, before, books)
            least_s, most_s = max(least_s, certain_s), most_s + possible_s
            runtime_s += min(passed_s, books.runtime_s - before.runtime_s)
        self.threads = alive
        most_s = min(passed_s, most_s)
        least_s = min(most_s, max(least_s, runtime_s / self.cores))
        awake_share = (self.awake + awake) / 2
        self.awake = awake
        self.least_s += least_s
        self.most_s += most_s
        self.seen_s += awake_share * passed_s
        if awake_share == 0.5:  # it woke or fell asleep in between, at any moment with equal probability
            self.turned_squared += (most_s - least_s) ** 2 / 12
        elif most_s > least_s:
            self.open_squared += (most_s - least_s) ** 2
            self.open_awake += awake_share
            self.open_intervals += 1

    def possible_s(self, passed_s: float, certain_s: float, before: Books, books: Books) -> float:
        """The longest time that one thread can have been active in an interval, s; waits are booked in whole ticks."""
        if books.awake or (certain_s > 0 and not self.waits_booked):
            return passed_s
        return min(passed_s, certain_s + (TICK_S if before.awake else 0.0))

    def bounds_s(self) -> tuple[float, float]:
        """Lower and upper bound of the time in which the tree was active, s, as narrow as the looks allow.

        Between the certain bounds, the looks are treated as a sample, and the result is narrowed to one standard error
        on each side of its estimate.
        """
        share = (self.open_awake + 0.5) / (self.open_intervals + 1)
        error_s = (self.turned_squared + share * (1 - share) * self.open_squared) ** 0.5
        likely_s = min(max(self.seen_s, self.least_s), self.most_s)
        return max(self.least_s, likely_s - error_s), min(self.most_s, likely_s + error_s)
