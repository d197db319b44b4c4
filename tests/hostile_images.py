"""Files that call themselves T1w images and are none: too large, endless, damaged, or no files at all."""

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
    name: str = "sub-01_T1w.nii.gz"


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


def compressed(head: bytes, data: bytes = VOXELS) -> Callable[[Path], object]:
    """Makes a compressed image."""
    return partial(write, content=gzip.compress(head + data, 1, mtime=0))


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


def sparse(path: Path, head: bytes, size_bytes: int) -> None:
    """An uncompressed file that takes no room, however large it says that it is."""
    path.write_bytes(head)
    os.truncate(path, size_bytes)


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


FLOAT32 = header(datatype=16, bitpix=32)
HUGE = dims(10_000, 10_000, 10_000)
LARGE = header(dim=dims(400, 400, 400), datatype=16, bitpix=32)
LARGE_BYTES = 4 * 400**3
"""A legal size, and far more than may be in memory."""

WHOLE = gzip.compress(header() + VOXELS, 1, mtime=0)
NIFTI = partial(Hostile, name="sub-01_T1w.nii")

HOSTILE = {
    # what a header declares
    "10^12 voxels": Hostile(compressed(header(dim=HUGE)), "10000 x 10000 x 10000 voxels of int16, which take"),
    "negative size": Hostile(compressed(header(dim=dims(20, -5, 20))), "declares 20 x -5 x 20 voxels"),
    "no size": Hostile(compressed(header(dim=dims(20, 0, 20))), "declares 20 x 0 x 20 voxels"),
    "no dimension": Hostile(compressed(header(dim=[0] * 8)), "declares 0 voxels"),
    "-3 dimensions": Hostile(compressed(header(dim=[-3, 20, 20, 20, 1, 1, 1, 1])), "image file"),
    "8 dimensions": Hostile(compressed(header(dim=[8, 20, 20, 20, 1, 1, 1, 1])), "image file"),
    "7 large dimensions": Hostile(compressed(header(dim=dims(*[32767] * 7))), "this one is 32767 x"),
    "2^186 voxels": Hostile(
        compressed(header(nib.Nifti2Header, dim=dims(*[2**62] * 3))), "voxels of int16, which take"
    ),
    "freesurfer's large vector": Hostile(compressed(header(dim=dims(-1, 1, 1), glmin=2**31 - 1)), "three dimensions"),
    "unknown type": Hostile(compressed(header(datatype=4242)), "data code 4242"),
    "no type": Hostile(compressed(header(datatype=0, bitpix=0)), "data code 0"),
    "complex": Hostile(compressed(header(datatype=32, bitpix=64), VOXELS * 4), "complex64, which are no real numbers"),
    "colours": Hostile(compressed(header(datatype=128, bitpix=24), VOXELS * 2), "no real numbers"),
    "4D": Hostile(compressed(header(dim=dims(20, 20, 20, 2)), VOXELS * 2), "this one is 20 x 20 x 20 x 2"),
    "2D": Hostile(compressed(header(dim=dims(100, 80))), "this one is 100 x 80"),
    "infinite intercept": Hostile(compressed(header(scl_slope=1, scl_inter=np.inf)), "header is wrong"),
    # where things are
    "NaN affine": Hostile(compressed(header(**affine(np.nan))), "affine that is not finite, or is singular"),
    "infinite affine": Hostile(compressed(header(**affine(-np.inf, 1))), "affine that is not finite, or is singular"),
    "singular affine": Hostile(compressed(header(**affine(0, 2))), "affine that is not finite, or is singular"),
    "NaN quaternion": Hostile(compressed(header(sform_code=0, qform_code=1, quatern_b=np.nan)), "image file"),
    "long quaternion": Hostile(compressed(header(sform_code=0, qform_code=1, quatern_b=1e30)), "image file"),
    "NaN voxel size": Hostile(compressed(header(pixdim=[1, np.nan, 4, 4, 0, 0, 0, 0])), "no finite size"),
    "data at 1e38": Hostile(compressed(header(vox_offset=1e38)), "data begin at byte 1e+38"),
    "data at NaN": Hostile(compressed(header(vox_offset=np.nan)), "data begin at byte nan"),
    "data at infinity": Hostile(compressed(header(vox_offset=-np.inf)), "data begin at byte -inf"),
    "data at -352": Hostile(compressed(header(vox_offset=-352)), "data begin at byte -352"),
    "data at 0": NIFTI(partial(write, content=header(vox_offset=0) + VOXELS), "data begin at byte 0"),
    "data at 1 GB": Hostile(partial(bomb, head=header(vox_offset=GB), data_bytes=GB), "data begin at byte 1e+09"),
    "data at 2^62": Hostile(compressed(header(nib.Nifti2Header, vox_offset=2**62)), "data begin at byte 4.6"),
    "extension of 2 GB": Hostile(partial(bomb, head=extension(2**31 - 16), data_bytes=3 * GB), "header is wrong"),
    "extension of -16": Hostile(partial(bomb, head=extension(-16), data_bytes=3 * GB), "header is wrong"),
    "extension of 0": Hostile(partial(bomb, head=extension(0), data_bytes=3 * GB), "header is wrong"),
    "260,000 extensions": Hostile(many_extensions, "every voxel is 0"),
    # more or less than is declared
    "20 GB as declared": Hostile(
        partial(bomb, head=header(dim=dims(2700, 2700, 2700), datatype=2, bitpix=8), data_bytes=2700**3), "which take"
    ),
    "256 MB of zeros": Hostile(partial(bomb, head=LARGE, data_bytes=LARGE_BYTES), "every voxel is 0"),
    "256 MB of zeros, sparse": NIFTI(partial(sparse, head=LARGE, size_bytes=352 + LARGE_BYTES), "every voxel is 0"),
    "256 MB declared, 200 MB there": Hostile(
        partial(bomb, head=LARGE, data_bytes=200 * 10**6), "is truncated or no NIfTI"
    ),
    "20 GB after a small head": Hostile(
        partial(bomb, head=header() + VOXELS, data_bytes=20 * GB), "goes on long after"
    ),
    "300 MB after a head, one stream": Hostile(one_stream, "goes on long after"),
    "300,000 empty members": Hostile(partial(write, content=packed(b"") * 300_000 + WHOLE), "most of them empty"),
    # no image, or damaged
    "empty": Hostile(partial(write, content=b""), "is empty (0 bytes)"),
    "empty content": Hostile(partial(write, content=packed(b"")), "truncated or no NIfTI"),
    "text": NIFTI(partial(write, content=b"no image at all\n" * 200), "truncated or no NIfTI"),
    "not compressed": Hostile(partial(write, content=header() + VOXELS), "truncated or no NIfTI"),
    "half": Hostile(partial(write, content=WHOLE[: len(WHOLE) // 2]), "truncated or no NIfTI"),
    "without its end": Hostile(partial(write, content=WHOLE[:-8]), "truncated or no NIfTI"),
    "half, uncompressed": NIFTI(partial(write, content=header() + VOXELS[:5000]), "truncated or no NIfTI"),
    "header alone": NIFTI(partial(write, content=header()), "truncated or no NIfTI"),
    "half a header": NIFTI(partial(write, content=header()[:200]), "truncated or no NIfTI"),
    "wrong checksum": Hostile(
        partial(write, content=WHOLE[:-8] + bytes(4) + WHOLE[-4:]), "truncated or no NIfTI (gzip: "
    ),
    # no head
    "zeros": Hostile(compressed(header(), bytes(len(VOXELS))), "every voxel is 0: there is no head in it"),
    "constant": Hostile(compressed(header(), b"\x07\x00" * 8000), "every voxel is 7: there is no head in it"),
    "NaN voxels": Hostile(compressed(FLOAT32, with_values(np.nan)), "4 of 8000 voxels are NaN or infinite"),
    "infinite voxels": Hostile(compressed(FLOAT32, with_values(-np.inf, 1)), "1 of 8000 voxels are NaN or infinite"),
    "scaled to infinity": Hostile(
        compressed(header(datatype=64, bitpix=64, scl_slope=1e38), np.full(8000, 1e300).tobytes()),
        "8000 of 8000 voxels are NaN or infinite",
    ),
    # no file
    "link loop": Hostile(link_loop, "is a link that leads in a circle"),
    "link to /dev/zero": Hostile(partial(link, to="/dev/zero"), "is a link that leads out"),
    "link to a file": Hostile(partial(link, to="/etc/hostname"), "is a link that leads out"),
    "FIFO": Hostile(os.mkfifo, "is a FIFO, and only files are read"),
    "socket": Hostile(unix_socket, "is a socket, and only files are read"),
}
