"""The participants that the index selects, with the images of each.

The index is read once by each process, without a library and by itself: jobs start often, and half a million lines take
two seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from neurotier.core.errors import InputError, StateError, ToolError
from neurotier.core.files import once_per_version
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.dataset.bids import Image

Selected = dict[str, list[Image]]
"""Participants, in the order of the index, with the images of each."""


@once_per_version
def selected_by(table: Path) -> Selected:
    """All participants with their images, by an index of images, whose cells hold neither tabs nor quotes.

    Raises
    ------
    StateError
        If a line is cut short.
    """
    with table.open() as file:
        try:
            names, selected = next(file, "").rstrip("\n").split("\t"), Selected()
            for line in file:
                image = image_of(dict(zip(names, line.rstrip("\n").split("\t"), strict=True)))
                selected.setdefault(image.participant, []).append(image)
        except (LookupError, TypeError, ValueError):
            raise StateError(table) from None
    return selected


def selected_in(places: Places) -> Selected:
    """The same of a results folder; nobody while there is no index."""
    try:
        return selected_by(places.index / "images.tsv")
    except FileNotFoundError:
        return {}


def checksum_of(content: bytes) -> str:
    """The line by which ``sha256sum --check`` knows a table of images."""
    return f"{hashlib.sha256(content).hexdigest()}  images.tsv\n"


def image_of(cells: dict[str, str]) -> Image:
    """The image of a line of ``images.tsv``."""
    known = {name: "" if cell == "n/a" else cell for name, cell in cells.items()}
    size_bytes = known.pop("size_bytes")
    return Image(**known, size_bytes=int(size_bytes) if size_bytes else None)


def participants(places: Places) -> list[str]:
    """All participants that the index selects; none while there is no index."""
    return list(selected_in(places))


def records_of(places: Places) -> list[Path]:
    """The records of everyone whom the index selects; those of participants that failed are not there."""
    return [places.record(name) for name in participants(places)]


def require_all(places: Places, of: Collection[str] | None = None) -> int:
    """How many participants the index selects, or how many of some, if they have a record each.

    Raises
    ------
    ToolError
        If one has none, because it failed.
    """
    names = participants(places) if of is None else list(of)
    left = [name for name in names if not places.record(name).exists()]
    if left:
        raise ToolError(
            f"{len(left)} of {counted(len(names), 'participant')} failed",
            where=first_of(left),
            fix="see the report, and start the same command again when that is mended",
        )
    return len(names)


def images_of(places: Places, participant: str) -> list[Image]:
    """The images of one participant.

    Raises
    ------
    InputError
        If the index does not select this participant.
    """
    images = selected_in(places).get(participant)
    if not images:
        raise InputError("no such participant is selected", where=participant, fix="see index/images.tsv")
    return images
