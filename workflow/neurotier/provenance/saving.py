"""Save derivatives in their DataLad datasets: one process, when all jobs are over.

Jobs run beside each other on many nodes and would race on one repository (datalad#4606), so they publish their
derivatives as without a dataset, and this saves what is not saved yet. A commit holds those participants of a site who
shared a batch and were analysed in the same way, and its run record makes them again. What was saved before and has the
same bytes gives no commit. Killed, it leaves whole commits, and what it had begun is undone by the next start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from neurotier.analysis.activity import How, how_of, identifier
from neurotier.analysis.app import app_name
from neurotier.analysis.staging import Manifest, first_missing, take_dataset_back
from neurotier.core.errors import BusyError, SourceError, StateError
from neurotier.core.files import read_json, write_text
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Settings
from neurotier.dataset.attempts import first_message, message_of, naming_commands
from neurotier.dataset.bids import Image
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import WRITTEN, describe, how_file
from neurotier.provenance.repository import (
    changed_entries,
    commit_staged,
    forget,
    open_dataset,
    register,
    run_git,
    unsaved,
)
from neurotier.provenance.source import RAW, check_source, raw_of
from neurotier.run.batches import read_batches
from neurotier.run.participants import selected_by

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
    batch
        Number of its batch; empty if it was done before this run.
    outputs
        Its folder and, from an app, files beside it, below the site.
    """

    name: str
    inputs: list[str]
    how: How | None
    batch: str
    outputs: list[str]


def save_derivatives(
    dataset: Dataset, settings: Settings, places: Places, say: Callable[[str], None]
) -> dict[str, str]:
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
    sign_nothing()
    was_killed = places.saving.exists()
    write_text(places.saving, "")
    commits = {}
    try:
        with naming_commands():
            people = done(settings, places)
            for site in sorted({name.rpartition("/")[0] for name in people}):
                of_site = [one for one in people.values() if one.name.rpartition("/")[0] == site]
                commits[site] = save_site(dataset, site, of_site, settings, places, was_killed, say)
            if any(commits):
                save_sites(places.derivatives, [site for site in commits if site], was_killed, say)
    except SourceError as error:  # git or git-annex has failed
        raise unsaved(places.derivatives, error.what) from None
    except BusyError:  # the lock that the next start finds is not one that a kill has left
        if not was_killed:
            places.saving.unlink()
        raise
    places.saving.unlink()
    return commits


def sign_nothing() -> None:
    """Have git sign no commits, whatever the user's configuration says: nobody is there to type a passphrase."""
    number = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    given = {"COUNT": str(number + 1), f"KEY_{number}": "commit.gpgSign", f"VALUE_{number}": "false"}
    os.environ.update({f"GIT_CONFIG_{name}": value for name, value in given.items()})


def done(settings: Settings, places: Places) -> dict[str, Done]:
    """Everyone whom the index selects and who has a record with whole derivatives."""
    batch_of = {name: number for number, names in read_batches(places).items() for name in names}
    known: dict[str, Settings | None] = {}
    people = {}
    for name, images in selected_by(places.index / "images.tsv").items():
        try:
            record = read_json(places.record(name))
        except (FileNotFoundError, StateError):
            continue
        manifest = record.get("derivatives", {})
        if not first_missing(manifest, places.analysed(name, bool(settings.app.image))):
            how = how_it_was_made(record, places, known)
            outputs = outputs_of(name, manifest, places, settings)
            people[name] = Done(name, inputs_of(images, settings), how, batch_of.get(name, ""), outputs)
    return people


def outputs_of(name: str, manifest: Manifest, places: Places, settings: Settings) -> list[str]:
    """A participant's own entries in the derivatives of its site; what an app writes for all is the group level's."""
    site, _, participant = name.rpartition("/")
    if not settings.app.image:
        return [participant]
    first = {PurePosixPath(path).parts[0] for path in manifest}
    own = re.compile(rf"{re.escape(participant)}(?![A-Za-z0-9+]).*")
    return sorted(entry for entry in first if own.fullmatch(entry) and (places.derivatives / site / entry).exists())


def inputs_of(images: Sequence[Image], settings: Settings) -> list[str]:
    """What a participant's analysis reads, below the dataset of derivatives; an app reads its whole folder."""
    if settings.app.image:
        return [f"{RAW}/{images[0].participant.rpartition('/')[2]}"]
    return [f"{RAW}/{image.in_site}" for image in images]


def how_it_was_made(record: dict[str, Any], places: Places, known: dict[str, Any]) -> How | None:
    """How a participant's derivatives were made, by its record and the facts of the run that made them.

    ``known`` keeps the facts that have been read.
    """
    run = record.get("run", "")
    if run not in known:
        try:
            facts = read_json(places.runs / f"{run}.json")
            known[run] = (Settings.from_json(facts["settings"]), facts["versions"]["neurotier"])
        except (FileNotFoundError, StateError, LookupError, TypeError):
            known[run] = None
    if known[run] is None:
        return None
    settings, neurotier = known[run]
    container, caches = record.get("container"), record.get("caches")
    return how_of(settings, record.get("tool_version", ""), container, neurotier, caches)


def save_site(
    dataset: Dataset,
    site: str,
    people: Sequence[Done],
    settings: Settings,
    places: Places,
    was_killed: bool,
    say: Callable[[str], None],
) -> str:
    """Save the derivatives of a site; the commit that its dataset is at afterwards."""
    folder = (places.derivatives / site).absolute()
    take_dataset_back(folder)
    datalad_dataset = open_dataset(folder, was_killed, say)
    raw = raw_of(dataset, site)
    describe(folder, [one.how for one in people if one.how is not None])
    register(folder, raw)
    present = [name for name in ("README", "dataset_description.json") if (folder / name).exists()]
    run_git(folder, "add", "--", ".gitmodules", *WRITTEN, *present)
    commit_staged(folder, f"Describe the derivatives, and register their source at {raw.commit[:8]}")
    changed, gone = changed_entries(folder)
    unsaved_people = [one for one in people if not changed.isdisjoint(one.outputs)]
    for group in groups(unsaved_people):
        save_group(datalad_dataset, folder, group)
    if gone:
        forget(folder, sorted(gone))
    if settings.app.image:
        rest = [path for path in folder.iterdir() if path.name not in (".git", PurePosixPath(RAW).parts[0])]
        save_all(datalad_dataset, rest, f"Group level of {app_name(settings)}")
    say(f"{folder}: saved the derivatives of {counted(len(unsaved_people), 'participant')}")
    return run_git(folder, "rev-parse", "HEAD").strip()


def save_all(datalad_dataset: Any, paths: Sequence[Path], message: str) -> None:
    """Save some paths of a dataset. The source is not among them: if it is installed, it may be at another commit."""
    from datalad.support.exceptions import IncompleteResultsError

    try:
        datalad_dataset.save(path=list(map(str, paths)), message=message, result_renderer="disabled")
    except IncompleteResultsError as error:
        raise unsaved(Path(datalad_dataset.path), first_message(error)) from None


def groups(people: Sequence[Done]) -> Iterator[list[Done]]:
    """Participants who share a commit: those of a batch, made in the same way, as long as the command can hold them."""
    together: dict[tuple[str, str], list[Done]] = {}
    for one in people:
        together.setdefault((one.batch, identifier(one.how) if one.how else ""), []).append(one)
    for members in together.values():
        group: list[Done] = []
        size_bytes = 0
        for one in members:
            own_bytes = sum(len(path.encode()) + 3 for path in one.inputs)
            if group and size_bytes + own_bytes > COMMAND_BYTES:
                yield group
                group, size_bytes = [], 0
            group.append(one)
            size_bytes += own_bytes
        yield group


def save_group(datalad_dataset: Any, folder: Path, group: Sequence[Done]) -> None:
    """Save some participants in one commit, with a run record by which ``datalad rerun`` makes them again."""
    from datalad.core.local.run import run_command

    names = [entry for one in group for entry in one.outputs]
    of, how = [one.name.rpartition("/")[2] for one in group], group[0].how
    if how is None:
        run_git(folder, "annex", "add", "--quiet", "--", *names)
        commit_staged(folder, f"Add {first_of(of)}; how they were made is not known any more")
        return
    results = list(
        run_command(
            f"neurotier remake {how_file(identifier(how))} {{inputs}}",
            dataset=datalad_dataset,
            inputs=[path for one in group for path in one.inputs],
            outputs=names,
            explicit=True,
            inject=True,  # it has been run: nothing is executed here
            message=f"{how['name']} of {first_of(of)}",
            extra_info={"exit": 0, "neurotier": how},
        )
    )
    bad = [result for result in results if result["status"] in ("error", "impossible")]
    if bad:
        raise unsaved(folder, message_of(bad, "DataLad gave no reason"))


def save_sites(folder: Path, sites: Sequence[str], was_killed: bool, say: Callable[[str], None]) -> None:
    """Save the datasets of all sites in the one above them."""
    folder = folder.absolute()
    above = open_dataset(folder, was_killed, say)
    save_all(above, [folder / site for site in sites], "Save the derivatives of all sites")
