"""What a commit of derivatives holds: what was read, what was made, and how; of participants, or of the group level.

The group level was given the outputs of all participants, merged, and the files at the root of the raw dataset. What
participants have written for all, beside their own files, is a commit of its own: the group level reads it, and does
not make it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.analysis.activity import How, how_of, identifier
from neurotier.analysis.app import root_files
from neurotier.analysis.staging import OF_DATASET, first_missing
from neurotier.core.errors import StateError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image
from neurotier.provenance.description import DESCRIBING, RAW, owner_of

COMMAND_BYTES = 60_000
"""Longest list of inputs of a commit: Linux takes 128 KiB in one argument, and DataLad gives the command as one."""


@dataclass(frozen=True)
class Made:
    """The derivatives of a participant, or what the group level of a site has made.

    Attributes
    ----------
    name
        ``[SITE/]sub-LABEL``; empty for the group level.
    inputs
        What was read, as paths below the dataset of derivatives.
    how
        How they were made; ``None`` if the facts of that run are lost.
    outputs
        A participant's folder and, from an app, files beside it; the files of the group level. Below the site.
    shared
        Path and checksum of each file that a participant has written for all.
    """

    name: str
    inputs: list[str]
    how: How | None
    outputs: list[str]
    shared: dict[str, str] = field(default_factory=dict)


def made_by_participants(everyone: Mapping[str, Sequence[Image]], settings: Settings, places: Places) -> list[Made]:
    """What participants with the images of each have made, of those that have a record and whole derivatives."""
    found, by_app = [], bool(settings.app.image)
    for name, images in everyone.items():
        try:
            record = read_json(places.record(name))
        except (FileNotFoundError, StateError):
            continue
        manifest, (site, _, label) = record.get("derivatives", {}), name.rpartition("/")
        if first_missing(manifest, places.analysed(name, by_app)):
            continue
        how = how_it_was_made(record, places)
        if not by_app:
            found.append(Made(name, [f"{RAW}/{image.in_site}" for image in images], how, [label]))
            continue
        entries = {path: PurePosixPath(path).parts[0] for path in manifest}
        own = sorted({entry for entry in entries.values() if owner_of(entry) == label})
        outputs = [entry for entry in own if (places.derivatives / site / entry).exists()]
        shared = {path: str(manifest[path][1]) for path, entry in entries.items() if entry not in own}
        found.append(Made(name, [f"{RAW}/{label}"], how, outputs, shared))  # it reads its whole folder
    return found


def made_by_group_level(
    site: str, people: Sequence[Made], raw: Path, settings: Settings, places: Places
) -> tuple[list[str], Made | None]:
    """What lies in the derivatives of a site besides the participants' own files.

    Parameters
    ----------
    site
        The site.
    people
        What its participants have made.
    raw
        The clone of the raw dataset, whose files at its root the group level was given.
    settings, places
        Of the run.

    Returns
    -------
    list of str, Made or None
        Files that participants have written for all, and what the group level has made or written anew; ``None`` if
        there was no group level, or nobody knows any more. A tool has neither.
    """
    try:
        step = read_json(places.step("run_group_level", site))
    except (FileNotFoundError, StateError):
        return [], None
    apart = {*OF_DATASET, *(entry for one in people for entry in one.outputs)}
    files = {path: str(content) for path, (_, content) in step["derivatives"].items()}
    files = {path: content for path, content in files.items() if PurePosixPath(path).parts[0] not in apart}
    shared = sorted(files.items() & {written for one in people for written in one.shared.items()})
    names = [path for path, _ in shared]
    made = sorted(files.keys() - {*names, *DESCRIBING})
    # The image and the folders that it reads are those of the participants, or these would have been analysed again.
    how = how_it_was_made(read_json(places.record(people[0].name)) | {"run": step["run"]}, places)
    if how is None or not (settings.app.group and made):
        return names, None
    labels = sorted(one.name.rpartition("/")[2] for one in people)
    how["group"] = {"participants": labels, "shared": names, "made": made}
    return names, Made("", ["sub-*", *names, *(f"{RAW}/{file}" for file in root_files(raw))], how, made)


def how_it_was_made(record: dict[str, Any], places: Places) -> How | None:
    """How derivatives were made, by their record and the facts of the run that made them."""
    facts = facts_of_run(places.runs / f"{record.get('run', '')}.json")
    if facts is None:
        return None
    container, caches = record.get("container"), record.get("caches")
    return how_of(facts[0], record.get("tool_version", ""), container, facts[1], caches)


@cache
def facts_of_run(file: Path) -> tuple[Settings, str] | None:
    """Settings and version of a run, which thousands of records share; ``None`` if they are lost."""
    try:
        facts = read_json(file)
        return Settings.from_json(facts["settings"]), facts["versions"]["neurotier"]
    except (FileNotFoundError, StateError, LookupError, TypeError):
        return None


def groups(people: Sequence[Made], most: int) -> Iterator[list[Made]]:
    """Participants that share a commit: so many at most, made in the same way, as long as the command can hold them."""
    together: dict[str, list[Made]] = {}
    for one in people:
        together.setdefault(identifier(one.how) if one.how else "", []).append(one)
    for members in together.values():
        group: list[Made] = []
        size_bytes = 0
        for one in members:
            own_bytes = sum(len(path.encode()) + 3 for path in one.inputs)
            if group and (len(group) == most or size_bytes + own_bytes > COMMAND_BYTES):
                yield group
                group, size_bytes = [], 0
            group.append(one)
            size_bytes += own_bytes
        yield group
