"""Where blocks come from: made up, cut out of one volume, or a folder of them.

The real image is BigBrain (Amunts et al., Science 2013, https://bigbrainproject.org), release 2015. Its 40 um blocks,
5 x 5 x 5 with a small overlap, in MINC and ``.nii.gz``, and its volumes of 100 um and coarser are the DataLad dataset
https://github.com/conpdatasets/bigbrain-datalad (317 files, 109 GB by its README and ``DATS.json``), which fetches them
from BigBrain's own server. That is https://ftp.bigbrainproject.org/bigbrain-ftp/BigBrainRelease.2015/ today; addresses
in the dataset have its former name, ftp://bigbrain.loris.ca. Names and voxel type of the blocks' files could not be
looked up. The paper's 125 blocks are other ones: by their names, the image cut every 769, 603 and 694 voxels.

The licence is CC BY-NC-SA 4.0 (``DATS.json``, https://ftp.bigbrainproject.org/bigbrain-ftp/License.txt); BigBrain's
page says that there is no commercial use without written consent (contact: info@bigbrainproject.org). Read the terms
there before you fetch it: nothing of it is shipped, and nothing is fetched by this workflow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neurotier.bigbrain.blocks.folders import FolderSource, block_files
from neurotier.bigbrain.blocks.histology import histology
from neurotier.bigbrain.blocks.nifti import HEADER_BYTES, Layout
from neurotier.bigbrain.blocks.volumes import (
    FIX,
    Part,
    header_of,
    layout_of_part,
    open_volume,
    pieces_of_part,
    planes_of,
    shape_of,
)
from neurotier.bigbrain.image import BLOCKS, GRIDS
from neurotier.core.errors import InputError
from neurotier.core.settings import BigBrainSettings
from neurotier.dataset.contents import ANYWHERE, Content, content_if_readable

SYNTHETIC = "synthetic"


def source_of(settings: BigBrainSettings) -> Source:
    """The source that the configuration names.

    Raises
    ------
    InputError
        If it is not there, or not what can be cut into blocks.
    """
    if settings.source == SYNTHETIC:
        return SyntheticSource(settings)
    path = Path(settings.source).expanduser().absolute()
    if path.is_dir():
        return FolderSource(path, settings.count)
    if not path.is_file():
        raise InputError("no such file or folder", f"config key bigbrain.source: {path}", FIX)
    return VolumeSource(path, tuple(settings.split), settings.count)


def versions_of(settings: BigBrainSettings) -> list[str]:
    """The files of a source, and what tells their contents from others, whether they are here or not."""
    path = Path(settings.source).expanduser()
    files = [file for files in block_files(path).values() for file in files] if path.is_dir() else [path]
    contents = {file.name: content_if_readable(file.parent, file.name, ANYWHERE) for file in files}
    return [f"{name} {content.version}" for name, content in contents.items() if content != Content()]


@dataclass(frozen=True)
class SyntheticSource:
    """Blocks that are made up, with the published shapes at a scale."""

    settings: BigBrainSettings

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels of a block along each axis."""
        scaled = [max(1, round(size * self.settings.scale)) for size in GRIDS[self.settings.resolution_um]]
        return scaled[0], scaled[1], scaled[2]

    def names(self) -> list[str]:
        count = self.settings.count or BLOCKS[self.settings.resolution_um]
        along = math.ceil(round(count ** (1 / 3), 9))
        places = itertools.islice(itertools.product(range(along), repeat=3), count)
        return [block_name([at * size for at, size in zip(place, self.shape, strict=True)]) for place in places]

    def block(self, name: str) -> tuple[Layout, bytes, Iterator[np.ndarray | bytes]]:
        layout = Layout(self.shape, np.dtype("<u2"), HEADER_BYTES)
        planes = planes_of(self.shape, 2)
        pieces = histology(self.shape, self.settings.seed, self.names().index(name), planes)
        return layout, header_of(layout, affine_of(name, self.settings.resolution_um / 1000)), pieces


@dataclass(frozen=True)
class VolumeSource:
    """One volume, cut along all axes; never more of it in memory than a piece."""

    path: Path
    split: tuple[int, ...]
    count: int | None

    def corners(self) -> dict[str, Part]:
        """Name of each block to the part of the volume that it is.

        Raises
        ------
        InputError
            If the volume is not one of three axes, or an axis has fewer voxels than parts.
        """
        shape = open_volume(self.path).shape
        if len(shape) != 3 or any(size < parts for size, parts in zip(shape, self.split, strict=True)):
            problem = f"is of shape {shape_of(shape)}, which cannot be split in {shape_of(self.split)}"
            raise InputError(problem, str(self.path), "correct bigbrain.split")
        edges = [
            [size * part // parts for part in range(parts + 1)] for size, parts in zip(shape, self.split, strict=True)
        ]
        cuts = itertools.product(*([slice(*pair) for pair in itertools.pairwise(edge)] for edge in edges))
        named = {block_name([one.start for one in cut]): cut for cut in cuts}
        return dict(itertools.islice(named.items(), self.count))

    def names(self) -> list[str]:
        return list(self.corners())

    def block(self, name: str) -> tuple[Layout, bytes, Iterator[np.ndarray | bytes]]:
        cut, image = self.corners()[name], open_volume(self.path)
        layout = layout_of_part(image, cut)
        voxel_mm = float(image.header.get_zooms()[0])
        return layout, header_of(layout, affine_of(name, voxel_mm)), pieces_of_part(self.path, cut, layout)


Source = SyntheticSource | VolumeSource | FolderSource
"""What blocks are made from: ``names()`` of the blocks, and ``block(name)``, which gives a block's layout, what stands
before its voxels, and its voxels piece by piece."""


def affine_of(name: str, voxel_mm: float) -> np.ndarray:
    """The place of a block in the image, by its name."""
    affine = np.diag([voxel_mm] * 3 + [1.0])
    affine[:3, 3] = [voxel_mm * int(start) for start in name.split("_")[1:]]
    return affine


def block_name(corner: list[int]) -> str:
    """Name of a block by the voxel where it begins, as the published ones.

    >>> block_name([769, 0, 1388])
    'bigbrain_769_0_1388'
    """
    return "_".join(["bigbrain", *map(str, corner)])
