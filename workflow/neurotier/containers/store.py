"""The store: every image is obtained once, whole or not at all, and placed on the tier that the run reads it from.

The store is on the results tier, so that an image that took minutes to make survives the loss of a tier at a reboot. If
the copy on the ``images`` tier is missing, it is made again from the store. Processes that need the same image wait for
the one that makes it.

A placed image is complete or missing, and its digest is verified once per run and host: an image altered on its tier,
by a fault or by another user, would otherwise run under the digest of the original. Markers of what a run has verified
are kept in the results, not next to the image.

Caches are folders that apps read, such as TemplateFlow's, read-only in containers. The source of a cache is foreign:
links in it that lead out, pipes and devices are refused.

The store has a file ``NAME-IDENTITY.json`` for each reference to an image or cache. Several references may lead to the
same content, such as the paths of a file that was copied or moved. A placed copy is named by name and digest, so these
references share one copy. On request, unused images are removed from the store and from the tiers that they were placed
on. Many results folders share a store. Each run notes there, and next to the placed images, which results folder it
works on, whose index says which images it uses; and when it uses an image, it touches the store's file about that
image.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from neurotier.containers.engine import explain, run_logged
from neurotier.containers.reference import (
    BASE,
    Reference,
    build_arguments,
    fetch,
    image_identity,
    make_image,
    read_reference,
    short_name,
)
from neurotier.core.errors import ContainerError, SourceError, StateError, TierError
from neurotier.core.files import (
    FULL,
    Record,
    absolute_path,
    atomic_path,
    exclusive,
    flush_file_system,
    partial_of,
    read_intact_json,
    read_json,
    remove_path,
    rename_durably,
    write_json,
    write_text,
)
from neurotier.core.foreign import FILE, blaming, checked_entries, copy_tree
from neurotier.core.places import short_hash
from neurotier.core.settings import ContainerSettings, DatasetSettings, Say
from neurotier.core.tiers import says_full

FORM = "folder"
"""Suffix of a placed cache, as ``sif`` and ``sandbox`` are those of images."""

DAY_S = 86_400.0

USERS = "users"
"""Folder next to images, with a file for each results folder that uses some of them."""


def sha256(file: Path) -> str:
    """Digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def placed_sha256(placed: Path, permissions: bool = True) -> str:
    """Digest of a placed image in either form; for anything but a file or folder, a text that no digest equals.

    The digest of a folder covers path, type, permissions, link target and content of everything below it, in order of
    path. Without ``permissions``, as for caches, permissions and empty folders do not count.
    """
    mode = placed.lstat().st_mode
    if not stat.S_ISDIR(mode):
        return sha256(placed) if stat.S_ISREG(mode) else "neither a file nor a folder"
    whole = hashlib.sha256()
    for root, names, files, descriptor in os.fwalk(placed):
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
        Prints one line per step, for the user.
    verified
        Folder of the markers, in the results; without it, placed copies are verified each time.
    run
        The run that verifies.
    """

    kept: Path
    images: Path
    say: Say
    verified: Path | None = None
    run: str = ""

    def place_once(
        self,
        placed: Path,
        digest: Callable[[], str | None],
        put: Callable[[Path], None],
        note_use: Callable[[], None],
        permissions: bool = True,
    ) -> Path:
        """Make sure that an image or cache is in its place, verified once per run and host; returns its path.

        Parameters
        ----------
        placed
            Its path on its tier.
        digest
            Returns its expected :func:`placed_sha256`, ``None`` if unknown; called while no other process places it.
        put
            Puts it at the given path.
        note_use
            Notes that it is used now, for pruning the store.
        permissions
            Whether the digest covers permissions and empty folders.

        Raises
        ------
        TierError
            If the tier has no room.
        """
        facts = {"run": self.run, "host": socket.gethostname(), "path": str(placed)}
        marker = self.verified and self.verified / f"{placed.name}-{short_hash(facts['host'] + facts['path'])}.json"
        with exclusive(placed):
            if marker and placed.exists() and read_intact_json(marker) == facts:
                return placed
            note_use()
            is_there = os.path.lexists(placed)
            if not is_there or placed_sha256(placed, permissions) != digest():
                if is_there:
                    self.say(f"{placed} was altered since it was placed (its digest has changed): placing it again")
                    remove_path(placed)  # first: the tier may have no room for both
                try:
                    with atomic_path(placed) as partial:
                        put(partial)
                except OSError as error:
                    if error.errno in FULL:
                        raise TierError(f"has no room for {placed.name}", placed.parent) from None
                    raise
            if marker:
                write_json(marker, facts)
        return placed


# Images.


class ContainerImage(NamedTuple):
    """An image that has been obtained.

    Attributes
    ----------
    reference
        Its reference in the configuration.
    name
        Its name.
    sha256
        Digest of the image file.
    size_bytes
        Its size.
    origin
        The container dataset that it comes from, with its commit, and the path there; empty if none.
    """

    reference: str
    name: str
    sha256: str
    size_bytes: int
    origin: Mapping[str, str]


class PlacedImage(NamedTuple):
    """The container image in use.

    Attributes
    ----------
    engine
        Path of the container engine.
    path
        The image on its tier.
    cache
        Folder with code that the image's tool compiled.
    sha256
        Digest of the image file.
    caches
        Caches that the app reads, by the paths of their copies.
    """

    engine: str
    path: Path
    cache: Path
    sha256: str
    caches: Mapping[Path, Cache]


@dataclass(frozen=True, kw_only=True)
class Store(Shelf):
    """Where images are kept and placed, and what makes them.

    Attributes
    ----------
    engine
        Path of the container engine.
    settings
        Section ``containers`` of the configuration.
    log
        File for what the engine prints.
    dataset
        Section ``dataset``, for how often to try a container dataset.
    """

    engine: str
    settings: ContainerSettings
    log: Path
    dataset: DatasetSettings

    def obtain(self, text: str, where: str, placing: bool = True) -> ContainerImage:
        """Make sure that an image is in the store and, if ``placing``, on its tier; otherwise verify it in the store.

        Parameters
        ----------
        text
            The reference.
        where
            The configuration key that holds it.

        Raises
        ------
        SettingsError, ContainerError, SourceError
            If the reference is not valid, or the image cannot be built, pulled or read.
        """
        notes = self.keep(text, where)
        facts = read_json(notes)
        image = ContainerImage(text, short_name(text), facts["sha256"], facts["size_bytes"], facts.get("origin", {}))
        try:
            if placing:
                self.place(image, notes)
            else:
                check_digest(source_of(notes), source_of(notes), image)
        except AlteredError as error:
            self.say(f"{error}: obtaining it again")
            kept = notes.with_suffix(".sif")
            with exclusive(kept):
                remove_path(kept)
                remove_path(notes)
            return self.obtain(text, where, placing)
        return image

    def file(self, image: ContainerImage) -> Path:
        """The path of an image on the images tier: a file, or the folder of an unpacked image."""
        return self.images / f"{image.name}-{image.sha256[:12]}.{self.settings.form}"

    def cache(self, image: ContainerImage) -> Path:
        """Folder in the store for code that the image's tool compiled: small, and the same wherever the image is."""
        return self.kept / f"{image.name}-{image.sha256[:12]}.cache"

    def keep(self, text: str, where: str) -> Path:
        """Make sure that the store has an image file, except a user's own, which stays where it is; returns the path of
        the notes about it."""
        reference = read_reference(text, where)
        content = image_identity(reference.text, self.settings.build_arguments)
        kept = self.kept / f"{short_name(text)}-{short_hash(content)}.sif"
        notes, is_own = kept.with_suffix(".json"), reference.kind != "file"
        with exclusive(kept):
            if notes.exists() and (kept.exists() or not is_own):
                return notes
            scratch = partial_of(kept)  # removed with the leftovers of a killed process
            remove_path(scratch)
            scratch.mkdir(parents=True)
            try:
                source = scratch / kept.name if is_own else reference.path
                origin = self.make(reference, where, source)
                digest = sha256(source)
                if reference.digest not in (None, digest):
                    problem = f"is another image (sha256 {digest[:12]}...)"
                    raise SourceError(problem, reference.text, "correct the digest, or ask who keeps the dataset")
                facts = {"sha256": digest, "size_bytes": source.stat().st_size, "source": str(source)}
                if is_own:
                    flush_file_system(source)
                    rename_durably(source, kept)
                write_json(notes, facts | origin)
            finally:
                remove_path(scratch)
        return notes

    def make(self, reference: Reference, where: str, target: Path) -> Record:
        """Build, pull or fetch an image file, and return where it was found; a user's file needs none of that.

        If the base of a definition file is a definition file, too, that is obtained first.
        """
        if reference.kind == "dataset":
            return {"origin": fetch(reference, target, self.dataset, self.say)}
        arguments = {}
        if reference.kind == "definition":
            arguments = build_arguments(reference.path, self.settings.build_arguments)
            base = reference.path.parent / arguments.get(BASE, "")
            if base.suffix == ".def":
                base = self.keep(str(base), f"{where}, {BASE} of {base.name}").with_suffix(".sif")
            if base.suffix == ".sif":  # the engine itself cannot unpack it everywhere
                arguments[BASE] = str(target.with_name("base"))
                self.unpack(base, target.with_name("base"))
        if reference.kind != "file":
            make_image(self.engine, reference, arguments, target, self.log, self.say)
        return {}

    def place(self, image: ContainerImage, notes: Path | None = None) -> Path:
        """The image on its tier: copied or unpacked there unless it is there already, and verified once per run.

        An image that the store has lost is obtained again. The digest of an unpacked image is kept in the store, one
        per place, since file systems keep different attributes.

        Raises
        ------
        AlteredError
            If the image in the store, or the one obtained again, is not the earlier one.
        SettingsError, ContainerError, SourceError, TierError
            If it cannot be obtained again, or the tier has no room.
        """
        target, is_file = self.file(image), self.settings.form == "sif"
        unpacked = self.kept / f"{target.name}-{short_hash(str(target))}.tree"

        def every_note() -> list[Path]:
            return [one.facts for one in stored_images(self.kept, self.images) if one.sha256 == image.sha256]

        def put(partial: Path) -> None:
            # the user may have moved the file, and named its new path
            source = next(filter(Path.exists, map(source_of, [notes] if notes else every_note())), None)
            if not source:  # the store was emptied, or lost its notes
                source = source_of(self.keep(image.reference, image.name))
            if is_file:
                if source.is_relative_to(self.kept):  # nobody else writes to the store, so a hard link will do
                    with suppress(OSError):
                        os.link(source.resolve(), partial)
                if not partial.exists():
                    shutil.copyfile(source, partial)
                check_digest(partial, source, image)
                return
            check_digest(source, source, image)
            self.say(f"unpacking {image.name} on the images tier")
            self.unpack(source, partial)
            write_json(unpacked, {"sha256": placed_sha256(partial)})

        def digest() -> str | None:
            return image.sha256 if is_file else read_intact_json(unpacked).get("sha256")

        def note_use() -> None:
            for facts in every_note():
                with suppress(OSError):
                    os.utime(facts)

        return self.place_once(target, digest, put, note_use)

    def unpack(self, source: Path, target: Path) -> None:
        """Unpack an image's file system, without the engine, which fails where it cannot change the owner of files."""
        code, listed = run_logged([self.engine, "sif", "list", source], self.log)
        if code:
            raise explain(listed, source, problem="its file system cannot be found")
        partition = PRIMARY.match(listed)
        if not partition:
            raise ContainerError(
                "holds no file system that could be unpacked, or an overlay, which would be left out",
                source,
                "set containers.form to sif",
            )
        if not can_unpack():
            raise ContainerError("unsquashfs is not on PATH", "unpacking an image", "install squashfs-tools")
        command = ["unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-offset", partition[1], "-dest", target]
        code, said = run_logged([*command, source], self.log)
        if says_full(said):
            raise TierError(f"has no room for the unpacked image {source.stem}", self.images)
        if lacking := UNMADE.search(said):
            raise TierError(
                f"cannot hold the unpacked image {source.stem}: {lacking[0]}",
                self.images,
                "place images on another tier",
            )
        if code not in (0, NOT_ALL) or "failed to read" in said:
            raise ContainerError(f"cannot be unpacked (unsquashfs: exit code {code})", source, AGAIN)


class AlteredError(ContainerError):
    """An image is not the one that was obtained."""


def check_digest(file: Path, source: Path, image: ContainerImage) -> None:
    """Raise :class:`AlteredError` unless a file, which is ``source`` or a copy of it, has the image's digest."""
    digest = sha256(file)
    if digest != image.sha256:
        raise AlteredError(
            f"has changed since it was obtained (sha256 {image.sha256[:12]}... then, {digest[:12]}... now)",
            source,
            AGAIN,
        )


AGAIN = "start with --forcerun obtain_image"

PRIMARY = re.compile(r"(?s)(?!.*/Overlay/).*?\|\s*(\d+)-\d+\s*\|\s*FS \(Squashfs/\*System")
"""Matches the engine's list of an image's parts up to the offset of the file system that the engine starts, unless
there are overlays, which the engine would lay over it."""

NOT_ALL = 2
"""Exit code of unsquashfs after errors that did not stop it: about attributes and devices, which may be missing, and
about files (:data:`UNMADE`)."""

UNMADE = re.compile(r"failed to (create (file|(sym|hard)link)|make directory|write (file|sparse)).*")
"""What unsquashfs prints about a file, folder or link that it could not make, or not completely."""


def can_unpack() -> bool:
    """Whether this machine can unpack images."""
    return shutil.which("unsquashfs") is not None


# Caches.


class Cache(NamedTuple):
    """A cache whose source has been examined.

    Attributes
    ----------
    name
        Its name in the configuration.
    source
        The folder it is copied from.
    sha256
        Digest of the paths and contents of its files and links.
    files, size_bytes
        Number of these, and their total size.
    """

    name: str
    source: str
    sha256: str
    files: int
    size_bytes: int


def examine_cache(name: str, source: str) -> Cache:
    """Examine a folder that is to be a cache.

    Raises
    ------
    SourceError
        If it is missing or empty.
    InputError
        If it holds anything but files and links that stay in it.
    """
    folder, where = absolute_path(source), f"config key app.caches.{name}.source: {source}"
    if not folder.is_dir():
        raise SourceError("there is no such folder", where, "correct the path")
    with blaming(name):
        entries = list(checked_entries(folder.resolve()))
    if not entries:
        raise SourceError("holds no file", where, "name the folder that does")
    size_bytes = sum(entry.size_bytes for entry in entries if entry.is_file)
    return Cache(name, str(folder), placed_sha256(folder.resolve(), permissions=False), len(entries), size_bytes)


def place_cache(shelf: Shelf, cache: Cache) -> Path:
    """A cache on its tier: copied there unless it is there already, and verified once per run; noted in the store.

    Raises
    ------
    SourceError, InputError
        If the source is gone, or has changed since it was examined.
    TierError
        If the tier has no room.
    """

    def put(partial: Path) -> None:
        shelf.say(f"placing {cache.name} ({cache.files} files, {cache.size_bytes} bytes) on the images tier")
        source, where = Path(cache.source), f"app.caches.{cache.name}: {cache.source}"
        if not source.is_dir():
            raise SourceError("is not there any more", where, "have it there, and start again")
        with blaming(cache.name):
            copy_tree(source.resolve(), partial, write_back=True)
        if placed_sha256(partial, permissions=False) != cache.sha256:
            raise SourceError("has changed since it was looked at", where, "start with --forcerun place_caches")

    def note_use() -> None:
        with suppress(OSError):  # the results tier may be full, and the cache still usable
            write_json(shelf.kept / f"{cache.name}-{short_hash(cache.source + cache.sha256)}.json", cache._asdict())

    placed = shelf.images / f"{cache.name}-{cache.sha256[:12]}.{FORM}"
    return shelf.place_once(placed, lambda: cache.sha256, put, note_use, permissions=False)


# Notes.


def source_of(notes: Path) -> Path:
    """The image file that notes are about: the store's own, or else the file that they name, which may be gone."""
    kept = notes.with_suffix(".sif")
    return kept if kept.exists() else Path(read_json(notes)["source"])


def note_user(folder: Path, results: Path) -> None:
    """Note that a results folder uses images in a folder: the store, or the one for placed images on a tier."""
    file = folder / USERS / short_hash(str(results))
    if not file.exists():
        write_text(file, str(results))


def users_of(folder: Path) -> set[Path]:
    """The results folders that have used images in a folder; some may be gone."""
    return {Path(file.read_text()) for file in (folder / USERS).glob("[!.]*")}


class StoredImage(NamedTuple):
    """An image in the store, or a cache that the store has notes about.

    Attributes
    ----------
    facts
        The store's notes about it. The image file has the same name and lies next to them, unless it is a user's own.
    sha256
        Digest of the image file or cache.
    files
        Its files in the store and on the images tier.
    size_bytes
        Size of the image file or cache, if it or a copy is in the store or on the images tier.
    used_s
        When it was last used, s since 1970.
    """

    facts: Path
    sha256: str
    files: tuple[Path, ...]
    size_bytes: int
    used_s: float


def stored_images(kept: Path, images: Path) -> Iterator[StoredImage]:
    """The images of a store, in order of name; unreadable notes are left alone.

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
            files = [image, *kept.glob(f"{name}.*"), *placed]  # what its tool compiled, and digests of placed copies
            size_bytes = int(noted["size_bytes"]) * any(map(Path.exists, (image, *placed)))
            yield StoredImage(facts, digest, tuple(filter(Path.exists, files)), size_bytes, facts.stat().st_mtime)


def remove_unused(
    stored: Collection[StoredImage], days: float, in_use: Collection[str]
) -> Iterator[tuple[StoredImage, list[Path]]]:
    """Remove images that were not used for some days; yields each of them, with its files that were removed.

    Parameters
    ----------
    stored
        Images of one store.
    days
        How long an image must have been unused, d.
    in_use
        Digests of images that are always kept.
    """
    for image in stored:
        facts = image.facts
        with exclusive(facts.with_suffix(".sif")):  # as when it is made: a run may have just begun to use it
            if image.sha256 in in_use or not facts.exists() or time.time() - facts.stat().st_mtime < days * DAY_S:
                continue
            remove_path(facts)  # first: without notes the store makes the image again
            # files shared with others, such as placed copies, stay
            shared = {file for other in stored if other.facts.exists() for file in other.files}
            files = [file for file in image.files if file not in shared]
            for file in files:
                remove_path(file)
        yield image, [facts, *files]
