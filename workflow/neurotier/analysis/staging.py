"""Staging: files copied between tiers, whole folders that appear by one rename, and tiers that have no room."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import humanfriendly

from neurotier.errors import InputError, NeurotierError, SourceError, TierError, ToolError
from neurotier.tiers import Tier

MARGIN_BYTES = 1_000_000
"""Free space below which a tier counts as full."""


def stage_in(dataset: Path, paths: Iterable[str], folder: Path) -> tuple[int, int]:
    """Copy files of the dataset to the work tier; bytes and files copied.

    Raises
    ------
    SourceError, InputError
        If a file's content is not there, or cannot be read.
    """
    copied = files = 0
    for path in paths:
        source, target = dataset / path, folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            raise SourceError(
                "its content is not on the dataset tier",
                where=path,
                fix="start the same command again to fetch it",
            ) from None
        except PermissionError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=path) from None
        copied += target.stat().st_size
        files += 1
    return copied, files


def publish(made: Path, final: Path) -> tuple[int, int]:
    """Copy a folder to the results tier under a hidden name, then rename; bytes and files copied."""
    hidden = final.with_name(f".{final.name}.partial")
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir(parents=True)
    try:
        copied = copy_files(made, hidden)
        if final.exists():  # of an earlier run whose derivatives are to be replaced
            shutil.rmtree(final)
        hidden.rename(final)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return copied


def copy_files(source: Path, target: Path) -> tuple[int, int]:
    """Copy all files below a folder, links as links; bytes and files copied."""
    copied = files = 0
    for file in files_below(source):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy, follow_symlinks=False)
        copied += copy.lstat().st_size
        files += 1
    return copied, files


def files_below(folder: Path) -> list[Path]:
    """All files and links below a folder, in order of name, but for Snakemake's own."""
    files = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(path for path in files if path.name != ".snakemake_timestamp")


def check_room(tier: Tier, needed_bytes: int) -> None:
    """Raise :class:`TierError` if a participant cannot fit on the tier even now."""
    free_bytes = tier.free_bytes()
    if needed_bytes > free_bytes:
        raise TierError(
            f"tier {tier.name!r} has {size(free_bytes)} free at {tier.path}, and about {size(needed_bytes)} are needed",
            fix="free some space, start fewer participants at once, or choose another work tier",
        )


@contextmanager
def naming_full_tier(tier: Tier, needed_bytes: int) -> Iterator[None]:
    """Turn 'no space left' and 'permission denied', ours or a tool's, into errors that name the tier."""
    try:
        yield
    except ToolError as error:
        if tier.free_bytes() > MARGIN_BYTES and os.strerror(errno.ENOSPC) not in error.what:
            raise
        raise full(tier, needed_bytes) from None
    except NeurotierError:
        raise
    except shutil.Error as error:  # of copytree, with the errors of all files as text
        if os.strerror(errno.ENOSPC) not in str(error):
            raise
        raise full(tier, needed_bytes) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full(tier, needed_bytes) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise TierError(f"tier {tier.name!r} is not writable: {error.filename}: {error.strerror}") from None
        raise


def full(tier: Tier, needed_bytes: int) -> TierError:
    """The error for a tier that became full under a participant."""
    return TierError(
        f"tier {tier.name!r} became full: {size(tier.free_bytes())} free at {tier.path}, "
        f"about {size(needed_bytes)} needed by this participant",
        fix="free some space, start fewer participants at once, or choose another tier",
    )


def size(count: int) -> str:
    """A number of bytes for people, in binary units."""
    return str(humanfriendly.format_size(count, binary=True))
