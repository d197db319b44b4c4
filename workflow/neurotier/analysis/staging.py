"""Staging: files copied between tiers, whole folders that appear by one rename, and tiers that have no room."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neurotier.core.errors import InputError, NeurotierError, SourceError, TierError, ToolError
from neurotier.core.files import flush_tree, make_folders, partial_of, remove_whatever, rename_durably
from neurotier.core.foreign import copy_file, entries_below, open_file, open_in_dataset
from neurotier.core.foreign_trees import copy_tree
from neurotier.core.quantities import size
from neurotier.core.tiers import Tier

MARGIN_BYTES = 1_000_000
"""Free space below which a tier counts as full."""

Made = dict[str, list[int | str]]
"""What is kept: path below a folder to size in bytes and SHA-256, or of a link 0 and where it leads."""


def stage_in(
    dataset: Path, paths: Iterable[str], folder: Path, limit_bytes: int, links_to: Sequence[str] = ()
) -> tuple[int, int]:
    """Copy files of the dataset to the work tier, readable by this user alone; bytes and files copied.

    Parameters
    ----------
    dataset
        The dataset's folder.
    paths
        Files below it.
    folder
        Where they go, by the same paths.
    limit_bytes
        Most that all of them may take; more would be another dataset than was indexed.
    links_to
        Folders outside the dataset that links in it may lead into.

    Raises
    ------
    SourceError, InputError
        If a file's content is not there, or cannot be read, or is none (:mod:`neurotier.core.foreign`).
    """
    copied = files = 0
    for path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with open_in_dataset(dataset, path, links_to) as source:
                copied += copy_file(source, target, path, limit_bytes - copied, mode=0o600)
        except FileNotFoundError:
            raise SourceError(
                "its content is not on the dataset tier",
                where=path,
                fix="start the same command again to fetch it",
            ) from None
        except PermissionError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=path) from None
        files += 1
    return copied, files


def publish(made: Path, final: Path) -> tuple[int, int, Made]:
    """Copy a folder to the results tier under a hidden name, flush it, then rename it.

    Returns
    -------
    tuple
        Bytes and files copied, and what is there now.

    Raises
    ------
    ToolError
        If something in the folder is neither a file nor a link that stays in it.
    """
    hidden = partial_of(final)
    remove_whatever(hidden)
    make_folders(hidden)
    try:
        copied, files = copy_tree(made, hidden, skipped=[TIME_STAMP], write_back=True) if made.exists() else (0, 0)
        kept = what_is_in(hidden)
        flush_tree(hidden)
        remove_whatever(final)  # of an earlier run whose derivatives are to be replaced
        rename_durably(hidden, final)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return copied, files, kept


TIME_STAMP = ".snakemake_timestamp"
"""Snakemake's own file in folders that are outputs of rules."""


def what_is_in(folder: Path) -> Made:
    """Sizes and checksums of the files below a folder, but for Snakemake's own, in order of name."""
    made: Made = {}
    for entry in entries_below(folder):
        if entry.path.name == TIME_STAMP:
            continue
        name = str(entry.path)
        if entry.is_link:
            made[name] = [0, f"-> {os.readlink(folder / entry.path)}"]
            continue
        with open_file(folder, entry.path, name, ToolError) as file:
            made[name] = [entry.size_bytes, hashlib.file_digest(file, "sha256").hexdigest()]
    return made


def lacking(made: Made, folder: Path) -> str:
    """The first file of a record that is not there, or not as large as it was; empty if all are.

    Sizes alone are compared: what tells a file cut short by a fault from a whole one, at every start, at no cost.
    """
    for name, (size_bytes, content) in made.items():
        try:
            found = os.lstat(folder / name)
        except OSError:
            return name
        if not str(content).startswith("-> ") and found.st_size != size_bytes:
            return name
    return ""


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
