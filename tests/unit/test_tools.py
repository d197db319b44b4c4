"""Brain extraction on real whole heads against masks of FSL bet2 -f 0.5."""

from __future__ import annotations

import os
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from neurotier.images import load_head
from neurotier.settings import ToolSettings
from neurotier.tools import make_tool
from support import ROOT

HEADS = Path(os.environ.get("NEUROTIER_TEST_HEADS", ROOT.parent / "shared" / "data"))
"""Folder of heads (``NAME.nii.gz``) with reference masks (``NAME_desc-bet2f05_mask.nii.gz``)."""

NAMES = sorted(path.name.removesuffix("_desc-bet2f05_mask.nii.gz") for path in HEADS.glob("*_desc-bet2f05_mask.nii.gz"))
TOOL = ToolSettings("brainextractor", {"fractional_threshold": 0.5, "iterations": 1000})


def extract(head_file: Path, folder: Path) -> np.ndarray:
    head = load_head(head_file, head_file.name)
    mask = make_tool(TOOL).extract(head, head_file, folder, folder / "log", head_file.name)
    assert mask is not None
    return mask


@pytest.mark.parametrize("name", NAMES or [pytest.param("", marks=pytest.mark.skip(reason=f"no heads in {HEADS}"))])
def test_masks_agree_with_bet(name: str, tmp_path: Path) -> None:
    mask = extract(HEADS / f"{name}.nii.gz", tmp_path)
    reference = np.asarray(nib.load(HEADS / f"{name}_desc-bet2f05_mask.nii.gz").dataobj) > 0
    dice = 2 * (mask & reference).sum() / (mask.sum() + reference.sum())
    ratio = mask.sum() / reference.sum()
    print(f"{name}: Dice {dice:.3f}, volume ratio {ratio:.3f}")
    assert dice >= 0.90
    assert 0.90 <= ratio <= 1.15


def test_whole_head_from_debian_has_a_brain_of_human_size(whole_head: Path, tmp_path: Path) -> None:
    volume_cm3 = extract(whole_head, tmp_path).sum() / 1000  # voxels of 1 mm3
    assert 1200 < volume_cm3 < 2100
