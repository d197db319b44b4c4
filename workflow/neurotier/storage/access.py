"""Access: by which of fio's engines a tier is measured, found by trying."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.errors import ToolError
from neurotier.core.kinds import KINDS
from neurotier.storage.fio import FioJob, run_fio

MIB = 1 << 20
TRIAL_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Access:
    """A way to files: fio's engine, and whether it passes the page cache."""

    engine: str
    direct: bool

    @property
    def queues(self) -> bool:
        """Whether a stream can have several requests under way at once."""
        return self.engine in ("libaio", "io_uring")


BUFFERED = Access("psync", direct=False)
"""As programs read and write, and ``dd``."""


def find_access(folder: Path, kind: str) -> Access:
    """The best way that the file system and this fio take.

    Raises
    ------
    ToolError
        If not even buffered files can be written; with fio's reason.
    """
    *better, last = (Access(engine, direct) for engine, direct in KINDS[kind].fio_engines)
    for way in better:
        try:
            attempt(way, folder)
        except ToolError:
            continue
        return way
    attempt(last, folder)
    return last


def attempt(way: Access, folder: Path) -> None:
    """Write and read a MiB."""
    try:
        for pattern in ("write", "read"):
            job = FioJob("trial", pattern, MIB, MIB, engine=way.engine, direct=way.direct, files="trial")
            run_fio(job, folder, TRIAL_TIMEOUT_S)
    finally:
        for file in folder.glob("trial.*"):
            file.unlink()


def takes_direct(folder: Path, block_bytes: int) -> bool:
    """Whether a file in ``folder`` can be read past the page cache in blocks of this size.

    Told by one read: not every file system that opens files so reads them so, and how small a block may be depends on
    the device. It starts one block into the file, where a block that is no whole sector cannot begin.
    """
    file = folder / "direct"
    file.write_bytes(bytes(2 * block_bytes))
    try:
        handle = os.open(file, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, block_bytes) as buffer:  # aligned to a page, as fio's are
                return os.preadv(handle, [buffer], block_bytes) == block_bytes
        finally:
            os.close(handle)
    except OSError:
        return False
    finally:
        file.unlink()
