"""Ordinary heads: T1w images that are accepted by their bytes, without NumPy and NiBabel.

Importing NiBabel takes 0.25 s of CPU (0.13 s of that is NumPy), twice what all the rest of a participant job takes, and
a tool that makes no masks needs neither: hence a header reader of our own. It knows one answer, yes. Whatever is
unusual in a file, wrong or not, is left to :mod:`neurotier.analysis.nifti`, which reads by NiBabel and alone says what
is wrong; a test holds that it accepts, with the same figures, whatever is accepted here.
Source: ``nifti1.h`` of the NIfTI-1 standard.
"""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from neurotier.analysis.inflating import EXPANSION, DamagedError, Inflated
from neurotier.analysis.memory import LEAST_BYTES
from neurotier.core.errors import InputError
from neurotier.core.foreign import open_file

SLAB_BYTES = 256 << 10
"""Stored data in memory at once; larger buffers are slower, as the C library gets each from the kernel anew."""

SURPLUS_BYTES = 1 << 20
"""Most bytes after the last voxel of a compressed file, as some writers pad."""

FLOAT64_COPIES, FLOAT64_BYTES = 2, 8
"""Copies of an image that a tool holds at least, besides the stored voxels: one to work on, and one for the result.
brainextractor briefly takes three times as much, but this is meant to recognise bombs, not to plan memory."""

MEMORY_SHARE = 0.8
"""Share of the job's memory that an image may take; the rest is for Python, the tool and its libraries. A head of
512 x 512 x 512 float32 voxels takes 2.7 GB, and so is accepted with 4 GB."""

HEADER = "i36x8h14xhh2x8f3f132xhh6f12f16x4s"
"""``struct nifti_1_header``: what is skipped has no influence on the image."""

HEADER_BYTES, DATA_OFFSET = 348, 352
MAGIC = b"n+1\0"

TYPES = {2: "B", 4: "h", 8: "i", 16: "f", 64: "d", 256: "b", 512: "H", 768: "I", 1024: "q", 1280: "Q"}
"""NIfTI's codes of the types of voxels that every machine has, and what they are to :mod:`struct`."""

KNOWN_SPACES = range(5)
"""Codes of coordinate systems in the standard; NiBabel sets others to 0."""

ROUNDNESS = 1e-5
"""Least volume of a voxel as a share of that of the cube over its diagonal. The shortest edge of a voxel is at least
this share of its longest, which is ten times what ``nifti.ROUNDING`` asks for."""

ALIKE_BYTES = 4 << 20
"""Data that may all be the same voxel; those of a head differ after a few slices of air."""


class Header(NamedTuple):
    """What an ordinary header declares.

    Attributes
    ----------
    shape
        Voxels along each axis, axes of length 1 at the end included.
    order, code
        Byte order and type of a voxel, as :mod:`struct` calls them.
    affine
        Edges of a voxel along the three axes, mm: rows of the upper left of the matrix from voxels to mm.
    """

    shape: tuple[int, ...]
    order: str
    code: str
    affine: tuple[tuple[float, ...], ...]

    @property
    def voxels(self) -> int:
        return math.prod(self.shape)

    @property
    def voxel_bytes(self) -> int:
        return struct.calcsize(f"{self.order}{self.code}")


def needed_bytes(voxels: int, voxel_bytes: int) -> int:
    """Memory that it takes to analyse an image, bytes."""
    return voxels * (voxel_bytes + FLOAT64_COPIES * FLOAT64_BYTES)


def is_ordinary(path: Path, memory_bytes: int = LEAST_BYTES) -> bool:
    """Whether a file is a T1w image that can contain a brain, and there is nothing unusual in it.

    Parameters
    ----------
    path
        NIfTI file; a link is not followed.
    memory_bytes
        Memory of the job.
    """
    try:
        with open_file(path.parent, path.name, path.name) as file:
            source: Inflated | BinaryIO = Inflated(file) if path.name.lower().endswith(".gz") else file
            header = read_header(source.read(DATA_OFFSET))
            if header is None or needed_bytes(header.voxels, header.voxel_bytes) > MEMORY_SHARE * memory_bytes:
                return False
            most_bytes = os.fstat(file.fileno()).st_size * (EXPANSION if isinstance(source, Inflated) else 1)
            return DATA_OFFSET + header.voxels * header.voxel_bytes <= most_bytes and has_head(header, source)
    except (DamagedError, InputError, OSError):
        return False


def read_header(start: bytes) -> Header | None:
    """The header of an ordinary image of three dimensions with unscaled voxels; ``None`` if anything is unusual.

    Parameters
    ----------
    start
        The first :data:`DATA_OFFSET` bytes of the file: no extensions, and then the voxels.
    """
    order = "<" if start[:4] == HEADER_BYTES.to_bytes(4, "little") else ">"
    if len(start) < DATA_OFFSET or start[HEADER_BYTES] != 0:
        return None
    size, *values = struct.unpack_from(order + HEADER, start)
    dims, (datatype, bits), pixdim = values[:8], values[8:10], values[10:18]
    (offset, slope, inter), (qform, sform), turned, srow = values[18:21], values[21:23], values[23:29], values[29:41]
    shape, code, zooms = tuple(dims[1 : dims[0] + 1]), TYPES.get(datatype), pixdim[1:4]
    scaled = math.isfinite(slope) and slope != 0 and (slope, inter) != (1, 0)
    if (
        (size, values[-1], offset) != (HEADER_BYTES, MAGIC, DATA_OFFSET)
        or not 3 <= dims[0] <= 7
        or min(shape[:3]) < 2
        or any(count != 1 for count in shape[3:])
        or code is None
        or bits != 8 * struct.calcsize(f"{order}{code}")
        or scaled
        or not {qform, sform} <= {*KNOWN_SPACES}
        or not all(0 < zoom < math.inf for zoom in zooms)
    ):
        return None
    affine = affine_of(qform, sform, pixdim, turned, srow)
    return None if affine is None or is_flat(affine) else Header(shape, order, code, affine)


def affine_of(
    qform: int, sform: int, pixdim: list[float], turned: list[float], srow: list[float]
) -> tuple[tuple[float, ...], ...] | None:
    """The matrix that the header says comes first: ``sform``, ``qform``, or voxel sizes; ``None`` if it is unusual."""
    zooms = pixdim[1:4]
    if sform:
        return (tuple(srow[0:3]), tuple(srow[4:7]), tuple(srow[8:11])) if all(map(math.isfinite, srow)) else None
    if not qform:  # the first axis points to the left
        return (-zooms[0], 0.0, 0.0), (0.0, zooms[1], 0.0), (0.0, 0.0, zooms[2])
    b, c, d = turned[:3]
    rest = 1.0 - (b * b + c * c + d * d)
    if not all(map(math.isfinite, turned)) or rest < 0:
        return None
    a = math.sqrt(rest)
    zooms[2] *= -1.0 if pixdim[0] == -1 else 1.0
    rotation = (
        (a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)),
        (2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)),
        (2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c),
    )
    return tuple(tuple(cosine * zoom for cosine, zoom in zip(row, zooms, strict=True)) for row in rotation)


def is_flat(affine: tuple[tuple[float, ...], ...]) -> bool:
    """Whether a voxel has next to no volume, compared with its edges.

    >>> is_flat(((1, 0, 0), (0, 1, 0), (0, 0, 5))), is_flat(((1, 0, 0), (0, 1, 0), (1, 1, 0)))
    (False, True)
    """
    (a, b, c), (d, e, f), (g, h, i) = affine
    longest = max(map(abs, (a, b, c, d, e, f, g, h, i)))
    if not longest > 0:
        return True
    a, b, c, d, e, f, g, h, i = (edge / longest for edge in (a, b, c, d, e, f, g, h, i))  # or products overflow
    volume = abs(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))
    diagonal = math.sqrt(a * a + b * b + c * c + d * d + e * e + f * f + g * g + h * h + i * i)
    return not volume > ROUNDNESS * diagonal**3


def has_head(header: Header, source: Inflated | BinaryIO) -> bool:
    """Whether all voxels that a header declares are there and finite, some differ, and little comes after them.

    Parameters
    ----------
    header
        The header.
    source
        Source of the data, positioned at the first voxel.
    """
    size, left, first = header.voxel_bytes, header.voxels * header.voxel_bytes, b""
    differ = False
    while left:
        slab = source.read(min(left, SLAB_BYTES))
        if not slab or len(slab) % size:
            return False
        left -= len(slab)
        if header.code in "fd" and may_be_infinite(slab, header):
            return False
        first = first or slab[:size]
        if not differ and slab != first * (len(slab) // size):
            differ = header.code not in "fd" or differing(slab + first, header)
            if not differ:  # zeros of both signs
                return False
        if not differ and header.voxels * size - left > ALIKE_BYTES:
            return False
    return differ and (not isinstance(source, Inflated) or len(source.read(SURPLUS_BYTES + 1)) <= SURPLUS_BYTES)


def may_be_infinite(slab: bytes, header: Header) -> bool:
    """Whether a floating-point voxel may be no finite number, by the first eight bits of its exponent and sign."""
    high = slab[header.voxel_bytes - 1 if header.order == "<" else 0 :: header.voxel_bytes]
    return b"\x7f" in high or b"\xff" in high


def differing(slab: bytes, header: Header) -> bool:
    """Whether some voxels have other values than the rest."""
    return len(set(struct.unpack(f"{header.order}{len(slab) // header.voxel_bytes}{header.code}", slab))) > 1
