"""Where blocks come from: synthetic, cut out of one volume, or a folder of them.

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

import gzip
import itertools
import math
import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from neurotier.bigbrain.blocks.nifti import HEADER_BYTES, Layout, bytes_of, read_layout, require_size, shape_text
from neurotier.bigbrain.conditions import BLOCKS, GRIDS
from neurotier.core.errors import InputError, SourceError
from neurotier.core.files import absolute_path
from neurotier.core.settings import BigBrainSettings
from neurotier.core.tables import gathered
from neurotier.dataset.contents import ANYWHERE, Content, content_if_readable, is_present

PIECE_BYTES = 16 << 20
"""How much of a block is in memory at once, bytes."""

UNSIGNED = ("uint8", "uint16", "uint32")
READ_ERRORS = (OSError, EOFError, ValueError, KeyError)
FIX = "give bigbrain.source a NIfTI or MINC volume, or a folder of blocks (.nii or .nii.gz)"

Part = tuple[slice, ...]
Made = tuple[Layout, bytes, Iterator[Any]]
"""A block's layout, what stands before its voxels, and its voxels piece by piece, in memory."""


@lru_cache(maxsize=2)  # not more: each holds its file open, and a folder may have a thousand
def open_volume(path: Path) -> Any:
    """A NIfTI or MINC volume: its header and access to its voxels.

    Raises
    ------
    InputError
        If it is neither.
    """
    import nibabel  # slow to import, and Snakemake only asks for names
    from nibabel.filebasedimages import ImageFileError

    try:
        return nibabel.load(path)
    except (ImageFileError, *READ_ERRORS) as error:
        raise InputError(f"cannot be read as a volume ({error})", path, FIX) from None


def layout_of_part(image: Any, part: Part) -> Layout:
    """The layout of a part of a volume as a block: uint16, unless the volume's own type is unsigned and unscaled."""
    dtype = np.dtype(image.get_data_dtype())
    kept = dtype.name if dtype.name in UNSIGNED and image.dataobj[:1, :1, :1].dtype == dtype else "uint16"
    return Layout(tuple(one.stop - one.start for one in part), np.dtype(kept).newbyteorder("<"), HEADER_BYTES)


def pieces_of_part(path: Path, part: Part, layout: Layout) -> Iterator[memoryview]:
    """The voxels of a part, some planes of the last axis at a time; values that are no whole numbers are rounded.

    Raises
    ------
    InputError
        If they cannot be read, or do not fit.
    """
    planes = planes_of(layout.shape, 8)  # scaled voxels are read as float64
    largest = np.iinfo(layout.dtype.name).max
    for begin in range(part[2].start, part[2].stop, planes):
        piece = (part[0], part[1], slice(begin, min(begin + planes, part[2].stop)))
        try:
            voxels = np.asarray(open_volume(path).dataobj[piece])
        except READ_ERRORS as error:
            raise InputError(f"cannot be read ({error})", path, FIX) from None
        if voxels.dtype.kind == "f":
            voxels = np.rint(voxels)
        if not (voxels.min() >= 0 and voxels.max() <= largest):
            problem = f"has voxels from {voxels.min()} to {voxels.max()}, which {layout.dtype.name} cannot hold"
            raise InputError(problem, path, "scale it to 0 ... 65535")
        yield bytes_of(voxels.astype(layout.dtype, order="F").ravel(order="F"))


def header_of(layout: Layout, name: str, voxel_mm: float) -> bytes:
    """The NIfTI header of a block that is made; its name tells its place in the image."""
    import nibabel

    affine = np.diag([voxel_mm] * 3 + [1.0])
    affine[:3, 3] = [voxel_mm * int(start) for start in name.split("_")[1:]]
    header = nibabel.Nifti1Header()
    header.set_data_dtype(layout.dtype.newbyteorder("="))
    header.set_data_shape(layout.shape)
    header.set_zooms([voxel_mm] * 3)
    header.set_xyzt_units("mm")
    header.set_sform(affine, code="scanner")
    header.set_slope_inter(1, 0)
    header["vox_offset"] = HEADER_BYTES
    return bytes(header.binaryblock) + bytes(HEADER_BYTES - len(header.binaryblock))


def planes_of(shape: tuple[int, ...], voxel_bytes: int) -> int:
    """How many planes of the last axis make a piece."""
    return max(1, PIECE_BYTES // (shape[0] * shape[1] * voxel_bytes))


PLAIN, PACKED = ".nii", ".nii.gz"
AGAIN = "fetch it again"


@dataclass(frozen=True)
class FolderSource:
    """Blocks that are there already, as files of NIfTI-1, copied as they are, or unpacked from gzip on the way to the
    tier, never whole in memory.
    """

    folder: Path
    count: int | None

    @cached_property
    def files(self) -> dict[str, Path]:
        """Name to file.

        Raises
        ------
        InputError
            If there is none, or more than one for a name.
        """
        files_by_name = dict(sorted(block_files(self.folder).items())[: self.count])
        if not files_by_name:
            raise InputError(f"holds no *{PLAIN}, *{PACKED}", f"config key bigbrain.source: {self.folder}", FIX)
        for name, files in files_by_name.items():
            if len(files) > 1:
                problem = f"is there more than once: {', '.join(file.name for file in files)}"
                raise InputError(problem, f"block {name} ({self.folder})", "keep one kind of file in the folder")
        return {name: files[0] for name, files in files_by_name.items()}

    def names(self) -> list[str]:
        return list(self.files)

    @cached_property
    def dtype(self) -> np.dtype:
        """Type of the first block's voxels, once the contents of all are here."""
        check_present(list(self.files.values()))
        return layout_in(next(iter(self.files.values()))).dtype

    def block(self, name: str) -> Made:
        expected, file = self.dtype, self.files[name]
        layout = layout_in(file)
        with said_of(file, "convert it, or take it away"):
            if layout.dtype != expected:
                found = f"expected {expected.name}, found {layout.dtype.name}"
                raise ValueError(f"is of another type than the first: {found}")
        with said_of(file, "convert it: adding 1 wraps around in unsigned types alone"):
            if layout.dtype.name not in UNSIGNED:
                raise ValueError(f"has voxels of type {layout.dtype.name}, not of {', '.join(UNSIGNED)}")
        if file.suffix == PLAIN:
            with said_of(file):
                require_size(layout.file_bytes, file.stat().st_size)
        return layout, b"", contents(file, layout)


def block_files(folder: Path) -> dict[str, list[Path]]:
    """Name of each block to its files, as many as there are."""
    files = (file for file in sorted(folder.iterdir()) if file.name.endswith((PLAIN, PACKED)) and not file.is_dir())
    return gathered((name_of(file), file) for file in files if not file.name.startswith("."))


def name_of(file: Path) -> str:
    """The name of a block.

    >>> name_of(Path("bigbrain_0_0_694.nii.gz"))
    'bigbrain_0_0_694'
    """
    return file.name.removesuffix(".gz").removesuffix(PLAIN)


@contextmanager
def said_of(file: Path, fix: str = AGAIN) -> Iterator[None]:
    """Turn a ``ValueError`` about a block's file, or one of unpacking it, into an :class:`InputError` naming the
    block."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"cannot be unpacked ({error})", f"block {name_of(file)} ({file})", AGAIN) from None
    except ValueError as error:
        raise InputError(str(error), f"block {name_of(file)} ({file})", fix) from None


def check_present(files: list[Path]) -> None:
    """Raise :class:`SourceError` unless all have their content: git-annex leaves links to what was not fetched."""
    missing = [file for file in files if not is_present(file.parent, file.name, ANYWHERE)]
    if missing:
        first, *others = missing
        more = f", nor that of {len(others)} more" if others else ""
        get = f"datalad get {shlex.quote(str(first.parent if others else first))}"
        raise SourceError(f"its content is not here{more}", f"block {name_of(first)} ({first})", get)


def layout_in(file: Path) -> Layout:
    """The layout of what a block's file becomes."""
    with said_of(file, FIX), open_file(file) as opened:
        return read_layout(opened.read(HEADER_BYTES))


def open_file(file: Path) -> BinaryIO:
    """A NIfTI file, unpacked where it is packed."""
    return file.open("rb", buffering=0) if file.suffix == PLAIN else cast(BinaryIO, gzip.open(file))


def contents(file: Path, layout: Layout) -> Iterator[bytes]:
    """A whole NIfTI file, piece by piece."""
    size_bytes = 0
    with said_of(file), open_file(file) as opened:
        while size_bytes <= layout.file_bytes and (piece := opened.read(PIECE_BYTES)):
            size_bytes += len(piece)
            yield piece
        require_size(layout.file_bytes, size_bytes)  # the size of a packed file is only known now


WHITE, DARKEST = 65535, 60
SLIDE_FRACTION = 0.35
TEXTURE = 0x7F
"""The bits of the grey levels that differ from voxel to voxel."""

STRETCH = 257
"""Stretches 8 bits to 16."""


SYNTHETIC = "synthetic"


def source_of(settings: BigBrainSettings) -> Source:
    """The source that the configuration names.

    Raises
    ------
    InputError
        If it does not exist, or cannot be cut into blocks.
    """
    if settings.source == SYNTHETIC:
        return SyntheticSource(settings)
    path = absolute_path(settings.source)
    if path.is_dir():
        return FolderSource(path, settings.count)
    if not path.is_file():
        raise InputError("no such file or folder", f"config key bigbrain.source: {path}", FIX)
    return VolumeSource(path, tuple(settings.split), settings.count)


def versions_of(settings: BigBrainSettings) -> list[str]:
    """The files of a source with what identifies their contents, whether these are present or not."""
    path = absolute_path(settings.source)
    files = [file for files in block_files(path).values() for file in files] if path.is_dir() else [path]
    contents = {file.name: content_if_readable(file.parent, file.name, ANYWHERE) for file in files}
    return [f"{name} {content.version}" for name, content in contents.items() if content != Content()]


@dataclass(frozen=True)
class SyntheticSource:
    """Blocks that are made up, with the published shapes at a scale."""

    settings: BigBrainSettings

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels of a block along each axis."""
        return tuple(max(1, round(size * self.settings.scale)) for size in GRIDS[self.settings.resolution_um])

    def names(self) -> list[str]:
        count = self.settings.count or BLOCKS[self.settings.resolution_um]
        along = math.ceil(round(count ** (1 / 3), 9))
        places = itertools.islice(itertools.product(range(along), repeat=3), count)
        return [block_name([at * size for at, size in zip(place, self.shape, strict=True)]) for place in places]

    def voxels(self, name: str) -> Iterator[memoryview]:
        """Voxels that look like histology to a storage tier: tissue with fine texture beside a white slide (uint16,
        first axis fastest), some planes of the last axis at a time; the same of the same block of the same image.

        Grey levels are those of an 8-bit scan stretched to 16 bits, as BigBrain's sections were scanned; the slide is
        white, 65535, so its voxels wrap around at the first increment. gzip makes 2.0 to 2.7 times less of a block (a
        test holds that), where zeros would shrink to nothing on a tier that compresses, and noise of 16 bits not at
        all. How well the real BigBrain compresses was not measured here.
        """
        width, height, depth = self.shape
        random = np.random.default_rng([self.settings.seed, self.names().index(name)])
        planes = planes_of(self.shape, 2)
        for begin in range(0, depth, planes):
            made = np.empty((min(planes, depth - begin), height, width), np.uint16)
            for plane in made:
                noise = np.frombuffer(random.bytes(plane.size), np.uint8).reshape(plane.shape)
                np.multiply(DARKEST + (noise & TEXTURE), STRETCH, out=plane, dtype=np.uint16)
            made[:, :, : round(SLIDE_FRACTION * width)] = WHITE
            yield bytes_of(made.ravel())

    def block(self, name: str) -> Made:
        layout = Layout(self.shape, np.dtype("<u2"), HEADER_BYTES)
        return layout, header_of(layout, name, self.settings.resolution_um / 1000), self.voxels(name)


@dataclass(frozen=True)
class VolumeSource:
    """One volume, cut along all axes; at most one piece of it is in memory."""

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
            found, asked = (shape_text(each, " x ") for each in (shape, self.split))
            problem = f"is of shape {found}, which cannot be split in {asked}"
            raise InputError(problem, self.path, "correct bigbrain.split")
        edges = [
            [size * part // parts for part in range(parts + 1)] for size, parts in zip(shape, self.split, strict=True)
        ]
        cuts = itertools.product(*([slice(*pair) for pair in itertools.pairwise(edge)] for edge in edges))
        named = {block_name([one.start for one in cut]): cut for cut in cuts}
        return dict(itertools.islice(named.items(), self.count))

    def names(self) -> list[str]:
        return list(self.corners())

    def block(self, name: str) -> Made:
        cut, image = self.corners()[name], open_volume(self.path)
        layout = layout_of_part(image, cut)
        voxel_mm = float(image.header.get_zooms()[0])
        return layout, header_of(layout, name, voxel_mm), pieces_of_part(self.path, cut, layout)


Source = SyntheticSource | VolumeSource | FolderSource
"""What blocks are made from: ``names()`` of the blocks, and ``block(name)``, which makes one."""


def block_name(corner: list[int]) -> str:
    """Name of a block by the voxel where it begins, as the published ones.

    >>> block_name([769, 0, 1388])
    'bigbrain_769_0_1388'
    """
    return "_".join(["bigbrain", *map(str, corner)])
