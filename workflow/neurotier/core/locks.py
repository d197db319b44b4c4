"""Locks: files that processes of one user lock. Whoever can open such a file, if only to read it, can hold the lock."""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE = 0o600


def open_lock(lock: Path) -> int:
    """The descriptor of a lock's file, which is made if need be, and which this user alone can open."""
    from neurotier.core.files import clear_lock

    lock.parent.mkdir(parents=True, exist_ok=True)
    clear_lock(lock)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != PRIVATE:  # of an earlier version
        os.fchmod(descriptor, PRIVATE)
    return descriptor
