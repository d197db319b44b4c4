"""Images: what may go into brain extraction, and whether what came out is a brain.

Tools are not believed. FSL's ``bet`` returns 0 and writes nothing for truncated, empty and all-zero images, and
accepts 4D ones in silence; so inputs are checked before and outputs after, by their content.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt

from neurotier.errors import InputError, ToolError

Mask = npt.NDArray[np.bool_]
Volume = npt.NDArray[Any]

BROKEN = (EOFError, OSError, ValueError, zlib.error, gzip.BadGzipFile, nib.filebasedimages.ImageFileError)


@dataclass(frozen=True)
class BrainSize:
    """Size of a brain mask: voxels, and the volume of one voxel in mm3."""

    voxels: int
    voxel_volume_mm3: float

    @property
    def volume_mm3(self) -> float:
        return self.voxels * self.voxel_volume_mm3


def load_head(path: Path, name: str) -> nib.Nifti1Image:
    """Load a T1w image and make sure that a brain can be looked for in it.

    Parameters
    ----------
    path
        NIfTI file. Trailing axes of length 1 are dropped.
    name
        What to call the image in an error.

    Raises
    ------
    InputError
        If the file is empty, truncated or no NIfTI, or the image is not 3D, all zero, constant, or not finite.
    """
    if path.stat().st_size == 0:
        raise InputError("the image file is empty (0 bytes)", where=name, fix="fetch it again or report it upstream")
    try:
        image = nib.load(path)
        data = np.asanyarray(image.dataobj)
    except BROKEN as error:
        raise InputError(
            f"the image file is truncated or no NIfTI ({type(error).__name__})",
            where=name,
            fix="fetch it again or report it upstream",
        ) from None
    while data.ndim > 3 and data.shape[-1] == 1:
        data = data[..., 0]
    if data.ndim != 3 or min(data.shape) < 2:
        shape = " x ".join(map(str, data.shape))
        raise InputError(f"a T1w image has three dimensions, this one is {shape}", where=name)
    if not np.issubdtype(data.dtype, np.number) or np.iscomplexobj(data):
        raise InputError(f"voxels are {data.dtype}, not real numbers", where=name)
    broken = int(data.size - np.isfinite(data).sum())
    if broken:
        raise InputError(f"{broken} of {data.size} voxels are NaN or infinite", where=name)
    if data.min() == data.max():
        raise InputError(f"every voxel is {data.flat[0]:g}: there is no head in it", where=name)
    return image if image.ndim == 3 else image.__class__(data, image.affine, image.header)


def check_mask(path: Path, head: nib.Nifti1Image, tool: str, name: str) -> Mask:
    """The mask that a tool wrote, as booleans, once it has proved to be one.

    Raises
    ------
    ToolError
        If the file is missing or broken, on another grid than the head, not binary, empty or full.
    """
    if not path.exists() or path.stat().st_size == 0:
        raise ToolError(f"{tool} wrote no mask (its exit code is not believed)", where=name)
    try:
        image = nib.load(path)
        data = np.asanyarray(image.dataobj)
    except BROKEN as error:
        raise ToolError(f"{tool} wrote a broken mask ({type(error).__name__})", where=name) from None
    return check_grid(data, image.affine, head, tool, name)


def check_grid(data: Volume, affine: Volume, head: nib.Nifti1Image, tool: str, name: str) -> Mask:
    """A mask's voxels as booleans, if they are a mask of this head; otherwise :class:`ToolError`."""
    if data.shape != head.shape or not np.allclose(affine, head.affine, atol=1e-4):
        raise ToolError(
            f"the mask of {tool} is on another grid than the image ({data.shape} and {head.shape})", where=name
        )
    if not np.isin(data, (0, 1)).all():
        raise ToolError(f"the mask of {tool} is not binary", where=name)
    mask: Mask = data.astype(bool)
    if not mask.any() or mask.all():
        raise ToolError(f"{tool} found {'no brain' if not mask.any() else 'nothing but brain'}", where=name)
    return mask


def write_mask(mask: Mask, head: nib.Nifti1Image, path: Path) -> BrainSize:
    """Write a mask as uint8 on the head's grid, and return its size."""
    save(mask.astype(np.uint8), head, path, np.dtype(np.uint8))
    zooms = head.header.get_zooms()[:3]
    return BrainSize(int(mask.sum()), float(np.prod([float(zoom) for zoom in zooms])))


def write_brain(mask: Mask, head: nib.Nifti1Image, path: Path) -> None:
    """Write the head with everything outside the mask set to 0, with the head's voxel type where it can hold it.

    An image stored with slope and intercept is written as float32: its stored numbers may have no exact 0.
    """
    stored = head.dataobj  # its own slope and intercept count: the header's are blank once a file is loaded
    if nib.is_proxy(stored) and (stored.slope, stored.inter) == (1, 0):
        raw = np.asanyarray(stored.get_unscaled()).reshape(mask.shape)
        brain, kind = np.where(mask, raw, raw.dtype.type(0)), raw.dtype
    else:
        kind = np.dtype(np.float32)
        brain = np.where(mask, np.asanyarray(stored), 0).astype(kind)
    save(brain, head, path, kind.newbyteorder("="))


def save(data: Volume, head: nib.Nifti1Image, path: Path, kind: np.dtype[Any]) -> None:
    """Write a NIfTI on the head's grid. nibabel writes gzip headers without time or name, so bytes repeat."""
    header = head.header.copy()
    header.set_data_dtype(kind)
    header.set_slope_inter(1, 0)
    header["descrip"] = b""
    header["cal_min"] = header["cal_max"] = 0
    header.extensions.clear()  # scanner notes can name the participant; they belong to the source image
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, head.affine, header), path)
