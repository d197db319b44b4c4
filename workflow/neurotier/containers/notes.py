"""The store's notes of its images: a file ``NAME-IDENTITY.json`` for each way that leads to an image.

Several may lead to the same content, such as the paths of a file that was copied or moved. What is placed is known by
name and digest, and so is one for all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import read_json, write_text
from neurotier.core.places import short_hash

USERS = "users"
"""Folder, beside images, with a file for each results folder that uses some of them."""


def notes_of(kept: Path, name: str, digest: str) -> Iterator[Path]:
    """The notes that a store has of one content, in order of name; damaged ones are left out.

    Parameters
    ----------
    kept
        Folder of the store.
    name, digest
        Of the image.
    """
    for notes in sorted(kept.glob(f"{name}-*.json")):
        with suppress(FileNotFoundError, StateError, LookupError, TypeError):
            if read_json(notes)["sha256"] == digest and name_of(notes) == name:
                yield notes


def name_of(notes: Path) -> str:
    """The name of the image that a file of notes is about.

    >>> name_of(Path("kept/bids-app-1234abcd.json"))
    'bids-app'
    """
    return notes.stem.rpartition("-")[0]


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


def note_use(kept: Path, name: str, digest: str) -> None:
    """Note that an image is used now: who prunes the store goes by that."""
    for notes in notes_of(kept, name, digest):
        with suppress(OSError):
            os.utime(notes)
