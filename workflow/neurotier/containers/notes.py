"""The store's notes of its images and caches: a file ``NAME-IDENTITY.json`` for each way that leads to one.

Several may lead to the same content, such as the paths of a file that was copied or moved. What is placed is known by
name and digest, and so is one for all of them.

What nobody uses any more leaves the store, and the tiers that it was placed on, when that is asked for. Many results
folders share a store. Each run notes there, and beside the placed images, which results folder it works on, whose index
says what it uses; and it touches what the store notes of an image when it uses it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from neurotier.containers.caches import FORM
from neurotier.core.errors import StateError
from neurotier.core.files import exclusive, read_json, remove_whatever, write_text
from neurotier.core.places import short_hash

DAY_S = 86_400.0

USERS = "users"
"""Folder, beside images, with a file for each results folder that uses some of them."""


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
            shared = {
                file for other in stored if other.facts.exists() for file in other.files
            }  # such as what is placed
            files = [file for file in image.files if file not in shared]
            for file in files:
                remove_whatever(file)
        yield image, [image.facts, *files]
