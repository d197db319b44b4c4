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
from collections.abc import Callable, Sequence
from pathlib import Path

from neurotier.analysis.activity import How
from neurotier.analysis.app import app_name
from neurotier.analysis.staging import take_dataset_back
from neurotier.core.errors import BusyError, SourceError
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Settings
from neurotier.dataset.attempts import naming_commands
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import DESCRIBING, WRITTEN, describe
from neurotier.provenance.made import Made, groups, made_by_group_level, made_by_participants
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
from neurotier.provenance.source import RAW, check_source, raw_of
from neurotier.provenance.writer import Writer, writing
from neurotier.run.participants import selected_by

ATTEMPTS, PAUSE_S = 4, 5.0
"""How often to begin again while somebody else is writing to a dataset, and after which pause."""

TOGETHER = 16
"""Most participants of a commit, so that one made again is not hundreds, until a dataset has ..."""

MANY = 5000
"""... so many entries: a commit takes 0.1 ms and 25 bytes of each that is there."""

ASKING = {"commit.gpgSign": "false", "core.excludesFile": os.devnull}
"""Keys of git's configuration that the user's own do not change: nobody is there to type a passphrase, and derivatives
are no files of an editor."""

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
    ignore_habits()
    people = made_by_participants(selected_by(places.index / "images.tsv"), settings, places)
    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            with naming_commands(), writing(places) as before:
                return save_sites(dataset, people, settings, places, say, before)
        except SourceError as error:  # a git or git-annex that failed
            raise unsaved(places.derivatives, error.what) from None
        except BusyError as error:  # such as a user's own commit
            if not attempts_left:
                raise
            say(f"waiting: {error}")
            time.sleep(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def save_sites(
    dataset: Dataset, people: Sequence[Made], settings: Settings, places: Places, say: Say, before: Writer | None
) -> dict[str, str]:
    """Save the derivatives of each site whole, and the dataset above them; see :func:`save_derivatives`."""
    commits = {}
    for site in sorted({one.name.rpartition("/")[0] for one in people}):
        of_site = [one for one in people if one.name.rpartition("/")[0] == site]
        folder = (places.derivatives / site).absolute()
        take_dataset_back(folder)
        datalad_dataset = open_dataset(folder, before, say)
        shared, level = made_by_group_level(site, of_site, dataset.path / site, settings, places)
        ways = [one.how for one in (*of_site, level) if one and one.how]
        prepare_site(folder, dataset, site, ways)
        changed, gone = changed_entries(folder)
        unsaved_people = [one for one in of_site if not changed.isdisjoint(one.outputs)]
        for group in groups(unsaved_people, TOGETHER if len(os.listdir(folder)) <= MANY else len(of_site)):
            of = first_of(sorted(one.name.rpartition("/")[2] for one in group))
            if group[0].how is None:
                run_git(folder, "annex", "add", "--quiet", "--", *(entry for one in group for entry in one.outputs))
                commit_staged(folder, f"Add {of}; how they were made is not known any more")
            else:
                record_run(datalad_dataset, group, f"{group[0].how['name']} of {of}")
        if gone:
            forget(folder, sorted(gone))
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
        above = open_dataset(places.derivatives.absolute(), before, say)
        save_all(above, list(filter(None, commits)), "Save the derivatives of all sites")
    return commits


def prepare_site(folder: Path, dataset: Dataset, site: str, ways: Sequence[How]) -> None:
    """Commit how the derivatives of a site were made, and what they were made of."""
    raw = raw_of(dataset, site)
    describe(folder, ways)
    register(folder, raw)
    present = [name for name in DESCRIBING if (folder / name).exists()]
    run_git(folder, "add", "--", ".gitmodules", *WRITTEN, *present)
    commit_staged(folder, f"Describe the derivatives, and register their source at {raw.commit[:8]}")
    refuse_ignored(folder)


def ignore_habits() -> None:
    """Give :data:`ASKING` to every git that is started from now on."""
    count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    for number, (key, value) in enumerate(ASKING.items(), start=count):
        os.environ.update({f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value})
    os.environ["GIT_CONFIG_COUNT"] = str(count + len(ASKING))
