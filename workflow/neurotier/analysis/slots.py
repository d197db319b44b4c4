"""Slots: which participants of a job compute, and which copy images in or results out meanwhile.

Not all who could copy do so at once: on a file system whose flushes wait for each other they would end at the same
moment, and then nobody would compute. Images do not wait for results, whose tier may be another.

A slot is a byte of a file in memory, and who has it holds its lock. The kernel takes the lock from a process that ends,
however it ends, so that nobody waits for one who is gone. All slots go with the job.
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass

LOOK_S = 0.02
"""How often the one who is next looks for a free slot; others wait for that one, and do not look."""


class Slots:
    """So many slots, for copies of this process; what such a copy starts in its turn has none.

    Parameters
    ----------
    count
        How many may have one at the same time.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.file = os.memfd_create("slots")

    def take(self) -> int:
        """Wait for a slot, and have it until :meth:`give` or the end of this process; its number."""
        queue = self.count  # the byte after the slots: whose turn it is to look
        fcntl.lockf(self.file, fcntl.LOCK_EX, 1, queue)
        try:
            slot = self.first_free()
            while slot is None:
                time.sleep(LOOK_S)
                slot = self.first_free()
        finally:
            self.give(queue)
        return slot

    def first_free(self) -> int | None:
        """A slot that was free, and is no more; ``None`` if others have them all."""
        for slot in range(self.count):
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except BlockingIOError:
                continue
            return slot
        return None

    def give(self, slot: int) -> None:
        """Give a slot back."""
        fcntl.lockf(self.file, fcntl.LOCK_UN, 1, slot)


@dataclass
class Seat:
    """What a participant has of its job's slots: one at a time, the last of them until its process ends.

    Nobody waits for a slot while having another, so that all have their turn.

    Attributes
    ----------
    copying_in, computing, copying_out
        The job's slots for each; ``None`` if nobody need wait.
    waited_s
        How long it has waited for slots, s.
    """

    copying_in: Slots | None = None
    computing: Slots | None = None
    copying_out: Slots | None = None
    waited_s: float = 0.0
    held: tuple[Slots, int] | None = None

    @classmethod
    def of_job(cls, at_once: int, beside: int) -> Seat:
        """That of each participant of a job in which so many compute at once, and so many more are there beside."""
        return cls(Slots(beside), Slots(at_once), Slots(beside)) if beside else cls()

    def change(self, slots: Slots | None) -> None:
        """Give back what it has, and wait for one of these."""
        if self.held is not None:
            before, slot = self.held
            before.give(slot)
            self.held = None
        if slots is not None:
            began_s = time.monotonic()
            self.held = slots, slots.take()
            self.waited_s += time.monotonic() - began_s
