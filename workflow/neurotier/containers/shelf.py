"""Shelves: what is placed on a tier, images and caches, and the notes that the store keeps of them.

What is placed is there whole or not at all, and compared with its digest once per run and host: an image that was
altered on its tier, by a fault or by somebody, would run under the digest of the original. Markers of what a run has
compared are kept in the results, not next to the image.

Caches are folders that apps read, such as TemplateFlow's, read-only in containers. The source of one is no place of
ours: links in it that lead out, pipes and devices are refused.

The store has a file ``NAME-IDENTITY.json`` for each way that leads to an image or cache. Several may lead to the same
content, such as the paths of a file that was copied or moved. What is placed is known by name and digest, and so is one
for all of them. What nobody uses any more leaves the store, and the tiers that it was placed on, when that is asked
for. Many results folders share a store. Each run notes there, and beside the placed images, which results folder it
works on, whose index says what it uses; and it touches what the store notes of an image when it uses it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from neurotier.core.errors import SourceError, StateError, TierError
from neurotier.core.files import (
    exclusive,
    made_whole,
    read_if_whole,
    read_json,
    remove_whatever,
    write_json,
    write_text,
)
from neurotier.core.foreign import FILE, blaming, checked_entries, copy_tree
from neurotier.core.places import short_hash
from neurotier.core.settings import Say

FORM = "folder"
"""Ending of a placed cache, as ``sif`` and ``sandbox`` are those of images."""

DAY_S = 86_400.0

USERS = "users"
"""Folder, beside images, with a file for each results folder that uses some of them."""


def sha256(file: Path) -> str:
    """Digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def placed_sha256(placed: Path, permissions: bool = True) -> str:
    """Digest of a placed image in either form; for anything but a file or a folder a text that no digest equals.

    That of a folder is made of path, type, permissions, link text and content of everything below it, in order of path.
    Without ``permissions``, as for caches, neither they nor empty folders count.
    """
    mode = placed.lstat().st_mode
    if not stat.S_ISDIR(mode):
        return sha256(placed) if stat.S_ISREG(mode) else "neither a file nor a folder"
    whole = hashlib.sha256()
    for root, names, files, descriptor in os.fwalk(placed, follow_symlinks=False):
        names.sort()
        for name in sorted([*names, *files]):
            facts = os.lstat(name, dir_fd=descriptor)
            kind, content = stat.S_IFMT(facts.st_mode), str(facts.st_rdev)
            if kind == stat.S_IFLNK:
                content = os.readlink(name, dir_fd=descriptor)
            elif kind == stat.S_IFREG:
                try:
                    with os.fdopen(os.open(name, FILE, dir_fd=descriptor), "rb") as file:
                        content = hashlib.file_digest(file, "sha256").hexdigest()
                except PermissionError:  # closed to this user, and so to the container
                    content = "closed"
            if permissions or kind != stat.S_IFDIR:
                mode, below = facts.st_mode if permissions else kind, os.path.relpath(root, placed)
                whole.update(f"{below}/{name}\0{mode:o}\0{content}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


@dataclass(frozen=True)
class Shelf:
    """Where images or caches are placed.

    Attributes
    ----------
    kept
        Folder of the store, on the results tier.
    images
        Folder on the images tier.
    say
        Takes one line per step, for the user.
    verified
        Folder of the markers, in the results; without one, what is placed is compared each time.
    run
        The run that compares.
    """

    kept: Path
    images: Path
    say: Say
    verified: Path | None = None
    run: str = ""

    def place_once(
        self, placed: Path, is_right: Callable[[Path], bool], put: Callable[[Path], None], note_use: Callable[[], None]
    ) -> Path:
        """Have something in its place, compared once per run and host; its path.

        Parameters
        ----------
        placed
            Its path on its tier.
        is_right
            Whether what lies at a path is what it should be.
        put
            Puts it at the path that it is given.
        note_use
            Notes that it is used now: who prunes the store goes by that.

        Raises
        ------
        TierError
            If the tier has no room.
        """
        facts = {"run": self.run, "host": socket.gethostname(), "path": str(placed)}
        marker = self.verified and self.verified / f"{placed.name}-{short_hash(facts['host'] + facts['path'])}.json"
        with exclusive(placed):
            if marker and placed.exists() and read_if_whole(marker) == facts:
                return placed
            note_use()
            is_there = os.path.lexists(placed)
            if not is_there or not is_right(placed):
                if is_there:
                    self.say(f"{placed} was altered since it was placed (its digest has changed): placing it again")
                    remove_whatever(placed)  # first: the tier may have no room for both
                try:
                    with made_whole(placed) as partial:
                        put(partial)
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT):
                        raise TierError(f"has no room for {placed.name}", where=str(placed.parent)) from None
                    raise
            if marker:
                write_json(marker, facts)
        return placed


# Caches.


@dataclass(frozen=True)
class Cache:
    """A cache that has been looked at.

    Attributes
    ----------
    name
        Its name in the configuration.
    source
        The folder it is copied from.
    sha256
        Digest of its contents, by path and content of its files and links.
    files, size_bytes
        Their number, and how much they hold.
    """

    name: str
    source: str
    sha256: str
    files: int
    size_bytes: int


@dataclass(frozen=True)
class PlacedCache:
    """A cache as containers see it: its copy, the place inside, the variable that names that place, its digest."""

    name: str
    path: Path
    inside: str
    variable: str | None
    sha256: str


def look_at(name: str, source: str) -> Cache:
    """Read a folder that is to be a cache.

    Raises
    ------
    SourceError
        If it is not there, or empty.
    InputError
        If it holds anything but files and links that stay in it.
    """
    folder, where = Path(source).expanduser().absolute(), f"config key app.caches.{name}.source: {source}"
    if not folder.is_dir():
        raise SourceError("there is no such folder", where=where, fix="correct the path")
    with blaming(name):
        entries = list(checked_entries(folder.resolve()))
    if not entries:
        raise SourceError("holds no file", where=where, fix="name the folder that does")
    size_bytes = sum(entry.size_bytes for entry in entries if entry.is_file)
    return Cache(name, str(folder), placed_sha256(folder.resolve(), permissions=False), len(entries), size_bytes)


def place_cache(shelf: Shelf, cache: Cache) -> Path:
    """A cache on its tier: copied there unless it is there already, and compared once per run; noted in the store.

    Raises
    ------
    SourceError, InputError
        If the source is gone, or is not what was looked at any more.
    TierError
        If the tier has no room.
    """

    def holds(folder: Path) -> bool:
        return placed_sha256(folder, permissions=False) == cache.sha256

    def put(partial: Path) -> None:
        shelf.say(f"placing {cache.name} ({cache.files} files, {cache.size_bytes} bytes) on the images tier")
        source, where = Path(cache.source), f"app.caches.{cache.name}: {cache.source}"
        if not source.is_dir():
            raise SourceError("is not there any more", where=where, fix="have it there, and start again")
        with blaming(cache.name):
            copy_tree(source.resolve(), partial, write_back=True)
        if not holds(partial):
            fix = "start with --forcerun place_caches"
            raise SourceError("has changed since it was looked at", where=where, fix=fix)

    def note_use() -> None:
        facts = {"sha256": cache.sha256, "size_bytes": cache.size_bytes, "source": cache.source}
        with suppress(OSError):  # the results tier may be full, and the cache be there all the same
            write_json(shelf.kept / f"{cache.name}-{short_hash(cache.source + cache.sha256)}.json", facts)

    return shelf.place_once(shelf.images / f"{cache.name}-{cache.sha256[:12]}.{FORM}", holds, put, note_use)


# Notes.


def source_of(notes: Path) -> Path:
    """The image file that notes are about: the store's own, or else the one that it was made of, which may be gone."""
    kept = notes.with_suffix(".sif")
    return kept if kept.exists() else Path(read_json(notes)["source"])


def note_user(folder: Path, results: Path) -> None:
    """Note that a results folder uses images in a folder: the store, or that of placed images on a tier."""
    file = folder / USERS / short_hash(str(results))
    if not file.exists():
        write_text(file, str(results))


def users_of(folder: Path) -> set[Path]:
    """The results folders that have used images in a folder; some may be gone."""
    return {Path(file.read_text()) for file in (folder / USERS).glob("[!.]*")}


class StoredImage(NamedTuple):
    """An image in the store, or a cache that it notes.

    Attributes
    ----------
    facts
        The store's notes of it; the image lies beside them, unless it is a file of the user's.
    sha256
        Digest of the image file.
    files
        What it takes in the store and on the images tier.
    size_bytes
        Size of the image file, if it is the store's, or of a cache.
    used_s
        When it was used last, s since 1970.
    """

    facts: Path
    sha256: str
    files: tuple[Path, ...]
    size_bytes: int
    used_s: float

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self.facts.stem


def stored_images(kept: Path, images: Path) -> Iterator[StoredImage]:
    """The images of a store, in order of name; what cannot be read is left alone.

    Parameters
    ----------
    kept
        Folder of the store.
    images
        Folder of placed images on the images tier in use.
    """
    for facts in sorted(kept.glob("*.json")):
        with suppress(FileNotFoundError, StateError, LookupError, TypeError):
            noted = read_json(facts)
            digest = str(noted["sha256"])
            image = facts.with_suffix(".sif")
            name = f"{facts.stem.rpartition('-')[0]}-{digest[:12]}"
            placed = [images / f"{name}.{form}" for form in ("sif", "sandbox", FORM)]
            files = [image, *kept.glob(f"{name}.*"), *placed]  # what its tool compiled, and digests of its places
            size_bytes = image.stat().st_size if image.exists() else int(noted["size_bytes"]) * placed[-1].exists()
            yield StoredImage(facts, digest, tuple(filter(Path.exists, files)), size_bytes, facts.stat().st_mtime)


def note_use(kept: Path, images: Path, digest: str) -> None:
    """Note that an image is used now: who prunes the store goes by that."""
    for image in stored_images(kept, images):
        if image.sha256 == digest:
            with suppress(OSError):
                os.utime(image.facts)


def remove_unused(
    stored: Collection[StoredImage], days: float, in_use: Collection[str]
) -> Iterator[tuple[StoredImage, list[Path]]]:
    """Remove images that were not used for some days; each that was removed, with its files that went.

    Parameters
    ----------
    stored
        Images of one store.
    days
        How long an image must not have been used, d.
    in_use
        Digests of images that stay in any case.
    """
    for image in stored:
        with exclusive(image.facts.with_suffix(".sif")):  # as when it is made; a run may have begun to use it
            if image.sha256 in in_use or not image.facts.exists():
                continue
            if time.time() - image.facts.stat().st_mtime < days * DAY_S:
                continue
            remove_whatever(image.facts)  # first: without them the store makes the image anew
            # what others share, such as what is placed, stays
            shared = {file for other in stored if other.facts.exists() for file in other.files}
            files = [file for file in image.files if file not in shared]
            for file in files:
                remove_whatever(file)
        yield image, [image.facts, *files]
