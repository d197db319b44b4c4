"""The participants that the index selects: all of them, and what is prepared for the jobs of each.

Jobs of a participant must not read the index of everyone, or the work of a run would grow with the square of its
participants. So the index is cut into a small file for each, ``state/participants``, before it gets its own name: there
is no index without them. They are copies: the start of a run makes them again if one is lost, and a job makes its own
again if that is damaged. What may change without the index, settings and tool, has small files of its own.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.core.errors import InputError, StateError, ToolError
from neurotier.core.files import partial_of, remove_whatever, rename_durably, write_bytes
from neurotier.core.foreign import open_file
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.dataset.bids import Image

Selected = dict[str, list[Image]]
"""Participants, in the order of the index, with the images of each."""

COUNT = "count.json"
"""File beside the folders of those who are prepared: how many they are."""

known: dict[Path, tuple[tuple[int, ...], Selected]] = {}
"""Indexes that this process has read, with the version of the file."""


def selected_by(table: Path) -> Selected:
    """All participants with their images, by an index of images, which is read once per version of its file."""
    facts = os.stat(table)
    version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
    last = known.get(table.absolute())
    if last is None or last[0] != version:
        last = known[table.absolute()] = (version, read_index(table))
    return last[1]


def read_index(table: Path) -> Selected:
    """Participants with their images, by an index of images."""
    from neurotier.core.tables import read_table
    from neurotier.dataset.index import image_of

    return by_participant(image_of(row) for row in read_table(table, "images"))


def by_participant(images: Iterable[Image]) -> Selected:
    """Participants with their images, in the order of the images."""
    selected: Selected = {}
    for image in images:
        selected.setdefault(image.participant, []).append(image)
    return selected


def participants(places: Places) -> list[str]:
    """All participants that the index selects; none while there is no index."""
    table = places.index / "images.tsv"
    return list(selected_by(table)) if table.exists() else []


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
    """The images of one participant, from the file that was prepared for it.

    Raises
    ------
    InputError
        If the index does not select this participant.
    """
    file = places.prepared(participant)
    with suppress(InputError, OSError, ValueError, LookupError, TypeError):  # lost or damaged
        data = read_prepared(file)
        if data["participant"] == participant and data["images"]:
            return [Image(**image) for image in data["images"]]
    selected = selected_by(places.index / "images.tsv")
    images = selected.get(participant)
    if not images:
        raise InputError("no such participant is selected", where=participant, fix="see index/images.tsv")
    with suppress(OSError):  # the results tier may be full, which the job itself shall say
        remove_whatever(file)
        mine = contents_of(images)
        shares = any(mine & contents_of(others) for name, others in selected.items() if name != participant)
        write_bytes(file, prepared(participant, images, shares), durable=False)
    return images


def may_share_contents(places: Places, participant: str) -> bool:
    """Whether another participant has a content of this one's; ``True``, too, where its file does not say."""
    with suppress(InputError, OSError, ValueError, LookupError, TypeError):
        return bool(read_prepared(places.prepared(participant))["shares"])
    return True


def read_prepared(file: Path) -> Any:
    """What the file of a participant holds."""
    with open_file(file.parent, file.name, str(file)) as opened:
        return json.load(opened)


def prepared(participant: str, images: Iterable[Image], shares: bool | None = None) -> bytes:
    """Content of the file of one participant; it is a copy, and need not survive a power cut.

    Parameters
    ----------
    participant, images
        Who it is, with all images.
    shares
        Whether another participant has a content of theirs; ``None`` if that is not known.
    """
    known_too = {} if shares is None else {"shares": shares}
    return json.dumps({"participant": participant, "images": [vars(image) for image in images], **known_too}).encode()


def contents_of(images: Iterable[Image]) -> set[str]:
    """The contents of some images, as far as the dataset names them."""
    return {image.content for image in images if image.content}


def prepare_all(places: Places, selected: Mapping[str, Iterable[Image]]) -> None:
    """Write the files of all participants in place of those that are there."""
    hidden = partial_of(places.participants)
    remove_whatever(hidden)
    hidden.mkdir(parents=True)
    holders = Counter(content for images in selected.values() for content in contents_of(images))
    for participant, images in selected.items():
        file = hidden / places.prepared(participant).relative_to(places.participants)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(prepared(participant, images, any(holders[one] > 1 for one in contents_of(images))))
    (hidden / COUNT).write_text(json.dumps({"participants": len(selected)}))
    remove_whatever(places.participants)
    rename_durably(hidden, places.participants)


def restore_prepared(places: Places) -> None:
    """Prepare all participants again if there is an index and one of them is lost, or nobody is prepared at all."""
    table = places.index / "images.tsv"
    if not table.exists() or is_complete(places.participants):
        return
    with suppress(StateError):  # of the index: it is made again, and all are prepared then
        prepare_all(places, selected_by(table))


def is_complete(folder: Path) -> bool:
    """Whether as many participants are prepared as were; of half a million, names are read and no contents.

    One whose file is cut short is found out by its job.
    """
    try:
        with open_file(folder, COUNT, COUNT) as opened:
            count = json.load(opened)["participants"]
        found = 0
        for shard in folder.iterdir():
            if shard.name != COUNT:
                with os.scandir(shard) as entries:
                    whole = [entry.is_file(follow_symlinks=False) and entry.name.endswith(".json") for entry in entries]
                if not all(whole):
                    return False
                found += len(whole)
    except (InputError, OSError, ValueError, LookupError, TypeError):
        return False
    return bool(found == count)
