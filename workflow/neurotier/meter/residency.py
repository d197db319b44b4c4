"""Page-cache residency: how much of some files is in memory, to check that a 'cold' start is cold.

``mincore`` is called on a mapping of each file, since running ``fincore`` would cost more than the meter may. Files on
tmpfs are always in memory; files on a DAX mount are never in the cache. Source: ``mincore(2)``. Since Linux 5.2 it
reports all pages as resident for files that the caller neither owns nor may write to.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

from neurotier.core.libc import LIBC

FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags for opening files, as in :mod:`neurotier.core.foreign`, which is slower to import; a FIFO in place of a file
does not block."""

PROT_READ, MAP_SHARED = 1, 1
MAP_FAILED = ctypes.c_void_p(-1).value
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CHUNK_BYTES = 1 << 30

LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [*(ctypes.c_void_p, ctypes.c_size_t), *(ctypes.c_int,) * 3, ctypes.c_int64]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def resident_share(paths: Iterable[str | os.PathLike[str]]) -> float | None:
    """Share of the files' bytes that is in the page cache, from 0 to 1.

    ``None`` if there are no bytes, or if the kernel does not report one of the files.
    """
    total = resident = 0
    for path in paths:
        file_resident = resident_bytes(path)
        if file_resident is None:
            return None
        resident += file_resident
        total += os.path.getsize(path)
    return min(1.0, resident / total) if total else None


def resident_bytes(path: str | os.PathLike[str]) -> int | None:
    """Bytes of one file in the page cache, in whole pages; ``None`` if unknown, or if it is not a regular file."""
    try:
        file = os.open(path, FILE)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        ours = os.geteuid() in (0, status.st_uid) or os.access(path, os.W_OK)
        if not (stat.S_ISREG(status.st_mode) and ours):
            return None
        resident = 0
        for start in range(0, status.st_size, CHUNK_BYTES):
            length = min(CHUNK_BYTES, status.st_size - start)
            pages = resident_pages(file, start, length)
            if pages is None:
                return None
            resident += min(pages * PAGE_BYTES, length)
        return resident
    finally:
        os.close(file)


def resident_pages(file: int, start: int, length: int) -> int | None:
    """Pages of a part of an open file that are in memory; ``None`` if unknown."""
    address = LIBC.mmap(None, length, PROT_READ, MAP_SHARED, file, start)
    if address == MAP_FAILED:  # a file system without mappings
        return None
    try:
        pages = ctypes.create_string_buffer(-(-length // PAGE_BYTES))
        if LIBC.mincore(address, length, pages) != 0:
            return None
        return pages.raw.count(1)
    finally:
        LIBC.munmap(address, length)
