"""Images: what may go into brain extraction, and whether what came out is a brain.

Tools are not believed. FSL's ``bet`` returns 0 and writes nothing for truncated, empty and all-zero images, and
accepts 4D ones in silence; so inputs are checked before and outputs after, by their content.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt

from neurotier.analysis.inflating import opened_content
from neurotier.analysis.memory import memory_for_images
from neurotier.analysis.nifti import Stored, Volume, shape_text
from neurotier.core.errors import InputError, ToolError

Mask = npt.NDArray[np.bool_]


def load_head(path: Path, name: str) -> nib.Nifti1Image:
    """Load a T1w image and make sure that it can contain a brain.

    Values are checked in slabs, so that rejecting a file takes no more memory than one slab.

    Parameters
    ----------
    path
        NIfTI file; a link is not followed. Trailing axes of length 1 are dropped.
    name
        What to call the image in an error.

    Raises
    ------
    InputError
        If the file is empty, truncated, not NIfTI, or too large for the memory, or if the image is not 3D, constant (as
        all-zero ones are), or not finite.
    """
    with opened_content(path.parent, path.name, name, InputError) as content:
        stored = Stored(content)
        shape = list(stored.shape)
        while len(shape) > 3 and shape[-1] == 1:
            shape.pop()
        if len(shape) != 3 or min(shape) < 2:
            raise InputError(f"a T1w image has three dimensions, this one is {shape_text(shape)}", where=name)
        stored.check_memory(memory_for_images())
        check_values(stored, name)
        image = stored.kind.from_filename(path)
    if image.ndim == 3:
        return image
    return image.__class__(np.asanyarray(image.dataobj).reshape(shape, order="F"), image.affine, image.header)


def check_values(stored: Stored, name: str) -> None:
    """Raise :class:`InputError` if values are not finite, or all the same."""
    broken, low, high = 0, np.inf, -np.inf
    for slab in stored.slabs():
        broken += 0 if slab.dtype.kind in "iu" else int(np.count_nonzero(~np.isfinite(slab)))
        low, high = min(low, slab.min()), max(high, slab.max())
    if broken:
        raise InputError(f"{broken} of {stored.voxels} voxels are NaN or infinite", where=name)
    if low == high:
        raise InputError(f"every voxel is {low:g}: there is no head in it", where=name)


def check_mask(folder: Path, below: str, head: nib.Nifti1Image, tool: str, name: str, of_brain: bool = False) -> Mask:
    """The mask that a tool wrote, as booleans, after checking that it is one.

    Parameters
    ----------
    folder
        A trusted folder, below which the tool wrote.
    below
        The mask's path below it; no component may be a link.
    head
        The image that the tool was given.
    tool, name
        What to call the tool and the image in an error.
    of_brain
        Whether the file is the brain alone: its mask is where it is not 0.

    Raises
    ------
    ToolError
        If the file is missing, damaged or not a file, or the mask is on another grid than the head, not binary, empty
        or full.
    """
    try:
        with opened_content(folder, below, f"{name}, mask of {tool}", ToolError) as content:
            stored = Stored(content)
            if stored.shape != head.shape or not np.allclose(stored.affine, head.affine, atol=1e-4):
                grids = f"{stored.shape} and {head.shape}"
                raise ToolError(f"the mask of {tool} is on another grid than the image ({grids})", where=name)
            data = stored.array()
    except FileNotFoundError:
        raise ToolError(f"{tool} wrote no {Path(below).name}, although its exit code is 0", where=name) from None
    return as_mask(data != 0 if of_brain else data, tool, name)


def measure_mask(folder: Path, below: str) -> tuple[int, float]:
    """Voxels of a mask that an app wrote, and the volume of one in mm3.

    Parameters
    ----------
    folder
        A trusted folder, below which the app wrote.
    below
        The mask's path below it; no component may be a link.

    Raises
    ------
    ToolError
        If the file is damaged, not a file, or too large for the memory.
    FileNotFoundError
        If it is not there.
    """
    with opened_content(folder, below, f"mask {below}", ToolError) as content:
        stored = Stored(content)
        stored.check_memory(memory_for_images())
        return int(np.count_nonzero(stored.array() > 0)), float(np.prod(stored.header.get_zooms()[:3]))


def as_mask(data: Volume, tool: str, name: str) -> Mask:
    """Zeros and ones as booleans; :class:`ToolError` if there are other values, or one of the two is missing."""
    if not np.isin(data, (0, 1)).all():
        raise ToolError(f"the mask of {tool} is not binary", where=name)
    mask: Mask = data.astype(bool)
    if not mask.any() or mask.all():
        raise ToolError(f"{tool} found {'nothing but' if mask.any() else 'no'} brain", where=name)
    return mask


def write_mask(mask: Mask, head: nib.Nifti1Image, path: Path) -> tuple[int, float]:
    """Write a mask as uint8 on the head's grid; its voxels, and the volume of one in mm3."""
    save(mask.astype(np.uint8), head, path, np.dtype(np.uint8))
    zooms = head.header.get_zooms()[:3]
    return int(mask.sum()), float(np.prod([float(zoom) for zoom in zooms]))


def write_brain(mask: Mask, head: nib.Nifti1Image, path: Path) -> None:
    """Write the head with everything outside the mask set to 0, with the voxel type of the head.

    An image stored with slope and intercept is written as float32, since its stored numbers may have no exact 0.
    """
    stored = head.dataobj  # has the slope and intercept, which nibabel clears in the header when it loads a file
    if nib.is_proxy(stored) and (stored.slope, stored.inter) == (1, 0):
        raw = np.asanyarray(stored.get_unscaled()).reshape(mask.shape)
        brain, kind = np.where(mask, raw, raw.dtype.type(0)), raw.dtype
    else:
        kind = np.dtype(np.float32)
        brain = np.where(mask, np.asanyarray(stored), 0).astype(kind)
    save(brain, head, path, kind.newbyteorder("="))


def save(data: Volume, head: nib.Nifti1Image, path: Path, kind: np.dtype[Any]) -> None:
    """Write a NIfTI on the head's grid; reproducible, as nibabel writes no time or name into gzip headers."""
    header = head.header.copy()
    header.set_data_dtype(kind)
    header.set_slope_inter(1, 0)
    header["descrip"] = b""
    header["cal_min"] = header["cal_max"] = 0
    header.extensions.clear()  # notes of the scanner may identify the participant
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, head.affine, header), path)
