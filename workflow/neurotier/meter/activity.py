"""How long at least one thread of a tree was active, between two bounds that do not depend on luck.

The kernel books each thread's time on a core and waiting; the meter reads these books at every look and, where there
are exit records, at every thread's end. Between two looks the tree was active at least as long as its busiest thread,
and as its time on cores spread over all cores; at most as long as all its threads together. The states of threads at
the looks say where between the bounds the truth may lie. What neither shows remains open: the account calls it
unexplained.

A thread's books lag while it runs (by a tick of the timer) or waits (until the wait is over); a thread found awake at
two looks without an entry in between was awake all the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""Steps in which ``/proc`` gives waits for storage, s."""

TOLERANCE_S = 2 * TICK_S
"""How much an entry may exceed the time available for it."""


class Books:
    """What is booked for one thread so far.

    Attributes
    ----------
    active_s
        On a core and waiting for one, for storage, or for memory, s.
    runtime_s
        On a core, s.
    awake
        Whether it was running, ready to run, or waiting for storage when looked at.
    claimed_s
        Time in which it was seen awake that was not yet booked, s.
    """

    __slots__ = ("active_s", "awake", "claimed_s", "runtime_s")

    def __init__(self, active_s: float, runtime_s: float, awake: bool) -> None:
        self.active_s, self.runtime_s, self.awake = active_s, runtime_s, awake
        self.claimed_s = 0.0


NOTHING = Books(0.0, 0.0, awake=False)
"""The books of a thread that did not exist yet."""


class Activity:
    """The bounds, interval by interval.

    Parameters
    ----------
    waits_booked
        Whether the kernel books waits for storage; if not, a thread that did anything may have waited, too.

    Attributes
    ----------
    least_s, most_s
        Time for which some thread was active: at least and at most, s.
    seen_s
        The same judging by the states at the looks alone, s.
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
            Those that ended within it, with complete books.
        awake
            Whether any thread was awake at its end.
        """
        least_s = most_s = runtime_s = 0.0
        for thread, books in (*ended, *alive.items()):
            before = self.threads.get(thread, NOTHING)
            if books.runtime_s < before.runtime_s:  # another thread with the same number
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
        if awake_share == 0.5:  # it woke or fell asleep in between, at any moment with equal likelihood
            self.turned_squared += (most_s - least_s) ** 2 / 12
        elif most_s > least_s:
            self.open_squared += (most_s - least_s) ** 2
            self.open_awake += awake_share
            self.open_intervals += 1

    def possible_s(self, passed_s: float, certain_s: float, before: Books, books: Books) -> float:
        """The longest that one thread can have been active in an interval, s; waits are booked in whole ticks."""
        if books.awake or (certain_s > 0 and not self.waits_booked):
            return passed_s
        return min(passed_s, certain_s + (TICK_S if before.awake else 0.0))

    def bounds_s(self) -> tuple[float, float]:
        """Least and most time that the tree was active, s, as close together as the looks allow.

        Where the bounds leave room, looks count as a sample, and the bounds are one standard error on both sides.
        """
        share = (self.open_awake + 0.5) / (self.open_intervals + 1)
        error_s = (self.turned_squared + share * (1 - share) * self.open_squared) ** 0.5
        likely_s = min(max(self.seen_s, self.least_s), self.most_s)
        return max(self.least_s, likely_s - error_s), min(self.most_s, likely_s + error_s)
