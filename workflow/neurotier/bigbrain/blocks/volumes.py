"""A NIfTI or MINC volume read piece by piece, as whole numbers that can be incremented."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from neurotier.bigbrain.blocks.nifti import HEADER_BYTES, Layout
from neurotier.core.errors import InputError

PIECE_BYTES = 16 << 20
"""How much of a block is in memory at once, bytes."""

UNSIGNED = ("uint8", "uint16", "uint32")
READ_ERRORS = (OSError, EOFError, ValueError, KeyError)
FIX = "give bigbrain.source a NIfTI or MINC volume, or a folder of blocks (.nii or .nii.gz)"

Part = tuple[slice, ...]


@lru_cache(maxsize=2)  # not more: each holds its file open, and a folder may have a thousand
def open_volume(path: Path) -> Any:
    """A NIfTI or MINC volume: its header and the way to its voxels.

    Raises
    ------
    InputError
        If it is neither.
    """
    import nibabel  # slow to import, and Snakemake asks here for names alone
    from nibabel.filebasedimages import ImageFileError

    try:
        return nibabel.load(path)
    except (ImageFileError, *READ_ERRORS) as error:
        raise InputError(f"cannot be read as a volume ({error})", str(path), FIX) from None


def layout_of_part(image: Any, part: Part) -> Layout:
    """The layout of a part of a volume as a block: uint16, unless the volume's own type is unsigned and unscaled."""
    dtype = np.dtype(image.get_data_dtype())
    kept = dtype.name if dtype.name in UNSIGNED and image.dataobj[:1, :1, :1].dtype == dtype else "uint16"
    return Layout(tuple(one.stop - one.start for one in part), np.dtype(kept).newbyteorder("<"), HEADER_BYTES)


def pieces_of_part(path: Path, part: Part, layout: Layout) -> Iterator[np.ndarray]:
    """The voxels of a part, some planes of the last axis at a time; values that are no whole numbers are rounded.

    Raises
    ------
    InputError
        If they cannot be read, or do not fit.
    """
    planes = planes_of(layout.shape, 8)  # scaled voxels are read as float64
    largest = 2 ** (8 * layout.dtype.itemsize) - 1
    for begin in range(part[2].start, part[2].stop, planes):
        piece = (part[0], part[1], slice(begin, min(begin + planes, part[2].stop)))
        try:
            voxels = np.asarray(open_volume(path).dataobj[piece])
        except READ_ERRORS as error:
            raise InputError(f"cannot be read ({error})", str(path), FIX) from None
        if voxels.dtype.kind == "f":
            voxels = np.rint(voxels)
        if not (voxels.min() >= 0 and voxels.max() <= largest):
            problem = f"has voxels from {voxels.min()} to {voxels.max()}, which {layout.dtype.name} cannot hold"
            raise InputError(problem, str(path), "scale it to 0 ... 65535")
        yield voxels.astype(layout.dtype, order="F")


def header_of(layout: Layout, affine: np.ndarray) -> bytes:
    """The NIfTI header of a block that is made."""
    import nibabel

    header = nibabel.Nifti1Header()
    header.set_data_dtype(layout.dtype.newbyteorder("="))
    header.set_data_shape(layout.shape)
    header.set_zooms(nibabel.affines.voxel_sizes(affine))
    header.set_xyzt_units("mm")
    header.set_sform(affine, code="scanner")
    header.set_slope_inter(1, 0)
    header["vox_offset"] = HEADER_BYTES
    return bytes(header.binaryblock) + bytes(HEADER_BYTES - len(header.binaryblock))


def planes_of(shape: tuple[int, ...], voxel_bytes: int) -> int:
    """How many planes of the last axis make a piece."""
    return max(1, PIECE_BYTES // (shape[0] * shape[1] * voxel_bytes))


def shape_of(shape: tuple[int, ...]) -> str:
    """Sizes, for people."""
    return " x ".join(map(str, shape))
