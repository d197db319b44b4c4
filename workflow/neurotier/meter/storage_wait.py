"""One thread's wait for storage from look to look, without what the kernel misbooked.

The kernel books a wait when it is over, and Linux 6.18 books some from an earlier start (see
:class:`neurotier.meter.records.Branch`). An entry is therefore believed as far as the thread was off a core since the
look at which its wait cannot have begun yet. One that is longer than that is not believed at all: the states of the
thread at the looks tell.
"""

from __future__ import annotations

from neurotier.meter.activity import TICK_S

TOLERANCE_S = 2 * TICK_S
"""How much an entry may exceed the time there was for it, since ``/proc`` gives entries in whole ticks."""


class StorageWait:
    """What one thread has waited for storage.

    Parameters
    ----------
    start_ticks
        When the thread started (field 22 of proc(5)), which tells it from a later one of the same number.
    looked_s
        Since when it may have been there, by the monotonic clock, s.

    Attributes
    ----------
    booked_s
        What is believed of the kernel's entries, s.
    doubtful_s
        Time in which entries were not believed, s.
    """

    __slots__ = (
        *("booked_s", "doubtful_s", "start_ticks"),
        *("entries_s", "in_storage", "looked_s", "on_s", "open_doubtful_s", "open_room_s", "open_seen_s"),
    )

    def __init__(self, start_ticks: int, looked_s: float) -> None:
        self.start_ticks, self.looked_s = start_ticks, looked_s
        self.booked_s = self.doubtful_s = 0.0
        self.entries_s = self.on_s = 0.0
        self.in_storage: bool | None = None  # at the last look; not known before the first
        self.open_room_s = self.open_seen_s = self.open_doubtful_s = 0.0

    def look(self, now_s: float, on_s: float, entries_s: float, in_storage: bool) -> None:
        """Take in one look.

        Parameters
        ----------
        now_s
            When, by the monotonic clock, s.
        on_s, entries_s
            What the kernel has booked so far as on a core or waiting for one, and as waiting for storage, s.
        in_storage
            Whether the thread is in uninterruptible sleep.
        """
        entry_s = entries_s - self.entries_s
        room_s = max(0.0, now_s - self.looked_s - (on_s - self.on_s))
        before = in_storage if self.in_storage is None else self.in_storage
        certain = before and in_storage and on_s == self.on_s  # it has not run since: still the same wait
        self.open_room_s += room_s
        self.open_seen_s += room_s * (before + in_storage) / 2
        self.open_doubtful_s += 0.0 if certain else room_s
        if entry_s > self.open_room_s + TOLERANCE_S:
            self.booked_s += self.open_seen_s
            self.doubtful_s += self.open_doubtful_s
            self.close()
        elif entry_s > 0:
            believed_s = min(entry_s, self.open_room_s)
            self.booked_s += believed_s
            left_s = min(room_s, self.open_room_s - believed_s)
            self.close()
            if in_storage:  # in the next wait, which began after the one that is booked
                self.open_room_s = self.open_doubtful_s = left_s
                self.open_seen_s = left_s / 2
        elif not in_storage:
            self.close()  # it waits for nothing, so nothing is still to be booked
        self.looked_s, self.on_s, self.entries_s, self.in_storage = now_s, on_s, entries_s, in_storage

    def close(self) -> None:
        """Begin anew: what is booked from now on is of a wait that has not begun yet."""
        self.open_room_s = self.open_seen_s = self.open_doubtful_s = 0.0

    @property
    def total_s(self) -> float:
        """All of it, with the wait that was going on at the last look, s."""
        return self.booked_s + self.open_seen_s

    @property
    def all_doubtful_s(self) -> float:
        """Time in which the wait is not known, with that of the wait that was going on at the last look, s."""
        return self.doubtful_s + self.open_doubtful_s
