"""Staging: files copied between tiers, whole folders that appear by one rename, and full tiers."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from neurotier.core.errors import NeurotierError, SourceError, TierError, ToolError
from neurotier.core.files import (
    FULL,
    flush_file_system,
    flush_folder,
    flush_tree,
    make_folders,
    partial_of,
    remove_path,
    rename_durably,
)
from neurotier.core.foreign import blaming, copy_file, copy_tree, entries_below, open_file, open_in_dataset
from neurotier.core.quantities import size
from neurotier.core.tiers import Tier, says_full
from neurotier.dataset.contents import OBJECTS
from neurotier.meter.folders import Removal, held_in

MARGIN_BYTES = 1_000_000
"""Free space below which a tier counts as full."""

QUOTA = os.strerror(errno.EDQUOT)

MARGIN_FILES = 16
"""Free inodes below which a tier counts as full."""

FLUSHED_EACH = 500
"""Most files that are flushed one by one, at 2 ms each; for more files, the whole file system is flushed."""

Manifest = dict[str, list[int | str]]
"""Path below a folder to size in bytes and SHA-256; for a link, to 0 and its target."""


def stage_in(
    dataset: Path, paths: Sequence[str], folder: Path, limit_bytes: int, links_to: Sequence[str] = ()
) -> tuple[int, int]:
    """Copy files of the dataset to the work tier, readable by this user alone; returns bytes and files copied.

    Parameters
    ----------
    dataset
        The dataset's folder.
    paths
        Files below it.
    folder
        Target folder, below which they keep their paths.
    limit_bytes
        Most bytes in total; more would not be what was indexed.
    links_to
        Folders outside the dataset that links in it may lead into.

    Raises
    ------
    SourceError, InputError
        If a file's content is missing or cannot be read, or it is not a file (:mod:`neurotier.core.foreign`).
    """
    copied = 0
    for path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with blaming(path), open_in_dataset(dataset, path, links_to) as source:
                if source.peek().startswith((OBJECTS.encode(), b"version https://git-lfs.")):  # a pointer
                    raise FileNotFoundError
                copied += copy_file(source, target, limit_bytes - copied, mode=0o600)
        except FileNotFoundError:
            raise SourceError(
                "its content is not on the dataset tier",
                path,
                "start the same command again to fetch it, or with --forcerun index_dataset if it was removed, or after"
                " git lfs pull in a source with git-lfs",
            ) from None
    return copied, len(paths)


def publish(
    made: Path, final: Path, is_saved: bool = False, in_dataset: bool = False
) -> tuple[tuple[int, int], Manifest]:
    """Copy a folder to the results tier under a hidden name, flush it, then rename it.

    Parameters
    ----------
    made
        The folder to publish; if it does not exist, an empty folder is published.
    final
        Its final path; anything there is replaced.
    is_saved
        Whether it will be saved in a DataLad dataset, which accepts no odd names.
    in_dataset
        Whether ``final`` may be such a dataset, whose repository then stays.

    Returns
    -------
    tuple
        Bytes and files copied, and the manifest of the folder.

    Raises
    ------
    ToolError
        If an entry is neither a file nor a link that stays in the folder, is part of a git repository, or has a name
        that cannot be saved.
    """
    hidden = partial_of(final)
    remove_path(hidden)
    make_folders(hidden)
    try:
        with blaming(made.name, ToolError):
            copied = copy_tree(made, hidden, write_back=True) if made.exists() else (0, 0)
        kept = manifest_of(hidden)
        for name, (_, content) in kept.items():
            if ".git" in f"{name}/{str(content).removeprefix('-> ')}".lower().split("/"):
                # git would run what a repository's configuration names
                raise ToolError("is part of a git repository, which is not kept", name)
        if is_saved and (odd := next(filter(UNSAVED.search, kept), None)):
            raise ToolError("has a name that git-annex does not take", repr(odd))
        (flush_tree if len(kept) <= FLUSHED_EACH else flush_file_system)(hidden)
        if in_dataset:
            set_dataset_aside(final)
        remove_path(final)  # from an earlier run, whose derivatives are replaced
        rename_durably(hidden, final)
        take_dataset_back(final)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return copied, kept


UNSAVED = re.compile(r"[\\\n\udc80-\udcff]")
"""Characters that DataLad or git-annex accepts in no name: backslashes, line feeds, and bytes that are not UTF-8."""

OF_DATASET = (".datalad", ".gitattributes", ".gitmodules", ".bidsignore", "code", "prov", "sourcedata", ".git")
"""Entries of a DataLad dataset that stay when the rest of its folder is replaced; its repository is moved last."""


def set_dataset_aside(folder: Path) -> None:
    """Give a folder that is a DataLad dataset a hidden name; :func:`take_dataset_back` undoes it, even after a kill."""
    take_dataset_back(folder)
    if (folder / ".git").is_dir():
        os.rename(folder, aside(folder))


def take_dataset_back(folder: Path) -> None:
    """Move a repository that was set aside into the folder that replaced its own; do nothing if there is none."""
    before = aside(folder)
    if not os.path.lexists(before):
        return
    if not os.path.lexists(folder):
        rename_durably(before, folder)
        return
    for name in OF_DATASET:
        if os.path.lexists(before / name) and not os.path.lexists(folder / name):
            os.rename(before / name, folder / name)
    flush_folder(folder)
    remove_path(before)


def aside(folder: Path) -> Path:
    """The hidden name of a folder whose repository will be moved into another folder."""
    return folder.with_name(f".{folder.name}.aside")


def manifest_of(folder: Path) -> Manifest:
    """Sizes and checksums of the files below a folder, in order of name."""
    manifest: Manifest = {}
    for entry in entries_below(folder):
        name = str(entry.path)
        if entry.is_link:
            manifest[name] = [0, f"-> {os.readlink(folder / entry.path)}"]
            continue
        with open_file(folder, entry.path) as file:
            manifest[name] = [entry.size_bytes, hashlib.file_digest(file, "sha256").hexdigest()]
    return manifest


def first_missing(manifest: Manifest, folder: Path) -> str:
    """The first file of a manifest that is missing or has another size; empty if there is none.

    Only sizes are compared: this detects a file cut short, and is cheap enough for every start.
    """
    for name, (size_bytes, content) in manifest.items():
        try:
            facts = os.lstat(folder / name)
        except OSError:
            return name
        if not str(content).startswith("-> ") and facts.st_size != size_bytes:
            return name
    return ""


def check_room(tier: Tier, needed_bytes: int, needed_files: int | None = None) -> None:
    """Raise :class:`TierError` if a participant does not fit on the tier, in bytes or in files."""
    if needed_bytes > tier.free_bytes():
        raise full_tier(tier, needed_bytes, needed_files, "has too little room")
    if (needed_files or 0) > tier.free_files():
        raise full_tier(tier, needed_bytes, needed_files, "has too few inodes")


@contextmanager
def naming_full_tier(tier: Tier, needed_bytes: int, needed_files: int | None = None) -> Iterator[None]:
    """Turn 'no space left', here or in a tool, and a tool's failure on a read-only tier, into errors about the tier."""
    try:
        yield
    except ToolError as error:
        if tier.is_read_only():  # the kernel remounts a file system read-only after device errors
            fix = "look for errors of its device (dmesg), mount it again, and start the same command again"
            raise TierError(f"tier {tier.name!r} became read-only, at {tier.path}", fix=fix) from None
        has_room = tier.free_bytes() > MARGIN_BYTES and tier.free_files() > MARGIN_FILES
        if has_room and not says_full(error.what):
            raise
        raise full_tier(tier, needed_bytes, needed_files, f"became full ({error.what})") from None
    except NeurotierError:
        raise
    except OSError as error:
        if error.errno in FULL:
            raise full_tier(tier, needed_bytes, needed_files, f"became full ({error.strerror})") from None
        error.filename = error.filename or str(tier.path)  # errors of calls on a descriptor name no file
        raise


def full_tier(tier: Tier, needed_bytes: int, needed_files: int | None, state: str) -> TierError:
    """The error for a tier that has, or now has, no room for a participant."""
    free, needed = size(tier.free_bytes()), f"about {size(needed_bytes)}"
    free_files = tier.free_files()
    if math.isfinite(free_files):
        free += f" and inodes for {free_files:,} files"
        state = "is out of inodes" if free_files <= MARGIN_FILES else state
    if QUOTA in state:
        free = f"no more for you of the {free}"
    if needed_files is not None:
        needed += f" and {needed_files:,} files"
    return TierError(
        f"tier {tier.name!r} {state}: {free} left at {tier.path}, {needed} needed",
        fix="choose a larger tier, free some space or wait for other runs there, or start fewer participants at once",
    )


def remove_counted(scratch: Path, removal: Removal) -> None:
    """Remove a scratch folder, and add what it held, and how long the removal took, to ``removal``."""
    begin_s, begin_cpu_s = time.monotonic(), time.process_time()
    held = held_in(scratch)
    with suppress(OSError):  # what is left is removed with the work folder
        remove_path(scratch)
    removal.take(held, time.monotonic() - begin_s, time.process_time() - begin_cpu_s)
