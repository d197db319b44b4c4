"""What became of the jobs that a run gave to a cluster: the table ``jobs.tsv``.

Three tell: the head what it submitted when, each job of a share where it runs and with whom (both in the
:mod:`neurotier.run.journal`), and Slurm's accounting the rest. What nobody tells is empty.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from neurotier.core.errors import BusyError, StateError
from neurotier.core.files import read_json, remove_whatever, write_json
from neurotier.core.places import Places
from neurotier.core.tables import Row, columns, write_table
from neurotier.run import slurm
from neurotier.run.accounting import Start, ask_accounting
from neurotier.run.jobs import run_facts
from neurotier.run.journal import Line, heard, read_notes
from neurotier.run.shares import name_of

ANALYSIS = "analyze_participants"
"""The rule whose jobs are shares."""

CLOCKS_S = 3.0
"""By how much a node's clock may be behind the controller's, whose times are whole seconds."""

GOING = ("RUNNING", "COMPLETING")
"""Slurm's states of a job that has begun and not ended."""

NO_SLURM = "the jobs are not Slurm's, or it has no accounting"


def note_jobs(places: Places, run: str) -> None:
    """Ask what became of a run's jobs, and keep the answer; what was known before stays if nobody answers now."""
    told, notes = heard(places, run, "submitted"), read_notes(places, run)
    numbers = list(dict.fromkeys(line["job"] for line in (*told, *notes) if line["job"]))
    if not numbers and not notes:
        return
    asked = [number for number in numbers if number.isdigit()]  # cluster-generic may have called sshare
    starts, reason = ask_accounting(asked, started_of(places, run)) if asked else ([], NO_SLURM)
    if not starts:
        starts = kept(places, run).get("starts", [])
        reason = None if starts else reason
    rows = job_rows(run, told, notes, starts, reason)
    write_json(places.cluster_jobs(run), {"starts": starts, "rows": rows})


def close_jobs(places: Places, run: str, was_killed: bool = False) -> None:
    """The same at the end of a run, after which nothing else tells of its jobs.

    Of a run that was killed, jobs that go on are left to the run that takes them over.
    """
    note_jobs(places, run)
    if was_killed and (found := kept(places, run)):
        with suppress(BusyError):
            going = slurm.queue()
            found["rows"] = [row for row in found["rows"] if row["job"] not in going]
            write_json(places.cluster_jobs(run), found)
    remove_whatever(places.journal(run))


def started_of(places: Places, run: str) -> float:
    """When a run began, s since 1970."""
    with suppress(StateError, LookupError):
        return float(run_facts(places, run)["started_s"])
    return 0.0


def kept(places: Places, run: str) -> dict[str, Any]:
    """What was noted of a run's jobs; nothing if there were none, or the file is damaged."""
    with suppress(FileNotFoundError, StateError, TypeError, ValueError):
        return dict(read_json(places.cluster_jobs(run)))
    return {}


def read_jobs(places: Places, run: str) -> list[Row]:
    """Rows of ``jobs.tsv`` of one run."""
    return list(kept(places, run).get("rows", []))


def all_job_rows(places: Places) -> list[Row]:
    """Rows of ``jobs.tsv``, of all runs in order of time."""
    files = sorted(places.cluster_jobs("any").parent.glob("*.json"))
    return [row for file in files for row in read_jobs(places, file.stem)]


def renew_jobs_table(places: Places) -> None:
    """Write the table again, if it is there, with what the end of the run has brought.

    It stays as old as it was: Snakemake would draw everything again.
    """
    table = places.profile / "jobs.tsv"
    if table.exists():
        times_ns = table.stat().st_atime_ns, table.stat().st_mtime_ns
        write_table(table, "jobs", all_job_rows(places))
        os.utime(table, ns=times_ns)


def is_crowded(rows: Sequence[Row]) -> bool:
    """Whether a job analysed more participants at once than it was granted CPUs for."""
    known = [row for row in rows if row["needed_cpus"] and row["cpus"]]
    return any(row["needed_cpus"] > row["cpus"] for row in known)


def job_rows(
    run: str,
    told: Sequence[Line],
    notes: Sequence[dict[str, Any]],
    starts: Sequence[Start],
    reason: str | None,
) -> list[Row]:
    """Rows of ``jobs.tsv``: one per start of each job, in order of time.

    Parameters
    ----------
    run
        The run.
    told
        What the head told as it submitted them.
    notes
        What jobs noted of themselves, in order of time.
    starts
        What the accounting says, in order of time for each job.
    reason
        Why it says nothing.
    """
    jobs = {line["job"]: line for line in told}
    numbers = dict.fromkeys([*jobs, *(note["job"] or note["node"] for note in notes)])
    found: list[tuple[tuple[Any, ...], Row]] = []
    for number in numbers:
        job = jobs.get(number)
        own_notes = [note for note in notes if (note["job"] or note["node"]) == number]
        own_starts = [start for start in starts if start["job"] == number]
        why = None if own_starts else (reason or "sacct does not know it")
        pairs = pair(own_starts, own_notes)
        for start, note in pairs:
            row = row_of(run, number, job, start, note, why, is_only=len(pairs) == 1)
            work = (row["rule"], row["share"] or (job["share"] if job else None)) if row["rule"] else (number,)
            found.append((work, row))
    found.sort(
        key=lambda one: (one[1]["submitted_s"] or one[1]["started_s"] or math.inf, one[1]["started_s"] or math.inf)
    )
    counts: Counter[tuple[Any, ...]] = Counter()
    for work, row in found:
        counts[work] += 1
        row["attempt"] = counts[work]
    return [row for _, row in found]


def pair(starts: Sequence[Start], notes: Sequence[dict[str, Any]]) -> list[tuple[Start | None, dict[str, Any] | None]]:
    """Each start of one job with what the job noted then; of the one or the other alone if there is no more."""
    if not starts:
        return [(None, note) for note in notes] or [(None, None)]
    begins_s = [(start["started_s"] or math.inf) - CLOCKS_S for start in starts]
    pairs: list[tuple[Start | None, dict[str, Any] | None]] = []
    for start, began_s, next_s in zip(starts, begins_s, [*begins_s[1:], math.inf], strict=True):
        mine = [note for note in notes if began_s <= note["started_s"] < next_s]
        pairs.append((start, mine[-1] if mine else None))
    return pairs


def row_of(
    run: str,
    number: str,
    job: Line | None,
    start: Start | None,
    note: dict[str, Any] | None,
    reason: str | None,
    is_only: bool,
) -> Row:
    """A row, but for which attempt it is; the accounting counts most, then what the job noted, then the head.

    What the head heard is the submission of the first start; ``is_only`` if there was no other.
    """
    row: Row = dict.fromkeys(columns("jobs"))
    row |= {"run": run, "job": number, "attempt": 1, "source": "head", "reason": reason}
    if job is not None:
        row |= {"rule": job["rule"], "submitted_s": job["time_s"] if is_only else None}
        row["share"] = name_of(job["share"]) if job["share"] else None
    if note is not None:
        row |= {key: note[key] for key in ("share", "slots", "needed_cpus", "node", "cpus", "started_s")}
        row |= {"rule": ANALYSIS, "members": " ".join(note["members"]), "source": "job"}
        row |= {"asked_memory_bytes": note["memory_bytes"], "ended_s": note.get("ended_s")}
        if "exit_code" in note:
            row["state"] = "FAILED" if note["exit_code"] else "COMPLETED"
            row["elapsed_s"] = max(0.0, note["ended_s"] - note["started_s"])
    if start is not None:
        late = row["state"] is not None and start["state"] in GOING  # the job is done, and its Snakemake ends
        known = {key: value for key, value in start.items() if value is not None}
        row |= {key: known[key] for key in known if not (late and key in ("state", "elapsed_s"))} | {"source": "sacct"}
    if row["started_s"] is not None and row["submitted_s"] is not None:
        row["queue_wait_s"] = max(0.0, row["started_s"] - row["submitted_s"])
    return row
