"""The group level of an app in the history of its derivatives: what it has made, with a run record that makes it again.

It was given the outputs of all participants, merged, and the files at the root of the raw dataset. What participants
have written for all, beside their own files, is a commit of its own: the group level reads it, and does not make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.analysis.activity import How, identifier
from neurotier.analysis.app import app_name, root_files
from neurotier.analysis.staging import OF_DATASET
from neurotier.core.errors import StateError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.provenance.description import DESCRIBING, how_file
from neurotier.provenance.people import Done, how_it_was_made
from neurotier.provenance.repository import record_run, save_all
from neurotier.provenance.source import RAW


@dataclass(frozen=True)
class GroupLevel:
    """What lies in the derivatives of a site besides the participants' own files.

    Attributes
    ----------
    shared
        Files that participants have written for all.
    made
        Files that the group level has made, or written anew.
    how
        How it was called, and with what; ``None`` if there was no group level, or nobody knows any more.
    """

    shared: list[str]
    made: list[str]
    how: How | None


def group_level_of(site: str, people: Sequence[Done], settings: Settings, places: Places) -> GroupLevel:
    """The group level of a site, by its own record and those of the participants.

    Parameters
    ----------
    site
        The site.
    people
        Its participants.
    settings, places
        Of the run.
    """
    own = {entry for one in people for entry in one.outputs}
    versions: dict[str, set[str]] = {}
    for one in people:
        for path, (_, content) in read_json(places.record(one.name))["derivatives"].items():
            if PurePosixPath(path).parts[0] not in own:
                versions.setdefault(path, set()).add(str(content))
    try:
        step = read_json(places.step("run_group_level", site))
        files = {path: str(content) for path, (_, content) in step["derivatives"].items()}
        tool = read_json(places.index / "tool.json")
    except (FileNotFoundError, StateError, LookupError, TypeError, ValueError):
        return GroupLevel([], [], None)
    rest = [path for path in files if PurePosixPath(path).parts[0] not in {*own, *OF_DATASET}]
    shared = [path for path in rest if files[path] in versions.get(path, ())]
    made = sorted({*rest} - {*shared, *DESCRIBING})
    container = f"sha256:{tool['image']}" if "image" in tool else None
    caches: dict[str, str] = {}
    with suppress(FileNotFoundError, StateError):
        found = dict(read_json(places.index / "caches.json"))
        caches = {name: f"sha256:{cache['sha256']}" for name, cache in found.items()}
    record = {"run": step["run"], "tool_version": tool["version"], "container": container, "caches": caches}
    how = how_it_was_made(record, places) if settings.app.group and made else None
    if how is not None:
        how["group"] = {
            "participants": sorted(one.name.rpartition("/")[2] for one in people),
            "shared": sorted(shared),
            "made": made,
        }
    return GroupLevel(sorted(shared), made, how)


def save_group_level(datalad_dataset: Any, level: GroupLevel, raw: Path, settings: Settings) -> None:
    """Save what lies in a dataset of derivatives besides the participants' own files.

    Parameters
    ----------
    datalad_dataset
        The dataset, in which the participants are saved.
    level
        What it is.
    raw
        The clone of the raw dataset, whose files at its root the group level was given.
    settings
        Of the run.
    """
    folder, name = Path(datalad_dataset.path), app_name(settings)
    if level.shared:
        save_all(datalad_dataset, [folder / path for path in level.shared], f"What participants share of {name}")
    if level.how is not None:
        inputs = ["sub-*", *level.shared, *(f"{RAW}/{file}" for file in root_files(raw))]
        command = f"neurotier remake {how_file(identifier(level.how))}"
        facts = {"activity": identifier(level.how)}  # all of it would name everyone once more
        record_run(datalad_dataset, command, inputs, level.made, f"Group level of {name}", facts)
    rest = [path for path in folder.iterdir() if path.name not in (".git", PurePosixPath(RAW).parts[0])]
    save_all(datalad_dataset, rest, f"Group level of {name}" if level.how is None else "What else there is")
