"""The store: every image is obtained once, whole or not at all, and placed on the tier that the run reads it from.

The store is on the results tier, so that an image that took minutes to make survives the loss of a tier at a reboot.
The copy on the ``images`` tier is made again from the store when it is missing. Processes that need the same image wait
for the one that makes it.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.containers.build import BASE, build_arguments, content_of, make_image
from neurotier.containers.engine import run_logged
from neurotier.containers.reference import Reference, fetch, read_reference
from neurotier.containers.shelf import PlacedCache, Shelf, note_use, placed_sha256, sha256, source_of, stored_images
from neurotier.core.errors import ContainerError, SourceError, TierError
from neurotier.core.files import (
    exclusive,
    flush_file_system,
    partial_of,
    read_if_whole,
    read_json,
    remove_whatever,
    rename_durably,
    write_json,
)
from neurotier.core.places import short_hash
from neurotier.core.settings import ContainerSettings, DatasetSettings


@dataclass(frozen=True)
class ContainerImage:
    """An image that has been obtained.

    Attributes
    ----------
    reference
        As the configuration names it.
    name
        Its name.
    sha256
        Digest of the image file.
    size_bytes
        Its size.
    form
        ``sif`` or ``sandbox``: how it is placed.
    """

    reference: str
    name: str
    sha256: str
    size_bytes: int
    form: str

    def file(self, images: Path) -> Path:
        """Its path on the images tier: a file, or the folder of an unpacked image."""
        return images / f"{self.name}-{self.sha256[:12]}.{self.form}"

    def cache(self, kept: Path) -> Path:
        """Folder in the store for what its tool compiled: small, and independent of where the image is placed."""
        return kept / f"{self.name}-{self.sha256[:12]}.cache"


@dataclass(frozen=True)
class PlacedImage:
    """The container image in use.

    Attributes
    ----------
    engine
        Path of the container engine.
    path
        The image on its tier.
    cache
        Folder with what its tool compiled.
    sha256
        Digest of the image file.
    caches
        Folders that the app reads.
    """

    engine: str
    path: Path
    cache: Path
    sha256: str
    caches: tuple[PlacedCache, ...] = ()


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
        File that takes what the engine prints.
    dataset
        Section ``dataset``: how often a container dataset is tried.
    """

    engine: str
    settings: ContainerSettings
    log: Path
    dataset: DatasetSettings | None = None

    def obtain(self, text: str, where: str, placing: bool = True) -> ContainerImage:
        """Have an image in the store and, if ``placing``, on its tier; otherwise it is compared in the store.

        Parameters
        ----------
        text
            The reference.
        where
            The configuration key that has it.

        Raises
        ------
        SettingsError, ContainerError, SourceError
            If the reference is not valid, or the image cannot be built, pulled or read.
        """
        reference = read_reference(text, where)
        kept = self.keep(reference, where)
        notes = kept.with_suffix(".json")
        facts = read_json(notes)
        image = ContainerImage(text, reference.name, facts["sha256"], facts["size_bytes"], self.settings.form)
        try:
            if placing:
                self.place(image, kept)
            else:
                check_digest(source_of(notes), source_of(notes), image)
        except AlteredError as error:
            self.say(f"{error}: obtaining it again")
            with exclusive(kept):
                remove_whatever(kept)
                remove_whatever(notes)
            return self.obtain(text, where, placing)
        return image

    def keep(self, reference: Reference, where: str) -> Path:
        """Have the image file in the store, with its digest next to it; a file of the user's stays where it is."""
        content = content_of(reference.text, self.settings.build_arguments)
        kept = self.kept / f"{reference.name}-{short_hash(content)}.sif"
        notes, is_own = kept.with_suffix(".json"), reference.kind != "file"
        with exclusive(kept):
            if notes.exists() and (kept.exists() or not is_own):
                return kept
            scratch = partial_of(kept)  # and with it the remains of a killed process
            remove_whatever(scratch)
            scratch.mkdir(parents=True)
            try:
                source = scratch / kept.name if is_own else reference.path
                origin = self.make(reference, where, source)
                digest = sha256(source)
                if reference.digest not in (None, digest):
                    problem = f"is another image (sha256 {digest[:12]}...)"
                    fix = "correct the digest, or ask who keeps the dataset"
                    raise SourceError(problem, where=reference.text, fix=fix)
                facts = {"sha256": digest, "size_bytes": source.stat().st_size, "source": str(source)}
                if is_own:
                    flush_file_system(source)
                    rename_durably(source, kept)
                write_json(notes, facts | origin)
            finally:
                remove_whatever(scratch)
        return kept

    def make(self, reference: Reference, where: str, target: Path) -> dict[str, Any]:
        """Build, pull or fetch an image file, and say where it was found; a file of the user's needs none of that.

        If the base of a definition file is one, too, that is obtained first.
        """
        if reference.kind == "dataset" and self.dataset is not None:
            return {"origin": fetch(reference, target, self.dataset, self.say)}
        arguments = {}
        if reference.kind == "definition":
            arguments = build_arguments(reference.path, self.settings.build_arguments)
            base = reference.path.parent / arguments.get(BASE, "")
            if base.suffix == ".def":
                base = self.keep(read_reference(str(base), f"{where}, {BASE} of {base.name}"), where)
            if base.suffix == ".sif":  # which the engine itself cannot unpack everywhere
                arguments[BASE] = str(target.with_name("base"))
                self.unpack(base, target.with_name("base"))
        if reference.kind != "file":
            make_image(self.engine, reference, arguments, target, self.log, self.say)
        return {}

    def place(self, image: ContainerImage, kept: Path | None = None) -> Path:
        """The image on its tier: copied or unpacked there unless it is there already, and compared once per run.

        The digest of what was unpacked is kept in the store, one per place, as file systems keep different attributes.

        Raises
        ------
        AlteredError
            If the image in the store is not what was obtained.
        ContainerError, TierError
            If neither store nor tier has the image, or the tier has no room.
        """
        target = image.file(self.images)
        unpacked = self.kept / f"{target.name}-{short_hash(str(target))}.tree"

        def is_right(placed: Path) -> bool:
            expected = image.sha256 if image.form == "sif" else read_if_whole(unpacked).get("sha256")
            return placed_sha256(placed) == expected

        def put(partial: Path) -> None:
            stored = stored_images(self.kept, self.images)  # whose file the user may have moved, and named its new path
            notes = [kept.with_suffix(".json")] if kept else [one.facts for one in stored if one.sha256 == image.sha256]
            source = next(filter(Path.exists, map(source_of, notes)), None)
            if source is None:
                raise ContainerError("is neither on the images tier nor in the store", where=image.name, fix=AGAIN)
            if image.form == "sif":
                if source.is_relative_to(self.kept):  # which nobody else writes to
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

        return self.place_once(target, is_right, put, lambda: note_use(self.kept, self.images, image.sha256))

    def unpack(self, source: Path, target: Path) -> None:
        """Unpack an image's file system; not by the engine, which fails where it cannot change the owner of files."""
        listed = run_logged([self.engine, "sif", "list", str(source)], self.log)[1]
        partition = re.search(r"\|\s*(\d+)-\d+\s*\|\s*FS \(Squashfs", listed)
        if partition is None:
            raise ContainerError("holds no file system that could be unpacked", where=str(source), fix=AGAIN)
        if not can_unpack():
            raise ContainerError("unsquashfs is not on PATH", where="unpacking an image", fix="install squashfs-tools")
        command = ["unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-offset", partition[1], "-dest", str(target)]
        code, said = run_logged([*command, str(source)], self.log)
        if "No space left" in said:
            raise TierError(f"has no room for the unpacked image {source.stem}", where=str(self.images))
        if code not in (0, ATTRIBUTES_LACKING):
            raise ContainerError(f"cannot be unpacked (unsquashfs: exit code {code})", where=str(source), fix=AGAIN)


class AlteredError(ContainerError):
    """An image is not what was obtained."""


def check_digest(file: Path, source: Path, image: ContainerImage) -> None:
    """Raise :class:`AlteredError` unless a file, which is ``source`` or a copy of it, has the image's digest."""
    digest = sha256(file)
    if digest != image.sha256:
        problem = f"has changed since it was obtained (sha256 {image.sha256[:12]}... then, {digest[:12]}... now)"
        raise AlteredError(problem, where=str(source), fix=AGAIN)


AGAIN = "start with --forcerun obtain_image"

ATTRIBUTES_LACKING = 2
"""Exit code of unsquashfs if all files were written, but some attribute could not be set."""


def can_unpack() -> bool:
    """Whether this machine can unpack images."""
    return shutil.which("unsquashfs") is not None
