"""Head images for the demonstration: a real brain in a simulated head, or a given whole head, varied by seed.

nilearn's packaged T1 template is a real brain without skull, which is no test of brain extraction, so
:mod:`neurotier.demo.head_model` puts it into a simulated head. :func:`varied_head` makes a participant of any
head: a small affine change of geometry from the participant's seed, and a bias field and Rician noise from the
scan's.
"""

from __future__ import annotations

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, voxel_sizes
from nibabel.eulerangles import euler2mat
from numpy.typing import NDArray
from scipy import ndimage

from neurotier.demo.head_model import Field

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
    edges_mm = np.array(voxel_sizes(head.affine))
    shape = np.maximum(1, np.round((np.array(head.shape) * edges_mm + 2 * MARGIN_MM) / voxel_size_mm)).astype(int)
    to_head = np.diag([*(voxel_size_mm / edges_mm), 1.0])
    to_head[:3, 3] = (np.array(head.shape) - 1) / 2 - to_head[:3, :3] @ ((shape - 1) / 2)
    image = nib.Nifti1Image(np.zeros(shape, np.int16), head.affine @ to_head)

    signal = np.nan_to_num(resampled(np.asarray(head.dataobj, np.float32), head, image, geometry(seed)))
    signal = np.clip(signal, 0, None)
    inside = signal > 0.1 * signal.max()
    signal /= np.percentile(signal[inside], 99) if inside.any() else 1.0

    random = np.random.default_rng([seed, 1, scan])
    signal *= bias_field(signal.shape, random)
    real = signal + NOISE * random.standard_normal(signal.shape, np.float32)
    imaginary = NOISE * random.standard_normal(signal.shape, np.float32)
    values = np.clip(np.round(BRIGHT * np.hypot(real, imaginary)), 0, np.iinfo(np.int16).max).astype(np.int16)

    varied = nib.Nifti1Image(values, image.affine)
    varied.header.set_xyzt_units("mm")
    varied.set_qform(image.affine, code="scanner")
    varied.set_sform(image.affine, code="scanner")
    return varied


def geometry(seed: int) -> NDArray[np.float64]:
    """A participant's affine change (4 x 4, mm): scale +-6 %, rotation +-5 degrees, shift +-4 mm, slight shear."""
    random = np.random.default_rng([seed, 0])
    angles = np.radians(random.uniform(-5, 5, 3))
    change = np.eye(4)
    change[:3, :3] = euler2mat(*angles) @ np.diag(random.uniform(0.94, 1.06, 3))
    change[:3, :3] += np.triu(random.uniform(-0.02, 0.02, (3, 3)), 1)
    change[:3, 3] = random.uniform(-4, 4, 3)
    return change


def resampled(data: Field, source: nib.Nifti1Image, target: nib.Nifti1Image, change: NDArray[np.float64]) -> Field:
    """Resample ``data`` (on the grid of ``source``) to the grid of ``target``, changed about the grid's centre.

    What the source's field of view cuts off (the neck) is continued from its edge, so that no air opens there.
    """
    centre = np.eye(4)
    centre[:3, 3] = apply_affine(target.affine, (np.array(target.shape) - 1) / 2)
    moved = centre @ np.linalg.inv(change) @ np.linalg.inv(centre) @ target.affine
    matrix = np.linalg.inv(source.affine) @ moved
    result: Field = ndimage.affine_transform(data, matrix, output_shape=target.shape, order=1, mode="nearest")
    return result


def bias_field(shape: tuple[int, ...], random: np.random.Generator) -> Field:
    """A smooth multiplicative field around 1 (about +-10 %), of the second order over the volume."""
    axes = np.meshgrid(*[np.linspace(-1, 1, n, dtype=np.float32) for n in shape], indexing="ij", sparse=True)
    field = np.zeros(shape, np.float32)
    for first, axis in enumerate(axes):
        field += np.float32(random.uniform(-0.06, 0.06)) * axis
        for other in axes[first:]:
            field += np.float32(random.uniform(-0.04, 0.04)) * axis * other
    return np.exp(field)
