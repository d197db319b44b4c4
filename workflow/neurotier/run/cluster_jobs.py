"""What became of the jobs that a run gave to a cluster: the table ``jobs.tsv``.

Three tell: the head what it submitted when, each job of a share where it runs and with whom (both in the
:mod:`neurotier.run.journal`), and Slurm's accounting the rest. What nobody tells is empty, and never 0.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from neurotier.core.errors import BusyError
from neurotier.core.files import remove_whatever, whole_json, write_json
from neurotier.core.places import Places
from neurotier.core.tables import Row, columns, write_table
from neurotier.run import slurm
from neurotier.run.journal import Line, heard, read_notes
from neurotier.run.shares import name_of

ANALYSIS = "analyze_participants"
"""The rule whose jobs are shares."""

CLOCKS_S = 3.0
"""By how much a node's clock may be behind the controller's, whose times are whole seconds."""

GOING = ("RUNNING", "COMPLETING")
"""Slurm's states of a job that has begun and not ended."""

NO_SLURM = "the jobs are not Slurm's, or it has no accounting"

PATIENCE_S = 60.0
"""How long sacct may take: its database may be busy, and a report must not wait for ever."""

AT_ONCE = 10_000
"""Most jobs that one call is asked for: their numbers are one word, of 128 KiB at most."""

EARLIER_S = 3600.0
"""Jobs that were submitted so long before the run began are others, whose numbers came again; clocks may differ."""

Start = dict[str, Any]
"""One start of a job, by the accounting."""


def note_jobs(places: Places, run: str) -> None:
    """Ask what became of a run's jobs, and keep the answer; what was known before stays if nobody answers now."""
    told, notes = heard(places, run, "submitted"), read_notes(places, run)
    numbers = {line["job"]: None for line in (*told, *notes) if line["job"]}
    if not numbers and not notes:
        return
    asked = [number for number in numbers if number.isdigit()]  # cluster-generic may have called sshare
    facts = whole_json(places.runs / f"{run}.json") or {}
    starts, reason = ask_accounting(asked, facts.get("started_s", 0.0)) if asked else ([], NO_SLURM)
    starts = starts or kept(places, run).get("starts", [])
    rows = job_rows(run, told, notes, starts, None if starts else reason)
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


def kept(places: Places, run: str) -> dict[str, Any]:
    """What was noted of a run's jobs; nothing if there were none, or the file is damaged."""
    return whole_json(places.cluster_jobs(run)) or {}


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
    return any((row["needed_cpus"] or 0) > (row["cpus"] or math.inf) for row in rows)


def job_rows(
    run: str, told: Sequence[Line], notes: Sequence[Line], starts: Sequence[Start], reason: str | None
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
    heads = {line["job"]: line for line in told}
    own_starts, own_notes = defaultdict[str, list[Start]](list), defaultdict[str, list[Line]](list)
    for start in starts:
        own_starts[start["job"]].append(start)
    for note in notes:
        own_notes[note["job"] or note["node"]].append(note)
    rows = []
    for number in dict.fromkeys([*heads, *own_notes]):
        pairs = pair(own_starts[number], own_notes[number])
        why = None if own_starts[number] else reason or "sacct does not know it"
        head = {"run": run, "job": number, "attempt": 1, "source": "head", "reason": why}
        if job := heads.get(number):  # of the first start, it has heard the submission
            head |= {"rule": job["rule"], "share": job["share"] and name_of(job["share"])}
            head |= {"submitted_s": job["time_s"]} if len(pairs) == 1 else {}
        rows += [row_of(head, note, start) for start, note in pairs]
    rows.sort(key=lambda row: [row["submitted_s"] or row["started_s"] or math.inf, row["started_s"] or math.inf])
    counts = Counter[tuple[str, ...]]()
    for row in rows:
        work = (row["rule"], row["share"]) if row["rule"] else (row["job"],)
        counts[work] += 1
        row["attempt"] = counts[work]
    return rows


def pair(starts: Sequence[Start], notes: Sequence[Line]) -> list[tuple[Start, Line]]:
    """Each start of one job with what the job noted then; of the one or the other alone if there is no more."""
    if not starts:
        return [({}, note) for note in notes] or [({}, {})]
    of_starts = dict[int, Line]()
    for note in notes:
        begun = [
            at for at, start in enumerate(starts) if (start["started_s"] or math.inf) - CLOCKS_S <= note["started_s"]
        ]
        of_starts |= dict.fromkeys(begun[-1:], note)
    return [(start, of_starts.get(at, {})) for at, start in enumerate(starts)]


def row_of(head: Row, note: Line, start: Start) -> Row:
    """A row, but for which attempt it is; the accounting counts most, then what the job noted, then the head."""
    row = dict.fromkeys(columns("jobs")) | head
    if note:
        row |= {key: note[key] for key in ("share", "slots", "needed_cpus", "node", "cpus", "started_s")}
        row |= {"rule": ANALYSIS, "members": " ".join(note["members"]), "source": "job"}
        row |= {"asked_memory_bytes": note["memory_bytes"], "ended_s": note.get("ended_s")}
        if "exit_code" in note:
            row["state"] = "FAILED" if note["exit_code"] else "COMPLETED"
            row["elapsed_s"] = max(0.0, note["ended_s"] - note["started_s"])
    if start:
        late = ("state", "elapsed_s") if row["state"] and start["state"] in GOING else ()  # done, its Snakemake ends
        row |= {key: value for key, value in start.items() if value is not None and key not in late}
        row["source"] = "sacct"
    if row["started_s"] is not None and row["submitted_s"] is not None:
        row["queue_wait_s"] = max(0.0, row["started_s"] - row["submitted_s"])
    return row


# Slurm's accounting: one call of sacct, and what its lines say.


def ask_accounting(numbers: Sequence[str], since_s: float) -> tuple[list[Start], str | None]:
    """What the accounting says of jobs: each of their starts in order, and why it says nothing, if it does not.

    Parameters
    ----------
    numbers
        Numbers of the jobs.
    since_s
        When their run began, s since 1970.
    """
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since_s - EARLIER_S))
    options = ("--duplicates", "--noheader", "--parsable2", "--noconvert", f"--starttime={since}")
    found: list[Start] = []
    for at in range(0, len(numbers), AT_ONCE):
        command = ("sacct", "--jobs", ",".join(numbers[at : at + AT_ONCE]), *options, f"--format={','.join(FIELDS)}")
        text, why = slurm.answer(*command, patience_s=PATIENCE_S, SLURM_TIME_FORMAT="%s", TZ="UTC")
        if why:
            return [], why
        found += starts_in(text.splitlines())
    ours = [start for start in found if (start["submitted_s"] or since_s) >= since_s - EARLIER_S]
    return ours, None if ours else "sacct knows none of the jobs"


def starts_in(lines: Iterable[str]) -> list[Start]:
    """The starts in what sacct has printed: a line each, followed by lines of its steps, of which the largest counts.

    A job that was started again has a line for each start, if they are asked for (``--duplicates``).

    >>> lines = ["7|NODE_FAIL|n1|100|103|109|6|4|4|500M||00:00:00", "7|RUNNING|n2|109|120|Unknown|5|4|4|500M||00:00:00"]
    >>> [(start["state"], start["node"], start["started_s"], start["ended_s"]) for start in starts_in(lines)]
    [('NODE_FAIL', 'n1', 103.0, 109.0), ('RUNNING', 'n2', 120.0, None)]
    """
    found: list[Start] = []
    for cells in (line.split("|") for line in lines):
        if len(cells) != len(FIELDS):
            continue
        start = {name: read(cell) for (name, read), cell in zip(FIELDS.values(), cells, strict=True)}
        number, _, step = start["job"].partition(".")
        if not step:
            # A job that was cancelled while it waited has times of a start that never was.
            found.append(start if start["node"] else start | dict.fromkeys(("started_s", "elapsed_s", "cpus")))
        elif found and found[-1]["job"] == number:
            sizes = [one["max_rss_bytes"] or 0 for one in (found[-1], start)]
            found[-1]["max_rss_bytes"] = max(sizes) or None
    return found


def number_of(text: str) -> int | None:
    """A whole number that is known: sacct writes 0, ``Unknown``, ``None`` and the like for one that is not."""
    return int(text) or None if re.fullmatch(r"\d+", text) else None


def time_of(text: str) -> float | None:
    """A time in whole seconds, as :func:`number_of`."""
    found = number_of(text)
    return found and float(found)


def bytes_of(text: str) -> int | None:
    """An amount of memory; 0 is what no sampling has seen.

    >>> bytes_of("5000K"), bytes_of("1.5G"), bytes_of("0"), bytes_of("")
    (5120000, 1610612736, None, None)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    return int(float(found[1]) * 1024 ** " KMGTP".index(found[2] or " ")) or None if found else None


def cpu_seconds(text: str) -> float | None:
    """CPU time, ``[DAYS-][HOURS:]MINUTES:SECONDS``; 0 is what was never gathered.

    >>> cpu_seconds("1-02:03:04"), cpu_seconds("01:02.500"), cpu_seconds("00:00:00"), cpu_seconds("INVALID")
    (93784.0, 62.5, None, None)
    """
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", text)
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0.0,) * 4
    return 86_400 * days + 3600 * hours + 60 * minutes + seconds or None


FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "JobIDRaw": ("job", str),
    "State": ("state", lambda text: (text.split() or ["UNKNOWN"])[0]),  # "CANCELLED by 1000"
    "NodeList": ("node", lambda text: None if text in ("", "None assigned", "Unknown") else text),
    "Submit": ("submitted_s", time_of),
    "Start": ("started_s", time_of),
    "End": ("ended_s", time_of),
    "ElapsedRaw": ("elapsed_s", time_of),
    "ReqCPUS": ("asked_cpus", number_of),
    "AllocCPUS": ("cpus", number_of),
    "ReqMem": ("asked_memory_bytes", bytes_of),
    "MaxRSS": ("max_rss_bytes", bytes_of),
    "TotalCPU": ("cpu_s", cpu_seconds),
}
"""Fields of sacct: the column that each fills, and what reads it."""
