"""Where blocks come from: made up, cut out of one volume, or a folder of them.

The real image is BigBrain (Amunts et al., Science 2013): https://bigbrainproject.org, files at
https://ftp.bigbrainproject.org below ``bigbrain-ftp/BigBrainRelease.2015``. It is free for non-commercial use under
CC BY-NC-SA 4.0 with attribution; other use needs a contract with its owners, McGill University and Forschungszentrum
Juelich. Read the terms there before you fetch it: nothing of it is shipped, and nothing is fetched by this workflow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from neurotier.bigbrain.histology import histology
from neurotier.bigbrain.nifti import HEADER_BYTES, Layout, read_layout
from neurotier.errors import InputError, SettingsError
from neurotier.published.bigbrain import BLOCKS, GRIDS
from neurotier.settings import BigBrainSettings

SYNTHETIC = "synthetic"
PIECE_BYTES = 16 << 20
"""How much of a block is in memory at once, bytes."""

UNSIGNED = ("uint8", "uint16", "uint32")
READ_ERRORS = (OSError, EOFError, ValueError, KeyError)
FIX = "give bigbrain.source a NIfTI or MINC volume, or a folder of uncompressed .nii blocks"


class Source(Protocol):
    """What blocks are made from."""

    def names(self) -> list[str]:
        """Names of the blocks."""

    def block(self, name: str) -> tuple[Layout, bytes, Iterator[np.ndarray | bytes]]:
        """A block: its layout, what stands before its voxels, and its voxels piece by piece."""


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
        return layout, header_of(layout, self.settings.resolution_um / 1000, name), pieces


@dataclass(frozen=True)
class VolumeSource:
    """One volume, cut along all axes; never more of it in memory than a piece."""

    path: Path
    split: tuple[int, ...]
    count: int | None

    @property
    def image(self) -> Any:
        """The volume's header and the way to its voxels."""
        return open_volume(self.path)

    def corners(self) -> dict[str, tuple[slice, ...]]:
        """Name of each block to the part of the volume that it is.

        Raises
        ------
        InputError
            If the volume is not one of three axes, or an axis has fewer voxels than parts.
        """
        shape = self.image.shape
        if len(shape) != 3 or any(size < parts for size, parts in zip(shape, self.split, strict=True)):
            what = f"is of shape {shape_of(shape)}, which cannot be split in {shape_of(self.split)}"
            raise InputError(what, str(self.path), "correct bigbrain.split")
        edges = [
            [size * part // parts for part in range(parts + 1)] for size, parts in zip(shape, self.split, strict=True)
        ]
        cuts = itertools.product(*([slice(*pair) for pair in itertools.pairwise(edge)] for edge in edges))
        named = {block_name([one.start for one in cut]): cut for cut in cuts}
        return dict(itertools.islice(named.items(), self.count))

    def names(self) -> list[str]:
        return list(self.corners())

    def block(self, name: str) -> tuple[Layout, bytes, Iterator[np.ndarray | bytes]]:
        cut, dtype = self.corners()[name], np.dtype(self.image.get_data_dtype())
        kept = dtype.name if dtype.name in UNSIGNED and self.image.dataobj[:1, :1, :1].dtype == dtype else "uint16"
        layout = Layout(tuple(one.stop - one.start for one in cut), np.dtype(kept).newbyteorder("<"), HEADER_BYTES)
        return layout, header_of(layout, float(self.image.header.get_zooms()[0]), name), self.pieces(cut, layout)

    def pieces(self, cut: tuple[slice, ...], layout: Layout) -> Iterator[np.ndarray]:
        """The voxels of a part; values that are no whole numbers are rounded.

        Raises
        ------
        InputError
            If they cannot be read, or do not fit.
        """
        planes = planes_of(layout.shape, 8)  # scaled voxels are read as float64
        largest = 2 ** (8 * layout.dtype.itemsize) - 1
        for begin in range(cut[2].start, cut[2].stop, planes):
            part = (cut[0], cut[1], slice(begin, min(begin + planes, cut[2].stop)))
            try:
                voxels = np.asarray(self.image.dataobj[part])
            except READ_ERRORS as error:
                raise InputError(f"cannot be read ({error})", str(self.path), FIX) from None
            if voxels.dtype.kind == "f":
                voxels = np.rint(voxels)
            if not (voxels.min() >= 0 and voxels.max() <= largest):
                what = f"has voxels from {voxels.min()} to {voxels.max()}, which {layout.dtype.name} cannot hold"
                raise InputError(what, str(self.path), "scale it to 0 ... 65535")
            yield voxels.astype(layout.dtype, order="F")


@dataclass(frozen=True)
class FolderSource:
    """Blocks that are there already; they are copied to the tier as they are."""

    folder: Path
    count: int | None

    def files(self) -> dict[str, Path]:
        """Name to file.

        Raises
        ------
        InputError
            If there is none.
        """
        files = sorted(self.folder.glob("*.nii"))[: self.count]
        if not files:
            raise InputError("holds no *.nii", f"config key bigbrain.source: {self.folder}", FIX)
        return {file.stem: file for file in files}

    def names(self) -> list[str]:
        return list(self.files())

    def block(self, name: str) -> tuple[Layout, bytes, Iterator[np.ndarray | bytes]]:
        files = self.files()
        layout, first = self.layout(files[name]), self.layout(next(iter(files.values())))
        where = f"block {name} ({files[name]})"
        if layout.dtype != first.dtype:
            what = f"is of another type than the first: expected {first.dtype.name}, found {layout.dtype.name}"
            raise InputError(what, where, "convert it, or take it away")
        if layout.dtype.name not in UNSIGNED:
            what = f"has voxels of type {layout.dtype.name}, not of {', '.join(UNSIGNED)}"
            raise InputError(what, where, "convert it: adding 1 wraps around in unsigned types alone")
        found = files[name].stat().st_size
        if found != layout.file_bytes:
            what = "is truncated" if found < layout.file_bytes else "is too long"
            raise InputError(f"{what}: expected {layout.file_bytes} bytes, found {found}", where, "fetch it again")
        return layout, b"", self.pieces(files[name])

    @staticmethod
    def layout(file: Path) -> Layout:
        """The layout of a block's file."""
        try:
            with file.open("rb") as opened:
                return read_layout(opened.read(HEADER_BYTES))
        except ValueError as error:
            raise InputError(str(error), f"block {file.stem} ({file})", FIX) from None

    @staticmethod
    def pieces(file: Path) -> Iterator[bytes]:
        """The whole file, piece by piece."""
        with file.open("rb", buffering=0) as opened:
            while piece := opened.read(PIECE_BYTES):
                yield piece


@cache
def open_volume(path: Path) -> Any:
    """A NIfTI or MINC volume."""
    import nibabel  # slow to import, and Snakemake asks here for names alone
    from nibabel.filebasedimages import ImageFileError

    try:
        return nibabel.load(path)
    except (ImageFileError, *READ_ERRORS) as error:
        raise InputError(f"cannot be read as a volume ({error})", str(path), FIX) from None
    except ImportError:
        raise SettingsError("MINC 2 volumes are read by h5py, which is not there", str(path), "install h5py") from None


def header_of(layout: Layout, voxel_mm: float, name: str) -> bytes:
    """The NIfTI header of a block that is made, in its place in the image."""
    import nibabel

    corner = [int(number) for number in name.split("_")[1:]]
    affine = np.diag([voxel_mm] * 3 + [1.0])
    affine[:3, 3] = [voxel_mm * start for start in corner]
    header = nibabel.Nifti1Header()
    header.set_data_dtype(layout.dtype.newbyteorder("="))
    header.set_data_shape(layout.shape)
    header.set_zooms([voxel_mm] * 3)
    header.set_xyzt_units("mm")
    header.set_sform(affine, code="scanner")
    header.set_slope_inter(1, 0)
    header["vox_offset"] = HEADER_BYTES
    return bytes(header.binaryblock) + bytes(HEADER_BYTES - len(header.binaryblock))


def block_name(corner: list[int]) -> str:
    """Name of a block by the voxel where it begins, as the published ones.

    >>> block_name([769, 0, 1388])
    'bigbrain_769_0_1388'
    """
    return "_".join(["bigbrain", *map(str, corner)])


def planes_of(shape: tuple[int, ...], voxel_bytes: int) -> int:
    """How many planes of the last axis make a piece."""
    return max(1, PIECE_BYTES // (shape[0] * shape[1] * voxel_bytes))


def shape_of(shape: tuple[int, ...]) -> str:
    """Sizes, for people."""
    return " x ".join(map(str, shape))
