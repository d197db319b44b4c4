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
def model_head() -> tuple[nib.Nifti1Image, nib.Nifti1Image]:
    """The head (float32, white matter near 1) and its brain mask (uint8), both 1.5 mm isotropic, in MNI space."""
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
    paint_spine(head, axes)
    brain /= np.percentile(brain[inside], 95)
    # The template fades out at its edge; the lesser part of an edge voxel is fluid.
    head = np.where(mask > 0.05, np.maximum(brain, FLUID), head)
    # Under a voxel of blur: no scanner draws sharp edges.
    head = ndimage.gaussian_filter(head, 0.5)
    return nib.Nifti1Image(head, affine), nib.Nifti1Image(inside.astype(np.uint8), affine)


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
    signed = signed_distance(hull, step_mm)
    matrix = np.diag([0.5, 0.5, 0.5])
    fine: Field = ndimage.affine_transform(signed, matrix, output_shape=inside.shape, order=1, mode="nearest")
    return fine


def signed_distance(region: Mask, step_mm: float) -> Field:
    """Distance, mm, of every voxel to a region's surface, smoothed by two voxels; negative inside."""
    outer = ndimage.distance_transform_edt(~region, sampling=step_mm)
    inner = ndimage.distance_transform_edt(region, sampling=step_mm)
    smooth: Field = ndimage.gaussian_filter((outer - inner).astype(np.float32), 2.0, mode="nearest")
    return smooth


def ellipsoid(axes: Axes, centre_mm: tuple[float, float, float], radii_mm: tuple[float, float, float]) -> Field:
    """1 at the surface of an ellipsoid, less inside, more outside; an infinite radius makes a cylinder."""
    squares = [((axis - c) / r) ** 2 for axis, c, r in zip(axes, centre_mm, radii_mm, strict=True)]
    return np.asarray(np.sqrt(squares[0] + squares[1] + squares[2]), np.float32)


def soft_tissue(axes: Axes, to_dura: Field) -> Field:
    """Head without skull and brain: skin, fat under it, muscle with strands of fat; air (0) around."""
    coarse: Axes = (axes[0][::2], axes[1][:, ::2], axes[2][:, :, ::2])
    region = to_dura[::2, ::2, ::2] < SKULL_MM + SCALP_MM
    region |= ellipsoid(coarse, (0, 42, -42), (64, 48, 46)) < 1  # cheeks and orbits
    region |= ellipsoid(coarse, (0, 48, -88), (44, 50, 44)) < 1  # jaws
    region |= ellipsoid(coarse, (0, 96, -58), (13, 15, 20)) < 1  # nose
    region |= (ellipsoid(coarse, (0, -28, 0), (60, 58, np.inf)) < 1) & (coarse[2] < -45)  # neck
    # Chin, neck and occiput run into each other: close concavities of up to 36 mm.
    step_mm = 2 * VOXEL_MM
    near = ndimage.distance_transform_edt(~np.pad(region, 8, mode="edge"), sampling=step_mm) < 18.0
    closed = ndimage.distance_transform_edt(near, sampling=step_mm)[8:-8, 8:-8, 8:-8] > 18.0
    depth: Field = ndimage.affine_transform(
        -signed_distance(region | closed, step_mm),
        np.diag([0.5, 0.5, 0.5]),
        output_shape=to_dura.shape,
        order=1,
        mode="nearest",
    )
    random = np.random.default_rng(152)
    strands = ndimage.gaussian_filter(random.standard_normal(to_dura.shape, np.float32), (1.5, 2.0, 3.0))
    strands /= strands.std()
    muscle = MUSCLE * (1 + 0.1 * strands)
    tissue = np.where(np.abs(strands) < 0.12, 0.8 * FAT, muscle)
    tissue = np.where(depth < 6.0, FAT * (1 + 0.05 * strands), tissue)
    tissue = np.where(depth < 1.8, SKIN, tissue)
    return np.where(depth < 0, AIR, tissue).astype(np.float32)


def paint_face(head: Field, axes: Axes) -> None:
    """Eyes in orbital fat, air in nose, sinuses and throat, the bone of the jaws."""
    for side in (-1, 1):
        head[ellipsoid(axes, (side * 30, 54, -38), (18, 26, 17)) < 1] = 0.9 * FAT
        head[ellipsoid(axes, (side * 32, 70, -38), (12.5, 12.5, 12.5)) < 1] = 0.8 * FLUID
        head[ellipsoid(axes, (side * 32, 79, -38), (5, 2.5, 5)) < 1] = MUSCLE
        head[ellipsoid(axes, (side * 26, 58, -68), (11, 14, 13)) < 1] = AIR
    nose = ellipsoid(axes, (0, 66, -62), (12, 28, 16))
    head[nose < 1] = AIR
    # Septum and turbinates.
    head[(nose < 1) & ((np.abs(axes[0]) < 1.5) | (np.abs(np.abs(axes[0]) - 7) < 1.6))] = SKIN
    head[ellipsoid(axes, (0, 20, -40), (13, 15, 12)) < 1] = AIR  # sphenoid sinus, below the middle of the brain
    throat = ellipsoid(axes, (0, 16, 0), (10, 6, np.inf))
    head[(throat < 1) & (axes[2] < -62)] = AIR
    # Jaws: an arch of marrow in bone, of the upper and the lower teeth.
    arch = (ellipsoid(axes, (0, 38, 0), (32, 40, np.inf)) - 1) * 36
    for height_mm, radius_mm in ((-88.0, 7.0), (-113.0, 9.0)):
        away = np.hypot(arch, 0.7 * (axes[2] - height_mm)) + 100 * (axes[1] < 25)
        head[away < radius_mm] = BONE
        head[away < radius_mm - 3] = 1.5 * MARROW


def paint_skull(head: Field, axes: Axes, to_dura: Field) -> None:
    """Fluid inside the dura; around it two tables of bone with marrow between them."""
    head[to_dura < SKULL_MM] = BONE
    vault = axes[2] > -30
    head[vault & (np.abs(to_dura - 0.5 * SKULL_MM) < 1.0)] = MARROW
    head[to_dura < 0] = FLUID


def paint_spine(head: Field, axes: Axes) -> None:
    """Below the template: the spinal cord in its fluid, and vertebrae with discs before it."""
    z = axes[2]
    below = z < -70
    body = ellipsoid(axes, (0, -18, 0), (14, 11, np.inf))
    canal = ellipsoid(axes, (0, -42, 0), (17, 15, np.inf))
    disc = np.mod(z, 18.0) < 4.0
    head[below & (np.minimum(body, canal) < 1)] = BONE
    head[below & (body < 0.85)] = MARROW * 1.4
    head[below & (body < 0.85) & disc] = MARROW * 0.7
    head[(z < -64) & (ellipsoid(axes, (0, -42, 0), (12, 10, np.inf)) < 1)] = FLUID
    head[(z < -64) & (ellipsoid(axes, (0, -42, 0), (7, 6, np.inf)) < 1)] = 0.85 * WHITE_MATTER
