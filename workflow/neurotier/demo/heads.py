"""Heads: a simulated one, and participants made of that or of any other whole head.

The simulated head is skull, scalp, face and neck painted around nilearn's packaged brain template.

The template (MNI ICBM152 2009a, T1-weighted) is a real, averaged brain that comes without skull. Everything else
here is drawn from the ellipsoids of ``demonstration.yaml``, in MNI millimetres (x right, y front, z up) and in
intensities relative to white matter. It is meant to look like a head to brain extraction, not to anatomists.

A participant's seed gives a small affine change of geometry, and the scan's a bias field and Rician noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, from_matvec, rescale_affine, voxel_sizes
from nibabel.eulerangles import euler2mat
from nibabel.processing import resample_from_to
from numpy.polynomial.polynomial import polygrid3d
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

MARGIN_MM = 10.0
"""What the field of view gains on every side, so that the head can move and no brain lies at its edge."""

NOISE = 0.02
"""Standard deviation of the noise in each of the two channels, as part of the bright intensity."""

BRIGHT = 1000
"""Stored value of the bright intensity (99th percentile of the head)."""

Ellipsoid = tuple[Sequence[float], Sequence[float]]
"""Centre and radii, mm."""


@cache
def model_head() -> nib.Nifti1Image:
    """The head: float32, white matter near 1, 1.5 mm isotropic, in MNI space."""
    from nilearn.datasets import load_mni152_brain_mask, load_mni152_template  # takes seconds to import

    shape = tuple(np.ceil((UPPER_MM - LOWER_MM) / VOXEL_MM).astype(int))
    affine = from_matvec(np.diag([VOXEL_MM] * 3), LOWER_MM)
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


def varied_head(head: nib.Nifti1Image, seed: int, voxel_size_mm: float, scan: int = 0) -> nib.Nifti1Image:
    """A head as another participant's: resampled, moved and scaled a little, with own bias field and noise.

    Parameters
    ----------
    head
        A whole head, 3D, with any voxels; its orientation is kept, its field of view gains :data:`MARGIN_MM`.
    seed
        Seed of the participant: geometry.
    voxel_size_mm
        Edge of the isotropic voxels, mm.
    scan
        Number of the scan of this participant: bias field and noise; geometry stays.

    Returns
    -------
    nibabel.Nifti1Image
        int16, isotropic, qform and sform set, mm; the same for the same arguments.
    """
    image = moved(head, seed, voxel_size_mm)
    signal = np.clip(np.nan_to_num(image.dataobj), 0, None)
    inside = signal > 0.1 * signal.max()
    signal /= np.percentile(signal[inside], 99) if inside.any() else 1.0

    random = np.random.default_rng([seed, 1, scan])
    x, y, z = (np.linspace(-1, 1, count) for count in signal.shape)
    signal *= np.exp(polygrid3d(x, y, z, random.uniform(-0.03, 0.03, (3, 3, 3))))  # a smooth field around 1
    real, imaginary = NOISE * random.standard_normal((2, *signal.shape), np.float32)
    values = np.clip(np.round(BRIGHT * np.hypot(signal + real, imaginary)), 0, np.iinfo(np.int16).max)

    varied = nib.Nifti1Image(values.astype(np.int16), image.affine)
    varied.header.set_xyzt_units("mm")
    varied.set_qform(image.affine, code="scanner")
    return varied


def moved(image: nib.Nifti1Image, seed: int, voxel_size_mm: float) -> nib.Nifti1Image:
    """An image in isotropic voxels, changed about its centre as a participant's seed says; float32.

    Scale +-6 %, rotation +-5 degrees, shift +-4 mm, slight shear. What the field of view cuts off (the neck) is
    continued from its edge, so that no air opens there.
    """
    random = np.random.default_rng([seed, 0])
    angles = np.radians(random.uniform(-5, 5, 3))
    change = euler2mat(*angles) @ np.diag(random.uniform(0.94, 1.06, 3)) + np.triu(
        random.uniform(-0.02, 0.02, (3, 3)), 1
    )
    centre_mm = apply_affine(image.affine, (np.array(image.shape) - 1) / 2)
    about_centre = from_matvec(change, centre_mm - change @ centre_mm + random.uniform(-4, 4, 3))
    changed = nib.Nifti1Image(image.get_fdata(dtype=np.float32), about_centre @ image.affine)
    edges_mm = np.array(image.shape) * voxel_sizes(image.affine) + 2 * MARGIN_MM
    shape = tuple(np.maximum(1, np.round(edges_mm / voxel_size_mm)).astype(int))
    affine = rescale_affine(image.affine, image.shape, voxel_size_mm, shape)
    return resample_from_to(changed, (shape, affine), order=1, mode="nearest")
