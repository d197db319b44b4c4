"""What a job of a cluster notes of itself: where it runs, with what, and from when to when.

Not every cluster has accounting, and none knows which participants a job has.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from neurotier.core.errors import StateError
from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run

NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
"""Environment variables that hold a job's number: Slurm, PBS, LSF, SGE."""

MEGABYTE = 1 << 20
"""Slurm's unit of memory, bytes."""


@contextmanager
def noting_job(
    places: Places, batch: str, members: Sequence[str], slots: int, needed_cpus: int
) -> Iterator[Callable[[int], None]]:
    """Note a job's start and, with the function given, its end and exit code.

    Notes are of use to reports alone: if they cannot be written, the job goes on.

    Parameters
    ----------
    places
        Of the results.
    batch
        Number of the batch.
    members
        Its participants.
    slots, needed_cpus
        How many of them are analysed at once, and the CPUs that these take.
    """
    note: dict[str, Any] = {
        "job": next(filter(None, map(os.environ.get, NUMBERS)), None),
        "batch": batch,
        "members": list(members),
        "slots": slots,
        "needed_cpus": needed_cpus,
        "node": os.environ.get("SLURMD_NODENAME", socket.gethostname()),
        "cpus": whole("SLURM_CPUS_ON_NODE") or len(os.sched_getaffinity(0)),
        "memory_bytes": (whole("SLURM_MEM_PER_NODE") or 0) * MEGABYTE or None,
        "started_s": time.time(),
    }
    file = places.job_notes(current_run()) / f"{batch}.{time.time_ns()}.json"

    def write(**more: Any) -> None:
        note.update(more)
        with suppress(OSError):
            write_json(file, note, durable=False)

    write()
    yield lambda exit_code: write(ended_s=time.time(), exit_code=exit_code)


def whole(variable: str) -> int | None:
    """A whole number in the environment; ``None`` if there is none."""
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else None


def read_notes(places: Places, run: str) -> list[dict[str, Any]]:
    """The notes of a run's jobs in order of their starts; what is damaged is passed over."""
    found: list[tuple[float, dict[str, Any]]] = []
    for file in sorted(places.job_notes(run).glob("*.json")):
        with suppress(OSError, StateError, LookupError, TypeError, ValueError):
            note = read_json(file)
            found.append((float(note["started_s"]), note))
    return [note for _, note in sorted(found, key=lambda one: one[0])]
