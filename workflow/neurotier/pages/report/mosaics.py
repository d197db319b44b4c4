"""Mosaics: one picture per brain mask, its outline over the T1w image, for a look at every result.

Five slices in each of three orientations through the mask's bounding box, at one scale in mm, the subject's left
on the left. Drawn with numpy and Pillow alone and stored with few grey levels: hundreds of pictures in minutes,
and some tens of kB each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from nibabel import orientations
from PIL import Image, ImageColor, ImageDraw, ImageFont, PngImagePlugin

from neurotier.analysis.images import opened
from neurotier.analysis.memory import memory_for_images
from neurotier.core.errors import InputError, one_line
from neurotier.core.files import read_json, remove_whatever, write_bytes
from neurotier.core.foreign import file_in_dataset
from neurotier.core.places import Places
from neurotier.core.quantities import cm3
from neurotier.core.tables import Row
from neurotier.dataset.bids import strip_extension
from neurotier.pages.kit.style import OUTLINE_COLOUR

TILE_PX = 120
SLICES = 5
TITLE_PX = 20
MARGIN_MM = 12.0
POSITIONS = np.linspace(0.12, 0.88, SLICES)
"""Where the slices lie between the mask's first (0) and last (1) voxel."""

GREYS = 32
"""Grey levels: a PNG of noise shrinks with their number, and the eye tells few more apart."""

OUTLINE, WHITE = GREYS, GREYS + 1
LAST_CHUNK = b"\0\0\0\0IEND\xaeB`\x82"
REASON_KEY = "neurotier-reason"

Bytes2D = npt.NDArray[np.uint8]
Volume = npt.NDArray[Any]


@dataclass(frozen=True)
class Picture:
    """One mosaic to draw: from an image and its mask, to ``out``."""

    t1w: Path
    mask: Path
    out: Path
    title: str

    @classmethod
    def of(cls, row: Row, places: Places) -> Picture:
        """The picture of a row of ``group.tsv``; where the image was dropped from its tier, of the extracted brain."""
        mask = places.derivatives / row["mask"]
        t1w = head_of(row["image"], places)
        name = mosaic_name(row["image"])
        title = f"{name.with_suffix('')}: {cm3(row['brain_volume_mm3'])}"
        if t1w is None:
            t1w = mask.with_name(mask.name.replace("_mask.nii", "_T1w.nii"))
            title += " (brain only: the head was dropped)"
        return cls(t1w, mask, places.mosaics / name, title)


def head_of(image: str, places: Places) -> Path | None:
    """Where an image of the dataset lies, if it is there and no link leads out of the dataset to it."""
    dataset = Path(read_json(places.index / "dataset.json")["path"])
    settings = read_json(places.settings_file) if places.settings_file.exists() else {}
    try:
        folder, below = file_in_dataset(dataset, image, settings.get("dataset", {}).get("links_to", []))
    except InputError:
        return None
    return folder / below if (folder / below).exists() else None


def mosaic_name(image: str) -> PurePosixPath:
    """Where an image's mosaic lies below the folder of mosaics.

    >>> str(mosaic_name("NYU_2/sub-01/ses-1/anat/sub-01_ses-1_T1w.nii.gz"))
    'NYU_2/sub-01_ses-1_T1w.png'
    """
    pure = PurePosixPath(image)
    parts = pure.parent.parts
    subject = next((place for place, part in enumerate(parts) if part.startswith("sub-")), 0)
    return PurePosixPath(*parts[:subject], f"{strip_extension(pure.name)}.png")


def draw_mosaics(pictures: Sequence[Picture], folder: Path, workers: int, drawn: Path) -> dict[Path, str]:
    """Bring a folder of mosaics up to date with a list of images.

    Pictures newer than their mask stay; pictures of images that are no longer listed go. What cannot be drawn
    gets a picture that says why, and is tried again next time.

    A picture that was drawn before is the same file in both folders, under two names.

    Parameters
    ----------
    pictures
        All pictures that shall be there.
    folder
        Where they lie; every other PNG below it is removed.
    workers
        Processes that draw at the same time.
    drawn
        Where pictures stay if the folder is emptied.

    Returns
    -------
    dict
        Path of each placeholder to the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)  # there is none to draw with the tool noop
    kept = {picture.out: drawn / picture.out.relative_to(folder) for picture in pictures}
    for path in folder.rglob("*.png"):
        if path not in kept:
            path.unlink()
    wanted = set(kept.values())
    for path in drawn.rglob("*.png"):
        if path not in wanted:
            path.unlink()
    for picture in pictures:
        if not is_current(picture) and is_current(replace(picture, out=kept[picture.out])):
            give_name(kept[picture.out], picture.out)
    stale = [picture for picture in pictures if not is_current(picture)]
    reasons = draw_all(stale, workers)
    for picture in pictures:
        if picture.out not in reasons and not is_current(replace(picture, out=kept[picture.out])):
            give_name(picture.out, kept[picture.out])
    return reasons


def give_name(file: Path, name: Path) -> None:
    """Give a file a second name, or have a copy of it there, where file systems have no hard links."""
    name.parent.mkdir(parents=True, exist_ok=True)
    remove_whatever(name)
    try:
        os.link(file, name)
    except OSError:
        shutil.copy2(file, name)


def draw_all(stale: Sequence[Picture], workers: int) -> dict[Path, str]:
    """Draw pictures; path of each placeholder to the reason."""
    if not stale:
        return {}
    if workers <= 1 or len(stale) == 1:
        reasons = [draw_or_explain(picture) for picture in stale]
    else:
        with ProcessPoolExecutor(min(workers, len(stale))) as pool:
            reasons = list(pool.map(draw_or_explain, stale, chunksize=4))
    return {picture.out: reason for picture, reason in zip(stale, reasons, strict=True) if reason}


def is_current(picture: Picture) -> bool:
    """Whether the picture is there and whole, is newer than its mask, and is not a placeholder."""
    try:
        newer = picture.out.stat().st_mtime_ns >= picture.mask.stat().st_mtime_ns
        return newer and is_whole(picture.out) and not placeholder_reason(picture.out)
    except OSError:
        return False


def is_whole(path: Path) -> bool:
    """Whether a PNG has its last chunk: both names of a file that was cut short tell of the same bytes."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(LAST_CHUNK)))
        return file.read() == LAST_CHUNK


def placeholder_reason(path: Path) -> str:
    """Why a picture is a placeholder; empty if it is a mosaic."""
    try:
        with Image.open(path) as opened:
            return str(opened.info.get(REASON_KEY, ""))
    except (OSError, ValueError) as error:
        return f"the picture cannot be read: {error}"


def draw_or_explain(picture: Picture) -> str:
    """Draw one picture, or a placeholder; returns the reason, or nothing."""
    try:
        draw_mosaic(picture.t1w, picture.mask, picture.out, picture.title)
    except Exception as error:  # whatever is wrong with one image must not cost the pictures of the others
        reason = one_line(str(error) or type(error).__name__)
        draw_placeholder(picture.out, picture.title, reason)
        return reason
    return ""


def draw_mosaic(t1w: Path, mask: Path, out: Path, title: str) -> None:
    """Draw the mask's outline over the T1w image; equal inputs give equal bytes.

    Parameters
    ----------
    t1w, mask
        NIfTI images on the same grid, of any orientation and voxel size.
    out
        PNG to write; its folder is made.
    title
        Text above the slices; cut if it is too long.

    Raises
    ------
    InputError
        If the images are not three-dimensional or their grids differ.
    """
    head, zooms = read_canonical(t1w)
    brain = read_canonical(mask)[0] > 0
    if head.shape != brain.shape:
        raise InputError(f"its grid {brain.shape} is not that of the T1w image, {head.shape}", where=mask.name)
    empty = not brain.any()
    box = bounding_box(~brain if empty else brain)
    window = intensity_window(head)
    side_mm = max((high - low) * zoom for (low, high), zoom in zip(box, zooms, strict=True)) + 2 * MARGIN_MM
    canvas = np.zeros((TITLE_PX + 3 * TILE_PX, SLICES * TILE_PX), np.uint8)
    for place, (top, left) in enumerate(tile_corners()):
        axis = 2 - place // SLICES  # axial, coronal, sagittal
        low, high = box[axis]
        index = round(low + POSITIONS[place % SLICES] * (high - 1 - low))
        across, up = (other for other in range(3) if other != axis)
        limits = [centred(box[other], side_mm / zooms[other]) for other in (across, up)]
        plane, inside = (np.moveaxis(volume, axis, 0)[index] for volume in (head, brain))  # np.take would copy it all
        drawn = tile(to_grey(plane, window), inside, limits[0], limits[1])
        canvas[top : top + TILE_PX, left : left + TILE_PX] = drawn
    write_picture(canvas, out, f"{title} - the mask is empty" if empty else title, left_marks=True)


def read_canonical(path: Path) -> tuple[Volume, list[float]]:
    """A volume turned to the closest right-anterior-superior axes, and its voxel edges in mm."""
    real = Path(os.path.realpath(path))  # an annex has links to its contents
    with opened(real.parent, real.name, path.name, InputError, "the image file") as stored:
        stored.check_memory(memory_for_images())
        values = stored.array()
    if values.ndim > 3:
        values = values.reshape(*values.shape[:3], -1)[..., 0]
    if values.ndim != 3:
        raise InputError(f"has {values.ndim} dimensions, not 3", where=path.name)
    orientation = orientations.io_orientation(stored.affine)
    zooms = [0.0, 0.0, 0.0]
    for zoom, (axis, _) in zip(stored.header.get_zooms()[:3], orientation, strict=True):
        zooms[int(axis)] = float(zoom) or 1.0
    return orientations.apply_orientation(values, orientation), zooms


def bounding_box(inside: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First index and one past the last, along each axis, of what is true; all of it if nothing is."""
    plane = np.any(inside, axis=2)
    box = []
    for axis, present in enumerate((np.any(plane, axis=1), np.any(plane, axis=0), np.any(inside, axis=(0, 1)))):
        found = np.flatnonzero(present)
        box.append((int(found[0]), int(found[-1]) + 1) if found.size else (0, inside.shape[axis]))
    return box


def intensity_window(head: Volume) -> tuple[float, float]:
    """The 1st and the 99.5th percentile of what is not background: a few bright voxels must not darken the rest."""
    sample = np.nan_to_num(head[::3, ::3, ::3].astype(np.float32))
    positive = sample[sample > 0]
    low, high = np.percentile(positive if positive.size else sample, [1.0, 99.5])
    return float(low), float(high)


def to_grey(plane: Volume, window: tuple[float, float]) -> Bytes2D:
    """Intensities as 0-255 within a window."""
    low, high = window
    scaled = (np.nan_to_num(plane.astype(np.float32)) - low) * (255.0 / (high - low) if high > low else 1.0)
    clipped: Bytes2D = np.clip(scaled, 0, 255).astype(np.uint8)
    return clipped


def tile_corners() -> Iterator[tuple[int, int]]:
    """Top and left pixel of each tile, row by row."""
    for row in range(3):
        for column in range(SLICES):
            yield TITLE_PX + row * TILE_PX, column * TILE_PX


def centred(limits: tuple[int, int], length: float) -> tuple[float, float]:
    """An interval of ``length`` voxels about the middle of ``limits``."""
    middle = (limits[0] + limits[1]) / 2
    return middle - length / 2, middle + length / 2


def tile(grey: Bytes2D, brain: npt.NDArray[np.bool_], across: tuple[float, float], up: tuple[float, float]) -> Bytes2D:
    """One square tile in palette indices: a window of a slice, scaled, with the mask's outline."""
    shown = resample(grey, across, up)
    inside = resample(brain.astype(np.uint8) * 255, across, up) >= 128
    core = inside.copy()
    core[1:] &= inside[:-1]
    core[:-1] &= inside[1:]
    core[:, 1:] &= inside[:, :-1]
    core[:, :-1] &= inside[:, 1:]
    indices = (shown.astype(np.uint16) * GREYS // 256).astype(np.uint8)
    indices[inside & ~core] = OUTLINE
    return indices


def resample(plane: Bytes2D, across: tuple[float, float], up: tuple[float, float]) -> Bytes2D:
    """A window of a plane, in voxels, as ``TILE_PX`` x ``TILE_PX`` with the second axis pointing up; black outside."""
    pad = 1 + int(max(0, -across[0], -up[0], across[1] - plane.shape[0], up[1] - plane.shape[1]))
    padded = np.pad(plane, pad)
    picture = Image.fromarray(np.ascontiguousarray(padded.T[::-1]))
    height = padded.shape[1]
    window = (across[0] + pad, height - (up[1] + pad), across[1] + pad, height - (up[0] + pad))
    scaled = picture.resize((TILE_PX, TILE_PX), Image.Resampling.BILINEAR, box=window)
    return np.asarray(scaled, dtype=np.uint8)


def draw_placeholder(out: Path, title: str, reason: str) -> None:
    """A picture that says why there is no mosaic."""
    canvas = np.zeros((TITLE_PX + TILE_PX, SLICES * TILE_PX), np.uint8)
    write_picture(canvas, out, title, reason)


def write_picture(canvas: Bytes2D, out: Path, title: str, reason: str = "", left_marks: bool = False) -> None:
    """Write palette indices as PNG, with the title and, of a placeholder, the reason."""
    picture = Image.fromarray(canvas)
    picture.putpalette(palette())
    pen = ImageDraw.Draw(picture)
    pen.fontmode = "1"  # anti-aliased letters would need colours of their own
    put_text(pen, (5, 3), title, picture.width - 10)
    if left_marks:
        for row in range(2):
            put_text(pen, (4, TITLE_PX + row * TILE_PX + TILE_PX // 2 - 6), "L", TILE_PX)
    comment = PngImagePlugin.PngInfo()
    if reason:
        put_text(pen, (5, TITLE_PX + 12), "no mosaic:", picture.width - 10)
        for line, part in enumerate(wrapped(reason, picture.width - 10)):
            put_text(pen, (5, TITLE_PX + 32 + 16 * line), part, picture.width - 10)
        comment.add_itxt(REASON_KEY, reason)
    content = BytesIO()
    picture.save(content, "PNG", optimize=True, pnginfo=comment)
    write_bytes(out, content.getvalue())


def palette() -> list[int]:
    """Red, green and blue of every palette index."""
    greys = [round(level * 255 / (GREYS - 1)) for level in range(GREYS)]
    colours = [(grey, grey, grey) for grey in greys]
    colours += [ImageColor.getrgb(OUTLINE_COLOUR)[:3], (255, 255, 255)]
    return [part for colour in colours for part in colour]


def put_text(pen: ImageDraw.ImageDraw, at: tuple[int, int], text: str, width: int) -> None:
    """Write one line, its end cut to fit ``width`` pixels."""
    if pen.textlength(text, font=font()) > width:
        while text and pen.textlength(f"{text}…", font=font()) > width:
            text = text[:-1]
        text += "…"
    pen.text(at, text, fill=WHITE, font=font())


def wrapped(text: str, width: int) -> list[str]:
    """A text in up to five lines of ``width`` pixels."""
    per_line = max(1, int(width / font().getlength("n")))
    return [text[start : start + per_line] for start in range(0, len(text), per_line)][:5]


@cache
def font() -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib brings along: the same letters on every machine."""
    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), 12)
