"""Images: what is refused and why, and that written bytes repeat."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hostile_images import GB, dims, header
from neurotier.analysis.images import Stored, load_head, measure_mask, write_brain, write_mask
from neurotier.analysis.inflating import LEAST_BYTES, Content
from neurotier.core.foreign import ForeignError
from support import small_head

MASK = small_head() > 250
AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])
PLAIN, SCALED = (nib.Nifti1Image(small_head(), AFFINE) for _ in range(2))
SCALED.header.set_slope_inter(0.5, 10)
SERIES = nib.Nifti1Image(small_head()[..., None], AFFINE)
for text in ("data_type", "db_name", "descrip", "aux_file", "intent_name"):
    PLAIN.header[text] = "Doe, Jane"


@pytest.mark.parametrize(("image", "kind"), [(PLAIN, np.int16), (SERIES, np.int16), (SCALED, np.float32)])
def test_brain_has_the_values_of_the_head_and_true_zeros_outside_and_its_mask_is_uint8_with_its_size(
    tmp_path: Path, image: nib.Nifti1Image, kind: type[np.generic]
) -> None:
    """Of the head's voxel type, if its numbers are stored as they are."""
    nib.save(image, tmp_path / "a.nii.gz")
    head = load_head(tmp_path / "a.nii.gz", "a")
    write_brain(MASK, head, tmp_path / "brain.nii.gz")
    brain = nib.load(tmp_path / "brain.nii.gz")
    values = np.asarray(brain.dataobj)
    assert (values.shape, brain.get_data_dtype()) == ((20, 20, 20), kind)
    assert not values[~MASK].any()
    assert np.allclose(values[MASK], np.asarray(head.dataobj).reshape(values.shape)[MASK])
    assert np.allclose(brain.affine, head.affine)
    assert b"Doe" not in brain.header.binaryblock
    assert write_mask(MASK, head, tmp_path / "mask.nii.gz") == (MASK.sum(), 64.0)
    assert nib.load(tmp_path / "mask.nii.gz").get_data_dtype() == np.uint8


@pytest.mark.parametrize(("edge_mm", "qform_code", "enlarged"), [(0, 0, 1), (1, 0, 1), (4, 1, 1.2)])
def test_the_size_of_a_mask_is_that_in_the_scanner(
    tmp_path: Path, edge_mm: float, qform_code: int, enlarged: float
) -> None:
    """With an sform alone, the grid is taken from it; beside a qform, it may lead into a larger standard space."""
    made = nib.Nifti1Image(small_head(), AFFINE)
    made.header.set_sform(np.diag([enlarged, enlarged, enlarged, 1]) @ AFFINE, 4)
    made.header["qform_code"] = qform_code
    made.header["pixdim"][1:4] = edge_mm
    stored = bytes(made.header.binaryblock[:108] + np.float32(352).tobytes() + made.header.binaryblock[112:344])
    (tmp_path / "a.nii").write_bytes(stored + b"n+1\0" + bytes(4) + small_head().tobytes("F"))
    head = load_head(tmp_path / "a.nii", "a")
    assert write_mask(MASK, head, tmp_path / "mask.nii.gz") == (MASK.sum(), 64.0)
    assert measure_mask(tmp_path, "mask.nii.gz") == (MASK.sum(), 64.0)


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
def test_head_of_half_a_mm_fits_a_job_of_8_gb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_bytes: int, fits: bool
) -> None:
    monkeypatch.setattr("neurotier.analysis.images.memory_for_images", lambda: memory_bytes)
    (tmp_path / "a.nii").write_bytes(header(dim=dims(512, 512, 512), datatype=16, bitpix=32))
    with (tmp_path / "a.nii").open("rb") as file:
        stored = Stored(Content(file, is_compressed=False))
    if fits:
        stored.check_memory()
    else:
        with pytest.raises(ForeignError, match=r"which take 2.5 GiB of memory to analyse, and this job has 1.86 GiB"):
            stored.check_memory()
