"""Another participant made of any whole head, such as the simulated one (:mod:`neurotier.demo.head_model`).

The participant's seed gives a small affine change of geometry, and the scan's a bias field and Rician noise.
"""

from __future__ import annotations

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, from_matvec, rescale_affine, voxel_sizes
from nibabel.eulerangles import euler2mat
from nibabel.processing import resample_from_to
from numpy.polynomial.polynomial import polygrid3d

MARGIN_MM = 10.0
"""What the field of view gains on every side, so that the head can move and no brain lies at its edge."""

NOISE = 0.02
"""Standard deviation of the noise in each of the two channels, as part of the bright intensity."""

BRIGHT = 1000
"""Stored value of the bright intensity (99th percentile of the head)."""


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
