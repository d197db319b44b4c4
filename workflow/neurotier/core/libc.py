"""The C library, for system calls that Python does not offer."""

from __future__ import annotations

import ctypes

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
"""Options of ``prctl``."""

SYNC_FILE_RANGE_WRITE = 2
"""Flag of ``sync_file_range``: start writing a part of a file to its device, without waiting."""

MFD_CLOEXEC = 1


def memory_file() -> int:
    """A file in memory, as a descriptor; conda-forge's Python, built for an old C library, has no ``memfd_create``."""
    made: int = LIBC.memfd_create(b"neurotier", MFD_CLOEXEC)
    return made
