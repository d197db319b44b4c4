"""Compute slots: which participants of a job compute, while others copy images in or results out.

A slot is a byte of a file in memory, and who computes holds its lock. The kernel takes the lock from a process that
dies, however it dies, so that nobody waits for one who is gone. All slots go with the job.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOOK_S = 0.02
"""How often the one who is next looks for a free slot; others wait for that one, and do not look."""


class ComputeSlots:
    """The slots of a job. Copies of its process hold them; what such a copy starts in its turn holds none.

    Parameters
    ----------
    count
        How many participants may compute at the same time.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.file = os.memfd_create("compute-slots")

    @contextmanager
    def take(self) -> Iterator[float]:
        """Hold a slot, once one is free; how long that took, s. Waiting can be interrupted."""
        began_s = time.monotonic()
        with self.locked(self.count):  # the byte after the slots: whose turn it is to look
            slot = self.first_free()
            while slot is None:
                time.sleep(LOOK_S)
                slot = self.first_free()
        try:
            yield time.monotonic() - began_s
        finally:
            self.unlock(slot)

    def first_free(self) -> int | None:
        """A slot that was free, now held by this process; ``None`` if others hold them all."""
        for slot in range(self.count):
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except BlockingIOError:
                continue
            return slot
        return None

    @contextmanager
    def locked(self, byte: int) -> Iterator[None]:
        """Hold the lock of a byte, once it is free."""
        fcntl.lockf(self.file, fcntl.LOCK_EX, 1, byte)
        try:
            yield
        finally:
            self.unlock(byte)

    def unlock(self, byte: int) -> None:
        """Give the lock of a byte back."""
        fcntl.lockf(self.file, fcntl.LOCK_UN, 1, byte)
