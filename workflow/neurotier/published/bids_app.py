"""The published BIDS App example: the raw logs of Hayot-Sasson, Brown and Glatard (2020) as runs that can be compared.

Their repository has a folder ``<condition>-<number>`` for each run in ``bids-app-example``, with ``tasks.json`` (start,
end, exit code, real, user and system time of every task) and ``makespan_seconds``.

What the logs mean
------------------
- ``Start`` and ``Finish`` are in whole seconds; ``real time`` is what ``time`` measured around the launcher, in ms. The
  two agree within 1 s in all 8,220 tasks of the 12 logs at hand (mean difference 0.0 s). Starts and ends are therefore
  used as logged: with these, no more than the requested 25 or 96 tasks ever run at once, whereas with ``Finish - real
  time`` as the start up to 39 and 118 would. The wall time of a task is its ``real time``.
- ``makespan_seconds`` is not the last end minus the first start: it is the end of the task whose name sorts last minus
  the start of the task whose name sorts first (as all 12 logs confirm), which is up to 31 s too short. It is kept
  alongside the makespan that is computed from the tasks.
- The requested number of simultaneous tasks is not in the log; see :func:`asked_parallelism`.
- The authors' instructions say that the page cache was emptied before each run, but no log shows it: ``as found``.
- The launcher read a participant's whole site before it started the container, which takes most of a task's time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from email.utils import mktime_tz, parsedate_tz
from pathlib import Path

from neurotier.bigbrain.conditions import ORIGIN
from neurotier.core.errors import InputError
from neurotier.core.parallelism import extent, mean, peak
from neurotier.core.quantities import counted
from neurotier.core.tables import Row, Rows, columns
from neurotier.published.conditions import EXPERIMENT
from neurotier.published.skipped import DAMAGED, FIX, Skipped, skipping
from neurotier.run.compared import MEMORY, Compared, valid_unless

TOOL = "bids-app-example"
FOLDERS = (".", "bids-app-example", "*/bids-app-example", "*/*/bids-app-example")
"""Folders of a checkout, or of a part of one, in which the runs may be."""

PARALLELISMS = (25, 96)
"""Simultaneous tasks that the paper requested."""

CONDITIONS: dict[str, tuple[str, str]] = EXPERIMENT["bids_app"]
"""Placement and its kind, by the repository's name of a condition."""

IMAGE, IMAGES_TIER = "bids-example.simg", "Isilon"
LOG = "tasks.json"
NAME = re.compile(r"(?P<condition>.+)-(?P<number>\d+)")
DURATION = re.compile(r"(?P<minutes>\d+)m(?P<seconds>\d+(\.\d+)?)s")


def published_runs(path: Path) -> Compared:
    """Read all published runs of a checkout, of a part of one, or of its folder ``bids-app-example``.

    A run with a damaged log is invalid, with the reason; a damaged ``makespan_seconds`` counts as missing.

    Raises
    ------
    InputError
        If no run at or below the path has a readable log.
    """
    skipped = list[Skipped]()
    compared = find_published(path, skipped)
    damaged = [one for one in skipped if one.kind == DAMAGED]
    if not compared.runs:
        if damaged:
            raise InputError(damaged[0].reason, damaged[0].path, FIX)
        fix = "give a checkout of big-data-lab-team/paper-memory-storage, or its folder bids-app-example"
        raise InputError("has no CONDITION-NUMBER/tasks.json of the published runs", path, fix)
    return compared + Compared(
        [
            run_row(one.path, [])
            | {"valid": valid_unless([f"{LOG} {one.reason}"]), "repetition": run_name(one.path)[1]}
            for one in damaged
            if one.path.name == LOG
        ]
    )


def find_published(path: Path, skipped: list[Skipped]) -> Compared:
    """Read all published runs at or below a path; files that cannot be read are added to ``skipped``."""
    compared, repetitions = Compared(), Counter[tuple[str, int]]()
    for log in sorted(find_logs(path), key=run_name):
        with skipping(log, skipped):
            tasks, failed = read_tasks(log)
            row, makespan = run_row(log, tasks, failed), log.with_name("makespan_seconds")
            with skipping(makespan, skipped):
                row["logged_makespan_s"] = logged_makespan_s(makespan)
            condition = row["placement"], row["parallelism"]
            repetitions[condition] += 1
            compared += Compared([row | {"repetition": repetitions[condition]}], tasks)
    return compared


def find_logs(path: Path) -> set[Path]:
    """The files ``tasks.json`` in the first of :data:`FOLDERS` that has any; for a run's own folder, its only one."""
    if NAME.fullmatch(path.resolve().name) and (path / LOG).is_file():
        return {path.resolve() / LOG}
    for folder in FOLDERS:
        found = {log for log in path.glob(f"{folder}/*/{LOG}") if NAME.fullmatch(log.parent.name)}
        if found:
            return found
    return set()


def run_name(log: Path) -> tuple[str, int]:
    """The condition and the number of a run, from the name of its log's folder."""
    match = NAME.fullmatch(log.parent.name)
    assert match is not None, log  # noqa: S101  # find_logs guarantees this
    return match["condition"], int(match["number"])


def asked_parallelism(running: int) -> int:
    """The requested number of simultaneous tasks, from the most that ran: the smaller of 25 and 96 that is not below.

    GNU Parallel fills its slots as long as tasks are left, so a run of 685 tasks reaches the requested number; in the
    logs at hand, the most is exactly 25 or 96. A number above 96 is taken as it is.

    >>> [asked_parallelism(running) for running in (25, 24, 96, 128)]
    [25, 25, 96, 128]
    """
    return next((asked for asked in PARALLELISMS if running <= asked), running)


def read_tasks(log: Path) -> tuple[Rows, int]:
    """The successful tasks of a log, as rows of ``compared_participants.tsv``, and the number of failed ones."""
    try:
        entries = json.loads(log.read_text())["tasks"]
        good = [participant_row(log, entry) for entry in entries if entry["Exit code"] == "0"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"is not a whole log of tasks ({error})") from None
    return good, len(entries) - len(good)


def participant_row(log: Path, entry: Mapping[str, str]) -> Row:
    """The row of a task; raises ``ValueError`` if a time cannot be read or is impossible."""
    start_s, end_s = moment_s(entry["Start"]), moment_s(entry["Finish"])
    wall_s, user_s, system_s = (duration_s(entry[f"{kind} time"]) for kind in ("real", "user", "system"))
    if end_s < start_s:
        raise ValueError(f"task {entry['Name']} ends before it starts")
    cpu_s = user_s + system_s
    return {
        "origin": ORIGIN,
        "run": log.parent.name,
        "participant": entry["Name"],
        "phase": "whole",
        "start_s": start_s,
        "end_s": end_s,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "io_s": wall_s - cpu_s,
    }


def moment_s(text: str) -> float:
    """Convert a time printed by ``date`` to s since 1970-01-01 UTC; a time zone unknown to e-mail counts as UTC.

    >>> moment_s("Tue Sep  3 17:21:44 EDT 2019"), moment_s("Tue Dec  3 16:21:44 EST 2019")
    (1567545704.0, 1575408104.0)
    """
    parts = parsedate_tz(text)
    if parts is None:
        raise ValueError(f"{text!r} is not a time of day")
    return float(mktime_tz(parts))


def duration_s(text: str) -> float:
    """Convert a duration printed by the shell's ``time`` to s.

    >>> duration_s("1m6.671s")
    66.671
    """
    match = DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    return 60 * int(match["minutes"]) + float(match["seconds"])


def run_row(log: Path, tasks: Sequence[Row], failed: int = 0) -> Row:
    """The row of ``compared_runs.tsv`` for a log, without the repetition.

    Parameters
    ----------
    tasks, failed
        The result of :func:`read_tasks`.
    """
    condition, _ = run_name(log)
    placement, kind = CONDITIONS.get(condition, (condition, ""))
    spans = [(task["start_s"], task["end_s"]) for task in tasks]
    running, whole = peak(spans), extent(spans)
    reasons = [f"{counted(failed, 'participant')} failed"] if failed else []
    reasons += [] if tasks else ["no participant finished"]
    return {
        **dict.fromkeys(columns("compared_runs")),
        **{f"{role}_tier": placement for role in ("dataset", "work", "results")},
        **{f"{name}_sum_s": sum(task[f"{name}_s"] for task in tasks) for name in ("wall", "cpu", "io")},
        "origin": ORIGIN,
        "run": log.parent.name,
        "placement": placement,
        "cache": MEMORY if kind == "tmpfs" else "as found",
        "tool": TOOL,
        "valid": valid_unless(reasons),
        "image": IMAGE,
        "images_tier": IMAGES_TIER,
        "participants": len(tasks),
        "failed": failed,
        "start_s": whole and whole[0],
        "makespan_s": whole and whole[1] - whole[0],
        "parallelism": asked_parallelism(running),
        "mean_parallelism": mean(spans),
        "peak_parallelism": running,
    }


def logged_makespan_s(file: Path) -> float | None:
    """The makespan in a file ``makespan_seconds``, s; ``None`` if there is no such file."""
    try:
        return float(file.read_text()) if file.exists() else None
    except ValueError:
        raise ValueError("is not a number of seconds") from None
