"""Block files: where the voxels of an uncompressed NIfTI-1 file lie, read without NiBabel, and files that appear whole.

Each block is incremented by a process of its own. Importing NiBabel takes such a process longer than NumPy does, and
the header of a block is 352 bytes with a fixed place for everything. A test compares this reader with NiBabel.
"""

from __future__ import annotations

import math
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

import numpy as np

from neurotier.bigbrain.tasks import size_of
from neurotier.core.errors import TierError
from neurotier.core.files import FULL, partial_of

HEADER_BYTES = 352
"""Header with the four bytes that say whether extensions follow."""

FILLED_BYTES = 348
MAGIC = b"n+1\0"
ORDERS: tuple[Literal["<", ">"], ...] = ("<", ">")
DATA_TYPES = {
    2: "uint8",
    4: "int16",
    8: "int32",
    16: "float32",
    32: "complex64",
    64: "float64",
    256: "int8",
    512: "uint16",
    768: "uint32",
    1024: "int64",
    1280: "uint64",
}


@dataclass(frozen=True)
class Layout:
    """Shape and type of the voxels, and where in the file they begin."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    offset_bytes: int

    @property
    def file_bytes(self) -> int:
        """Size of a whole file, bytes."""
        return self.offset_bytes + math.prod(self.shape) * self.dtype.itemsize


def bytes_of(voxels: np.ndarray) -> memoryview:
    """The memory of contiguous voxels, to be read or written."""
    return voxels.view("u1").data


def read_layout(header: bytes) -> Layout:
    """The layout given by a header.

    Raises
    ------
    ValueError
        If it is not the header of a single-file NIfTI-1, or scales the voxels' values; with the reason.
    """
    if len(header) < HEADER_BYTES:
        raise ValueError(f"has no NIfTI header: expected {HEADER_BYTES} bytes, found {len(header)}")
    order = next((order for order in ORDERS if struct.unpack_from(f"{order}i", header)[0] == FILLED_BYTES), None)
    if order is None or header[344:348] != MAGIC:
        raise ValueError("is not an uncompressed, single-file NIfTI-1 image")
    count, *sizes, code, offset, slope, intercept = struct.unpack_from(f"{order}8h14xh36x3f", header, 40)
    if code not in DATA_TYPES:
        raise ValueError(f"has voxels of the NIfTI data type {code}, which is not known here")
    if not 1 <= count <= len(sizes) or min(sizes[:count]) < 1 or not offset >= HEADER_BYTES:
        raise ValueError("has a damaged header")
    if slope != 0 and math.isfinite(slope) and (slope, intercept) != (1, 0):
        raise ValueError("scales its voxels (scl_slope, scl_inter): adding 1 to what is stored is not adding 1")
    return Layout(tuple(sizes[:count]), np.dtype(DATA_TYPES[code]).newbyteorder(order), int(offset))


def require_size(expected_bytes: int, found_bytes: int) -> None:
    """Raise :class:`ValueError` unless a block's file is as long as it must be."""
    if found_bytes != expected_bytes:
        problem = "is truncated" if found_bytes < expected_bytes else "is too long"
        raise ValueError(f"{problem}: expected {expected_bytes} bytes, found {found_bytes}")


@dataclass
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

    final: Path
    size_bytes: int
    tier: str

    def __enter__(self) -> NewBlock:
        self.final.parent.mkdir(parents=True, exist_ok=True)
        self.partial = partial_of(self.final)
        self.file = self.partial.open("wb")
        self.write = self.file.write
        return self

    def finish(self, fsync: bool = False) -> None:
        """Give the file its name; with ``fsync``, not before the device has it."""
        self.file.flush()
        assert self.file.tell() == self.size_bytes, self.partial  # noqa: S101  # a fault of ours
        if fsync:
            os.fsync(self.file.fileno())
        self.file.close()  # network file systems only report here that they are full
        self.partial.rename(self.final)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove what is left of a block that could not be finished, and say so if its tier is full."""
        if kind is None:
            return
        with suppress(OSError):  # closing fails on a full tier
            self.file.close()
        written_bytes = size_of(self.partial)
        self.partial.unlink(missing_ok=True)  # first, so that the number of free bytes is right
        if isinstance(error, OSError) and error.errno in FULL:
            disk = os.statvfs(self.final.parent)
            raise TierError(
                f"tier {self.tier!r} is full: {written_bytes} of {self.size_bytes} bytes could be written, and "
                f"{disk.f_bavail * disk.f_frsize} bytes are free without them",
                f"block {self.final.name} ({self.final})",
                "make room there, or ask for fewer or smaller blocks; nothing partial is kept",
            ) from None
