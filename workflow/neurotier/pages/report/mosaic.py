"""Draw a mosaic: the outline of a brain mask over slices of the T1w image.

It has five slices in each of three orientations through the mask's bounding box, at one scale in mm, with the subject's
left on the left. It is drawn with only numpy and Pillow, and stored with few grey levels, so that hundreds of pictures
take minutes, and some tens of kB each.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from nibabel.affines import voxel_sizes
from nibabel.funcs import as_closest_canonical
from nibabel.spatialimages import SpatialImage
from PIL import Image, ImageColor, ImageDraw, ImageFont
from scipy import ndimage

from neurotier.analysis.images import Stored
from neurotier.analysis.inflating import opened_content
from neurotier.core.errors import InputError
from neurotier.core.files import write_bytes
from neurotier.core.quantities import shorten
from neurotier.pages.kit.chart import ORANGE

TILE_PX = 120
SLICES = 5
TITLE_PX = 20
LINE_LETTERS = 84
MARGIN_MM = 12.0
POSITIONS = np.linspace(0.12, 0.88, SLICES)
"""Positions of the slices between the mask's first (0) and last (1) voxel."""

SAME_MM = 0.01
"""How far entries of two affines may differ: an app may have written its affine with another precision."""

GREYS = 32
"""Number of grey levels: with fewer, a noisy PNG is smaller, and the eye can hardly tell more apart."""

OUTLINE, WHITE = GREYS, GREYS + 1

Bytes2D = npt.NDArray[np.uint8]
Volume = npt.NDArray[Any]
Limits = tuple[float, float]
"""The begin and end of a window along an axis, voxels."""


def draw_mosaic(t1w: Path, mask: Path, out: Path, title: str) -> None:
    """Draw the mask's outline over the T1w image; equal inputs give equal bytes.

    Parameters
    ----------
    t1w, mask
        NIfTI images on the same grid, of any orientation and voxel size.
    out
        PNG to write; its folder is created.
    title
        Text above the slices, which is cut if it is too long.

    Raises
    ------
    InputError
        If the images are not three-dimensional or their grids differ.
    """
    head, affine = read_canonical(t1w)
    values, affine_of_mask = read_canonical(mask)
    brain, zooms = values > 0, [float(edge) or 1.0 for edge in voxel_sizes(affine)]
    if head.shape != brain.shape:
        raise InputError(f"its grid {brain.shape} is not that of the T1w image, {head.shape}", mask.name)
    if not np.allclose(affine, affine_of_mask, atol=SAME_MM):
        raise InputError("it lies elsewhere than the T1w image: they have different affines", mask.name)
    found = ndimage.find_objects(brain.view(np.uint8))
    box = found[0] if found else [slice(0, length) for length in head.shape]
    window = intensity_window(head)
    side_mm = max((part.stop - part.start) * zoom for part, zoom in zip(box, zooms, strict=True)) + 2 * MARGIN_MM
    middles, halves = [(part.start + part.stop) / 2 for part in box], [side_mm / zoom / 2 for zoom in zooms]
    limits = [(middle - half, middle + half) for middle, half in zip(middles, halves, strict=True)]
    canvas = np.zeros((TITLE_PX + 3 * TILE_PX, SLICES * TILE_PX), np.uint8)
    for row, axis in enumerate((2, 1, 0)):  # axial, coronal, sagittal
        across, up = (limits[other] for other in range(3) if other != axis)
        for column, position in enumerate(POSITIONS):
            index = round(box[axis].start + position * (box[axis].stop - 1 - box[axis].start))
            plane, inside = (np.moveaxis(volume, axis, 0)[index] for volume in (head, brain))  # np.take would copy all
            grey = np.interp(np.nan_to_num(plane), window, (0, 255)).astype(np.uint8)
            top, left = TITLE_PX + row * TILE_PX, column * TILE_PX
            canvas[top : top + TILE_PX, left : left + TILE_PX] = tile(grey, inside, across, up)
    write_picture(canvas, out, title if found else f"{title} - the mask is empty")


def read_canonical(path: Path) -> tuple[Volume, Volume]:
    """Read a volume, turned to the closest right-anterior-superior axes, and its affine."""
    real = Path(os.path.realpath(path))  # git-annex has links to contents
    with opened_content(real.parent, real.name, path.name, InputError) as content:
        stored = Stored(content)
        stored.check_memory()
        values = stored.array()
    if values.ndim > 3:
        values = values.reshape(*values.shape[:3], -1)[..., 0]
    if values.ndim != 3:
        raise InputError(f"has {values.ndim} dimensions, not 3", path.name)
    image = as_closest_canonical(SpatialImage(values, stored.affine))
    return np.asarray(image.dataobj), image.affine


def intensity_window(head: Volume) -> tuple[float, float]:
    """The 1st and the 99.5th percentile of the foreground, so that a few bright voxels do not darken the rest."""
    sample = np.nan_to_num(head[::3, ::3, ::3].astype(np.float32))
    positive = sample[sample > 0]
    low, high = np.percentile(positive if positive.size else sample, [1.0, 99.5])
    return float(low), float(high)


def tile(grey: Bytes2D, brain: npt.NDArray[np.bool_], across: Limits, up: Limits) -> Bytes2D:
    """Draw a square tile in palette indices: a scaled window of a slice with the mask's outline."""
    inside = resample(brain.astype(np.uint8) * 255, across, up) >= 128
    indices = resample(grey, across, up) // (256 // GREYS)
    indices[inside & ~ndimage.binary_erosion(inside, border_value=1)] = OUTLINE
    return indices


def resample(plane: Bytes2D, across: Limits, up: Limits) -> Bytes2D:
    """Scale a window of a plane to ``TILE_PX`` x ``TILE_PX``, with the second axis pointing up; black outside."""
    picture, height = Image.fromarray(np.ascontiguousarray(plane.T[::-1])), plane.shape[1]
    window = picture.crop(tuple(map(round, (across[0], height - up[1], across[1], height - up[0]))))
    return np.asarray(window.resize((TILE_PX, TILE_PX), Image.Resampling.BILINEAR), dtype=np.uint8)


def write_picture(canvas: Bytes2D, out: Path, title: str) -> None:
    """Write palette indices as a PNG, with the title, and a mark at the left of axial and coronal slices."""
    picture = Image.fromarray(canvas)
    greys = [round(level * 255 / (GREYS - 1)) for level in range(GREYS) for _ in range(3)]
    picture.putpalette([*greys, *ImageColor.getrgb(ORANGE), 255, 255, 255])
    # DejaVu Sans comes with matplotlib, so the letters are the same on every machine
    font = ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), 12)
    pen = ImageDraw.Draw(picture)
    pen.fontmode = "1"  # anti-aliased letters would need colours of their own
    pen.text((5, 3), shorten(title, LINE_LETTERS), fill=WHITE, font=font)
    for row in range(2):
        pen.text((4, TITLE_PX + row * TILE_PX + TILE_PX // 2 - 6), "L", fill=WHITE, font=font)
    content = BytesIO()
    picture.save(content, "PNG", optimize=True)
    write_bytes(out, content.getvalue())
