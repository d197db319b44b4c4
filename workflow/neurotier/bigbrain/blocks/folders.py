"""A folder of blocks: copied as they are, or unpacked on the way to the tier, never whole in memory."""

from __future__ import annotations

import gzip
import shlex
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from neurotier.bigbrain.blocks.nifti import HEADER_BYTES, Layout, read_layout, require_size
from neurotier.bigbrain.blocks.volumes import FIX, PIECE_BYTES, UNSIGNED
from neurotier.core.errors import InputError, SourceError
from neurotier.dataset.contents import ANYWHERE, is_present

PLAIN, PACKED = ".nii", ".nii.gz"
KINDS = (PLAIN, PACKED)
UNPACK_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


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
            kinds = ", ".join(f"*{kind}" for kind in KINDS)
            raise InputError(f"holds no {kinds}", f"config key bigbrain.source: {self.folder}", FIX)
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
        file, layout = files[name], layout_in(files[name])
        first, where = layout_in(next(iter(files.values()))), where_of(file)
        if layout.dtype != first.dtype:
            problem = f"is of another type than the first: expected {first.dtype.name}, found {layout.dtype.name}"
            raise InputError(problem, where, "convert it, or take it away")
        if layout.dtype.name not in UNSIGNED:
            problem = f"has voxels of type {layout.dtype.name}, not of {', '.join(UNSIGNED)}"
            raise InputError(problem, where, "convert it: adding 1 wraps around in unsigned types alone")
        if kind_of(file) == PLAIN:
            check_size(file, layout, file.stat().st_size)
        return layout, b"", contents(file, layout)


def block_files(folder: Path) -> dict[str, list[Path]]:
    """Name of each block to its files, as many as there are."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        if file.name.endswith(KINDS) and not file.name.startswith("."):
            found.setdefault(name_of(file), []).append(file)
    return found


def kind_of(file: Path) -> str:
    """What a block's file is."""
    return next(kind for kind in KINDS if file.name.endswith(kind))


def name_of(file: Path) -> str:
    """The name of a block.

    >>> name_of(Path("bigbrain_0_0_694.nii.gz"))
    'bigbrain_0_0_694'
    """
    return file.name.removesuffix(kind_of(file))


def where_of(file: Path) -> str:
    """A block for messages."""
    return f"block {name_of(file)} ({file})"


def check_present(files: list[Path]) -> None:
    """Raise :class:`SourceError` unless all have their content: git-annex has links to what was not fetched."""
    missing = [file for file in files if not is_present(file.parent, file.name, ANYWHERE)]
    if not missing:
        return
    first = missing[0]
    more = f", nor that of {len(missing) - 1} more" if len(missing) > 1 else ""
    wanted = first.parent if more else first
    raise SourceError(f"its content is not here{more}", where_of(first), f"datalad get {shlex.quote(str(wanted))}")


def layout_in(file: Path) -> Layout:
    """The layout of what a block's file becomes."""
    try:
        with open_file(file) as opened:
            return read_layout(opened.read(HEADER_BYTES))
    except UNPACK_ERRORS as error:
        raise InputError(f"cannot be unpacked ({error})", where_of(file), "fetch it again") from None
    except ValueError as error:
        raise InputError(str(error), where_of(file), FIX) from None


def open_file(file: Path) -> BinaryIO:
    """A NIfTI file, unpacked where it is packed."""
    return cast(BinaryIO, gzip.open(file)) if kind_of(file) == PACKED else file.open("rb", buffering=0)


def contents(file: Path, layout: Layout) -> Iterator[bytes]:
    """A whole NIfTI file, piece by piece."""
    size_bytes = 0
    try:
        with open_file(file) as opened:
            while size_bytes <= layout.file_bytes and (piece := opened.read(PIECE_BYTES)):
                size_bytes += len(piece)
                yield piece
    except UNPACK_ERRORS as error:
        raise InputError(f"cannot be unpacked ({error})", where_of(file), "fetch it again") from None
    check_size(file, layout, size_bytes)  # of a packed file, nobody knows before


def check_size(file: Path, layout: Layout, size_bytes: int) -> None:
    """Raise :class:`InputError` unless a block is as long as its header says."""
    try:
        require_size(layout.file_bytes, size_bytes)
    except ValueError as error:
        raise InputError(str(error), where_of(file), "fetch it again") from None
