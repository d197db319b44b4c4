"""Images: what may go into brain extraction, and whether what came out is a brain.

Tools are not believed. FSL's ``bet`` returns 0 and writes nothing for truncated, empty and all-zero images, and
accepts 4D ones in silence; so inputs are checked before and outputs after, by their content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt

from neurotier.analysis.inflating import DamagedError
from neurotier.analysis.memory import memory_for_images
from neurotier.analysis.nifti import Stored, Volume, read_header, shape_text
from neurotier.core.errors import InputError, NeurotierError, TierError, ToolError
from neurotier.core.foreign import open_file

Mask = npt.NDArray[np.bool_]


def load_head(path: Path, name: str, memory_bytes: int | None = None) -> nib.Nifti1Image:
    """Load a T1w image and make sure that it can contain a brain.

    Values are checked in slabs, so that rejecting a file takes no more memory than one slab.

    Parameters
    ----------
    path
        NIfTI file; a link is not followed. Trailing axes of length 1 are dropped.
    name
        What to call the image in an error.
    memory_bytes
        Memory of the job; by default as :func:`memory_for_images` finds it.

    Raises
    ------
    InputError
        If the file is empty, truncated, not NIfTI, or too large for the memory, or if the image is not 3D, constant (as
        all-zero ones are), or not finite.
    """
    with opened(path.parent, path.name, name, InputError, "the image file") as stored:
        shape = list(stored.shape)
        while len(shape) > 3 and shape[-1] == 1:
            shape.pop()
        if len(shape) != 3 or min(shape) < 2:
            raise InputError(f"a T1w image has three dimensions, this one is {shape_text(shape)}", where=name)
        stored.check_memory(memory_for_images() if memory_bytes is None else memory_bytes)
        check_values(stored, name)
        image = stored.image(str(path))
    if image.ndim == 3:
        return image
    return image.__class__(np.asanyarray(image.dataobj).reshape(shape, order="F"), image.affine, image.header)


def check_values(stored: Stored, name: str) -> None:
    """Raise :class:`InputError` if values are not finite, or all the same."""
    broken, low, high = 0, np.inf, -np.inf
    for slab in stored.slabs():
        finite = len(slab) if slab.dtype.kind in "iu" else int(np.isfinite(slab).sum())
        broken += len(slab) - finite
        if not broken:
            low, high = min(low, slab.min()), max(high, slab.max())
    if broken:
        raise InputError(f"{broken} of {stored.voxels} voxels are NaN or infinite", where=name)
    if low == high:
        raise InputError(f"every voxel is {low:g}: there is no head in it", where=name)


@contextmanager
def opened(folder: Path, below: str, name: str, blame: type[NeurotierError], subject: str) -> Iterator[Stored]:
    """Open a NIfTI file below a trusted folder, and turn what is wrong with it into an error that names it.

    Parameters
    ----------
    folder, below
        The folder, and the file's path below it.
    name
        What to call the file in an error.
    blame
        Class of the error.
    subject
        What to call the file at the beginning of a message.

    Raises
    ------
    FileNotFoundError
        If there is nothing of this name.
    NeurotierError
        Of the class ``blame``, if it is damaged or not a file; :class:`TierError` if the tier fails to read it.
    """
    try:
        with open_file(folder, below, name, blame) as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise DamagedError("is empty (0 bytes)")
            yield read_header(file, below)
    except DamagedError as error:
        raise blame(f"{subject} {error.what}", where=name, fix=error.fix if blame is InputError else "") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TierError(f"cannot be read: {error.strerror}", where=name) from None


def check_mask(folder: Path, below: str, head: nib.Nifti1Image, tool: str, name: str) -> Mask:
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

    Raises
    ------
    ToolError
        If the file is missing, damaged or not a file, or the mask is on another grid than the head, not binary, empty
        or full.
    """
    try:
        with opened(folder, below, f"{name}, mask of {tool}", ToolError, "the file") as stored:
            check_same_grid(stored.shape, stored.affine, head, tool, name)
            data = stored.array()
    except FileNotFoundError:
        raise ToolError(f"{tool} wrote no mask, although its exit code is 0", where=name) from None
    return as_mask(data, tool, name)


def check_grid(data: Volume, affine: Volume, head: nib.Nifti1Image, tool: str, name: str) -> Mask:
    """Voxels as booleans, if they form a mask of this head; otherwise :class:`ToolError`."""
    check_same_grid(data.shape, affine, head, tool, name)
    return as_mask(data, tool, name)


def check_same_grid(shape: tuple[int, ...], affine: Volume, head: nib.Nifti1Image, tool: str, name: str) -> None:
    """Raise :class:`ToolError` unless a mask is on the grid of its head."""
    if shape != head.shape or not np.allclose(affine, head.affine, atol=1e-4):
        raise ToolError(f"the mask of {tool} is on another grid than the image ({shape} and {head.shape})", where=name)


def as_mask(data: Volume, tool: str, name: str) -> Mask:
    """Zeros and ones as booleans; :class:`ToolError` if there are other values, or one of the two is missing."""
    if not np.isin(data, (0, 1)).all():
        raise ToolError(f"the mask of {tool} is not binary", where=name)
    mask: Mask = data.astype(bool)
    if not mask.any() or mask.all():
        raise ToolError(f"{tool} found {'no brain' if not mask.any() else 'nothing but brain'}", where=name)
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
