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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neurotier.analysis.activity import How
from neurotier.analysis.app import app_name
from neurotier.core.errors import BusyError, SettingsError, SourceError
from neurotier.core.files import write_text
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Settings
from neurotier.dataset.attempts import naming_commands
from neurotier.dataset.datalad_environment import ask_git, prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import DESCRIBING, RAW, WRITTEN, describe
from neurotier.provenance.made import Made, groups, made_by_group_level, made_by_participants
from neurotier.provenance.repository import (
    changed_entries,
    open_dataset,
    record_run,
    refuse_ignored,
    register,
    run_git,
    save_all,
    unsaved,
)
from neurotier.run.participants import selected_by

ATTEMPTS, PAUSE_S = 12, 5.0
"""How often to begin again while somebody else is writing to a dataset, and after which pause."""

TOGETHER = 16
"""Most participants of a commit, so that one made again is not hundreds, until a dataset has ..."""

MANY = 5000
"""... so many entries: a commit takes 0.1 ms and 25 bytes of each that is there."""

Say = Callable[[str], None]


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
            with naming_commands(), writing(places) as killed_on:
                return save_sites(dataset, people, settings, places, say, killed_on)
        except SourceError as error:  # a git or git-annex that failed
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
        changed, gone = changed_entries(folder)
        unsaved_people = [one for one in of_site if not changed.isdisjoint(one.outputs)]
        for group in groups(unsaved_people, TOGETHER if len(os.listdir(folder)) <= MANY else len(of_site)):
            of = first_of(sorted(one.name.rpartition("/")[2] for one in group))
            if group[0].how is None:
                outputs = [entry for one in group for entry in one.outputs]
                save_all(datalad_dataset, outputs, f"Add {of}; how they were made is not known any more")
            else:
                record_run(datalad_dataset, group, f"{group[0].how['name']} of {of}")
        if gone:  # the history keeps them
            save_all(datalad_dataset, sorted(gone), f"Remove {first_of(sorted(gone))}, no longer there")
        if settings.app.image:
            name = app_name(settings)
            if shared:
                save_all(datalad_dataset, shared, f"What participants share of {name}")
            if level:
                record_run(datalad_dataset, [level], f"Group level of {name}")
            rest = [entry for entry in os.listdir(folder) if entry not in (".git", RAW.partition("/")[0])]
            save_all(datalad_dataset, rest, "What else there is" if level else f"Group level of {name}")
        say(f"{folder}: saved the derivatives of {counted(len(unsaved_people), 'participant')}")
        commits[site] = run_git(folder, "rev-parse", "HEAD").strip()
    if any(commits):
        above = open_dataset(places.derivatives.absolute(), killed_on, say)
        save_all(above, list(filter(None, commits)), "Save the derivatives of all sites")
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
