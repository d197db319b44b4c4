"""The store: every image is obtained once, whole or not at all, and placed on the tier that the run reads it from.

The store lies on the results tier, so that an image that took minutes outlives a tier that is lost at the next boot;
the placed copy lies on the ``images`` tier, and is made again from the store where that has lost it. Processes that
want the same image wait for the one that makes it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from neurotier.containers.build import BASE, REFUSALS, build, build_arguments, ingredients, run_engine
from neurotier.containers.engine import clean_environment
from neurotier.containers.reference import ROOT, Reference, read_reference
from neurotier.errors import ContainerError, SourceError, TierError
from neurotier.files import exclusive, read_json, remove_tree, write_json
from neurotier.meter.tree import die_with_parent
from neurotier.places import short_hash
from neurotier.settings import ContainerSettings


@dataclass(frozen=True)
class ContainerImage:
    """An image that has been obtained.

    Attributes
    ----------
    reference
        As the configuration names it.
    name
        What it is called.
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
        """Where it is placed: a file, or the folder of an unpacked one."""
        return images / f"{self.name}-{self.sha256[:12]}.{self.form}"

    def cache(self, kept: Path) -> Path:
        """Folder in the store with what its tool compiled: small, and wanted whatever tier the image is on."""
        return kept / f"{self.name}-{self.sha256[:12]}.cache"


@dataclass(frozen=True)
class Placed:
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
    """

    engine: str
    path: Path
    cache: Path
    sha256: str


@dataclass(frozen=True)
class Store:
    """Where images are kept and placed, and what makes them.

    Attributes
    ----------
    kept
        Folder on the results tier.
    images
        Folder on the images tier.
    engine
        Path of the container engine.
    settings
        Section ``containers`` of the configuration.
    log
        File that takes what the engine prints.
    say
        Takes one line per step, for the user.
    """

    kept: Path
    images: Path
    engine: str
    settings: ContainerSettings
    log: Path
    say: Callable[[str], None]

    def obtain(self, text: str, where: str) -> ContainerImage:
        """Have an image in the store and on its tier.

        Parameters
        ----------
        text
            The reference.
        where
            The configuration key that has it.

        Raises
        ------
        SettingsError, ContainerError, SourceError
            If the reference means nothing, or the image cannot be built, pulled or read.
        """
        reference = read_reference(text, where)
        kept = self.keep(reference, where)
        facts = read_json(kept.with_suffix(".json"))
        image = ContainerImage(text, reference.name, facts["sha256"], facts["size_bytes"], self.settings.form)
        self.place(image, kept)
        return image

    def keep(self, reference: Reference, where: str) -> Path:
        """The image file in the store (or where it lies, if the configuration names a file), its digest beside it."""
        arguments = self.arguments(reference, where)
        kept = self.kept / f"{reference.name}-{short_hash(identity(reference, arguments))}.sif"
        facts = kept.with_suffix(".json")
        with exclusive(kept):
            if facts.exists() and (kept.exists() or reference.kind == "file"):
                return kept
            scratch = kept.with_name(f".{kept.name}.partial")  # what a kill left there goes now
            remove(scratch)
            scratch.mkdir(parents=True)
            try:
                partial = scratch / kept.name
                source = reference.path if reference.kind == "file" else partial
                self.make(reference, arguments, partial)
                assert source is not None  # noqa: S101  # for the type checker: a file has a path
                write_json(
                    facts, {"sha256": sha256(source), "size_bytes": source.stat().st_size, "source": str(source)}
                )
                if source is partial:
                    partial.rename(kept)
            finally:
                remove(scratch)
        return kept

    def arguments(self, reference: Reference, where: str) -> dict[str, str]:
        """Build arguments of a definition file; a base that is itself one is obtained first."""
        if reference.kind != "definition" or reference.path is None:
            return {}
        arguments = build_arguments(reference.path, self.settings.build_arguments)
        if arguments.get(BASE, "").endswith(".def"):
            base = reference.path.parent / arguments[BASE]
            arguments[BASE] = str(self.keep(read_reference(str(base), f"{where}, {BASE} of {base.name}"), where))
        return arguments

    def make(self, reference: Reference, arguments: dict[str, str], target: Path) -> None:
        """Build or pull an image file; of a file there is nothing to make."""
        if reference.kind == "definition" and reference.path is not None:
            self.say(f"building {reference.path.name} (some minutes, once)")
            given = self.with_unpacked_base(arguments, target.parent / "base")
            build(self.engine, reference.path, target, given, target.parent, self.log)
        elif reference.kind == "registry":
            self.say(f"pulling {reference.text}")
            try:
                command = [self.engine, "pull", str(target), reference.text]
                run_engine(command, target.parent, ROOT, self.log, f"pulling {reference.text}", REFUSALS)
            except ContainerError as error:
                raise SourceError(error.what, where=error.where, fix=error.fix) from None

    def with_unpacked_base(self, arguments: dict[str, str], folder: Path) -> dict[str, str]:
        """Build arguments with a base image unpacked to a folder: the engine itself cannot do so everywhere."""
        base = Path(arguments.get(BASE, ""))
        if base.suffix != ".sif":
            return arguments
        self.unpack(base, folder)
        return {**arguments, BASE: str(folder)}

    def place(self, image: ContainerImage, kept: Path | None = None) -> Path:
        """The image on its tier, copied there unless it is there already.

        Raises
        ------
        ContainerError
            If neither the tier nor the store has it.
        """
        target = image.file(self.images)
        if target.exists():
            return target
        with exclusive(target):
            if target.exists():
                return target
            source = kept or self.find_kept(image)
            source = Path(read_json(source.with_suffix(".json"))["source"]) if not source.exists() else source
            partial = target.with_name(f".{target.name}.partial")
            remove(partial)
            try:
                if image.form == "sandbox":
                    self.say(f"unpacking {image.name} on the images tier")
                    self.unpack(source, partial)
                else:
                    copy(source, partial, link=source.is_relative_to(self.kept))
                    if sha256(partial) != image.sha256:
                        raise ContainerError("has changed since it was obtained", where=str(source), fix=AGAIN)
                partial.rename(target)
            except OSError as error:
                remove(partial)
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise TierError(f"has no room for the image {image.name}", where=str(self.images)) from None
            except BaseException:
                remove(partial)
                raise
        return target

    def find_kept(self, image: ContainerImage) -> Path:
        """The file in the store that has an image's digest."""
        for facts in self.kept.glob(f"{image.name}-*.json"):
            if read_json(facts)["sha256"] == image.sha256:
                return facts.with_suffix(".sif")
        raise ContainerError("is neither on the images tier nor in the store", where=image.name, fix=AGAIN)

    def unpack(self, source: Path, target: Path) -> None:
        """Unpack an image's file system. Not by the engine, which gives up where it may not give files to others."""
        listed = subprocess.run(
            [self.engine, "sif", "list", str(source)],
            env=clean_environment(os.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"\|\s*(\d+)-\d+\s*\|\s*FS \(Squashfs", listed.stdout)
        if found is None:
            raise ContainerError("holds no file system that could be unpacked", where=str(source), fix=AGAIN)
        if not can_unpack():
            raise ContainerError("unsquashfs is not on PATH", where="unpacking an image", fix="install squashfs-tools")
        begin = self.log.stat().st_size if self.log.exists() else 0
        command = ["unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-offset", found[1], "-dest", str(target)]
        with self.log.open("ab") as file:
            done = subprocess.run(
                [*command, str(source)], stdout=file, stderr=file, preexec_fn=die_with_parent, check=False
            )
        code = done.returncode
        said = self.log.read_bytes()[begin:].decode(errors="replace")
        if "No space left" in said:
            raise TierError(f"has no room for the unpacked image {source.stem}", where=str(self.images))
        if code not in (0, ATTRIBUTES_LACKING):
            raise ContainerError(f"cannot be unpacked (unsquashfs: exit code {code})", where=str(source), fix=AGAIN)


AGAIN = "start with --forcerun obtain_image"

ATTRIBUTES_LACKING = 2
"""Exit code of unsquashfs where all files were written, but the file system does not keep an attribute of some."""


def can_unpack() -> bool:
    """Whether this machine has what unpacks images."""
    return shutil.which("unsquashfs") is not None


def content_of(text: str, given: Mapping[str, str]) -> str:
    """What a reference means now: when that changes, the image is obtained again.

    Parameters
    ----------
    text
        The reference.
    given
        Build arguments of the configuration.
    """
    reference = read_reference(text, "image")
    if reference.kind != "definition" or reference.path is None:
        return identity(reference, {})
    arguments = build_arguments(reference.path, {"MIRROR": "any", **given})
    base = arguments.get(BASE, "")
    below = content_of(str(reference.path.parent / base), given) if base.endswith(".def") else ""
    return ingredients(reference.path, arguments) + below


def identity(reference: Reference, arguments: dict[str, str]) -> str:
    """What tells one image of the store from another, known before it is made."""
    if reference.kind == "registry" or reference.path is None:
        return reference.text
    if reference.kind == "definition":
        return ingredients(reference.path, arguments)
    facts = reference.path.stat()
    return f"{reference.path} {facts.st_size} {facts.st_mtime_ns}"


def sha256(file: Path) -> str:
    """Digest of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def copy(source: Path, target: Path, link: bool) -> None:
    """Copy an image file; where both lie on one file system, one that nobody else writes to gets a second name."""
    if link:
        with contextlib.suppress(OSError):
            os.link(source.resolve(), target)
            return
    shutil.copyfile(source, target)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
