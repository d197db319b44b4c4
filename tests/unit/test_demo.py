"""The demonstration: heads alike only where they should be, and a dataset that DataLad and BIDS accept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from neurotier.core.errors import InputError, TierError
from neurotier.core.settings import DemoSettings
from neurotier.demo.dataset import (
    ADULT_SCALE,
    SITES,
    load_head,
    make_demo_dataset,
    model_head,
    moved_image,
    noise_bold,
    varied_head,
)
from neurotier.pages.report.data import LEAST_MM3, MOST_MM3
from nibabel.affines import from_matvec
from nibabel.processing import resample_from_to
from nilearn.datasets import load_mni152_brain_mask
from support import ENVIRONMENT, Project

SIMULATED = DemoSettings(head="simulated", voxel_size_mm=4.0, seed=7)


def data(image: nib.Nifti1Image) -> np.ndarray:
    return np.asarray(image.dataobj)


# The head


def test_the_brain_lies_inside_the_head() -> None:
    head = model_head()
    image = varied_head(head, 1, 2.0, scan=0)
    in_mni_space = from_matvec(head.affine[:3, :3] / ADULT_SCALE, head.affine[:3, 3] / ADULT_SCALE)
    brain = resample_from_to(load_mni152_brain_mask(resolution=1), (head.shape, in_mni_space), order=1)
    mask = data(moved_image(nib.Nifti1Image(data(brain), head.affine), 1, 2.0)) > 0.5
    assert mask.shape == image.shape
    assert LEAST_MM3 < mask.sum() * 2.0**3 < MOST_MM3
    assert not any(face.any() for axis in range(3) for face in (mask.take(0, axis), mask.take(-1, axis)))
    # From the middle of the brain outwards: brain, dark skull, bright scalp, air.
    centre = np.round(np.argwhere(mask).mean(axis=0)).astype(int)
    line, inside = data(image)[:, centre[1], centre[2]], mask[:, centre[1], centre[2]]
    left = np.flatnonzero(inside)[0]
    assert np.median(line[inside]) > 400
    assert line[left - 6 : left].min() < 150
    assert line[:left].max() > 600
    assert line[:4].max() < 150


# The choice of the head


@pytest.mark.parametrize("kind", ["truncated", "four dimensions", "zero"])
def test_an_unusable_head_is_an_input_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "head.nii.gz"
    nib.save(nib.Nifti1Image(np.zeros((9, 9, 9), np.int16), np.eye(4)) if kind == "zero" else noise_bold(1), path)
    if kind == "truncated":
        os.truncate(path, path.stat().st_size - 200)
    with pytest.raises(InputError, match=r"head\.nii\.gz"):
        load_head(path)


# The dataset


def test_images_do_not_depend_on_when_they_are_made(demo_source: Path, tmp_path: Path) -> None:
    path = demo_source / "SiteA/sub-0099002/ses-2/anat/sub-0099002_ses-2_run-1_T1w.nii.gz"
    again = tmp_path / path.name
    nib.save(varied_head(model_head(), SIMULATED.seed + 1, 4.0, scan=1), again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("site", SITES)
def test_sites_are_valid_bids(demo_source: Path, site: str) -> None:
    subprocess.run(["bids-validator-deno", demo_source / site], env=ENVIRONMENT, check=True)


def test_a_taken_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(TierError, match="new folder"):
        make_demo_dataset(tmp_path, SIMULATED, print)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_it_is_made_where_git_would_sign_commits(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[commit]\n gpgSign = true\n[gpg]\n program = false\n")
    project = Project.at(tmp_path / "project", lambda: ["env", f"HOME={tmp_path}"])
    project.succeeds("make_demo_dataset", demo={"voxel_size_mm": 4.0})


def test_an_interrupted_make_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of itself nor of one before it that was killed."""
    leftover = tmp_path / ".demo.partial/objects"
    leftover.mkdir(parents=True)
    (leftover / "content").touch(mode=0o444)
    leftover.chmod(0o555)

    def interrupt(partial: Path) -> None:
        assert any(partial.rglob("*_T1w.nii.gz"))
        raise KeyboardInterrupt

    monkeypatch.setattr("neurotier.demo.dataset.save_datasets", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make_demo_dataset(tmp_path / "demo", SIMULATED, print)
    assert not any(tmp_path.iterdir())
