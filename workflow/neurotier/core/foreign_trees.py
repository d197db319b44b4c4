"""Foreign trees: whole folders filled by containers, checked and copied.

Regular files and links that stay inside are kept. Anything else is an error that names it, since it could bring in a
file of the host, lead out of the copy, or block its readers.
"""

from __future__ import annotations

import errno
import filecmp
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from neurotier.core.errors import NeurotierError, ToolError
from neurotier.core.foreign import Entry, check_link, copy_file, entries_below, kind_of, open_file


def checked_entries(
    folder: Path, blame: type[NeurotierError] = ToolError, skipped: Collection[str] = (), where: str = ""
) -> Iterator[Entry]:
    """Entries below a folder, each checked to be a regular file or a link that stays in the folder.

    Parameters
    ----------
    folder
        The folder, which need not be one; the path to it is trusted.
    blame
        Class of the errors.
    skipped
        Names to skip.
    where
        What to call the folder in an error; if empty, errors name paths below it.

    Raises
    ------
    NeurotierError
        Of the class ``blame``, if an entry is anything else, or folders are nested too deeply or closed to their owner.
    """
    mode = folder.lstat().st_mode
    if not stat.S_ISDIR(mode):
        raise blame(f"is {kind_of(mode)}, not a folder", where=where or folder.name)
    try:
        for entry in entries_below(folder):
            if entry.path.name in skipped:
                continue
            name = called(where, entry.path)
            if entry.is_link:
                check_link(entry.path, os.readlink(folder / entry.path), name, blame)
            elif not entry.is_file:
                raise blame(f"is {kind_of(entry.mode)}, and only files and links are kept", where=name)
            yield entry
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.ENAMETOOLONG):
            raise
        said = str(error.strerror) if error.errno == errno.ENAMETOOLONG else "is closed to its owner"
        raise blame(said, where=where or str(error.filename)) from None


def called(where: str, path: PurePath) -> str:
    """The name of a path below a folder in errors.

    >>> called("", PurePath("a/b")), called("cache", PurePath("a/b"))
    ('a/b', 'cache/a/b')
    """
    return f"{where}/{path}" if where else str(path)


def copy_tree(
    source: Path,
    target: Path,
    blame: type[NeurotierError] = ToolError,
    existing: Callable[[Entry], None] | None = None,
    *,
    skipped: Collection[str] = (),
    where: str = "",
    limit_bytes: float = float("inf"),
    limit_files: float = float("inf"),
    write_back: bool = False,
) -> tuple[int, int]:
    """Copy the files and links below a folder into another; bytes and files copied. Empty folders are left out.

    Parameters
    ----------
    source
        The folder, which need not be one; the path to it is trusted.
    target
        A folder of ours, made if missing. Nothing is written through a link in it.
    blame
        Class of the errors.
    existing
        Called with entries that the target already has, which are then not copied; without it, they are an error.
    skipped
        Names to skip.
    where
        What to call the source in an error; if empty, errors name paths below it.
    limit_bytes, limit_files
        Most that is copied.
    write_back
        As for :func:`neurotier.core.foreign.copy_file`.

    Raises
    ------
    NeurotierError
        Of the class ``blame``, if an entry is neither a file nor a link that stays in the folder, exists in the target
        already, or exceeds a limit.
    """
    target.mkdir(parents=True, exist_ok=True)
    made, real = set[PurePath](), target.resolve()
    copied = files = 0
    for entry in checked_entries(source, blame, skipped, where):
        name, copy, below = called(where, entry.path), target / entry.path, entry.path.parent
        files += 1
        if copied + entry.size_bytes > limit_bytes or files > limit_files:
            raise blame(f"is more than {limit_bytes:.0f} bytes or {limit_files:.0f} files", where=where or source.name)
        if below not in made:
            with suppress(FileExistsError, NotADirectoryError):
                copy.parent.mkdir(parents=True, exist_ok=True)
            if copy.parent.resolve() != real / below or not copy.parent.is_dir():
                raise blame(f"lies below {str(below)!r}, which is a link or a file in the target", where=name)
            made.add(below)
        try:
            if entry.is_link:
                copy.symlink_to(os.readlink(source / entry.path))
            else:
                with open_file(source, entry.path, name, blame) as file:
                    copy_file(file, copy, name, entry.size_bytes, blame, write_back=write_back)
        except FileExistsError:
            if existing is None:
                raise blame("is there already", where=name) from None
            existing(entry)
            continue
        copied += entry.size_bytes
    return copied, files


def same_content(one: Path, other: Path, path: PurePath) -> bool:
    """Whether a path is the same in two folders: equal files, or links with equal targets, which are not followed."""
    modes = [(folder / path).lstat().st_mode for folder in (one, other)]
    if any(stat.S_ISLNK(mode) for mode in modes):
        return all(stat.S_ISLNK(mode) for mode in modes) and os.readlink(one / path) == os.readlink(other / path)
    return all(stat.S_ISREG(mode) for mode in modes) and filecmp.cmp(one / path, other / path, shallow=False)
