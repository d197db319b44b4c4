"""Datasets of noise, which hardly compresses, for benchmarks of what moves bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nibabel as nib
import numpy as np
from support import git


def make_noise(folder: Path, count: int, edges: Sequence[int], dtype: type, extension: str) -> int:
    """Make a plain dataset of participants with an image each; the size of the images, bytes.

    Parameters
    ----------
    folder
        The dataset.
    count
        How many participants.
    edges
        Voxels along each axis, of one participant after the other.
    dtype
        Of the voxels, which are whole numbers below 4096.
    extension
        Of the images: ``.nii`` or ``.nii.gz``.
    """
    folder.mkdir(exist_ok=True)
    (folder / "dataset_description.json").write_text('{"Name": "noise", "BIDSVersion": "1.10.0"}')
    size_bytes = 0
    for number in range(count):
        shape = (edges[number % len(edges)],) * 3
        noise: np.ndarray = (
            np.random.default_rng(number).integers(0, min(4096, np.iinfo(dtype).max), shape).astype(dtype)
        )
        image = folder / f"sub-{number:02d}/anat/sub-{number:02d}_T1w{extension}"
        image.parent.mkdir(parents=True)
        nib.save(nib.Nifti1Image(noise, np.eye(4)), image)
        size_bytes += image.stat().st_size
    return size_bytes


def make_noise_dataset(folder: Path, count: int, edges: Sequence[int], dtype: type, extension: str) -> int:
    """Make such a dataset as one of DataLad; the size of the images, bytes."""
    git(folder.parent, "init", "--quiet", folder.name)
    git(folder, "annex", "init", "--quiet")
    size_bytes = make_noise(folder, count, edges, dtype, extension)
    git(folder, "add", "dataset_description.json")
    git(folder, "annex", "add", "--quiet", ".")
    git(folder, "commit", "--quiet", "-m", "noise")
    return size_bytes
