"""Save derivatives in their DataLad datasets: one process at a time, since jobs that save race (datalad#4606).

Jobs publish their derivatives as without a dataset; when all are over, this saves them, and the dataset above the
sites. A commit holds
up to 16 participants of a site who were analysed in the same way, and its run record makes them again.
What was saved before and has the same bytes gives no commit. Killed, it leaves whole commits, and what it had begun is
undone by the next start.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.analysis.activity import How, how_of, identifier
from neurotier.analysis.app import app_name, root_files
from neurotier.analysis.staging import OF_DATASET, first_missing
from neurotier.core.errors import BusyError, SettingsError, SourceError
from neurotier.core.files import flush_file_system, read_if_whole, write_text
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Say, Settings
from neurotier.dataset.bids import Image
from neurotier.dataset.commands import ask_git, naming_commands, prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import DESCRIBING, RAW, WRITTEN, describe, owner_of
from neurotier.provenance.repository import (
    Made,
    changed_entries,
    open_dataset,
    refuse_ignored,
    register,
    run_git,
    save,
    unsaved,
)
from neurotier.run.participants import selected_by

ATTEMPTS, PAUSE_S = 12, 5.0
"""How often to begin again while somebody else is writing to a dataset, and after which pause."""

TOGETHER = 16
"""Most participants of a commit, so that one made again is not hundreds, until a dataset has ..."""

MANY = 5000
"""... so many entries: a commit takes 0.1 ms and 25 bytes of each that is there."""

COMMAND_BYTES = 60_000
"""Longest list of inputs of a commit: Linux takes 128 KiB in one argument, and DataLad gives the command as one."""


def save_derivatives(dataset: Dataset, settings: Settings, places: Places, say: Say) -> dict[str, str]:
    """Save the derivatives of all sites; the commit that each site's dataset is at afterwards.

    Parameters
    ----------
    dataset
        The raw dataset.
    settings, places
        Of the run.
    say
        Takes a line per step, for the user.

    Raises
    ------
    NeurotierError
        If derivatives cannot be saved. They themselves stay as they are.
    """
    check_source(dataset)
    prepare_environment()
    people = made_by_participants(selected_by(places.index / "images.tsv"), settings, places)
    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            with writing(places) as killed_on:
                try:
                    with naming_commands("DataLad"):
                        return save_sites(dataset, people, settings, places, say, killed_on)
                except SourceError as error:  # of git, git-annex or DataLad
                    raise unsaved(places.derivatives, error.what) from None
        except BusyError as error:  # such as a user's own commit
            if not attempts_left:
                raise
            say(f"waiting: {error}")
            time.sleep(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def check_source(dataset: Dataset) -> None:
    """Raise :class:`SettingsError` if a dataset cannot be registered as a source."""
    if dataset.kind == "folder":
        raise SettingsError(
            f"a plain folder ({dataset.path}) has no commit that derivatives could name as their source",
            where="config key results_dataset",
            fix="make the folder a DataLad dataset, or set results_dataset: false",
        )


@contextmanager
def writing(places: Places) -> Iterator[str]:
    """Write to the datasets of derivatives; gives the host of a save that was killed, or failed, and has left locks."""
    here = socket.gethostname()
    before = (places.saving.read_text(errors="replace").strip() or here) if places.saving.exists() else ""
    write_text(places.saving, before or here)  # what it has left is not settled until this one has come to its end
    try:
        yield before
    except BusyError:  # git has not been started, or has ended: locks that the next one finds are not ours
        if not before:
            places.saving.unlink()
        raise
    places.saving.unlink()


def save_sites(
    dataset: Dataset, people: Sequence[Made], settings: Settings, places: Places, say: Say, killed_on: str
) -> dict[str, str]:
    """Save the derivatives of each site whole, and the dataset above them; see :func:`save_derivatives`."""
    commits = {}
    for site in sorted({one.name.rpartition("/")[0] for one in people}):
        of_site = [one for one in people if one.name.rpartition("/")[0] == site]
        folder = (places.derivatives / site).absolute()
        datalad_dataset = open_dataset(folder, killed_on, say)
        shared, level = made_by_group_level(site, of_site, dataset.path / site, settings, places)
        ways = [one.how for one in (*of_site, level) if one and one.how]
        prepare_site(folder, dataset, site, ways)
        changed = changed_entries(folder)
        left = [one for one in of_site if not changed.isdisjoint(one.outputs)]
        for group in groups(left, TOGETHER if len(os.listdir(folder)) <= MANY else len(of_site)):
            of = first_of(sorted(one.name.rpartition("/")[2] for one in group))
            unknown = f"Add {of}; how they were made is not known any more"
            save(datalad_dataset, f"{group[0].how['name']} of {of}" if group[0].how else unknown, made=group)
        if gone := sorted(name for name in changed if not os.path.lexists(folder / name)):  # the history keeps them
            save(datalad_dataset, f"Remove {first_of(gone)}, no longer there", gone)
        if settings.app.image:
            name = app_name(settings)
            if shared:
                save(datalad_dataset, f"What participants share of {name}", shared)
            if level:
                save(datalad_dataset, f"Group level of {name}", made=[level])
            rest = [entry for entry in os.listdir(folder) if entry not in (".git", RAW.partition("/")[0])]
            save(datalad_dataset, "What else there is" if level else f"Group level of {name}", rest)
        say(f"{folder}: saved the derivatives of {counted(len(left), 'participant')}")
        commits[site] = run_git(folder, "rev-parse", "HEAD").strip()
    if any(commits):
        above = open_dataset(places.derivatives.absolute(), killed_on, say)
        save(above, "Save the derivatives of all sites", list(filter(None, commits)))
    flush_file_system(places.state)  # and with it the derivatives: git-annex itself flushes little
    return commits


def prepare_site(folder: Path, dataset: Dataset, site: str, ways: Sequence[How]) -> None:
    """Commit how the derivatives of a site were made, and what they were made of."""
    describe(folder, ways)
    raw = register(folder, dataset, site)
    present = [name for name in DESCRIBING if (folder / name).exists()]
    run_git(folder, "add", "--", ".gitmodules", *WRITTEN, *present)
    if ask_git(folder, "diff", "--cached", "--quiet") is None:
        message = f"Describe the derivatives, and register their source at {raw[:8]}"
        run_git(folder, "commit", "--quiet", "--message", message)
    refuse_ignored(folder)


# What a commit holds.


def made_by_participants(everyone: Mapping[str, Sequence[Image]], settings: Settings, places: Places) -> list[Made]:
    """What participants with the images of each have made, of those that have a record and whole derivatives."""
    found, by_app = [], bool(settings.app.image)
    for name, images in everyone.items():
        record = read_if_whole(places.record(name))
        manifest, (site, _, label) = record.get("derivatives", {}), name.rpartition("/")
        if not record or first_missing(manifest, places.analysed(name, by_app)):
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
    step = read_if_whole(places.step("run_group_level", site))
    if not step:
        return [], None
    apart = {*OF_DATASET, *(entry for one in people for entry in one.outputs)}
    files = {path: str(content) for path, (_, content) in step["derivatives"].items()}
    files = {path: content for path, content in files.items() if PurePosixPath(path).parts[0] not in apart}
    shared = sorted(files.items() & {written for one in people for written in one.shared.items()})
    names = [path for path, _ in shared]
    made = sorted(files.keys() - {*names, *DESCRIBING})
    # The image and the folders that it reads are those of the participants, or these would have been analysed again.
    how = how_it_was_made(read_if_whole(places.record(people[0].name)) | {"run": step["run"]}, places)
    if not (how and settings.app.group and made):
        return names, None
    labels = sorted(one.name.rpartition("/")[2] for one in people)
    how["group"] = {"participants": labels, "shared": names, "made": made}
    return names, Made("", ["sub-*", *names, *(f"{RAW}/{file}" for file in root_files(raw))], how, made)


def how_it_was_made(record: dict[str, Any], places: Places) -> How:
    """How derivatives were made, by their record and the facts of the run that made them; empty if these are lost."""
    settings, version = facts_of_run(places.runs / f"{record.get('run', '')}.json")
    container, caches = record.get("container"), record.get("caches")
    return how_of(settings, record.get("tool_version", ""), container, version, caches) if settings else {}


@cache
def facts_of_run(file: Path) -> tuple[Settings | None, str]:
    """Settings and version of a run, which thousands of records share; ``None`` if they are lost."""
    with suppress(LookupError, TypeError):
        facts = read_if_whole(file)
        return Settings.from_json(facts["settings"]), facts["versions"]["neurotier"]
    return None, ""


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
