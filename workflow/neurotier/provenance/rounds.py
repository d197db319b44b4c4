"""The process that saves derivatives while jobs go on: what is over is committed, and a run that dies keeps it.

Snakemake's own process starts it, beside the jobs: no job waits for it, it takes no core of theirs, and is no job that
would keep a run from ending when others fail. It looks whose batches are over, saves them in a round, and rests for a
multiple of what that took. At the end of the run its standard input ends: it does a last round, and ends, too. What it
has not saved, ``save_derivatives`` or the next start does: nothing depends on it.

Derivatives of apps are made by the group level of their site, and so are left to ``save_derivatives``.
"""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.core.errors import InputError, NeurotierError
from neurotier.core.files import clear_log, write_text
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.people import Done, Known, done
from neurotier.provenance.repository import open_dataset
from neurotier.provenance.saving import failing_as_unsaved, save_people, take_no_habits
from neurotier.provenance.source import raw_of
from neurotier.provenance.writer import Writer, clear_locks, writing
from neurotier.run.batches import read_batches
from neurotier.run.jobs import load_dataset, load_settings, note
from neurotier.run.participants import images_of

LOOK_S = 2.0
"""How often it looks, at most."""

REST = 4.0
"""So many times the CPU time of a round it rests, and as long as the round: a fifth of a core, half of the time."""

NICE = 10
"""By how much it steps back for jobs."""


def save_rounds(results: Path, log: Path) -> int:
    """Save batches that are over until the standard input ends; the exit code of the process."""
    settings = load_settings(results)
    places = Places.from_settings(settings)
    clear_log(log)
    write_text(log, "", durable=False)
    os.nice(NICE)
    prepare_environment()
    take_no_habits()
    rounds, is_last, rest_s = Rounds(settings, places, log), False, LOOK_S
    while not is_last:
        is_last = bool(select.select([sys.stdin], [], [], rest_s)[0])
        before_s, cpu_s = time.monotonic(), sum(os.times()[:4])
        try:
            rounds.save()
        except Exception as error:  # of DataLad, too: the next round tries again
            known = isinstance(error, NeurotierError | OSError)
            rounds.has_failed(str(error) if known else f"{type(error).__name__}: {error}")
        rest_s = max(LOOK_S, REST * (sum(os.times()[:4]) - cpu_s), time.monotonic() - before_s)
    return 0


class Rounds:
    """Saves batches that are over.

    Parameters
    ----------
    settings, places
        Of the run.
    log
        File that takes what is said.
    """

    def __init__(self, settings: Settings, places: Places, log: Path) -> None:
        self.settings, self.places, self.log = settings, places, log
        self.saved, self.known = set[str](), Known()
        self.open: dict[str, Any] = {}
        self.said = ""

    def save(self) -> None:
        """Save the batches that are over and not saved yet, if the datasets of their sites can be made.

        Raises
        ------
        NeurotierError
            If they cannot be saved. The next round tries again.
        """
        numbers = self.over() - self.saved
        if not numbers:
            return
        dataset = load_dataset(self.places)
        people = self.people(numbers)
        sites = {one.site for one in people}
        described = {site for site in sites if (self.places.derivatives / site / "dataset_description.json").exists()}
        if described:
            with writing(self.places) as before, failing_as_unsaved(self.places.derivatives):
                for site in sorted(described):
                    self.save_site(dataset, site, [one for one in people if one.site == site], before)
        if described == sites:
            self.saved |= numbers

    def over(self) -> set[str]:
        """Numbers of the batches that are over."""
        with suppress(FileNotFoundError), os.scandir(self.places.batch("0").parent) as entries:
            return {entry.name for entry in entries if entry.name.isdigit()}
        return set()

    def people(self, numbers: set[str]) -> list[Done]:
        """Those in some batches who are done."""
        batch_of = {
            name: number for number, names in read_batches(self.places).items() if number in numbers for name in names
        }
        everyone = []
        for name in batch_of:
            with suppress(InputError):  # selected no more
                everyone.append((name, images_of(self.places, name)))
        return list(done(everyone, batch_of, self.settings, self.places, self.known).values())

    def save_site(self, dataset: Dataset, site: str, people: list[Done], before: Writer | None) -> None:
        """Save those of a site; its dataset is looked at whole when it is opened, and after a failure."""
        folder = (self.places.derivatives / site).absolute()
        known = None if before else self.open.pop(site, None)
        datalad_dataset = known or open_dataset(folder, before, lambda line: note(self.log, line))
        clear_locks(folder, before)
        count = save_people(datalad_dataset, raw_of(dataset, site), people, only=True)
        self.open[site] = datalad_dataset
        note(self.log, f"{folder}: saved the derivatives of {count} of {len(people)} participants")

    def has_failed(self, reason: str) -> None:
        """Tell why a round failed, once: it is tried again, and if that does not help, ``save_derivatives`` fails."""
        note(self.log, reason)
        if reason != self.said:
            print(f"neurotier: not saved yet: {reason}", file=sys.stderr, flush=True)
        self.said = reason
