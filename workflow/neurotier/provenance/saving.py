"""Save derivatives in their DataLad datasets: one process at a time, since jobs that save race (datalad#4606).

Jobs publish their derivatives as without a dataset; when all are over, this saves them, and the dataset above the
sites. A commit holds
up to 16 participants of a site who were analysed in the same way, and its run record makes them again.
What was saved before and has the same bytes gives no commit. Killed, it leaves whole commits, and what it had begun is
undone by the next start.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from neurotier.analysis.activity import How, identifier
from neurotier.analysis.staging import take_dataset_back
from neurotier.core.errors import BusyError, SourceError
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Settings
from neurotier.dataset.attempts import naming_commands
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import DESCRIBING, WRITTEN, describe, how_file
from neurotier.provenance.group_level import group_level_of, save_group_level
from neurotier.provenance.people import Done, done, groups
from neurotier.provenance.repository import (
    changed_entries,
    commit_staged,
    forget,
    open_dataset,
    record_run,
    refuse_ignored,
    register,
    run_git,
    save_all,
    unsaved,
)
from neurotier.provenance.source import Raw, check_source, raw_of
from neurotier.provenance.writer import writing
from neurotier.run.participants import selected_by

ATTEMPTS, PAUSE_S = 4, 5.0
"""How often to begin anew while somebody else is writing to a dataset, and after which pause."""

TOGETHER = 16
"""Most participants of a commit, so that one made again is not hundreds, until a dataset has ..."""

MANY = 5000
"""... so many entries: a commit takes 0.1 ms and 25 bytes of each that is there."""


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
    take_no_habits()
    people = done(selected_by(places.index / "images.tsv"), settings, places)
    for pauses_left in reversed(range(ATTEMPTS)):
        try:
            with naming_commands():
                return save_everyone(dataset, people, settings, places, say)
        except SourceError as error:  # a git or git-annex that failed
            raise unsaved(places.derivatives, error.what) from None
        except BusyError as error:  # such as a user's own commit
            if not pauses_left:
                raise
            say(f"waiting: {error}")
            time.sleep(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def save_everyone(
    dataset: Dataset, people: Collection[Done], settings: Settings, places: Places, say: Callable[[str], None]
) -> dict[str, str]:
    """Save the derivatives of some sites whole, and the dataset above them; see :func:`save_derivatives`."""
    commits = {}
    with writing(places) as before:
        for site in sorted({one.site for one in people}):
            of_site = [one for one in people if one.site == site]
            folder = (places.derivatives / site).absolute()
            take_dataset_back(folder)
            datalad_dataset = open_dataset(folder, before, say)
            level = group_level_of(site, of_site, settings, places) if settings.app.image else None
            ways = [level.how] if level and level.how else []
            count = save_people(datalad_dataset, raw_of(dataset, site), of_site, ways)
            if level is not None:
                save_group_level(datalad_dataset, level, dataset.path / site, settings)
            say(f"{folder}: saved the derivatives of {counted(count, 'participant')}")
            commits[site] = run_git(folder, "rev-parse", "HEAD").strip()
        if any(commits):
            above = open_dataset(places.derivatives.absolute(), before, say)
            sites = [Path(above.path, site) for site in commits if site]
            save_all(above, sites, "Save the derivatives of all sites")
    return commits


def take_no_habits() -> None:
    """Have git sign no commits and ignore no files, whatever the user's configuration says: nobody is there to type a
    passphrase, and derivatives are no files of an editor."""
    for key, value in (("commit.gpgSign", "false"), ("core.excludesFile", os.devnull)):
        number = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
        given = {"COUNT": str(number + 1), f"KEY_{number}": key, f"VALUE_{number}": value}
        os.environ.update({f"GIT_CONFIG_{name}": text for name, text in given.items()})


def save_people(datalad_dataset: Any, raw: Raw, people: Sequence[Done], ways: Sequence[How]) -> int:
    """Save the derivatives of participants of a site, and how they were made; of how many they were not saved.

    Parameters
    ----------
    datalad_dataset
        The dataset of the site's derivatives.
    raw
        The raw dataset.
    people
        Participants who are done.
    ways
        How other derivatives were made.
    """
    folder = Path(datalad_dataset.path)
    describe(folder, [*ways, *(one.how for one in people if one.how is not None)])
    register(folder, raw)
    present = [name for name in DESCRIBING if (folder / name).exists()]
    run_git(folder, "add", "--", ".gitmodules", *WRITTEN, *present)
    commit_staged(folder, f"Describe the derivatives, and register their source at {raw.commit[:8]}")
    refuse_ignored(folder)
    changed, gone = changed_entries(folder)
    unsaved_people = [one for one in people if not changed.isdisjoint(one.outputs)]
    for group in groups(unsaved_people, TOGETHER if len(os.listdir(folder)) <= MANY else len(people)):
        save_group(datalad_dataset, folder, group)
    if gone:
        forget(folder, sorted(gone))
    return len(unsaved_people)


def save_group(datalad_dataset: Any, folder: Path, group: Sequence[Done]) -> None:
    """Save some participants in one commit, with a run record by which ``datalad rerun`` makes them again."""
    names = [entry for one in group for entry in one.outputs]
    of, how = sorted(one.name.rpartition("/")[2] for one in group), group[0].how
    if how is None:
        run_git(folder, "annex", "add", "--quiet", "--", *names)
        commit_staged(folder, f"Add {first_of(of)}; how they were made is not known any more")
        return
    command = f"neurotier remake {how_file(identifier(how))} {{inputs}}"
    inputs = [path for one in group for path in one.inputs]
    record_run(datalad_dataset, command, inputs, names, f"{how['name']} of {first_of(of)}", {"neurotier": how})
