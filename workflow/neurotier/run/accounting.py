"""Slurm's accounting: one call of sacct, and what its rows say. Unknown is ``None``, never 0."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from neurotier.run import slurm

FIELDS = (
    *("JobIDRaw", "State", "NodeList", "Submit", "Start", "End", "ElapsedRaw"),
    *("ReqCPUS", "AllocCPUS", "ReqMem", "MaxRSS", "TotalCPU"),
)

PATIENCE_S = 60.0
"""How long sacct may take: its database may be busy, and a report must not wait for ever."""

AT_ONCE = 10_000
"""Most jobs that one call is asked for: their numbers are one word, of 128 KiB at most."""

EARLIER_S = 3600.0
"""Jobs that were submitted so long before the run began are others, whose numbers came again; clocks may differ."""

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

Start = dict[str, Any]
"""One start of a job, by the accounting."""


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
    for line in lines:
        cells = line.split("|")
        if len(cells) != len(FIELDS):
            continue
        cell = dict(zip(FIELDS, cells, strict=True))
        number, _, step = cell["JobIDRaw"].partition(".")
        if not step:
            found.append(start_of(cell))
        elif found and found[-1]["job"] == number:
            largest = max(found[-1]["max_rss_bytes"] or 0, bytes_of(cell["MaxRSS"]) or 0)
            found[-1]["max_rss_bytes"] = largest or None
    return found


def start_of(cell: dict[str, str]) -> Start:
    """A line of sacct for a whole job."""
    node = None if cell["NodeList"] in ("", "None assigned", "Unknown") else cell["NodeList"]
    # A job that was cancelled while it waited has times of a start that never was.
    began = node is not None
    return {
        "job": cell["JobIDRaw"],
        "state": (cell["State"].split() or ["UNKNOWN"])[0],  # "CANCELLED by 1000"
        "node": node,
        "submitted_s": number_of(cell["Submit"]),
        "started_s": number_of(cell["Start"]) if began else None,
        "ended_s": number_of(cell["End"]),
        "elapsed_s": number_of(cell["ElapsedRaw"]) if began else None,
        "asked_cpus": number_of(cell["ReqCPUS"], int),
        "cpus": number_of(cell["AllocCPUS"], int) if began else None,
        "asked_memory_bytes": bytes_of(cell["ReqMem"]),
        "max_rss_bytes": bytes_of(cell["MaxRSS"]),
        "cpu_s": cpu_seconds(cell["TotalCPU"]),
    }


def number_of(text: str, kind: type[float] = float) -> float | None:
    """A whole number that is known: sacct writes 0, ``Unknown``, ``None`` and the like for one that is not."""
    return kind(text) or None if re.fullmatch(r"\d+", text) else None


def bytes_of(text: str) -> int | None:
    """An amount of memory; 0 is what no sampling has seen.

    >>> bytes_of("5000K"), bytes_of("1.5G"), bytes_of("0"), bytes_of("")
    (5120000, 1610612736, None, None)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    return int(float(found[1]) * UNITS[found[2]]) or None if found else None


def cpu_seconds(text: str) -> float | None:
    """CPU time, ``[DAYS-][HOURS:]MINUTES:SECONDS``; 0 is what was never gathered.

    >>> cpu_seconds("1-02:03:04"), cpu_seconds("01:02.500"), cpu_seconds("00:00:00"), cpu_seconds("INVALID")
    (93784.0, 62.5, None, None)
    """
    with suppress(ValueError):
        days, _, rest = text.rpartition("-")
        total = 0.0
        for part in rest.split(":"):
            total = 60 * total + float(part)
        return total + 86_400 * int(days or 0) or None
    return None
