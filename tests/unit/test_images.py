"""Images: what is refused and why, and that written bytes repeat."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hostile_images import GB, dims, header
from neurotier.analysis.images import Stored, load_head, write_brain, write_mask
from neurotier.analysis.inflating import LEAST_BYTES, Content
from neurotier.core.foreign import ForeignError
from support import save_image, small_head


@pytest.fixture
def head(tmp_path: Path) -> nib.Nifti1Image:
    return load_head(save_image(tmp_path / "head.nii.gz", small_head()), "head")


def test_single_volume_series_is_an_image(tmp_path: Path) -> None:
    file = save_image(tmp_path / "a.nii.gz", small_head()[..., None])
    image = load_head(file, "a")
    assert image.shape == (20, 20, 20)
    write_brain(small_head() > 250, image, tmp_path / "brain.nii.gz")
    assert nib.load(tmp_path / "brain.nii.gz").shape == (20, 20, 20)


def test_brain_keeps_voxel_type_and_values(tmp_path: Path, head: nib.Nifti1Image) -> None:
    mask = small_head() > 250
    write_brain(mask, head, tmp_path / "brain.nii.gz")
    brain = nib.load(tmp_path / "brain.nii.gz")
    assert brain.get_data_dtype() == np.int16
    assert np.array_equal(np.asarray(brain.dataobj), small_head() * mask)
    assert np.allclose(brain.affine, head.affine)


def test_scaled_image_has_true_zeros_outside_the_brain(tmp_path: Path) -> None:
    image = nib.Nifti1Image(small_head(), np.eye(4))
    image.header.set_slope_inter(0.5, 10)
    nib.save(image, tmp_path / "a.nii.gz")
    head = load_head(tmp_path / "a.nii.gz", "a")
    mask = small_head() > 250
    write_brain(mask, head, tmp_path / "brain.nii.gz")
    brain = np.asarray(nib.load(tmp_path / "brain.nii.gz").dataobj)
    assert not brain[~mask].any()
    assert np.allclose(brain[mask], np.asarray(head.dataobj)[mask])


def test_mask_is_uint8_with_its_size(tmp_path: Path, head: nib.Nifti1Image) -> None:
    mask = small_head() > 250
    assert write_mask(mask, head, tmp_path / "mask.nii.gz") == (mask.sum(), 64.0)
    assert nib.load(tmp_path / "mask.nii.gz").get_data_dtype() == np.uint8


@pytest.mark.parametrize("kind", [nib.Nifti1Header, nib.Nifti2Header])
def test_image_is_as_nibabel_loads_it(tmp_path: Path, kind: type[nib.Nifti1Header]) -> None:
    values = small_head().astype(">f4").tobytes("F")
    made = kind(header(kind, datatype=16, bitpix=32)[:-4]).as_byteswapped(">")
    made["pixdim"][0] = 0  # which nibabel mends
    (tmp_path / "a.nii").write_bytes(bytes(made.binaryblock) + bytes(4) + values)
    ours, theirs = load_head(tmp_path / "a.nii", "a"), nib.load(tmp_path / "a.nii")
    assert type(ours) is type(theirs)
    assert ours.header == theirs.header
    assert np.array_equal(ours.affine, theirs.affine)
    assert np.array_equal(ours.get_fdata(), theirs.get_fdata())


@pytest.mark.parametrize(("memory_bytes", "fits"), [(8 * GB, True), (LEAST_BYTES, True), (2 * GB, False)])
def test_head_of_half_a_mm_fits_a_job_of_8_gb(tmp_path: Path, memory_bytes: int, fits: bool) -> None:
    (tmp_path / "a.nii").write_bytes(header(dim=dims(512, 512, 512), datatype=16, bitpix=32))
    with (tmp_path / "a.nii").open("rb") as file:
        stored = Stored(Content(file, is_compressed=False))
    if fits:
        stored.check_memory(memory_bytes)
    else:
        with pytest.raises(ForeignError, match=r"which take 2.5 GiB of memory to analyse, and this job has 1.86 GiB"):
            stored.check_memory(memory_bytes)
