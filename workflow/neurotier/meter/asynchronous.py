"""Asynchronous calls: the bytes that io_uring and AIO move are in no count of read and write calls.

Linux counts those bytes where they reach a device, and nowhere else. A tree that makes such calls is recognised by
what it holds: a ring is an open file, an AIO context is mapped memory. A process is looked at for the first time after
10 ms, then ever less often; one that is gone by then is not recognised.
Source: ``io_uring(7)``, ``io_setup(2)``, ``proc(5)`` (``fs/aio-nr``).
"""

from __future__ import annotations

import os

IO_URING, AIO = "io_uring", "aio"
RING, CONTEXT = "anon_inode:[io_uring]", b"/[aio]"


class AsynchronousCalls:
    """Looks for processes that make asynchronous calls.

    Attributes
    ----------
    found
        ``io_uring`` or ``aio``, as soon as a process was seen with it; else ``None``.
    """

    def __init__(self) -> None:
        self.found: str | None = None
        self.looks: dict[int, int] = {}

    def look(self, pids: list[int]) -> None:
        """Look at the processes that are due: at their 1st, 2nd, 4th, 8th look."""
        if self.found:
            return
        self.looks = {pid: self.looks.get(pid, 0) + 1 for pid in pids}
        due = [pid for pid, count in self.looks.items() if not count & (count - 1)]
        contexts = bool(due) and contexts_exist()
        for pid in due:
            try:
                if has_ring(pid):
                    self.found = IO_URING
                elif contexts and has_context(pid):
                    self.found = AIO
            except OSError:  # it has ended, or is another user's
                continue


def has_ring(pid: int) -> bool:
    """Whether a process has a ring of io_uring open."""
    folder = f"/proc/{pid}/fd"
    for file in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{file}") == RING:
                return True
        except FileNotFoundError:  # closed meanwhile
            continue
    return False


def has_context(pid: int) -> bool:
    """Whether a process has an AIO context."""
    with open(f"/proc/{pid}/maps", "rb") as file:
        return CONTEXT in file.read()


def contexts_exist() -> bool:
    """Whether any process of the machine has an AIO context; to ask that costs less than to look at each."""
    try:
        with open("/proc/sys/fs/aio-nr", "rb") as file:
            return file.read().strip() != b"0"
    except OSError:  # a kernel without AIO
        return False
