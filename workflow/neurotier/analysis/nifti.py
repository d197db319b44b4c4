"""Foreign NIfTI files: the header is checked before the data are read, and no more is read than it declares.

A header can declare anything: 10^12 voxels, an extension of 2 GB, data that begin at byte 1e38. So it is checked
against the size of the file and the available memory first, and data are read in slabs.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt
from nibabel.volumeutils import apply_read_scaling

from neurotier.analysis.inflating import SLAB_BYTES, Content, truncated
from neurotier.core.foreign import ForeignError
from neurotier.core.quantities import size

Volume = npt.NDArray[Any]

HEADER_BYTES = 2 << 20
"""Most bytes before the data: notes of scanners take some kB, and nibabel needs 0.5 s for a hostile MiB."""

ROUNDING = 1e-6
"""Relative error of an affine in float32: voxels flatter than this have no volume."""

SURPLUS_BYTES = 1 << 20
"""Most bytes after the last voxel of a compressed file, as some writers pad."""

FLOAT64_COPIES, FLOAT64_BYTES = 2, 8
"""Copies of an image that a tool holds at least, besides the stored voxels: one to work on, and one for the result.
brainextractor briefly takes three times as much, but this is meant to recognise bombs, not to plan memory."""

MEMORY_SHARE = 0.8
"""Share of the job's memory that an image may take; the rest is for Python, the tool and its libraries. A head of
512 x 512 x 512 float32 voxels takes 2.7 GB, and so is accepted with 4 GB."""

KINDS = (nib.Nifti1Image, nib.Nifti2Image)
"""In the order of the length of their headers."""


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
        Voxels along each axis and in all, as declared, and the type of one.

    Raises
    ------
    ForeignError
        If there is no header, or not one of an image.
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        if content.file_bytes == 0:
            raise ForeignError("is empty (0 bytes)")
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
            self.slope, self.intercept = self.header.get_slope_inter()
            self.affine = np.asarray(self.header.get_best_affine(), np.float64)
        except Exception as error:  # hostile headers make nibabel raise errors of many classes
            raise truncated(f"its header is wrong: {error or type(error).__name__}") from None
        self.voxels = math.prod(self.shape)
        if min(self.shape) < 1:
            raise ForeignError(f"declares {shape_text(self.shape)} voxels")
        if self.dtype.kind not in "iuf":
            raise ForeignError(f"declares voxels of {self.dtype.name}, which are no real numbers")
        edges = np.linalg.svd(self.affine[:3, :3], compute_uv=False) if np.isfinite(self.affine).all() else np.zeros(3)
        if not edges[-1] > ROUNDING * edges[0]:
            raise ForeignError("has an affine that is not finite, or is singular")
        if not np.isfinite(self.header["pixdim"][1:4]).all():
            raise ForeignError("declares voxels of no finite size")

    def check_memory(self, memory_bytes: int) -> None:
        """Raise :class:`ForeignError` if an image as declared cannot be analysed in this much memory."""
        needed = self.voxels * (self.dtype.itemsize + FLOAT64_COPIES * FLOAT64_BYTES)
        if needed > MEMORY_SHARE * memory_bytes:
            raise ForeignError(
                f"declares {shape_text(self.shape)} voxels of {self.dtype.name}, which take {size(needed)} of "
                f"memory to analyse, and this job has {size(memory_bytes)}",
                fix="report it upstream or, if the image really is as large, give the job more memory",
            )

    def slabs(self) -> Iterator[Volume]:
        """Values of the voxels in the order of the file, in slabs, with slope and intercept applied.

        Raises
        ------
        ForeignError
            If there are fewer or many more than declared, or a checksum is wrong.
        """
        left_bytes = self.voxels * self.dtype.itemsize
        while left_bytes:
            content = self.content.read(min(SLAB_BYTES, left_bytes))
            left_bytes -= len(content)
            if not content or len(content) % self.dtype.itemsize:
                raise truncated("its data end early")
            with np.errstate(all="ignore"):  # the caller looks for values that are not finite
                yield apply_read_scaling(
                    np.frombuffer(content, self.dtype),
                    np.float64(1 if self.slope is None else self.slope),
                    np.float64(0 if self.intercept is None else self.intercept),
                )
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
