"""Mosaics: outline and slices, deterministic bytes, and one bad image that does not cost the others."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import nibabel
import numpy as np
import pytest
from neurotier.analysis.brains import masks_of_app
from neurotier.core.errors import InputError, KilledError
from neurotier.core.files import write_text
from neurotier.core.tables import read_table
from neurotier.dataset.bids import Image as T1w
from neurotier.pages.kit.chart import ORANGE
from neurotier.pages.report import mosaics
from neurotier.pages.report.mosaic import SLICES, TILE_PX, TITLE_PX, draw_mosaic, read_canonical
from neurotier.pages.report.mosaics import Picture, draw_all, draw_mosaics, pictures_of
from neurotier.run.group import group_rows
from nibabel.orientations import axcodes2ornt, ornt_transform
from PIL import Image, ImageColor
from report_data import make_results

SHAPE = (60, 72, 56)


def save(path: Path, values: np.ndarray, axes: str = "RAS") -> Path:
    """Write a volume given in RAS order with the axes asked for."""
    image = nibabel.Nifti1Image(values, np.diag([3.0, 3.0, 3.0, 1.0]))
    turn = ornt_transform(axcodes2ornt("RAS"), axcodes2ornt(axes))
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
    return save(tmp_path / "T1w.nii.gz", head), save(tmp_path / "mask.nii.gz", brain)


@pytest.fixture
def pictures(pair: tuple[Path, Path]) -> list[Picture]:
    """Of two sites the same."""
    return [Picture(*pair, PurePosixPath(f"Site{number}/sub-1.png"), "") for number in range(2)]


def test_picture_has_outline_size_and_weight_and_right_is_on_the_right(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    out = tmp_path / "out" / "sub-1.png"
    draw_mosaic(*pair, out, "sub-1")
    with Image.open(out) as picture:
        outline = (np.asarray(picture.convert("RGB")) == ImageColor.getrgb(ORANGE)).all(axis=2)
        middle = np.asarray(picture.convert("L"))[TITLE_PX + TILE_PX // 2, 2 * TILE_PX : 3 * TILE_PX].astype(int)
    assert outline.shape == (TITLE_PX + 3 * TILE_PX, SLICES * TILE_PX)
    tiles = outline[TITLE_PX:].reshape(3, TILE_PX, SLICES, TILE_PX)
    assert tiles.sum(axis=(1, 3)).min() > 30
    assert out.stat().st_size <= 80_000
    assert middle[TILE_PX // 2 :].sum() > middle[: TILE_PX // 2].sum(), "the made head is brighter on its right"


@pytest.mark.parametrize("axes", ["LAS", "PSR", "AIL"])
def test_any_orientation_gives_the_same_picture(tmp_path: Path, pair: tuple[Path, Path], axes: str) -> None:
    head, brain = (save(tmp_path / f"{number}.nii.gz", values, axes) for number, values in enumerate(head_and_brain()))
    draw_mosaic(*pair, tmp_path / "ras.png", "sub-1")
    draw_mosaic(head, brain, tmp_path / "turned.png", "sub-1")
    assert (tmp_path / "ras.png").read_bytes() == (tmp_path / "turned.png").read_bytes()


def test_a_mask_that_lies_elsewhere_is_not_drawn_as_if_it_fitted(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    """As of an app that aligns heads: both have as many voxels, and the outline was drawn where the mask is not."""
    mask = nibabel.load(pair[1])
    for shift_mm, name in ((0.001, "rounded"), (10.0, "moved")):
        mask.affine[0, 3] += shift_mm
        nibabel.save(nibabel.Nifti1Image(mask.dataobj, mask.affine), tmp_path / f"{name}.nii.gz")
    draw_mosaic(pair[0], tmp_path / "rounded.nii.gz", tmp_path / "out.png", "sub-1")
    with pytest.raises(InputError, match=r"^moved\.nii\.gz: it lies elsewhere than the T1w image"):
        draw_mosaic(pair[0], tmp_path / "moved.nii.gz", tmp_path / "out.png", "sub-1")


@pytest.mark.parametrize("workers", [1, 2])
def test_one_bad_image_does_not_cost_the_others(tmp_path: Path, pair: tuple[Path, Path], workers: int) -> None:
    t1w, mask = pair
    broken, folder = tmp_path / "broken.nii.gz", tmp_path / "mosaics"
    broken.write_bytes(t1w.read_bytes()[:500])
    heads = {"good.png": t1w, "SiteA/broken.png": broken, "gone.png": tmp_path / "gone.nii.gz"}
    pictures = [Picture(head, mask, PurePosixPath(name), "title " * 40) for name, head in heads.items()]
    times_ns = set()
    for _ in range(2):
        broken_line, gone_line = draw_mosaics(pictures, folder, workers, tmp_path / "drawn")
        assert broken_line.startswith("no mosaic SiteA/broken.png: ")
        assert gone_line.startswith("no mosaic gone.png: ")
        assert "gone.nii.gz" in gone_line
        assert [path.name for path in folder.rglob("*.png")] == ["good.png"]
        times_ns.add((folder / "good.png").stat().st_mtime_ns)
    assert len(times_ns) == 1, "it is drawn once"
    (tmp_path / "drawn/good.png").unlink()
    (tmp_path / "drawn/good.png/a folder").mkdir(parents=True)
    draw_mosaics(pictures, folder, workers, tmp_path / "drawn")
    assert (folder / "good.png").is_file()


def test_a_process_that_is_killed_while_it_draws_is_reported(
    tmp_path: Path, pictures: list[Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("neurotier.pages.report.mosaic.draw_mosaic", killed)
    with pytest.raises(KilledError, match="a process that drew them was killed"):
        draw_mosaics(pictures, tmp_path / "mosaics", 2, tmp_path / "drawn")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_picture_without_room_is_drawn_when_there_is_some(
    tmp_path: Path, pictures: list[Picture], mount_tmpfs: Callable[..., Path], workers: int
) -> None:
    """Otherwise the rule would have ended well, and no start would draw it again."""
    results = mount_tmpfs(tmp_path / "results", "size=400k")
    (results / "filler").write_bytes(bytes(380 * 1024))
    where = results / "figures" / "mosaics", workers, results / "state" / "mosaics"
    with pytest.raises(OSError, match=r"No space left on device: '.*sub-1.png'"):
        draw_mosaics(pictures, *where)
    (results / "filler").unlink()
    assert draw_mosaics(pictures, *where) == []
    assert sorted(path.parent.name for path in where[0].rglob("sub-1.png")) == ["Site0", "Site1"]


def test_a_folder_of_pictures_without_room_is_named(
    tmp_path: Path, pictures: list[Picture], mount_tmpfs: Callable[..., Path]
) -> None:
    results = mount_tmpfs(tmp_path / "results", "nr_inodes=3")  # its own, the folder's, the site's
    with pytest.raises(OSError, match="No space left on device: ") as raised:
        draw_mosaics(pictures, results / "mosaics", 1, tmp_path / "drawn")
    assert raised.value.filename


def test_masks_of_an_app_have_volumes_and_mosaics(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    """Of every T1w image beside which an app wrote a mask; one that cannot be read is named in the log."""
    out, log = tmp_path / "out", tmp_path / "log"
    images = [f"SiteA/sub-1/anat/sub-1_run-{run}_T1w.nii.gz" for run in "123"]
    images += [images[0].removesuffix(".gz"), "SiteA/sub-1/func/sub-1_task-rest_bold.nii.gz"]
    images.sort()  # as the index has them: an image with two extensions has one mask, which was counted twice
    masks = [out / f"sub-1/anat/sub-1_run-{run}_desc-brain_mask.nii.gz" for run in "12"]
    masks[0].parent.mkdir(parents=True)
    shutil.copy(pair[1], masks[0])
    masks[1].write_bytes(b"no image")
    given = [T1w("SiteA/sub-1", "SiteA", "1", "", "", path) for path in images]
    rows = masks_of_app(given, out, log)
    assert [(row["image"], row["mask"]) for row in rows] == [
        ("SiteA/sub-1/anat/sub-1_run-1_T1w.nii.gz", "SiteA/sub-1/anat/sub-1_run-1_desc-brain_mask.nii.gz")
    ]
    assert rows[0]["brain_voxels"] == np.count_nonzero(nibabel.load(pair[1]).get_fdata())
    assert "not in the group table: mask sub-1/anat/sub-1_run-2_desc-brain_mask.nii.gz" in log.read_text()
    places, settings = make_results(tmp_path / "results", 1)
    (picture,) = pictures_of(
        group_rows([{"participant": "SiteA/sub-1", "images": rows}]),
        places,
        replace(settings, app=replace(settings.app, image="app.sif")),
    )
    assert picture.mask == places.results / "app/SiteA/sub-1/sub-1/anat/sub-1_run-1_desc-brain_mask.nii.gz"


def test_the_brain_alone_is_drawn_if_a_head_is_not_whole_on_its_tier(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path / "results", 1)
    row = read_table(places.group / "group.tsv", "group")[0]
    head = places.datasets / "demo" / row["image"]
    content = head.with_name(".git") / "annex/objects/MD5E-s4--a"
    write_text(content, "head")
    head.symlink_to(content.relative_to(head.parent))
    (picture,) = pictures_of([row], places, settings)
    assert picture.t1w == head
    write_text(content, "he")
    (picture,) = pictures_of([row], places, settings)
    assert picture.t1w.name == picture.mask.name.replace("_mask", "_T1w")
    assert picture.title.endswith("(brain only: the head is not here)")


def test_the_brain_alone_is_drawn_if_a_head_is_dropped_before_it_is_drawn(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule ended well without a picture, and no start drew it when the head was there again."""
    places, settings = make_results(tmp_path / "results", 1)
    rows = read_table(places.group / "group.tsv", "group")[:1]
    head = places.datasets / "demo" / rows[0]["image"]
    mask = places.derivatives / rows[0]["mask"]
    brain = mask.with_name(mask.name.replace("_mask", "_T1w"))
    for source, target in zip((*pair, pair[0]), (head, mask, brain), strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)

    def looked(*arguments: Any) -> list[Picture]:
        pictures = pictures_of(*arguments)
        head.unlink(missing_ok=True)
        return pictures

    monkeypatch.setattr(mosaics, "pictures_of", looked)
    assert draw_all(rows, places, settings, 1) == []
    assert len(list(places.mosaics.rglob("*.png"))) == 1


def test_a_head_whose_content_has_a_name_without_an_ending_is_read(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    content = pair[0].rename(tmp_path / "SHA256-s1--a")
    link = tmp_path / "sub-1_T1w.nii.gz"
    link.symlink_to(content)
    assert read_canonical(link)[0].shape == SHAPE
