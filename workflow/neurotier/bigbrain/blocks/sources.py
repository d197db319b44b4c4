"""Where blocks come from: synthetic, cut out of one volume, or a folder of them.

The real image is BigBrain (Amunts et al., Science 2013, https://bigbrainproject.org), release 2015. Its 40 um blocks,
5 x 5 x 5 with a small overlap, in MINC and ``.nii.gz``, and its volumes of 100 um and coarser are the DataLad dataset
https://github.com/conpdatasets/bigbrain-datalad (317 files, 109 GB by its README and ``DATS.json``), which fetches them
from BigBrain's own server. Today that is https://ftp.bigbrainproject.org/bigbrain-ftp/BigBrainRelease.2015/, while the
dataset's addresses have its former name, ftp://bigbrain.loris.ca. The names and the voxel type of the blocks' files
could not be looked up. The paper's 125 blocks are different: by their names, the image was cut every 769, 603 and 694
voxels.

The licence is CC BY-NC-SA 4.0 (``DATS.json``, https://ftp.bigbrainproject.org/bigbrain-ftp/License.txt); BigBrain's
page says that commercial use needs written consent (contact: info@bigbrainproject.org). Read the terms there before you
fetch it: this workflow neither ships nor fetches any of it.
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
from neurotier.core.tables import grouped
from neurotier.dataset.contents import ANYWHERE, Content, content_if_readable, is_present

PIECE_BYTES = 16 << 20
"""Bytes of a block that are in memory at once."""

UNSIGNED = ("uint8", "uint16", "uint32")
READ_ERRORS = (OSError, EOFError, ValueError, KeyError)
FIX = "give bigbrain.source a NIfTI or MINC volume, or a folder of blocks (.nii or .nii.gz)"

Part = tuple[slice, ...]
Made = tuple[Layout, bytes, Iterator[Any]]
"""A block's layout, the bytes before its voxels, and its voxels piece by piece."""


@lru_cache(maxsize=2)  # not more, since each entry keeps its file open
def open_volume(path: Path) -> Any:
    """Open a NIfTI or MINC volume.

    Raises
    ------
    InputError
        If it is neither.
    """
    import nibabel  # imported here, as it is slow, and Snakemake usually only asks for names
    from nibabel.filebasedimages import ImageFileError

    try:
        return nibabel.load(path)
    except (ImageFileError, *READ_ERRORS) as error:
        raise InputError(f"cannot be read as a volume ({error})", path, FIX) from None


def layout_of_part(image: Any, part: Part) -> Layout:
    """The layout of a part of a volume as a block: with the volume's type if unsigned and unscaled, else uint16."""
    dtype = np.dtype(image.get_data_dtype())
    kept = dtype.name if dtype.name in UNSIGNED and image.dataobj[:1, :1, :1].dtype == dtype else "uint16"
    return Layout(tuple(one.stop - one.start for one in part), np.dtype(kept).newbyteorder("<"), HEADER_BYTES)


def pieces_of_part(path: Path, part: Part, layout: Layout) -> Iterator[memoryview]:
    """The voxels of a part of a volume, some planes of the last axis at a time; fractional values are rounded.

    Raises
    ------
    InputError
        If the voxels cannot be read, or their values do not fit the layout's type.
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
    """The NIfTI header of a new block, whose name gives its position in the image."""
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
    """The number of planes of the last axis that make a piece."""
    return max(1, PIECE_BYTES // (shape[0] * shape[1] * voxel_bytes))


PLAIN, PACKED = ".nii", ".nii.gz"
AGAIN = "fetch it again"


@dataclass(frozen=True)
class FolderSource:
    """A folder of existing blocks, as NIfTI-1 files, which are copied to the tier, and unpacked from gzip on the way.

    No block is ever whole in memory.
    """

    folder: Path
    count: int | None

    @cached_property
    def files(self) -> dict[str, Path]:
        """The file of each block by name.

        Raises
        ------
        InputError
            If there is no file, or more than one for a name.
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
        """The voxel type of the first block; raises :class:`SourceError` unless the content of all blocks is here."""
        check_present(list(self.files.values()))
        return layout_in(next(iter(self.files.values()))).dtype

    def block(self, name: str) -> Made:
        expected, file = self.dtype, self.files[name]
        layout = layout_in(file)
        with naming_block(file, "convert it, or move it away"):
            if layout.dtype != expected:
                found = f"expected {expected.name}, found {layout.dtype.name}"
                raise ValueError(f"is of another type than the first: {found}")
        with naming_block(file, "convert it: adding 1 wraps around only in unsigned types"):
            if layout.dtype.name not in UNSIGNED:
                raise ValueError(f"has voxels of type {layout.dtype.name}, not of {', '.join(UNSIGNED)}")
        if file.suffix == PLAIN:
            with naming_block(file):
                require_size(layout.file_bytes, file.stat().st_size)
        return layout, b"", contents(file, layout)


def block_files(folder: Path) -> dict[str, list[Path]]:
    """All files of each block by name."""
    files = (file for file in sorted(folder.iterdir()) if file.name.endswith((PLAIN, PACKED)) and not file.is_dir())
    return grouped((name_of(file), file) for file in files if not file.name.startswith("."))


def name_of(file: Path) -> str:
    """The name of a block.

    >>> name_of(Path("bigbrain_0_0_694.nii.gz"))
    'bigbrain_0_0_694'
    """
    return file.name.removesuffix(".gz").removesuffix(PLAIN)


@contextmanager
def naming_block(file: Path, fix: str = AGAIN) -> Iterator[None]:
    """Turn a ``ValueError`` about a block's file, or an error in unpacking it, into an :class:`InputError` with the
    block's name."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"cannot be unpacked ({error})", f"block {name_of(file)} ({file})", AGAIN) from None
    except ValueError as error:
        raise InputError(str(error), f"block {name_of(file)} ({file})", fix) from None


def check_present(files: list[Path]) -> None:
    """Raise :class:`SourceError` if the content of a file is missing: git-annex has links for what is not fetched."""
    missing = [file for file in files if not is_present(file.parent, file.name, ANYWHERE)]
    if missing:
        first, *others = missing
        more = f", nor that of {len(others)} more" if others else ""
        get = f"datalad get {shlex.quote(str(first.parent if others else first))}"
        raise SourceError(f"its content is not here{more}", f"block {name_of(first)} ({first})", get)


def layout_in(file: Path) -> Layout:
    """The layout of a block, read from its file."""
    with naming_block(file, FIX), open_file(file) as opened:
        return read_layout(opened.read(HEADER_BYTES))


def open_file(file: Path) -> BinaryIO:
    """Open a NIfTI file, and unpack it if it is packed."""
    return file.open("rb", buffering=0) if file.suffix == PLAIN else cast(BinaryIO, gzip.open(file))


def contents(file: Path, layout: Layout) -> Iterator[bytes]:
    """Read a whole NIfTI file piece by piece."""
    size_bytes = 0
    with naming_block(file), open_file(file) as opened:
        while size_bytes <= layout.file_bytes and (piece := opened.read(PIECE_BYTES)):
            size_bytes += len(piece)
            yield piece
        require_size(layout.file_bytes, size_bytes)  # only now is the size of a packed file known


WHITE, DARKEST = 65535, 60
SLIDE_FRACTION = 0.35
TEXTURE = 0x7F
"""The bits of the grey levels that vary from voxel to voxel."""

STRETCH = 257
"""Factor that stretches 8 bits to 16."""


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
    """The files of a source, each with the identity of its content, whether that is present or not."""
    path = absolute_path(settings.source)
    files = [file for files in block_files(path).values() for file in files] if path.is_dir() else [path]
    contents = {file.name: content_if_readable(file.parent, file.name, ANYWHERE) for file in files}
    return [f"{name} {content.version}" for name, content in contents.items() if content != Content()]


@dataclass(frozen=True)
class SyntheticSource:
    """Synthetic blocks with the published shapes, scaled as configured."""

    settings: BigBrainSettings

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of voxels of a block along each axis."""
        return tuple(max(1, round(size * self.settings.scale)) for size in GRIDS[self.settings.resolution_um])

    def names(self) -> list[str]:
        count = self.settings.count or BLOCKS[self.settings.resolution_um]
        along = math.ceil(round(count ** (1 / 3), 9))
        places = itertools.islice(itertools.product(range(along), repeat=3), count)
        return [block_name([at * size for at, size in zip(place, self.shape, strict=True)]) for place in places]

    def voxels(self, name: str) -> Iterator[memoryview]:
        """The voxels of a block (uint16, first axis fastest), some planes of the last axis at a time.

        To a storage tier, they look like histology: tissue with fine texture next to a white slide. The same block of
        the same image always has the same voxels. Grey levels are those of an 8-bit scan, as BigBrain's sections were
        scanned, stretched to 16 bits. The slide is white, 65535, so its voxels wrap around at the first increment. gzip
        compresses a block 2.0 to 2.7 times (which a test checks); on a tier that compresses, zeros would shrink to
        nothing, and 16-bit noise not at all. How well the real BigBrain compresses was not measured.
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
    """A single volume, cut into blocks along all axes; at most one piece of it is in memory."""

    path: Path
    split: tuple[int, ...]
    count: int | None

    def corners(self) -> dict[str, Part]:
        """The part of the volume that each block covers, by name.

        Raises
        ------
        InputError
            If the volume does not have three axes, or an axis has fewer voxels than parts.
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
"""What blocks are made from: ``names()`` gives the names of the blocks, and ``block(name)`` makes one."""


def block_name(corner: list[int]) -> str:
    """The name of a block, for the voxel where it begins, as in the published names.

    >>> block_name([769, 0, 1388])
    'bigbrain_769_0_1388'
    """
    return "_".join(["bigbrain", *map(str, corner)])
