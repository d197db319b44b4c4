"""The simulated head: skull, scalp, face and neck painted around nilearn's packaged brain template.

The template (MNI ICBM152 2009a, T1-weighted) is a real, averaged brain that comes without skull. Everything else
here is drawn from the ellipsoids of ``demonstration.yaml``, in MNI millimetres (x right, y front, z up) and in
intensities relative to white matter. It is meant to look like a head to brain extraction, not to anatomists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.processing import resample_from_to
from numpy.typing import NDArray
from scipy import ndimage

from neurotier.core.configuration import read_yaml

DATA = read_yaml(Path(__file__).with_name("demonstration.yaml").read_text())
"""Participants, texts, and the parts of the head."""

Field = NDArray[np.float32]
Mask = NDArray[np.bool_]

VOXEL_MM = 1.5
LOWER_MM, UPPER_MM = np.array([-96.0, -129.0, -117.0]), np.array([96.0, 117.0, 102.0])
"""Field of view: the whole scalp, the face and a piece of neck."""

FLUID, BONE, MARROW, MUSCLE, FAT, SKIN, AIR = 0.22, 0.06, 0.3, 0.4, 1.15, 0.6, 0.0
"""T1-weighted contrast: fat brightest, then white matter (1), skin, muscle, marrow, fluid; bone and air dark."""

SUBARACHNOID_MM, SKULL_MM, SCALP_MM = 1.5, 7.0, 6.0
"""Thickness of the layers around the brain's hull."""

Ellipsoid = tuple[Sequence[float], Sequence[float]]
"""Centre and radii, mm."""


@cache
def model_head() -> nib.Nifti1Image:
    """The head: float32, white matter near 1, 1.5 mm isotropic, in MNI space."""
    from nilearn.datasets import load_mni152_brain_mask, load_mni152_template  # takes seconds to import

    shape = tuple(np.ceil((UPPER_MM - LOWER_MM) / VOXEL_MM).astype(int))
    affine = nib.affines.from_matvec(np.diag([VOXEL_MM] * 3), LOWER_MM)
    brain, mask = (
        resample_from_to(load(resolution=1), (shape, affine), order=1).get_fdata(dtype=np.float32)
        for load in (load_mni152_template, load_mni152_brain_mask)
    )
    to_dura = distance_to_hull(mask > 0.5) - SUBARACHNOID_MM
    axes = [
        np.expand_dims(
            lower + VOXEL_MM * np.arange(count, dtype=np.float32), [other for other in range(3) if other != axis]
        )
        for axis, (lower, count) in enumerate(zip(LOWER_MM, shape, strict=True))
    ]

    def inside(ellipsoid: Ellipsoid) -> Mask:
        return np.asarray(sum(((axis - c) / r) ** 2 for axis, c, r in zip(axes, *ellipsoid, strict=True)) < 1)

    region = np.logical_or.reduce([to_dura < SKULL_MM + SCALP_MM, *map(inside, DATA["soft"])])
    depth = ndimage.distance_transform_edt(region, sampling=VOXEL_MM)
    head = np.select([~region, depth < 1.8, depth < 6.0], [AIR, SKIN, FAT], MUSCLE).astype(np.float32)
    for ellipsoid, intensity in DATA["face"]:
        head[inside(ellipsoid)] = intensity
    # Fluid inside the dura; around it two tables of bone with marrow between them.
    head[to_dura < SKULL_MM] = BONE
    head[(axes[2] > -30) & (np.abs(to_dura - 0.5 * SKULL_MM) < 1.0)] = MARROW
    head[to_dura < 0] = FLUID
    # The template fades out at its edge; the lesser part of an edge voxel is fluid.
    head = np.where(mask > 0.05, np.maximum(brain / np.percentile(brain[mask > 0.5], 95), FLUID), head)
    # Under a voxel of blur: no scanner draws sharp edges.
    return nib.Nifti1Image(ndimage.gaussian_filter(head, 0.5), affine)


def distance_to_hull(inside: Mask) -> Field:
    """Signed distance, mm, to the brain's hull, that is the brain with fissures up to 18 mm wide closed.

    Negative inside. Computed on every second voxel and interpolated, since the hull is smooth.
    """

    def distance(region: Mask) -> Field:
        return np.asarray(ndimage.distance_transform_edt(region, sampling=2 * VOXEL_MM), np.float32)

    hull = distance(distance(~inside[::2, ::2, ::2]) < 9.0) > 9.0
    smooth = ndimage.gaussian_filter(distance(~hull) - distance(hull), 2.0, mode="nearest")
    fine: Field = ndimage.affine_transform(smooth, [0.5] * 3, output_shape=inside.shape, order=1, mode="nearest")
    return fine
