"""What became of the jobs that a run submitted to a cluster: the table ``jobs.tsv``.

The head notes what it submitted and when; the job of a share notes where it runs and for which participants (both in
the :mod:`neurotier.run.journal`); Slurm's accounting has the rest. What is unknown is left empty, never 0.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from neurotier.core.errors import BusyError
from neurotier.core.files import Record, read_json_or_empty, remove_path, without, write_json
from neurotier.core.places import Places
from neurotier.core.tables import Row, Rows, columns, grouped, write_table
from neurotier.run import slurm
from neurotier.run.journal import Entry, entries, read_notes
from neurotier.run.participants import name_of

CLOCKS_S = 3.0
"""How far a node's clock may be behind the controller's, s, whose times are whole seconds."""

GOING = ("RUNNING", "COMPLETING")
"""Slurm's states of a job that has begun and not yet ended."""

NO_SLURM = "the jobs are not Slurm's, or it has no accounting"

PATIENCE_S = 60.0
"""How long sacct may take, s: its database may be busy, and a report must not wait for ever."""

AT_ONCE = 10_000
"""Largest number of jobs in one call: their numbers are one argument, of at most 128 KiB."""

EARLIER_S = 3600.0
"""Jobs that ended longer than this before the run began, s, are others, with the same numbers. The margin is for clocks
that differ, and for jobs that were taken over, which were submitted earlier."""

Start = Record
"""One start of a job, according to accounting."""


def note_jobs(places: Places, run: str, left: Collection[str] = ()) -> None:
    """Find out what became of a run's jobs, and save it, as far as it is known; jobs in ``left`` belong to another run
    now."""
    submitted, notes = entries(places, run, "submitted"), read_notes(places, run)
    numbers = {line["job"]: None for line in (*submitted, *notes) if line["job"]}
    if not numbers and not notes:
        return
    known, reason, file = list[Start](), NO_SLURM, places.cluster_jobs(run)
    if asked := [number for number in numbers if number.isdigit()]:  # those of other schedulers may not be
        facts = read_json_or_empty(places.runs / f"{run}.json")
        known, reason = ask_accounting(asked, facts.get("started_s", 0.0))
    known = known or read_json_or_empty(file).get("starts", [])
    rows = job_rows(run, submitted, notes, known, "" if known else reason)
    write_json(file, {"starts": known, "rows": [row for row in rows if row["job"] not in left]})


def close_jobs(places: Places, run: str, was_killed: bool = False) -> None:
    """Find out the same at the end of a run, and remove its journal, after which only the saved rows remain.

    If the run was killed, jobs that still go on are left to the run that takes them over.
    """
    left: Collection[str] = ()
    if was_killed and entries(places, run, "submitted"):
        with suppress(BusyError):
            left = slurm.queue()
    note_jobs(places, run, left)
    remove_path(places.journal(run))


def read_jobs(places: Places, run: str) -> Rows:
    """Rows of ``jobs.tsv`` of one run; empty if it had no jobs, or the file is damaged."""
    # earlier versions wrote fewer columns
    return [
        dict.fromkeys(columns("jobs")) | row for row in read_json_or_empty(places.cluster_jobs(run)).get("rows", [])
    ]


def all_job_rows(places: Places) -> Rows:
    """Rows of ``jobs.tsv`` of all runs, in order of time."""
    return [
        row for file in sorted(places.cluster_jobs("any").parent.glob("*.json")) for row in read_jobs(places, file.stem)
    ]


def renew_jobs_table(places: Places) -> None:
    """Write the table again, if it exists, with what became known at the end of the run.

    Its time stamp is kept: otherwise Snakemake would make everything again that depends on it.
    """
    table = places.profile / "jobs.tsv"
    if table.exists():
        times_ns = table.stat().st_atime_ns, table.stat().st_mtime_ns
        write_table(table, "jobs", all_job_rows(places))
        os.utime(table, ns=times_ns)


def job_rows(
    run: str, submitted: Sequence[Entry], notes: Sequence[Entry], starts: Sequence[Start], reason: str
) -> Rows:
    """Rows of ``jobs.tsv``: one per start of each job, in order of time.

    Parameters
    ----------
    run
        The run.
    submitted
        What the head noted when it submitted them.
    notes
        The jobs' notes about themselves, in order of time.
    starts
        The starts of jobs according to accounting, in order of time for each job.
    reason
        Why accounting says nothing.
    """
    heads = {line["job"]: line for line in submitted}
    rows = []
    known: dict[str, list[list[Record]]] = {number: [] for number in heads}
    known |= grouped((start["job"], [start, {}]) for start in starts)
    for note in notes:
        pairs = known.setdefault(note["job"] or note["node"], [])
        by_s = note["started_s"] + CLOCKS_S
        begun = [pair for pair in pairs if pair[0] and (pair[0]["started_s"] or math.inf) <= by_s]
        if begun:
            begun[-1][1] = note
        elif not any(start for start, _ in pairs):
            pairs.append([{}, note])
    for number, pairs in known.items():
        why = None if any(start for start, _ in pairs) else reason or "sacct does not know it"
        head = {"run": run, "job": number, "source": "head", "reason": why}
        if job := heads.get(number):  # only of the first start does the head know when it was submitted
            head |= {"rule": job["rule"], "share": job["share"] and name_of(job["share"])}
            if len(pairs) < 2:
                head["submitted_s"] = job["time_s"]
        rows += [row_of(head, note, start) for start, note in pairs or [[{}, {}]]]
    rows.sort(key=lambda row: [row["submitted_s"] or row["started_s"] or math.inf, row["started_s"] or math.inf])
    counts = Counter[Any]()
    for row in rows:  # jobs with the same log do the same work: a rule may have one for each site or tier
        work = heads.get(row["job"], row).get("log", row["job"])
        counts[work] += 1
        row["attempt"] = counts[work]
    return rows


def row_of(head: Row, note: Entry, start: Start) -> Row:
    """A row, without the number of the attempt; accounting takes precedence, then what the job noted, then the head."""
    row = dict.fromkeys(columns("jobs"))
    late = ("state", "elapsed_s") if "state" in note and start.get("state") in GOING else ()  # its work is done
    for known in (head, note, without(start, *late)):
        row |= {key: value for key, value in known.items() if key in row and value is not None}
    if row["started_s"] is not None and row["submitted_s"] is not None:
        row["queue_wait_s"] = max(0.0, row["started_s"] - row["submitted_s"])
    return row


# Slurm's accounting: one call of sacct, and what its lines say.


def ask_accounting(numbers: Sequence[str], since_s: float) -> tuple[list[Start], str]:
    """What accounting says about jobs: all of their starts, in order; and, if there are none, the reason.

    Parameters
    ----------
    numbers
        Numbers of the jobs.
    since_s
        When their run began, s since 1970.
    """
    first_s = since_s - EARLIER_S
    found = []
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(first_s))
    options = ("--duplicates", "--noheader", "--parsable2", "--noconvert", f"--starttime={since}")
    for at in range(0, len(numbers), AT_ONCE):
        command = ("sacct", "--jobs", ",".join(numbers[at : at + AT_ONCE]), *options, f"--format={','.join(FIELDS)}")
        text, why = slurm.run_command(*command, patience_s=PATIENCE_S, SLURM_TIME_FORMAT="%s", TZ="UTC")
        if why:
            return [], why
        found += starts_in(text.splitlines())
    ours = [start for start in found if (start["ended_s"] or since_s) >= first_s]
    return ours, "" if ours else "sacct knows none of the jobs"


def starts_in(lines: Iterable[str]) -> list[Start]:
    """The starts in sacct's output: one line each, followed by lines of its steps, of which the largest peak memory
    counts. With ``--duplicates``, a job that was started again has a line for each start.

    >>> lines = ["7|NODE_FAIL|n1|100|103|109|6|4|4|500M||00:00:00", "7|RUNNING|n2|109|120|Unknown|5|4|4|500M||00:00:00"]
    >>> [(start["state"], start["node"], start["started_s"], start["ended_s"]) for start in starts_in(lines)]
    [('NODE_FAIL', 'n1', 103, 109), ('RUNNING', 'n2', 120, None)]
    """
    found: list[Start] = []
    for cells in (line.split("|") for line in lines):
        if len(cells) != len(FIELDS):
            continue
        start = {name: read(cell) for (name, read), cell in zip(FIELDS.values(), cells, strict=True)} | {
            "source": "sacct"
        }
        number, _, step = start["job"].partition(".")
        if not step:
            # For a job that was cancelled while it waited, sacct gives times of a start that never happened.
            found.append(start if start["node"] else start | dict.fromkeys(("started_s", "elapsed_s", "cpus")))
        elif found and found[-1]["job"] == number:
            found[-1]["max_rss_bytes"] = max(one["max_rss_bytes"] or 0 for one in (found[-1], start)) or None
    return found


def number_of(text: str) -> int | None:
    """A whole number, or a time in whole seconds; ``None`` if unknown, for which sacct writes 0, ``Unknown``, ``None``
    and the like.
    """
    return slurm.number(text) or None


def bytes_of(text: str) -> int | None:
    """An amount of memory, bytes; ``None`` for 0, which means that no sample was taken, and for 2^64 - 2, which sacct
    gives for a job that has not started yet.

    >>> bytes_of("5000K"), bytes_of("1.5G"), bytes_of("0"), bytes_of(""), bytes_of("18446744073709551614M")
    (5120000, 1610612736, None, None, None)
    """
    found = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)([KMGTP]?)", text)
    return int(float(found[1]) * 1024 ** " KMGTP".index(found[2] or " ")) or None if found else None


FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "JobIDRaw": ("job", str),
    "State": ("state", lambda text: (text.split() or ["UNKNOWN"])[0]),  # "CANCELLED by 1000"
    "NodeList": ("node", lambda text: None if text in ("", "None assigned", "Unknown") else text),
    "Submit": ("submitted_s", number_of),
    "Start": ("started_s", number_of),
    "End": ("ended_s", number_of),
    "ElapsedRaw": ("elapsed_s", number_of),
    "ReqCPUS": ("asked_cpus", number_of),
    "AllocCPUS": ("cpus", number_of),
    "ReqMem": ("asked_memory_bytes", bytes_of),
    "MaxRSS": ("max_rss_bytes", bytes_of),
    "TotalCPU": ("cpu_s", lambda text: slurm.duration_s(text) or None),  # 0 means that it was not gathered
}
"""Fields of sacct: the column that each fills, and the function that reads it."""
