"""Brain extraction by the workflow on real whole heads, against masks of FSL bet2 -f 0.5 where they are at hand."""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from conftest import missing_data, too_long
from support import SHARED, Project, read_json, t1w

pytestmark = too_long

HEADS = Path(os.environ.get("NEUROTIER_TEST_HEADS", SHARED / "data"))
"""Folder of heads (``NAME.nii.gz``) with reference masks (``NAME_desc-bet2f05_mask.nii.gz``)."""

REFERENCE = "_desc-bet2f05_mask.nii.gz"
NAMES = sorted(path.name.removesuffix(REFERENCE) for path in HEADS.glob(f"*{REFERENCE}"))


def label(name: str) -> str:
    """A BIDS label of a file's name."""
    return "".join(character for character in name if character.isalnum())


@pytest.fixture(scope="module")
def debian(whole_head: Path) -> str:
    """The name of Debian's whole head, which may be one of those with a reference."""
    return next((name for name in NAMES if filecmp.cmp(HEADS / f"{name}.nii.gz", whole_head, shallow=False)), "debian")


@pytest.fixture(scope="module")
def extracted(lasting: Project, whole_head: Path, debian: str) -> Project:
    """Debian's whole head, and those with a reference, through the whole workflow with its default settings."""
    for name, head in {debian: whole_head, **{name: HEADS / f"{name}.nii.gz" for name in NAMES}}.items():
        target = lasting.folder / "bids" / t1w(label(name))
        target.parent.mkdir(parents=True)
        shutil.copy(head, target)
    lasting.configure()
    lasting.succeeds("results/group/group.tsv", "results/group/summary.json")
    return lasting


def mask(project: Project, name: str) -> np.ndarray:
    file = project.derivatives / t1w(label(name)).replace("_T1w", "_desc-brain_mask")
    return np.asarray(nib.load(file).dataobj) > 0


@pytest.mark.parametrize("name", NAMES or [""])
def test_masks_agree_with_bet(request: pytest.FixtureRequest, name: str) -> None:
    if not name:
        missing_data(f"no heads in {HEADS}")
    ours = mask(request.getfixturevalue("extracted"), name)
    reference = np.asarray(nib.load(HEADS / f"{name}{REFERENCE}").dataobj) > 0
    dice = 2 * (ours & reference).sum() / (ours.sum() + reference.sum())
    ratio = ours.sum() / reference.sum()
    print(f"{name}: Dice {dice:.3f}, volume ratio {ratio:.3f}")
    assert dice >= 0.90
    assert 0.90 <= ratio <= 1.15


def test_brain_of_a_real_head_is_of_human_size(extracted: Project, debian: str) -> None:
    assert 1200 < mask(extracted, debian).sum() / 1000 < 2100  # cm3, from voxels of 1 mm3


def test_group_table_has_the_volumes_of_the_masks(extracted: Project, debian: str) -> None:
    for row in extracted.table("group/group.tsv"):
        image = nib.load(extracted.derivatives / row["mask"])
        voxels = int((np.asarray(image.dataobj) > 0).sum())
        assert int(row["brain_voxels"]) == voxels
        expected_mm3 = voxels * abs(np.linalg.det(image.affine[:3, :3]))
        assert float(row["brain_volume_mm3"]) == pytest.approx(expected_mm3, rel=1e-3)
    assert read_json(extracted.results / "group/summary.json")["images"] == len({debian, *NAMES})
