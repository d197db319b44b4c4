"""A folder of blocks: copied as they are, or unpacked on the way to the tier, never whole in memory."""

from __future__ import annotations

import gzip
import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from neurotier.bigbrain.blocks.nifti import HEADER_BYTES, Layout, read_layout, require_size
from neurotier.bigbrain.blocks.volumes import FIX, PIECE_BYTES, UNSIGNED
from neurotier.core.errors import InputError, SourceError
from neurotier.dataset.contents import ANYWHERE, is_present

PLAIN, PACKED = ".nii", ".nii.gz"
AGAIN = "fetch it again"


@dataclass(frozen=True)
class FolderSource:
    """Blocks that are there already, as files of NIfTI-1, packed by gzip or not."""

    folder: Path
    count: int | None

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
        return list(self.files())

    def block(self, name: str) -> tuple[Layout, bytes, Iterator[bytes]]:
        files = self.files()
        check_present(list(files.values()))  # all, before the first is copied
        file, layout, first = files[name], layout_in(files[name]), layout_in(next(iter(files.values())))
        with said_of(file, "convert it, or take it away"):
            if layout.dtype != first.dtype:
                found = f"expected {first.dtype.name}, found {layout.dtype.name}"
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
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        if file.name.endswith((PLAIN, PACKED)) and not file.name.startswith("."):
            found.setdefault(name_of(file), []).append(file)
    return found


def name_of(file: Path) -> str:
    """The name of a block.

    >>> name_of(Path("bigbrain_0_0_694.nii.gz"))
    'bigbrain_0_0_694'
    """
    return file.name.removesuffix(".gz").removesuffix(PLAIN)


@contextmanager
def said_of(file: Path, fix: str = AGAIN) -> Iterator[None]:
    """Raise :class:`InputError` that names a block, for what a ``ValueError`` says of it, or what unpacking does."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"cannot be unpacked ({error})", f"block {name_of(file)} ({file})", AGAIN) from None
    except ValueError as error:
        raise InputError(str(error), f"block {name_of(file)} ({file})", fix) from None


def check_present(files: list[Path]) -> None:
    """Raise :class:`SourceError` unless all have their content: git-annex has links to what was not fetched."""
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
        require_size(layout.file_bytes, size_bytes)  # of a packed file, nobody knows before
