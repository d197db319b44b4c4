"""Block files that appear whole or not at all, and what is said when a tier is full."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from neurotier.bigbrain.tasks import size_of
from neurotier.core.errors import TierError
from neurotier.core.files import partial_of

FULL = (errno.ENOSPC, errno.EDQUOT)


class NewBlock:
    """A block file under a hidden name, renamed by :meth:`finish`; left before that, it is removed.

    One process at a time writes a block (its caller holds the block's lock), so what an earlier, killed one left
    under the hidden name is overwritten.

    Parameters
    ----------
    final
        The file.
    size_bytes
        How large it becomes.
    tier
        The tier it is on, for messages.
    """

    def __init__(self, final: Path, size_bytes: int, tier: str) -> None:
        self.final, self.size_bytes, self.tier, self.partial = final, size_bytes, tier, partial_of(final)

    def __enter__(self) -> NewBlock:
        self.final.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.partial.open("wb")
        self.write = self.file.write
        return self

    def finish(self, fsync: bool = False) -> None:
        """Give the file its name; with ``fsync``, not before the device has it."""
        self.file.flush()
        assert self.file.tell() == self.size_bytes, self.partial  # noqa: S101  # a fault of ours
        if fsync:
            os.fsync(self.file.fileno())
        self.file.close()  # network file systems say here that they are full
        self.partial.rename(self.final)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove what is left of a block that could not be finished, and say so if its tier is full."""
        if kind is None:
            return
        with suppress(OSError):  # of closing what is full
            self.file.close()
        written_bytes = size_of(self.partial)
        self.partial.unlink(missing_ok=True)  # first, so that the free bytes are true
        if isinstance(error, OSError) and error.errno in FULL:
            disk = os.statvfs(self.final.parent)
            raise TierError(
                f"tier {self.tier!r} is full: {written_bytes} of {self.size_bytes} bytes could be written, and "
                f"{disk.f_bavail * disk.f_frsize} bytes are free without them",
                where=f"block {self.final.name} ({self.final})",
                fix="make room there, or ask for fewer or smaller blocks; nothing partial is kept",
            ) from None
