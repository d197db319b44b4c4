"""The journal of a run: what its processes tell while it goes on, a line of JSON each, in a file of each process.

Steps tell how far they are, which ``neurotier watch`` reads from any node. Jobs on a cluster tell where they run, with
what and from when to when, since not every cluster has accounting, and none knows which participants a job has; and
what they would have said on the terminal. Nothing depends on it: where it cannot be written, the process goes on.
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

from neurotier.core.errors import ContainerError, InputError, TierError
from neurotier.core.files import Record, append_line
from neurotier.core.foreign import read_text
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.settings import Say
from neurotier.run import slurm

NOTE_S, SAY_S = 1.0, 30.0
"""How often a step may tell the journal how far it is, and how often the terminal, s."""

LARGEST_BYTES = 16 << 20
"""Most that is read of the lines of a process, or of what else may be long."""

NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
"""Environment variables that hold a job's number: Slurm, PBS, LSF, SGE."""

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
    """The lines of a kind in the journal of a run, in order of time; what is damaged is passed over."""
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
    """A step that goes on: its rule and which of its jobs it is, since when (s since 1970), and how far."""

    name: str
    started_s: float
    progress: str


@dataclass
class Step:
    """A step that tells how far it is.

    Parameters
    ----------
    places
        Of the results.
    name
        What to call it.
    say
        Tells the user of the run.
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
        """Tell how far it is, as often as one likes: what comes too often is passed over."""
        now_s = time.monotonic()
        if now_s - self.said_s >= SAY_S:
            self.said_s = now_s
            self.say(f"{self.name}: {progress}")
        if now_s - self.noted_s >= NOTE_S:
            self.noted_s = now_s
            self.note(progress)

    def note(self, progress: str | None) -> None:
        """Tell the journal alone; ``None`` at the end."""
        add_entry(self.places, "step", name=self.name, progress=progress)


def read_steps(places: Places, run: str) -> list[StepNote]:
    """What the steps of a run that go on tell of themselves, in order of their starts."""
    found: dict[str, StepNote] = {}
    for line in entries(places, run, "step"):
        name, progress = str(line.get("name")), line.get("progress")
        if progress is None:
            found.pop(name, None)
        else:
            found[name] = StepNote(name, found[name].started_s if name in found else line["time_s"], str(progress))
    return list(found.values())


def job_note(share: str, members: Sequence[str], slots: int, needed_cpus: int) -> Entry:
    """What a job of a cluster tells of itself, by columns of ``jobs.tsv``.

    Parameters
    ----------
    share
        Number of the share.
    members
        Its participants.
    slots, needed_cpus
        How many of them are analysed at once, and the CPUs that these take.
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


def job_end(note: Entry, exit_code: int, reason: str) -> Entry:
    """What it tells more at its end, with the reason of a failure."""
    ended_s = time.time()
    return {
        "ended_s": ended_s,
        "exit_code": exit_code,
        "state": "FAILED" if exit_code else "COMPLETED",
        "elapsed_s": max(0.0, ended_s - note["started_s"]),
        "fault_of_node": reason if exit_code in (TierError.exit_code, ContainerError.exit_code) else None,
    }


def read_notes(places: Places, run: str) -> list[Entry]:
    """What a run's jobs have noted of themselves, in order of their starts; of each what it noted last."""
    lines = [
        line
        for line in entries(places, run, "job")
        if isinstance(line.get("started_s"), float) and isinstance(line.get("members", ""), str)
    ]
    last = {(line["process"], line["started_s"]): line for line in lines}
    return sorted(last.values(), key=lambda line: line["started_s"])
