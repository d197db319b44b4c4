"""The simulated head: skull, scalp, face and neck painted around nilearn's packaged brain template.

The template (MNI ICBM152 2009a, T1-weighted) is a real, averaged brain that comes without skull. Everything else
here is drawn from simple shapes, in MNI millimetres (x right, y front, z up) and in intensities relative to white
matter. It is meant to look like a head to brain extraction, not to anatomists.
"""

from __future__ import annotations

from functools import cache

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray
from scipy import ndimage

Field = NDArray[np.float32]
Mask = NDArray[np.bool_]
Axes = tuple[Field, Field, Field]

VOXEL_MM = 1.5
LOWER_MM, UPPER_MM = np.array([-96.0, -129.0, -117.0]), np.array([96.0, 117.0, 102.0])
"""Field of view: the whole scalp, the face and a piece of neck."""

WHITE_MATTER, FLUID, BONE, MARROW, MUSCLE, FAT, SKIN, AIR = 1.0, 0.22, 0.06, 0.3, 0.4, 1.15, 0.6, 0.0
"""T1-weighted contrast: fat brightest, then white matter, skin, muscle, marrow, fluid; bone and air dark."""

SUBARACHNOID_MM, SKULL_MM, SCALP_MM = 1.5, 7.0, 6.0
"""Thickness of the layers around the brain's hull."""


@cache
def model_head() -> nib.Nifti1Image:
    """The head: float32, white matter near 1, 1.5 mm isotropic, in MNI space."""
    from nilearn.datasets import load_mni152_brain_mask, load_mni152_template  # takes seconds to import

    shape = np.ceil((UPPER_MM - LOWER_MM) / VOXEL_MM).astype(int)
    affine = np.diag([VOXEL_MM] * 3 + [1.0])
    affine[:3, 3] = LOWER_MM
    grid = nib.Nifti1Image(np.zeros(shape, np.uint8), affine)
    axes = coordinates_mm(grid)
    brain, mask = on_grid(load_mni152_template(resolution=1), grid), on_grid(load_mni152_brain_mask(resolution=1), grid)
    inside = mask > 0.5

    to_dura = distance_to_hull(inside) - SUBARACHNOID_MM
    head = soft_tissue(axes, to_dura)
    paint_face(head, axes)
    paint_skull(head, axes, to_dura)
    brain /= np.percentile(brain[inside], 95)
    # The template fades out at its edge; the lesser part of an edge voxel is fluid.
    head = np.where(mask > 0.05, np.maximum(brain, FLUID), head)
    # Under a voxel of blur: no scanner draws sharp edges.
    head = ndimage.gaussian_filter(head, 0.5)
    return nib.Nifti1Image(head, affine)


def coordinates_mm(grid: nib.Nifti1Image) -> Axes:
    """x, y and z of a grid's voxels, mm, as three arrays that broadcast to its shape."""
    lower, upper = apply_affine(grid.affine, [0, 0, 0]), apply_affine(grid.affine, np.array(grid.shape) - 1)
    lines = [np.linspace(a, b, n, dtype=np.float32) for a, b, n in zip(lower, upper, grid.shape, strict=True)]
    x, y, z = np.meshgrid(*lines, indexing="ij", sparse=True)
    return x, y, z


def on_grid(image: nib.Nifti1Image, grid: nib.Nifti1Image) -> Field:
    """An image resampled (linearly) to a grid; zero outside its field of view."""
    to_image = np.linalg.inv(image.affine) @ grid.affine
    data = image.get_fdata(dtype=np.float32)
    resampled: Field = ndimage.affine_transform(data, to_image, output_shape=grid.shape, order=1)
    return resampled


def distance_to_hull(inside: Mask) -> Field:
    """Signed distance, mm, to the brain's hull, that is the brain with fissures up to 18 mm wide closed.

    Negative inside. Computed on every second voxel and interpolated, since the hull is smooth.
    """
    coarse = inside[::2, ::2, ::2]
    step_mm = 2 * VOXEL_MM
    near = ndimage.distance_transform_edt(~coarse, sampling=step_mm) < 9.0
    hull = ndimage.distance_transform_edt(near, sampling=step_mm) > 9.0
    outer, inner = (ndimage.distance_transform_edt(region, sampling=step_mm) for region in (~hull, hull))
    smooth = ndimage.gaussian_filter((outer - inner).astype(np.float32), 2.0, mode="nearest")
    matrix = np.diag([0.5, 0.5, 0.5])
    fine: Field = ndimage.affine_transform(smooth, matrix, output_shape=inside.shape, order=1, mode="nearest")
    return fine


def ellipsoid(axes: Axes, centre_mm: tuple[float, float, float], radii_mm: tuple[float, float, float]) -> Field:
    """1 at the surface of an ellipsoid, less inside, more outside; an infinite radius makes a cylinder."""
    squares = [((axis - c) / r) ** 2 for axis, c, r in zip(axes, centre_mm, radii_mm, strict=True)]
    return np.asarray(np.sqrt(squares[0] + squares[1] + squares[2]), np.float32)


def soft_tissue(axes: Axes, to_dura: Field) -> Field:
    """Head without skull and brain: skin, fat under it, muscle; air around."""
    region = to_dura < SKULL_MM + SCALP_MM
    region |= ellipsoid(axes, (0, 42, -42), (64, 48, 46)) < 1  # cheeks and orbits
    region |= ellipsoid(axes, (0, 48, -88), (44, 50, 44)) < 1  # jaws
    region |= ellipsoid(axes, (0, 96, -58), (13, 15, 20)) < 1  # nose
    region |= (ellipsoid(axes, (0, -28, 0), (60, 58, np.inf)) < 1) & (axes[2] < -45)  # neck
    depth = ndimage.distance_transform_edt(region, sampling=VOXEL_MM)
    return np.select([~region, depth < 1.8, depth < 6.0], [AIR, SKIN, FAT], MUSCLE).astype(np.float32)


def paint_face(head: Field, axes: Axes) -> None:
    """Eyes in orbital fat, air in nose, sinuses and throat."""
    for side in (-1, 1):
        head[ellipsoid(axes, (side * 30, 54, -38), (18, 26, 17)) < 1] = 0.9 * FAT
        head[ellipsoid(axes, (side * 32, 70, -38), (12.5, 12.5, 12.5)) < 1] = 0.8 * FLUID
        head[ellipsoid(axes, (side * 26, 58, -68), (11, 14, 13)) < 1] = AIR
    head[ellipsoid(axes, (0, 66, -62), (12, 28, 16)) < 1] = AIR  # nose
    head[ellipsoid(axes, (0, 20, -40), (13, 15, 12)) < 1] = AIR  # sphenoid sinus, below the middle of the brain
    head[(ellipsoid(axes, (0, 16, 0), (10, 6, np.inf)) < 1) & (axes[2] < -62)] = AIR  # throat


def paint_skull(head: Field, axes: Axes, to_dura: Field) -> None:
    """Fluid inside the dura; around it two tables of bone with marrow between them."""
    head[to_dura < SKULL_MM] = BONE
    vault = axes[2] > -30
    head[vault & (np.abs(to_dura - 0.5 * SKULL_MM) < 1.0)] = MARROW
    head[to_dura < 0] = FLUID
