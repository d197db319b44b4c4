"""Jobs that a run has given to a cluster: noted as they are submitted, and ended by the next start if the run died.

A Snakemake that is killed leaves its jobs behind, and the scheduler runs them. Beside those of the next start they
would analyse the same participants. What they have finished by then counts: every participant has a record.

A job may be there whose number nobody has heard, because the run died, or was stopped, while it was submitted. Slurm's
jobs of a run have one name, which is noted beforehand and finds those, too. One that comes later still finds that
another run has begun (:func:`is_over`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neurotier.core.errors import BusyError, InputError, StateError
from neurotier.core.files import append_line, read_json
from neurotier.core.foreign import read_text
from neurotier.core.places import Places
from neurotier.core.private import read_own
from neurotier.core.processes import RUN, current_run
from neurotier.core.quantities import counted
from neurotier.run import slurm

SLURM, OTHER = "slurm", "other"
"""Schedulers: jobs of Slurm are ended by scancel, those of others by the command of the profile that ends them."""

HEARD = (
    (re.compile(r"has been submitted with SLURM jobid (\d+)(?: \(log: (.*)\))?"), SLURM),
    (re.compile(r"^Submitted .* with external jobid '([^']+)'"), OTHER),
)
"""What the executor plugins say of a job that they have submitted (slurm 2.8, cluster-generic 1.0)."""

STEP = re.compile(r"/rule_(\w+)(?:/([^/]+))?/[^/]+$")
"""Rule and wildcards in the path of a log of the plugin slurm."""

NUMBER = {SLURM: r"\d+", OTHER: r"\w[\w.\[\]-]*"}
"""What numbers of jobs look like."""

PATIENCE_S = 90.0
"""How long a scheduler may take to end a job that it was told to: Slurm kills after ``KillWait``, 30 s."""

LOOK_S = 1.0


@dataclass(frozen=True)
class ClusterJob:
    """A job of a scheduler.

    Attributes
    ----------
    run, number, scheduler
        The run that submitted it, its number with the scheduler, and which that is.
    submitted_s
        When the head heard that it was submitted, s since 1970; ``None`` of those that were found by their name.
    rule, wildcards
        What it does, as far as the plugin says so.
    """

    run: str
    number: str
    scheduler: str
    submitted_s: float | None = field(default=None, compare=False)
    rule: str | None = field(default=None, compare=False)
    wildcards: str | None = field(default=None, compare=False)


def submitted(places: Places, run: str) -> Path:
    """The jobs of a run, a line of JSON each."""
    return places.state / "submitted" / f"{run}.jsonl"


def were_ended(places: Places, run: str) -> Path:
    """The same of a dead run whose jobs have been ended: nobody has asked yet what became of them."""
    return submitted(places, run).with_suffix(".ended")


def note_submitted(places: Places, run: str, line: str) -> None:
    """Note the job that a line of a plugin's log tells of, if it tells of one."""
    for pattern, scheduler in HEARD:
        found = pattern.search(line)
        if found:
            step = STEP.search(found[2] or "") if scheduler == SLURM else None
            about = {"rule": step[1], "wildcards": step[2]} if step else {}
            append(places, run, {"job": found[1], "scheduler": scheduler, "submitted_s": time.time(), **about})


def note_name(places: Places, run: str, name: str) -> None:
    """Note the name that all jobs of a run will have with Slurm."""
    append(places, run, {"name": name})


def append(places: Places, run: str, note: Mapping[str, Any]) -> None:
    """Append a line to the jobs of a run, in a file that others cannot write."""
    append_line(submitted(places, run), json.dumps(note), mode=0o600)


def notes_of(places: Places, run: str) -> Iterator[dict[str, Any]]:
    """What is noted of a run; lines that were cut short are passed over, and files that are not ours."""
    for line in (read_own(submitted(places, run)) or read_own(were_ended(places, run))).splitlines():
        with suppress(ValueError, TypeError):
            yield dict(json.loads(line))


def jobs_of(places: Places, run: str) -> list[ClusterJob]:
    """The jobs that a run has submitted, as far as it has heard."""
    found = []
    for note in notes_of(places, run):
        with suppress(LookupError, TypeError):
            if re.fullmatch(NUMBER[note["scheduler"]], note["job"]):
                known = (note.get("submitted_s"), note.get("rule"), note.get("wildcards"))
                found.append(ClusterJob(run, note["job"], note["scheduler"], *known))
    return found


def unheard(places: Places, run: str) -> list[ClusterJob]:
    """Jobs that Slurm has by a run's name, and whose numbers the run has not heard."""
    names = {str(note["name"]) for note in notes_of(places, run) if "name" in note}
    known = {job.number for job in jobs_of(places, run)}
    queued = slurm.queue() if names else {}
    return [
        ClusterJob(run, number, SLURM) for number, job in queued.items() if job.name in names and number not in known
    ]


def has_ended(places: Places, run: str) -> bool:
    """Whether a run has come to its end."""
    with suppress(FileNotFoundError, StateError):
        return "ended_s" in read_json(places.runs / f"{run}.json")
    return False


def unended(places: Places) -> list[ClusterJob]:
    """Jobs of runs that have not come to their end: they run now, or died. Of runs that were stopped, what is left."""
    found = []
    for run in runs_with_jobs(places):
        jobs = [*jobs_of(places, run), *unheard(places, run)]
        living = states_of(jobs) if has_ended(places, run) else {job.number for job in jobs}
        found += [job for job in jobs if job.number in living]
    return found


def runs_with_jobs(places: Places) -> list[str]:
    """Runs of whose jobs nobody knows that they are over."""
    return [file.stem for file in sorted(submitted(places, "").parent.glob("*.jsonl"))]


def states_of(jobs: Iterable[ClusterJob]) -> dict[str, str]:
    """What Slurm says of those of some jobs that it still has: number to state, such as ``RUNNING``."""
    numbers = {job.number for job in jobs if job.scheduler == SLURM}
    return {number: job.state for number, job in slurm.queue().items() if number in numbers} if numbers else {}


def is_over(places: Places) -> bool:
    """Whether another run has begun since the one that this job belongs to: what it would do, others do."""
    file = places.latest_run
    with suppress(InputError, OSError, UnicodeDecodeError):
        latest = read_text(file.parent, file.name, str(file)).strip()
        return bool(latest) and RUN in os.environ and latest != current_run()
    return False


def end_left(places: Places, command: str, say: Callable[[str], None]) -> None:
    """End the jobs that runs which died or were stopped have left; the caller holds the lock of the results folder.

    Parameters
    ----------
    places
        Of the results.
    command
        The profile's command that ends a job, for schedulers other than Slurm; empty if it has none.
    say
        Takes a line of what was done, and one for each job that could not be ended. That is tried again next time.

    Raises
    ------
    BusyError
        If there may be such jobs, and Slurm does not answer.
    """
    left = unended(places)
    for run in runs_with_jobs(places):
        heard = {job.number for job in jobs_of(places, run)}
        for job in left:
            if job.run == run and job.number not in heard:
                append(places, run, {"job": job.number, "scheduler": SLURM})
    failed = cancel(left, command, say)
    for number, why in failed.items():
        say(f"neurotier: job {number} of an earlier run could not be ended: {why}; end it, or its work is done twice")
    for run in {*runs_with_jobs(places)} - {job.run for job in left if job.number in failed}:
        if has_ended(places, run):
            forget(places, run)
        else:
            with suppress(FileNotFoundError):
                submitted(places, run).replace(were_ended(places, run))


def end_own(places: Places, run: str) -> None:
    """Have jobs ended that Snakemake submitted while it was being stopped; the next start waits until all are gone."""
    with suppress(BusyError):
        jobs = [*jobs_of(places, run), *unheard(places, run)]
        going = {number for number, state in states_of(jobs).items() if state != "COMPLETING"}
        cancel([job for job in jobs if job.number in going], "", lambda _: None, patience_s=0.0)


def cancel(
    jobs: Sequence[ClusterJob], other: str, say: Callable[[str], None], patience_s: float = PATIENCE_S
) -> dict[str, str]:
    """End jobs, and wait until they are gone; why not, of each that could not be. As :func:`end_left`."""
    import subprocess

    living = states_of(jobs)
    failed = {}
    ended = [job for job in jobs if job.number in living or job.scheduler != SLURM]
    for job in ended:
        program = "scancel" if job.scheduler == SLURM else other
        command = [*shlex.split(program), job.number]
        if not program:
            failed[job.number] = "the profile has no command for it (cluster-generic-cancel-cmd)"
            continue
        try:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode and job.number in states_of([job]):
                failed[job.number] = done.stderr.strip() or f"{program} failed"
        except OSError as error:
            failed[job.number] = f"{program}: {error.strerror}"
    deadline = time.monotonic() + patience_s
    while (still := states_of(ended)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    gone = [job.number for job in ended if job.number not in failed and job.number not in still]
    if gone:
        numbers = " ".join(f"{number} ({living[number]})" if number in living else number for number in gone)
        say(f"neurotier: ended {counted(len(gone), 'cluster job')} that an earlier run had left: {numbers}")
    return failed | {number: f"it is {state} still" for number, state in still.items() if number not in failed}


def forget(places: Places, run: str) -> None:
    """Forget the jobs of a run that has ended, once they are over."""
    for file in (submitted(places, run), were_ended(places, run)):
        file.unlink(missing_ok=True)


def list_jobs(places: Places) -> list[str]:
    """A line for each job of runs that have not ended, with its state."""
    left = unended(places)
    states = states_of(left)
    rest = "not with Slurm any more"
    return [
        f"{job.number}\t{states.get(job.number, rest) if job.scheduler == SLURM else 'state not known'}\trun {job.run}"
        for job in left
    ]
