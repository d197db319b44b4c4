"""Mosaics: outline and slices, deterministic bytes, and one bad image that does not cost the others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
from neurotier.core.errors import InputError
from neurotier.core.tables import read_table
from neurotier.pages.kit.style import OUTLINE_COLOUR
from neurotier.pages.report import mosaics
from neurotier.pages.report.mosaic import SLICES, TILE_PX, TITLE_PX, bounding_box, draw_mosaic
from neurotier.pages.report.mosaics import (
    Picture,
    draw_mosaics,
    placeholder_reason,
)
from PIL import Image, ImageColor
from report_data import make_results

SHAPE = (60, 72, 56)


def save(path: Path, values: np.ndarray, axes: str = "RAS", voxel_mm: float = 3.0) -> Path:
    """Write a volume given in RAS order with the axes asked for."""
    image = nibabel.Nifti1Image(values, np.diag([voxel_mm, voxel_mm, voxel_mm, 1.0]))
    turn = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt("RAS"), nibabel.orientations.axcodes2ornt(axes)
    )
    nibabel.save(image.as_reoriented(turn), path)
    return path


def head_and_brain() -> tuple[np.ndarray, np.ndarray]:
    """A noisy ellipsoid head and the mask of a smaller ellipsoid in it; not symmetric from left to right."""
    grid = np.meshgrid(*(np.linspace(-1, 1, count) for count in SHAPE), indexing="ij")
    radius = np.sqrt(sum(axis**2 for axis in grid))
    noise = np.random.default_rng(0).normal(0, 20, SHAPE)
    head = np.where(radius < 0.9, 400 + 200 * grid[0] + noise, 0).clip(0)
    return head.astype(np.int16), (radius < 0.6).astype(np.uint8)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    head, brain = head_and_brain()
    return save(tmp_path / "sub-1_T1w.nii.gz", head), save(tmp_path / "sub-1_mask.nii.gz", brain)


def test_picture_has_outline_size_and_weight(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    out = tmp_path / "out" / "sub-1.png"
    draw_mosaic(*pair, out, "sub-1")
    with Image.open(out) as picture:
        assert picture.size == (SLICES * TILE_PX, TITLE_PX + 3 * TILE_PX)
        pixels = np.asarray(picture.convert("RGB"))
    outline = (pixels == ImageColor.getrgb(OUTLINE_COLOUR)).all(axis=2)
    for row in range(3):
        for column in range(SLICES):
            top, left = TITLE_PX + row * TILE_PX, column * TILE_PX
            assert outline[top : top + TILE_PX, left : left + TILE_PX].sum() > 30, (row, column)
    assert out.stat().st_size <= 80_000
    assert not placeholder_reason(out)


@pytest.mark.parametrize("axes", ["LAS", "PSR", "AIL"])
def test_any_orientation_gives_the_same_picture(tmp_path: Path, pair: tuple[Path, Path], axes: str) -> None:
    draw_mosaic(*pair, tmp_path / "ras.png", "sub-1")
    head, brain = head_and_brain()
    turned = save(tmp_path / "t.nii.gz", head, axes), save(tmp_path / "m.nii.gz", brain, axes)
    draw_mosaic(*turned, tmp_path / "turned.png", "sub-1")
    assert (tmp_path / "ras.png").read_bytes() == (tmp_path / "turned.png").read_bytes()


def test_right_is_on_the_right(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    draw_mosaic(*pair, tmp_path / "a.png", "")
    with Image.open(tmp_path / "a.png") as picture:
        middle = np.asarray(picture.convert("L"))[TITLE_PX + TILE_PX // 2, 2 * TILE_PX : 3 * TILE_PX].astype(int)
    assert middle[TILE_PX // 2 :].sum() > middle[: TILE_PX // 2].sum(), "the made head is brighter on its right"


def test_thick_slices_keep_their_aspect(tmp_path: Path) -> None:
    brain = np.zeros((40, 40, 10), np.uint8)
    brain[10:30, 10:30, 2:7] = 1  # a cube in mm: slices are four times as thick as wide
    affine = np.diag([1.0, 1.0, 4.0, 1.0])
    path = tmp_path / "m.nii.gz"
    nibabel.save(nibabel.Nifti1Image(brain, affine), path)
    draw_mosaic(path, path, tmp_path / "a.png", "")
    with Image.open(tmp_path / "a.png") as picture:
        outline = (np.asarray(picture.convert("RGB")) == ImageColor.getrgb(OUTLINE_COLOUR)).all(axis=2)
    tile = outline[TITLE_PX + TILE_PX : TITLE_PX + 2 * TILE_PX, 2 * TILE_PX : 3 * TILE_PX]
    high, wide = (np.ptp(np.flatnonzero(tile.any(axis=axis))) for axis in (1, 0))
    assert abs(int(high) - int(wide)) <= 4


def test_bytes_repeat(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for name in ("a.png", "b.png"):
        draw_mosaic(*pair, tmp_path / name, "sub-1")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_empty_mask_and_4d_image_are_drawn(tmp_path: Path) -> None:
    head, brain = head_and_brain()
    t1w = save(tmp_path / "t.nii.gz", head)
    draw_mosaic(t1w, save(tmp_path / "m.nii.gz", 0 * brain), tmp_path / "empty.png", "sub-1")
    four = nibabel.Nifti1Image(np.stack([head, head], axis=-1), np.diag([3.0, 3.0, 3.0, 1.0]))
    nibabel.save(four, tmp_path / "four.nii.gz")
    draw_mosaic(tmp_path / "four.nii.gz", save(tmp_path / "m.nii.gz", brain), tmp_path / "four.png", "sub-1")
    assert (tmp_path / "empty.png").is_file()
    assert (tmp_path / "four.png").is_file()


def test_grids_that_differ_are_refused(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    other = save(tmp_path / "o.nii.gz", np.ones((5, 5, 5), np.uint8))
    with pytest.raises(InputError, match="is not that of the T1w image"):
        draw_mosaic(pair[0], other, tmp_path / "a.png", "")


def test_bounding_box() -> None:
    inside = np.zeros((4, 5, 6), bool)
    assert bounding_box(inside) == [(0, 4), (0, 5), (0, 6)]
    inside[1:3, 2, 3:] = True
    assert bounding_box(inside) == [(1, 3), (2, 3), (3, 6)]


@pytest.mark.parametrize("workers", [1, 2])
def test_one_bad_image_does_not_cost_the_others(tmp_path: Path, pair: tuple[Path, Path], workers: int) -> None:
    t1w, mask = pair
    broken = tmp_path / "broken.nii.gz"
    broken.write_bytes(t1w.read_bytes()[:500])
    folder = tmp_path / "mosaics"
    good = Picture(t1w, mask, folder / "good.png", "good")
    pictures = [
        good,
        Picture(broken, mask, folder / "SiteA" / "broken.png", "broken " * 40),
        Picture(tmp_path / "gone.nii.gz", mask, folder / "gone.png", "gone"),
    ]
    reasons = draw_mosaics(pictures, folder, workers, tmp_path / "drawn")
    assert set(reasons) == {pictures[1].out, pictures[2].out}
    assert "gone.nii.gz" in placeholder_reason(pictures[2].out)
    before = {picture.out: picture.out.stat().st_mtime_ns for picture in pictures}
    assert set(draw_mosaics(pictures, folder, workers, tmp_path / "drawn")) == set(reasons), (
        "placeholders are tried again"
    )
    assert good.out.stat().st_mtime_ns == before[good.out], "current pictures stay"


def test_picture_of_a_row(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    places, _ = make_results(tmp_path / "results", 5)
    row = read_table(places.group / "group.tsv", "group")[0]
    picture = Picture.of(row, places)
    assert picture.mask == places.derivatives / row["mask"]
    assert picture.out == places.mosaics / "sub-01_ses-1_run-1_T1w.png"
    assert picture.t1w.name == "sub-01_ses-1_run-1_desc-brain_T1w.nii.gz", "the image was dropped from its tier"
    image = places.datasets / "demo" / row["image"]
    image.parent.mkdir(parents=True)
    shutil.copy(pair[0], image)
    assert Picture.of(row, places).t1w == image


def test_pictures_follow_masks_and_list(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    folder = tmp_path / "mosaics"
    first, second = (Picture(*pair, folder / f"{name}.png", name) for name in ("first", "second"))
    assert draw_mosaics([first, second], folder, 1, tmp_path / "drawn") == {}
    older = second.out.stat().st_mtime_ns - 10_000_000_000
    os.utime(second.out, ns=(older, older))
    os.utime(pair[1], ns=(older + 5_000_000_000, older + 5_000_000_000))
    draw_mosaics([second], folder, 1, tmp_path / "drawn")
    assert not first.out.exists(), "no longer in the list"
    assert second.out.stat().st_mtime_ns > older, "the mask is newer"
    assert draw_mosaics([], folder, 1, tmp_path / "drawn") == {}
    assert not second.out.exists()


def test_pictures_that_were_drawn_are_not_drawn_again(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake removes the folder before it has any of them made."""
    folder, drawn = tmp_path / "mosaics", tmp_path / "drawn"
    pictures = [Picture(*pair, folder / "SiteA" / f"{name}.png", name) for name in ("first", "second")]
    assert draw_mosaics(pictures, folder, 1, drawn) == {}
    contents = {picture.out: picture.out.read_bytes() for picture in pictures}
    shutil.rmtree(folder)
    begun: list[str] = []
    monkeypatch.setattr(mosaics, "draw_or_explain", lambda picture: begun.append(picture.title))
    assert draw_mosaics(pictures, folder, 1, drawn) == {}
    assert begun == []
    assert {picture.out: picture.out.read_bytes() for picture in pictures} == contents


def test_a_picture_cut_short_under_one_name_is_drawn_anew(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    folder, drawn = tmp_path / "mosaics", tmp_path / "drawn"
    picture = Picture(*pair, folder / "first.png", "first")
    draw_mosaics([picture], folder, 1, drawn)
    whole = picture.out.read_bytes()
    os.truncate(drawn / "first.png", len(whole) // 2)
    draw_mosaics([picture], folder, 1, drawn)
    assert picture.out.read_bytes() == (drawn / "first.png").read_bytes() == whole
