"""Whether other processes kept the machine busy while a run's participants were analysed, which makes its times
invalid.

Once a second, Snakemake's own process notes how busy the processors were, and how much it and its descendants used, in
a file next to the run's facts. The job that writes the tables adds a reading; the file is removed when the run has its
final row. Nothing is known about jobs of a batch system, which are not in this process tree and run on other machines.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from neurotier.core.files import Record, append_line
from neurotier.core.places import Places
from neurotier.core.tables import Row
from neurotier.meter.others import Reading, others_share, read_processors

DISTURBED = "disturbed"
"""First word of the reason why a run is invalid if other processes took too much CPU time."""

INTERVAL_S = 1.0
SET_S = 1.0
"""A change of the clock by more than this has been made by setting it: time synchronisation that only adjusts the rate
of the clock changes it by less."""

COST_FACTOR = 200
"""The pause is at least this many times as long as a reading takes, so that readings take at most 0.5 % of a core."""


class Watch:
    """A thread that takes readings of this process's tree until :meth:`stop`; the first one is taken right away."""

    def __init__(self, places: Places, run: str) -> None:
        self.file = places.readings(run)
        self.over = threading.Event()
        note_reading(self.file, os.getpid())
        self.thread = threading.Thread(target=self.read_on, name="processors", daemon=True)
        self.thread.start()

    def read_on(self) -> None:
        pause_s = INTERVAL_S
        while not self.over.wait(pause_s):
            before_s = time.thread_time()
            note_reading(self.file, os.getpid())
            pause_s = max(INTERVAL_S, COST_FACTOR * (time.thread_time() - before_s))

    def stop(self) -> None:
        """Take a last reading and end the thread."""
        self.over.set()
        self.thread.join()
        note_reading(self.file, os.getpid())


def note_reading(file: Path, root: int) -> None:
    """Add a reading of the tree below a process, if possible: a full disk must not end a run."""
    with suppress(OSError):
        append_line(file, " ".join(f"{value:.6f}" for value in read_processors(root)))


def read_readings(file: Path) -> list[Reading]:
    """The readings in a file, in order of time; lines that were cut short are left out."""
    readings = []
    with suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            with suppress(ValueError, TypeError):
                readings.append(Reading(*map(float, line.split())))
    return sorted(readings)


def clock_was_set(readings: Sequence[Reading]) -> bool:
    """Whether the machine's clock was set between two of the readings: differences of times of several processes are
    then wrong."""
    booted_s = [reading.booted_s for reading in readings]
    return bool(readings) and max(booted_s) - min(booted_s) > SET_S


def others(facts: Record, rows: Sequence[Row], span: tuple[float, float] | None, readings: Sequence[Reading]) -> Row:
    """The columns of ``runs.tsv`` about the CPU time of other processes.

    Parameters
    ----------
    facts
        Facts of the run.
    rows
        Its rows of ``profile.tsv``.
    span
        Start of its first and end of its last participant job, s since 1970; ``None`` if there is none.
    readings
        Readings of the machine on which Snakemake ran.
    """
    share: float | str
    if span is None:
        share = "no participant was analysed"
    elif facts.get("elsewhere"):
        share = "a batch system started the jobs"
    elif {row["host"] for row in rows} != {facts.get("host")}:
        share = "jobs ran on other machines"
    else:
        share = others_share(readings, *span, facts["cpus"])
    known = isinstance(share, float)
    return {"others_cpu_share": share if known else None, "others_cpu_reason": None if known else share}
