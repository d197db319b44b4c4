"""Images: whether an input is fit for brain extraction, and whether the output is a brain mask.

Tools are not trusted. FSL's ``bet`` returns 0 and writes nothing for truncated, empty and all-zero images, and accepts
4D ones in silence; so the content of inputs is checked before, and that of outputs after.

Files are not trusted, either. A header can declare anything: 10^12 voxels, an extension of 2 GB, data that begin at
byte 1e38. So it is first checked against limits and the available memory; data are then read in slabs, no more than
declared.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt
from nibabel.volumeutils import apply_read_scaling

from neurotier.analysis.inflating import SLAB_BYTES, Content, memory_for_images, opened_content, truncated
from neurotier.core.errors import InputError, ToolError
from neurotier.core.foreign import ForeignError
from neurotier.core.quantities import size

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
            raise InputError(f"a T1w image has three dimensions, this one is {shape_text(shape)}", name)
        stored.check_memory()
        broken, low, high = 0, np.inf, -np.inf
        for slab in stored.slabs():
            broken += int(np.count_nonzero(~np.isfinite(slab)))
            low, high = min(low, slab.min()), max(high, slab.max())
        if broken:
            raise InputError(f"{broken} of {stored.voxels} voxels are NaN or infinite", name)
        if low == high:
            raise InputError(f"every voxel is {low:g}: there is no head in it", name)
        image = stored.kind.from_filename(path)
    return nib.squeeze_image(image)


def check_mask(folder: Path, below: str, head: nib.Nifti1Image, tool: str, name: str, of_brain: bool) -> Mask:
    """The mask that a tool wrote, as booleans, after checking that it is a mask.

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
        Whether the file is the extracted brain: the mask is where it is not 0.

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
                grids = f"{stored.shape} and {head.shape}" if stored.shape != head.shape else "another affine"
                raise ToolError(f"the mask of {tool} is on another grid than the image ({grids})", name)
            data = stored.array()
    except FileNotFoundError:
        raise ToolError(f"{tool} wrote no {Path(below).name}, although its exit code is 0", name) from None
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
        stored.check_memory()
        return int(np.count_nonzero(stored.array() > 0)), voxel_mm3(stored.header)


def as_mask(data: Volume, tool: str, name: str) -> Mask:
    """Zeros and ones as booleans; :class:`ToolError` if there are other values, or only one of the two."""
    if not np.isin(data, (0, 1)).all():
        raise ToolError(f"the mask of {tool} is not binary", name)
    mask: Mask = data.astype(bool)
    if not mask.any() or mask.all():
        raise ToolError(f"{tool} found {'nothing but' if mask.any() else 'no'} brain", name)
    return mask


def voxel_mm3(header: Any) -> float:
    """The volume of a voxel, mm3: from ``pixdim`` if there is a qform, which needs it to place voxels in the scanner.

    Otherwise from the affine, as ``pixdim`` may then be 0 or out of date. If there is a qform, the affine may lead into
    a standard space, where brains have another size.
    """
    edges = np.diag(header["pixdim"][1:4]) if header["qform_code"] > 0 else header.get_best_affine()[:3, :3]
    return float(f"{abs(np.linalg.det(edges)):.6g}")


def write_mask(mask: Mask, head: nib.Nifti1Image, path: Path) -> tuple[int, float]:
    """Write a mask as uint8 on the head's grid; returns its voxels, and the volume of one in mm3."""
    save(mask.astype(np.uint8), head, path, np.dtype(np.uint8))
    return int(mask.sum()), voxel_mm3(head.header)


def write_brain(mask: Mask, head: nib.Nifti1Image, path: Path) -> None:
    """Write the head with everything outside the mask set to 0, with the voxel type of the head.

    An image stored with slope and intercept is written as float32, since its stored numbers may have no exact 0.
    """
    values = np.asanyarray(head.dataobj)
    kind = values.dtype if values.dtype == head.get_data_dtype() else np.dtype(np.float32)
    save(np.where(mask, values, 0).astype(kind), head, path, kind.newbyteorder("="))


def save(data: Volume, head: nib.Nifti1Image, path: Path, kind: np.dtype[Any]) -> None:
    """Write a NIfTI on the head's grid; reproducible, since nibabel writes neither time nor name into gzip headers."""
    image = nib.Nifti1Image(data, head.affine, head.header)  # with a copy of the header
    header = image.header
    header.set_data_dtype(kind)
    header.set_slope_inter(1, 0)
    for name in ("data_type", "db_name", "descrip", "aux_file", "intent_name"):
        header[name] = b""
    header["cal_min"] = header["cal_max"] = 0
    header.extensions.clear()  # notes of the scanner may identify the participant, as may the texts above
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(image, path)


# Files.

Volume = npt.NDArray[Any]

HEADER_BYTES = 2 << 20
"""Most bytes before the data: scanners' notes take some kB, and nibabel needs 0.5 s for a hostile MiB."""

ROUNDING = 1e-6
"""Relative error of an affine in float32: voxels flatter than this have no volume."""

SURPLUS_BYTES = 1 << 20
"""Most bytes after the last voxel of a compressed file, as some writers pad."""

FLOAT64_COPIES, FLOAT64_BYTES = 2, 8
"""Copies of an image that a tool holds at least, besides the stored voxels: one to work on, and one for the result.
brainextractor briefly takes three times as much, but this is meant to recognise bombs, not to plan memory."""

MEMORY_SHARE = 0.8
"""Share of the job's memory that an image may take; the rest is for Python, the tool and its libraries. A head of 512 x
512 x 512 float32 voxels takes 2.7 GB, so it is accepted with 4 GB."""

KINDS = (nib.Nifti1Image, nib.Nifti2Image)
"""Image classes in order of the length of their headers, shortest first."""


class Stored:
    """An open NIfTI file whose header has been read and checked; the data can then be read once.

    Parameters
    ----------
    content
        The file's content, at its beginning.

    Attributes
    ----------
    kind
        Class of the image.
    header
        Its header, with nibabel's corrections.
    affine
        From voxels to mm; finite and invertible.
    shape, voxels, dtype
        Declared voxels along each axis and in total, and their type.

    Raises
    ------
    ForeignError
        If there is no header, or it is not that of an image.
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        start = b""
        for self.kind in KINDS:
            maker = self.kind.header_class
            start += content.read(maker.template_dtype.itemsize - len(start))
            if maker.may_contain_header(start):
                break
        else:
            raise truncated("it has no header")
        offset = float(maker(start, check=False)["vox_offset"])
        if not maker.single_vox_offset <= offset <= HEADER_BYTES:  # false for NaN, too
            raise ForeignError(f"declares that its data begin at byte {offset:g}")
        start += content.read(int(offset) - len(start))
        try:
            with warnings.catch_warnings(action="ignore"):  # nibabel warns of each extension of an odd size
                self.header = maker.from_fileobj(io.BytesIO(start))  # so that extensions cannot make it read further
            self.shape = tuple(map(int, self.header.get_data_shape()))
            self.dtype: np.dtype[Any] = self.header.get_data_dtype()
            self.scaling = self.header.get_slope_inter()
            self.affine = np.asarray(self.header.get_best_affine(), np.float64)
        except Exception as error:  # hostile headers make nibabel raise errors of many classes
            raise truncated(f"its header is wrong: {error or type(error).__name__}") from None
        self.voxels = math.prod(self.shape)
        if min(self.shape) < 1:
            raise ForeignError(f"declares {shape_text(self.shape)} voxels")
        if self.dtype.kind not in "iuf":
            raise ForeignError(f"declares voxels of {self.dtype.name}, which are not real numbers")
        edges = np.linalg.svd(self.affine[:3, :3], compute_uv=False) if np.isfinite(self.affine).all() else np.zeros(3)
        if not edges[-1] > ROUNDING * edges[0]:
            raise ForeignError("has an affine that is not finite, or is singular")
        if not np.isfinite(self.header["pixdim"][1:4]).all():
            raise ForeignError("declares voxels of no finite size")

    def check_memory(self) -> None:
        """Raise :class:`ForeignError` if an image as declared cannot be analysed in the memory of this job."""
        memory_bytes = memory_for_images()
        needed = self.voxels * (self.dtype.itemsize + FLOAT64_COPIES * FLOAT64_BYTES)
        if needed > MEMORY_SHARE * memory_bytes:
            raise ForeignError(
                f"declares {shape_text(self.shape)} voxels of {self.dtype.name}, which take {size(needed)} of "
                f"memory to analyse, and this job has {size(memory_bytes)}",
                fix="report it upstream or, if the image really is as large, give the job more memory",
            )

    def slabs(self) -> Iterator[Volume]:
        """The voxels' values in the order of the file, in slabs, with slope and intercept applied.

        Raises
        ------
        ForeignError
            If there are fewer, or far more, than declared, or a checksum is wrong.
        """
        left_bytes = self.voxels * self.dtype.itemsize
        while left_bytes:
            content = self.content.read(min(SLAB_BYTES, left_bytes))
            left_bytes -= len(content)
            if not content or len(content) % self.dtype.itemsize:
                raise truncated("its data end early")
            with np.errstate(all="ignore"):  # the caller looks for values that are not finite
                yield apply_read_scaling(np.frombuffer(content, self.dtype), *self.scaling)
        if self.content.is_compressed and len(self.content.read(SURPLUS_BYTES + 1)) > SURPLUS_BYTES:
            raise ForeignError("goes on long after the last voxel that its header declares")

    def array(self) -> Volume:
        """All values, in the declared shape; errors as :meth:`slabs`."""
        return np.concatenate(list(self.slabs())).reshape(self.shape, order="F")


def shape_text(shape: Sequence[int]) -> str:
    """Voxels along each axis, for people.

    >>> shape_text((20, 20, 2))
    '20 x 20 x 2'
    """
    return " x ".join(map(str, shape))
