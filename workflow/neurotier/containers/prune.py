"""Images that nobody uses any more leave the store, and the tiers that they were placed on, when that is asked for.

Many results folders share a store. Each run notes there, and beside the placed images, which results folder it works
on, whose index says what it uses; and it touches what the store notes of an image when it uses it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from neurotier.containers.caches import FORM
from neurotier.containers.notes import name_of, notes_of
from neurotier.core.errors import StateError
from neurotier.core.files import exclusive, read_json, remove_whatever

DAY_S = 86_400.0


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
            name = f"{name_of(facts)}-{digest[:12]}"
            placed = [images / f"{name}.{form}" for form in ("sif", "sandbox", FORM)]
            files = [image, *kept.glob(f"{name}.*"), *placed]  # what its tool compiled, and digests of its places
            size_bytes = image.stat().st_size if image.exists() else int(noted["size_bytes"]) * placed[-1].exists()
            yield StoredImage(facts, digest, tuple(filter(Path.exists, files)), size_bytes, facts.stat().st_mtime)


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
            own, kept = image.facts.with_suffix(".sif"), image.facts.parent
            is_shared = any(notes_of(kept, name_of(image.facts), image.sha256))  # what is placed, by who else has it
            files = [file for file in image.files if file == own or not is_shared]
            for file in files:
                remove_whatever(file)
        yield image, [image.facts, *files]
