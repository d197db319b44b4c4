"""Files that claim to be T1w images and are not: too large, endless, damaged, or not even files."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from support import small_head

AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])
VOXELS = small_head().tobytes("F")
NO_EXTENSIONS, EXTENSIONS = bytes(4), b"\x01\x00\x00\x00"
PIECE_BYTES = 100 << 20
GB = 10**9
COMPRESSED, UNCOMPRESSED = "sub-01_T1w.nii.gz", "sub-01_T1w.nii"


@dataclass(frozen=True)
class Hostile:
    """A file that must be refused.

    Attributes
    ----------
    make
        Puts it at a path.
    reason
        Part of what is said of it.
    name
        Name of the file.
    """

    make: Callable[[Path], object]
    reason: str
    name: str = COMPRESSED


def header(kind: Any = nib.Nifti1Header, **fields: Any) -> bytes:
    """The header of a small head, with some of its fields changed."""
    made = kind()
    made.set_data_shape((20, 20, 20))
    made.set_data_dtype(np.int16)
    made.set_sform(AFFINE, code=1)
    made.set_zooms((4.0, 4.0, 4.0))
    made["vox_offset"] = kind.single_vox_offset
    for name, value in fields.items():
        made[name] = value
    return bytes(made.binaryblock) + NO_EXTENSIONS


def dims(*counts: int) -> list[int]:
    """The ``dim`` field for so many voxels along each axis."""
    return [len(counts), *counts, *[1] * (7 - len(counts))]


def affine(value: float, row: int = 0) -> dict[str, Any]:
    """A row of the affine that is the same value throughout."""
    return {f"srow_{'xyz'[row]}": [value] * 4}


@cache
def zeros() -> bytes:
    """100 MiB of zeros as a gzip file of 100 kB; such files can be strung together."""
    return gzip.compress(bytes(PIECE_BYTES), 9, mtime=0)


def packed(*parts: bytes) -> bytes:
    """A gzip file of a member each."""
    return b"".join(gzip.compress(part, 1, mtime=0) for part in parts)


def declaring(reason: str, kind: Any = nib.Nifti1Header, data: bytes = VOXELS, **fields: Any) -> Hostile:
    """A compressed image with such a header."""
    return holding(gzip.compress(header(kind, **fields) + data, 1, mtime=0), reason)


def holding(content: bytes, reason: str, name: str = COMPRESSED) -> Hostile:
    return Hostile(partial(write, content=content), reason, name)


def bursting(head: bytes, data_bytes: int, reason: str) -> Hostile:
    return Hostile(partial(bomb, head=head, data_bytes=data_bytes), reason)


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def bomb(path: Path, head: bytes, data_bytes: int) -> None:
    """A header, and so many zeros."""
    pieces, rest = divmod(data_bytes, PIECE_BYTES)
    path.write_bytes(packed(head) + zeros() * pieces + packed(bytes(rest)))


def one_stream(path: Path) -> None:
    """A small head whose only gzip member goes on with 300 MB of zeros."""
    with gzip.open(path, "wb", 1) as file:
        file.write(header() + VOXELS)
        for _ in range(3):
            file.write(bytes(PIECE_BYTES))


def sparse(path: Path) -> None:
    """A large uncompressed file that takes no room."""
    path.write_bytes(LARGE)
    os.truncate(path, len(LARGE) + LARGE_BYTES)


def link(path: Path, to: str) -> None:
    path.symlink_to(to)


def link_loop(path: Path) -> None:
    path.with_name("other").symlink_to(path.name)
    path.symlink_to("other")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        descriptor = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{descriptor}/{path.name}")  # a socket's path may have some 100 characters
        os.close(descriptor)


def extension(size: int) -> bytes:
    """A header with one extension that claims a size, and room for 64 bytes of it."""
    return header(vox_offset=352 + 64)[:-4] + EXTENSIONS + np.array([size, 6], "<i4").tobytes() + bytes(56)


def many_extensions(path: Path) -> None:
    """As many extensions as there may be, each without content."""
    room = (2 << 20) - 352
    head = header(vox_offset=352 + room)[:-4] + EXTENSIONS + np.array([8, 6], "<i4").tobytes() * (room // 8)
    path.write_bytes(packed(head, bytes(len(VOXELS))))


def with_values(value: float, count: int = 4) -> bytes:
    """The voxels of a float32 head, some of which have a value."""
    values = small_head().astype(np.float32).ravel(order="F")
    values[100 : 100 + count] = value
    return values.tobytes()


FLOAT32 = {"datatype": 16, "bitpix": 32}
HUGE = dims(10_000, 10_000, 10_000)
LARGE = header(dim=dims(400, 400, 400), **FLOAT32)
LARGE_BYTES = 4 * 400**3
"""A legal size, and far more than may be in memory."""

WHOLE = gzip.compress(header() + VOXELS, 1, mtime=0)

HOSTILE = {
    # what a header declares
    "10^12 voxels": declaring("10000 x 10000 x 10000 voxels of int16, which take", dim=HUGE),
    "negative size": declaring("declares 20 x -5 x 20 voxels", dim=dims(20, -5, 20)),
    "no size": declaring("declares 20 x 0 x 20 voxels", dim=dims(20, 0, 20)),
    "no dimension": declaring("declares 0 voxels", dim=[0] * 8),
    "-3 dimensions": declaring("image file", dim=[-3, 20, 20, 20, 1, 1, 1, 1]),
    "8 dimensions": declaring("image file", dim=[8, 20, 20, 20, 1, 1, 1, 1]),
    "7 large dimensions": declaring("this one is 32767 x", dim=dims(*[32767] * 7)),
    "2^186 voxels": declaring("voxels of int16, which take", nib.Nifti2Header, dim=dims(*[2**62] * 3)),
    "freesurfer's large vector": declaring("three dimensions", dim=dims(-1, 1, 1), glmin=2**31 - 1),
    "unknown type": declaring("data code 4242", datatype=4242),
    "no type": declaring("data code 0", datatype=0, bitpix=0),
    "complex": declaring("complex64, which are not real numbers", data=VOXELS * 4, datatype=32, bitpix=64),
    "colours": declaring("not real numbers", data=VOXELS * 2, datatype=128, bitpix=24),
    "4D": declaring("this one is 20 x 20 x 20 x 2", data=VOXELS * 2, dim=dims(20, 20, 20, 2)),
    "2D": declaring("this one is 100 x 80", dim=dims(100, 80)),
    "infinite intercept": declaring("header is wrong", scl_slope=1, scl_inter=np.inf),
    # where things are
    "NaN affine": declaring("affine that is not finite, or is singular", **affine(np.nan)),
    "infinite affine": declaring("affine that is not finite, or is singular", **affine(-np.inf, 1)),
    "singular affine": declaring("affine that is not finite, or is singular", **affine(0, 2)),
    "NaN quaternion": declaring("image file", sform_code=0, qform_code=1, quatern_b=np.nan),
    "long quaternion": declaring("image file", sform_code=0, qform_code=1, quatern_b=1e30),
    "NaN voxel size": declaring("no finite size", pixdim=[1, np.nan, 4, 4, 0, 0, 0, 0]),
    "data at 1e38": declaring("data begin at byte 1e+38", vox_offset=1e38),
    "data at NaN": declaring("data begin at byte nan", vox_offset=np.nan),
    "data at infinity": declaring("data begin at byte -inf", vox_offset=-np.inf),
    "data at -352": declaring("data begin at byte -352", vox_offset=-352),
    "data at 0": holding(header(vox_offset=0) + VOXELS, "data begin at byte 0", UNCOMPRESSED),
    "data at 1 GB": bursting(header(vox_offset=GB), GB, "data begin at byte 1e+09"),
    "data at 2^62": declaring("data begin at byte 4.6", nib.Nifti2Header, vox_offset=2**62),
    "extension of 2 GB": bursting(extension(2**31 - 16), 3 * GB, "header is wrong"),
    "extension of -16": bursting(extension(-16), 3 * GB, "header is wrong"),
    "extension of 0": bursting(extension(0), 3 * GB, "header is wrong"),
    "260,000 extensions": Hostile(many_extensions, "every voxel is 0"),
    # more or less than is declared
    "20 GB as declared": bursting(header(dim=dims(2700, 2700, 2700), datatype=2, bitpix=8), 2700**3, "which take"),
    "256 MB of zeros": bursting(LARGE, LARGE_BYTES, "every voxel is 0"),
    "256 MB of zeros, sparse": Hostile(sparse, "every voxel is 0", UNCOMPRESSED),
    "256 MB declared, 200 MB there": bursting(LARGE, 200 * 10**6, "is truncated or not NIfTI"),
    "20 GB after a small head": bursting(header() + VOXELS, 20 * GB, "goes on long after"),
    "300 MB after a head, one stream": Hostile(one_stream, "goes on long after"),
    "300,000 empty members": holding(packed(b"") * 300_000 + WHOLE, "most of them empty"),
    # no image, or damaged
    "empty": holding(b"", "is empty (0 bytes)"),
    "empty content": holding(packed(b""), "truncated or not NIfTI"),
    "text": holding(b"no image at all\n" * 200, "truncated or not NIfTI", UNCOMPRESSED),
    "not compressed": holding(header() + VOXELS, "truncated or not NIfTI"),
    "half": holding(WHOLE[: len(WHOLE) // 2], "truncated or not NIfTI"),
    "without its end": holding(WHOLE[:-8], "truncated or not NIfTI"),
    "half, uncompressed": holding(header() + VOXELS[:5000], "truncated or not NIfTI", UNCOMPRESSED),
    "header alone": holding(header(), "truncated or not NIfTI", UNCOMPRESSED),
    "half a header": holding(header()[:200], "truncated or not NIfTI", UNCOMPRESSED),
    "wrong checksum": holding(WHOLE[:-8] + bytes(4) + WHOLE[-4:], "truncated or not NIfTI (gzip: "),
    # no head
    "zeros": declaring("every voxel is 0: there is no head in it", data=bytes(len(VOXELS))),
    "constant": declaring("every voxel is 7: there is no head in it", data=b"\x07\x00" * 8000),
    "NaN voxels": declaring("4 of 8000 voxels are NaN or infinite", data=with_values(np.nan), **FLOAT32),
    "infinite voxels": declaring("1 of 8000 voxels are NaN or infinite", data=with_values(-np.inf, 1), **FLOAT32),
    "scaled to infinity": declaring(
        "8000 of 8000 voxels are NaN or infinite",
        data=np.full(8000, 1e300).tobytes(),
        datatype=64,
        bitpix=64,
        scl_slope=1e38,
    ),
    # no file
    "link loop": Hostile(link_loop, "is a link that leads in a circle"),
    "link to /dev/zero": Hostile(partial(link, to="/dev/zero"), "is a link that leads out"),
    "link to a file": Hostile(partial(link, to="/etc/hostname"), "is a link that leads out"),
    "FIFO": Hostile(os.mkfifo, "is a FIFO, and only files are read"),
    "socket": Hostile(unix_socket, "is a socket, and only files are read"),
}
