"""A mosaic: the outline of a brain mask over slices of the T1w image.

Five slices in each of three orientations through the mask's bounding box, at one scale in mm, the subject's left
on the left. Drawn with numpy and Pillow alone and stored with few grey levels: hundreds of pictures in minutes,
and some tens of kB each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from nibabel import orientations
from PIL import Image, ImageColor, ImageDraw, ImageFont, PngImagePlugin

from neurotier.analysis.images import opened
from neurotier.analysis.memory import memory_for_images
from neurotier.core.errors import InputError
from neurotier.core.files import write_bytes
from neurotier.pages.kit.style import OUTLINE_COLOUR
from neurotier.pages.report.mosaics import REASON_KEY

TILE_PX = 120
SLICES = 5
TITLE_PX = 20
MARGIN_MM = 12.0
POSITIONS = np.linspace(0.12, 0.88, SLICES)
"""Where the slices lie between the mask's first (0) and last (1) voxel."""

GREYS = 32
"""Grey levels: a PNG of noise shrinks with their number, and the eye tells few more apart."""

OUTLINE, WHITE = GREYS, GREYS + 1

Bytes2D = npt.NDArray[np.uint8]
Volume = npt.NDArray[Any]


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
