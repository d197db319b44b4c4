"""Those whose derivatives are whole: what was read, how they were made, and who shares a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.analysis.activity import How, how_of, identifier
from neurotier.analysis.staging import Manifest, first_missing
from neurotier.core.errors import StateError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import Image
from neurotier.provenance.description import owner_of
from neurotier.provenance.source import RAW

COMMAND_BYTES = 60_000
"""Longest list of inputs of a commit: Linux takes 128 KiB in one argument, and DataLad gives the command as one."""


@dataclass(frozen=True)
class Done:
    """A participant whose derivatives are whole.

    Attributes
    ----------
    name
        ``[SITE/]sub-LABEL``.
    inputs
        What its analysis read, as paths below the dataset of derivatives.
    how
        How they were made; ``None`` if the facts of that run are lost.
    outputs
        Its folder and, from an app, files beside it, below the site.
    """

    name: str
    inputs: list[str]
    how: How | None
    outputs: list[str]

    @property
    def site(self) -> str:
        """Its site; empty for a dataset without sites."""
        return self.name.rpartition("/")[0]


def done(everyone: Mapping[str, Sequence[Image]], settings: Settings, places: Places) -> list[Done]:
    """Those who have a record and whole derivatives, of participants with the images of each."""
    people = []
    for name, images in everyone.items():
        try:
            record = read_json(places.record(name))
        except (FileNotFoundError, StateError):
            continue
        manifest = record.get("derivatives", {})
        if not first_missing(manifest, places.analysed(name, bool(settings.app.image))):
            inputs = [f"{RAW}/{image.in_site}" for image in images]
            if settings.app.image:  # it reads its whole folder
                inputs = [f"{RAW}/{name.rpartition('/')[2]}"]
            outputs, how = outputs_of(name, manifest, places, settings), how_it_was_made(record, places)
            people.append(Done(name, inputs, how, outputs))
    return people


def outputs_of(name: str, manifest: Manifest, places: Places, settings: Settings) -> list[str]:
    """A participant's own entries in the derivatives of its site; what an app writes for all is the group level's."""
    site, _, participant = name.rpartition("/")
    if not settings.app.image:
        return [participant]
    own = {PurePosixPath(path).parts[0] for path in manifest if owner_of(path) == participant}
    return sorted(entry for entry in own if (places.derivatives / site / entry).exists())


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


def groups(people: Sequence[Done], most: int) -> Iterator[list[Done]]:
    """Participants who share a commit: so many at most, made in the same way, as long as the command can hold them."""
    together: dict[str, list[Done]] = {}
    for one in people:
        together.setdefault(identifier(one.how) if one.how else "", []).append(one)
    for members in together.values():
        group: list[Done] = []
        size_bytes = 0
        for one in members:
            own_bytes = sum(len(path.encode()) + 3 for path in one.inputs)
            if group and (len(group) == most or size_bytes + own_bytes > COMMAND_BYTES):
                yield group
                group, size_bytes = [], 0
            group.append(one)
            size_bytes += own_bytes
        yield group
