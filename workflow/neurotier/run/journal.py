"""The journal of a run: what its processes report while it goes on, as lines of JSON, in one file per process.

Steps report their progress, which ``neurotier watch`` reads from any node. Cluster jobs report where they run, for
which participants, and when they began and ended: not every cluster has accounting, and none knows a job's
participants. They also report what they would otherwise print on the terminal. If the journal cannot be written, the
process goes on.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from neurotier.core.errors import InputError
from neurotier.core.files import Record, append_line
from neurotier.core.foreign import read_text
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.settings import Say
from neurotier.run import slurm

NOTE_S, SAY_S = 1.0, 30.0
"""Shortest time between two reports of a step to the journal, and to the terminal, s."""

LARGEST_BYTES = 16 << 20
"""Most bytes that are read of one process's file, or of another file that may be long."""

NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
"""Environment variables with a job's number, of Slurm, PBS, LSF and SGE, as the command that submits prints it.
Without one, ``jobs.tsv`` has two rows for the job of a share: one by the head and one by the job."""

MEGABYTE = 1 << 20
"""Slurm's unit of memory, bytes."""

Entry = Record


def add_entry(places: Places, kind: str, **facts: Any) -> None:
    """Append a line to the journal of this run."""
    process = f"{socket.gethostname()}-{os.getpid()}"
    line = {"kind": kind, "process": process, "time_s": time.time(), **facts}
    with suppress(OSError):
        append_line(places.journal(current_run()) / f"{process}.jsonl", json.dumps(line))


def entries(places: Places, run: str, kind: str) -> list[Entry]:
    """The lines of a kind in the journal of a run, in order of time; damaged lines are skipped."""
    found = []
    for file in sorted(places.journal(run).glob("*.jsonl")):
        with suppress(InputError, OSError):
            for text in read_text(file.parent, file.name, LARGEST_BYTES).splitlines():
                with suppress(LookupError, TypeError, ValueError):
                    line = dict(json.loads(text))
                    line["time_s"] = float(line["time_s"])
                    if line["kind"] == kind:
                        found.append(line)
    return sorted(found, key=lambda line: line["time_s"])


class StepNote(NamedTuple):
    """A running step: its name (the rule and, if the rule has several jobs, which of them), its start (s since 1970),
    and its progress."""

    name: str
    started_s: float
    progress: str


@dataclass
class Step:
    """A step that reports its progress.

    Parameters
    ----------
    places
        Of the results.
    name
        Its name in reports.
    say
        Prints a line for the user.
    """

    places: Places
    name: str
    say: Say

    def __post_init__(self) -> None:
        self.noted_s = self.said_s = time.monotonic()

    def __enter__(self) -> None:
        self.note("")

    def __exit__(self, *_: object) -> None:
        self.note(None)

    def tell(self, progress: str) -> None:
        """Report progress; the caller may do so as often as it likes, since reports in quick succession are skipped."""
        now_s = time.monotonic()
        if now_s - self.said_s >= SAY_S:
            self.said_s = now_s
            self.say(f"{self.name}: {progress}")
        if now_s - self.noted_s >= NOTE_S:
            self.noted_s = now_s
            self.note(progress)

    def note(self, progress: str | None) -> None:
        """Report to the journal alone; ``None`` means the end."""
        add_entry(self.places, "step", name=self.name, progress=progress)


def read_steps(places: Places, run: str) -> list[StepNote]:
    """What the running steps of a run report, in order of their starts."""
    found: dict[str, StepNote] = {}
    for line in entries(places, run, "step"):
        name, progress = str(line.get("name")), line.get("progress")
        if progress is None:
            found.pop(name, None)
        else:
            found[name] = StepNote(name, found[name].started_s if name in found else line["time_s"], str(progress))
    return list(found.values())


def job_note(share: str, members: Sequence[str], slots: int, needed_cpus: int) -> Entry:
    """What a cluster job reports about itself, with the columns of ``jobs.tsv`` as keys.

    Parameters
    ----------
    share
        Number of the share.
    members
        Its participants.
    slots, needed_cpus
        How many of them are analysed at once, and how many CPUs these need.
    """
    return {
        "job": next(filter(None, map(os.environ.get, NUMBERS)), None),
        "rule": "analyze_participants",
        "share": share,
        "members": " ".join(members),
        "slots": slots,
        "needed_cpus": needed_cpus,
        "node": os.environ.get("SLURMD_NODENAME", socket.gethostname()),
        "cpus": slurm.number(os.environ.get("SLURM_CPUS_ON_NODE", "")) or len(os.sched_getaffinity(0)),
        "asked_memory_bytes": (slurm.number(os.environ.get("SLURM_MEM_PER_NODE", "")) or 0) * MEGABYTE or None,
        "started_s": time.time(),
        "source": "job",
    }


def read_notes(places: Places, run: str) -> list[Entry]:
    """The notes of a run's jobs about themselves, in order of their starts; only the last note of each start of a
    job."""
    lines = [
        line
        for line in entries(places, run, "job")
        if isinstance(line.get("started_s"), float) and isinstance(line.get("members", ""), str)
    ]
    last = {(line["process"], line["started_s"]): line for line in lines}
    return sorted(last.values(), key=lambda line: line["started_s"])
