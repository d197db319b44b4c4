"""Block files: read the layout of an uncompressed NIfTI-1 file without NiBabel, and write files that appear only whole.

A process may increment a single block, and importing NiBabel takes longer than importing NumPy. The header of a block
is 352 bytes with a fixed place for every field, so reading it needs no library. A test compares this reader with
NiBabel.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from neurotier.bigbrain.tasks import size_of
from neurotier.core.errors import TierError
from neurotier.core.files import FULL, partial_of

HEADER_BYTES = 352
"""Size of the header, including the four bytes that say whether extensions follow."""

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
    """The shape and type of the voxels, and where they begin in the file."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    offset_bytes: int

    @property
    def file_bytes(self) -> int:
        """Size of a whole file, bytes."""
        return self.offset_bytes + math.prod(self.shape) * self.dtype.itemsize


def shape_text(shape: Iterable[int], between: str = "x") -> str:
    """The number of voxels along each axis in words.

    >>> shape_text((769, 603, 694))
    '769x603x694'
    """
    return between.join(map(str, shape))


def bytes_of(voxels: np.ndarray) -> memoryview:
    """The memory of contiguous voxels, for reading or writing."""
    return voxels.view("u1").data


def read_layout(header: bytes) -> Layout:
    """Read the layout from a header.

    Raises
    ------
    ValueError
        If it is not the header of a single-file NIfTI-1 image, or if it scales the voxels' values; with the reason.
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
    """Raise :class:`ValueError` unless a block's file has the expected size."""
    if found_bytes != expected_bytes:
        raise ValueError(
            f"is {'truncated' if found_bytes < expected_bytes else 'too long'}: expected {expected_bytes} bytes, found"
            f" {found_bytes}"
        )


@contextmanager
def new_block(final: Path, size_bytes: int, tier: str) -> Iterator[BinaryIO]:
    """A new file for a block under a hidden name, which :func:`finish` renames; after an error, it is removed.

    Only one process at a time writes a block, since the caller holds the block's lock. So a file that a killed process
    left under the hidden name is overwritten.

    Parameters
    ----------
    final
        The final path of the file.
    size_bytes
        Its size when it is complete.
    tier
        Name of its tier, for messages.

    Raises
    ------
    TierError
        If the tier is full.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(final)
    file = partial.open("wb")
    try:
        yield file
    except BaseException as error:
        with suppress(OSError):  # closing may fail on a full tier
            file.close()
        written_bytes = size_of(partial)
        partial.unlink(missing_ok=True)  # first, so that the free bytes include those of this file
        if isinstance(error, OSError) and error.errno in FULL:
            disk = os.statvfs(final.parent)
            raise TierError(
                f"tier {tier!r} is full: {written_bytes} of {size_bytes} bytes could be written, and "
                f"{disk.f_bavail * disk.f_frsize} bytes are free without them",
                f"block {final.name} ({final})",
                "make room there, or ask for fewer or smaller blocks; nothing partial is kept",
            ) from None
        raise


def finish(new: BinaryIO, final: Path, size_bytes: int, fsync: bool = False) -> None:
    """Give a block's file its final name; with ``fsync``, only when the device has the data."""
    new.flush()
    assert new.tell() == size_bytes, final  # noqa: S101  # anything else is a bug in this program
    if fsync:
        os.fsync(new.fileno())
    new.close()  # network file systems may report only here that they are full
    partial_of(final).rename(final)
