"""What brainextractor is given: cubes for voxels, and background beyond the image."""

from __future__ import annotations

import nibabel as nib
import numpy as np
import pytest
from neurotier.analysis.brainextractor_program import brain_mask


def brain(voxel_mm: tuple[float, ...], top_mm: float = 100.0) -> nib.Nifti1Image:
    """A ball of 70 mm as the brain, in fluid and skin, on 200 x 200 mm; above the centre it ends at ``top_mm``."""
    ends_mm = (100.0, 100.0, top_mm)
    lines = [np.arange(-100.0, end, edge) for end, edge in zip(ends_mm, voxel_mm, strict=True)]
    from_centre = np.sqrt(sum(axis**2 for axis in np.meshgrid(*lines, indexing="ij")))
    data = np.select([from_centre < 70, from_centre < 78, from_centre < 88], [100.0, 25.0, 80.0], 1.0)
    return nib.Nifti1Image(np.asfortranarray(data), np.diag([*voxel_mm, 1.0]))


@pytest.mark.parametrize("pixdim", ["true", "out of date"])
@pytest.mark.parametrize("voxel_mm", [(3.0, 3.0, 3.0), (2.0, 2.0, 10.0), (8.0, 2.0, 2.0)])
def test_brain_is_found_in_voxels_of_any_shape(voxel_mm: tuple[float, ...], pixdim: str) -> None:
    head = brain(voxel_mm)
    if pixdim != "true":
        head.header["pixdim"][1:4] = 1, 1, 4
    mask, true = brain_mask(head, 0.5, 300) > 0, head.get_fdata() == 100
    dice = 2 * (mask & true).sum() / (mask.sum() + true.sum())
    assert dice > 0.88


def test_memory_behind_the_image_is_not_read() -> None:
    cut = brain((4.0, 4.0, 4.0), top_mm=40.0)
    masks = []
    for behind in (1.0, 100.0):
        whole = np.full((*cut.shape[:2], 2 * cut.shape[2]), behind, order="F")
        part = whole[..., : cut.shape[2]]  # where an image ends, memory goes on
        part[:] = cut.get_fdata()
        masks.append(brain_mask(nib.Nifti1Image(part, cut.affine), 0.5, 100))
    assert (masks[0] == masks[1]).all()
