"""Where Spark's time goes, by its event log and the phases of blocks, in parts that add up.

The driver's parts follow one another, and their sum is the wall time of the driver program. Tasks run in parallel;
their parts are sums over tasks, and add up to the sum of the times from each task's launch to its end. Spark counts in
ms.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.bigbrain.tasks import DELAY, WORK_PHASES, Task, span
from neurotier.core.files import read_json
from neurotier.core.parallelism import Span
from neurotier.core.tables import Row, Rows

DRIVER, TASKS = "driver", "tasks"
DRIVER_PARTS = ("jvm_start", "context", "planning", "tasks", "ending")
OURS = (*WORK_PHASES, DELAY)
TASK_PARTS = ("scheduling", "deserialise", "garbage", "python", *OURS, "serialise")
TASK_TIMES = {
    "start_s": "Launch Time",
    "end_s": "Finish Time",
    "deserialise_s": "Executor Deserialize Time",
    "run_s": "Executor Run Time",
    "serialise_s": "Result Serialization Time",
    "garbage_s": "JVM GC Time",
}
"""Names of the times that Spark reports about a finished task: neurotier's, and Spark's."""

DRIVERS = "drivers"
"""Folder next to a run's plan, in which each start of Spark records what its driver program did."""


@dataclass(frozen=True)
class Driver:
    """What Spark's driver program did.

    Attributes
    ----------
    start_s
        When it began, s since 1970.
    session_s
        How long the start of its session, including the JVM, took, s.
    events
        Folder of its event log.
    end_s
        When it ended, s since 1970; ``None`` if it was killed.
    """

    start_s: float
    session_s: float
    events: str
    end_s: float | None = None

    @property
    def log(self) -> Events:
        """The contents of its event log."""
        return read_events(Path(self.events))


@dataclass(frozen=True)
class Events:
    """The contents of an event log; points in time are s since 1970.

    Attributes
    ----------
    begin_s
        When the JVM began to make the context; ``None`` if the log does not say so.
    last_s
        When the last task or the application ended, whichever is later; ``None`` if nothing ended.
    tasks
        A row for each task that ended with figures, even if it failed: ``start_s``, when the driver launched it, and
        ``end_s``, when the driver had its result; ``deserialise_s``, ``run_s`` and ``serialise_s``, the time that its
        executor spent on unpacking it, on running it, including Python, and on packing its result; and ``garbage_s``,
        the time that its JVM spent on garbage collection in the meantime. A collection counts for all tasks in its JVM.
    """

    begin_s: float | None
    last_s: float | None
    tasks: list[dict[str, float]]

    def sum_s(self, name: str) -> float:
        """One of the times, summed over all tasks, s."""
        return math.fsum(task[name] for task in self.tasks)


def drivers_of(run: Path) -> list[Driver]:
    """What each start of Spark recorded in the folder of a run, earliest first."""
    return [
        Driver(**read_json(file)) for file in sorted((run / DRIVERS).glob("*.json"), key=lambda file: int(file.stem))
    ]


def read_events(folder: Path) -> Events:
    """Read the event log in a folder; its times are in ms."""
    begin_s, ends_s, tasks = None, [], []
    for event in events_in(folder):
        match event["Event"]:
            case "SparkListenerApplicationStart":
                begin_s = event["Timestamp"] / 1000
            case "SparkListenerApplicationEnd":
                ends_s.append(event["Timestamp"] / 1000)
            case "SparkListenerTaskEnd" if event.get("Task Metrics"):
                said = event["Task Info"] | event["Task Metrics"]
                tasks.append({ours: said[theirs] / 1000 for ours, theirs in TASK_TIMES.items()})
    return Events(begin_s, max([*ends_s, *(task["end_s"] for task in tasks)], default=None), tasks)


def events_in(folder: Path) -> Iterator[Row]:
    """The events of a log. Spark makes a folder for each application, and a killed one leaves half an event."""
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.name.startswith((".", "appstatus")):
            continue
        with file.open() as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    break


def driver_parts(driver: Driver, events: Events) -> dict[str, float]:
    """The wall time of the driver program by part, s.

    ``jvm_start``: until the JVM begins to make the context; ``context``: until the context, and on a cluster its
    executors, are ready; ``planning``: from then to the last task's end, while no task runs (files are listed, tasks
    made); ``tasks``: while at least one task runs; ``ending``: after the last task's end. A killed driver ends with its
    last event.
    """
    ready_s = driver.start_s + driver.session_s
    begin_s = min(max(events.begin_s or ready_s, driver.start_s), ready_s)
    busy_s = union_s([(task["start_s"], task["end_s"]) for task in events.tasks])
    through_s = max((task["end_s"] for task in events.tasks), default=ready_s)
    end_s = driver.end_s or max(events.last_s or ready_s, ready_s)
    times = (begin_s - driver.start_s, ready_s - begin_s, through_s - ready_s - busy_s, busy_s, end_s - through_s)
    return dict(zip(DRIVER_PARTS, times, strict=True))


def task_parts(events: Events, records: Rows) -> dict[str, float]:
    """The times from launch to end of all tasks, summed, by part, s.

    ``scheduling``: shipping a task to its executor and its result back; ``deserialise``, ``serialise``: unpacking the
    task and packing the result; the phases of blocks; and the rest of the executors' time as ``garbage`` and
    ``python``. ``garbage``: garbage collections of the JVM, as far as they fit into the rest (those during a phase in
    Python delay nothing). ``python``: starting Python workers, importing, and moving data between files, the JVM and
    Python.

    Parameters
    ----------
    events
        The contents of the event log.
    records
        The records of blocks' iterations. An iteration counts if its middle lies within a task, since the clocks of
        several nodes differ a little.
    """
    parts = dict.fromkeys(TASK_PARTS, 0.0)
    for record in records:
        middle_s = sum(span(record)) / 2
        if any(task["start_s"] <= middle_s <= task["end_s"] for task in events.tasks):
            for phase in record["phases"]:
                if phase["phase"] in OURS:
                    parts[phase["phase"]] += phase["duration_s"]
    rest_s = events.sum_s("run_s") - math.fsum(parts.values())
    parts["garbage"] = min(events.sum_s("garbage_s"), max(0.0, rest_s))
    parts["python"] = rest_s - parts["garbage"]
    parts["deserialise"], parts["serialise"] = events.sum_s("deserialise_s"), events.sum_s("serialise_s")
    whole_s = math.fsum(task["end_s"] - task["start_s"] for task in events.tasks)
    parts["scheduling"] = whole_s - math.fsum(parts.values())
    return parts


def union_s(spans: Sequence[Span]) -> float:
    """The time covered by at least one of some spans, s.

    >>> union_s([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    total_s, until_s = 0.0, -math.inf
    for start_s, end_s in sorted(spans):
        total_s += max(0.0, end_s - max(start_s, until_s))
        until_s = max(until_s, end_s)
    return total_s


def spark_rows(task: Task, drivers: Sequence[Driver], records: Rows) -> Rows:
    """The rows of ``bigbrain_spark.tsv`` for a run: one per start of Spark and part of its time.

    Parameters
    ----------
    task
        The run.
    drivers
        What each start of Spark recorded, earliest first.
    records
        The records of the run's iterations.
    """
    rows = []
    for attempt, driver in enumerate(drivers, 1):
        events = driver.log
        about = task.condition | {"attempt": attempt, "tasks": len(events.tasks)}
        for of, parts in ((DRIVER, driver_parts(driver, events)), (TASKS, task_parts(events, records))):
            rows += [about | {"of": of, "part": part, "sum_s": sum_s} for part, sum_s in parts.items()]
    return rows
