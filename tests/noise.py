"""DataLad datasets of noise, which hardly compresses, for benchmarks of what moves bytes."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
from support import git


def make_noise_dataset(folder: Path, count: int, edge: int, largest: int, dtype: type, extension: str) -> int:
    """Make a dataset of participants with an image each; the size of the images, bytes.

    Parameters
    ----------
    folder
        The dataset.
    count
        How many participants.
    edge
        Voxels along each axis.
    largest, dtype
        Voxels are whole numbers below this one, of this type.
    extension
        Of the images: ``.nii`` or ``.nii.gz``.
    """
    git(folder.parent, "init", "--quiet", folder.name)
    git(folder, "annex", "init", "--quiet")
    (folder / "dataset_description.json").write_text('{"Name": "noise", "BIDSVersion": "1.10.0"}')
    git(folder, "add", "dataset_description.json")
    size_bytes = 0
    for number in range(count):
        noise: np.ndarray = np.random.default_rng(number).integers(0, largest, (edge, edge, edge)).astype(dtype)
        image = folder / f"sub-{number:02d}" / "anat" / f"sub-{number:02d}_T1w{extension}"
        image.parent.mkdir(parents=True)
        nib.save(nib.Nifti1Image(noise, np.eye(4)), image)
        size_bytes += image.stat().st_size
    git(folder, "annex", "add", "--quiet", ".")
    git(folder, "commit", "--quiet", "-m", "noise")
    return size_bytes
