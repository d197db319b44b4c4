"""Make the tables of the incrementation from the files that its runs left in the results, whatever the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from neurotier.bigbrain.engines.numa import NOTICE, ONE_NODE
from neurotier.bigbrain.engines.spark_events import Driver, drivers_of, spark_rows
from neurotier.bigbrain.plan import CHECKED, FINISHED
from neurotier.bigbrain.tasks import HEADER, INCREMENT, READ, START_UP, WORK_PHASES, WRITE, Task, span
from neurotier.core.files import read_json
from neurotier.core.parallelism import Span, extent, peak
from neurotier.core.quantities import counted, seconds
from neurotier.core.tables import Row, Rows, write_table

TICK_S = 0.01
"""Precision with which the kernel reports when a process was started, s."""


def tabulate(folders: Iterable[Path]) -> dict[str, Rows]:
    """The rows of ``bigbrain_phases.tsv``, ``bigbrain_runs.tsv`` and ``bigbrain_spark.tsv``, by the middle of the name.

    ``folders`` are the folders of the runs in the results; each run has begun, but may not have ended.
    """
    rows: dict[str, Rows] = {"phases": [], "runs": [], "spark": []}
    for folder in folders:
        task, drivers, checked = Task.load(folder / "plan.json"), drivers_of(folder), folder / CHECKED
        records = records_of(task)
        rows["phases"] += phase_rows(task, records)
        rows["spark"] += spark_rows(task, drivers, records)
        last = drivers[-1] if drivers and (folder / FINISHED).exists() else None
        found = read_json(checked) if checked.exists() else {}
        rows["runs"].append(run_row(task, records, found, last, starts=len(drivers)))
    return rows


def write_tables(rows: Mapping[str, Rows], folder: Path) -> None:
    """Write the three tables to a folder."""
    for name, some in rows.items():
        write_table(folder / f"bigbrain_{name}.tsv", f"bigbrain_{name}", some)


def lines_of(runs: Rows) -> list[str]:
    """A line about each run for the user, and one about their outputs."""
    lines = [
        f"BigBrain: {row['engine']} on {row['tier']}, {row['parallelism']} at once, repetition {row['repetition']}: "
        + (seconds(row["makespan_s"]) if row["valid"] == "valid" else row["valid"])
        for row in runs
    ]
    if any(row["pinned"] == ONE_NODE for row in runs):
        lines.append(NOTICE)
    same = outputs_text(runs)
    return [*lines, f"BigBrain: {same}"] if same else lines


def records_of(task: Task) -> Rows:
    """The records of all iterations of all blocks that are done."""
    places = [task.record(block, k) for block in task.blocks for k in range(1, task.iterations + 1)]
    return [read_json(place) for place in places if place.exists()]


def phase_rows(task: Task, records: Rows) -> Rows:
    """The rows of a run's phases: one per phase, iteration and block."""
    return [
        task.condition | {"iteration": record["iteration"], "block": record["block"]} | phase
        for record in records
        for phase in record["phases"]
    ]


def run_row(task: Task, records: Rows, checked: Row, driver: Driver | None, starts: int = 1) -> Row:
    """The row of a run: makespan, sums of its phases, parallelism, and whether it is valid.

    Parameters
    ----------
    task, records
        The run, and the records of its iterations.
    checked, driver
        The result of its check, empty if it was not checked; and the start of Spark that finished it, if any.
    starts
        How often Spark was started for it.
    """
    times, moved = Counter[str](), Counter[str]()
    for phase in (phase for record in records for phase in record["phases"]):
        times[phase["phase"]] += phase["duration_s"]
        moved[phase["phase"]] += phase["bytes"]
    ends = extent([*map(span, records), *([(driver.start_s, driver.end_s)] if driver and driver.end_s else [])])
    makespan_s = ends and ends[1] - ends[0]
    most = peak([working_span(record) for record in records])
    reasons = invalid_because(task, records, checked, most, starts)
    return task.condition | {
        "valid": f"invalid: {'; '.join(reasons)}" if reasons else "valid",
        "host": task.host or None,
        "pairing": task.pairing,
        "cache": task.cache,
        "pinned": task.pinned,
        "iterations": task.iterations,
        "blocks": len(task.blocks),
        "block_bytes": sum(block.bytes for block in task.blocks),
        "incomplete_blocks": len(task.incomplete()),
        "makespan_s": makespan_s,
        "start_up_s": times[START_UP] + (driver.session_s if driver else 0),
        "load_header_s": times[HEADER],
        "read_s": times.get(READ),
        "increment_s": times[INCREMENT],
        "write_s": times[WRITE],
        "mean_parallelism": sum(times[name] for name in WORK_PHASES) / makespan_s if makespan_s else None,
        "peak_parallelism": most,
        "read_bytes": moved[READ if READ in times else INCREMENT],
        "written_bytes": moved[WRITE],
        "wrapped_voxels": sum(record["wrapped_voxels"] for record in records),
        "max_rss_bytes": max((record["max_rss_bytes"] for record in records), default=None),
        "garbage_s": driver.log.sum_s("garbage_s") if driver and driver.log.tasks else None,
        "sha256": checked.get("sha256"),
    }


def working_span(record: Row) -> Span:
    """The span of an iteration for counting how many run at once.

    A process's start is known only to 10 ms, so a process could seem to start before another one has ended.
    """
    start_s, end_s = span(record)
    return start_s + TICK_S * any(phase["phase"] == START_UP for phase in record["phases"]), end_s


def invalid_because(task: Task, records: Rows, checked: Row, most: int, starts: int) -> list[str]:
    """Why a run's makespan cannot be compared with that of others; empty if it can.

    Every incomplete block is named, since the published runs lost some silently.
    """
    reasons, incomplete = [], task.incomplete()
    if incomplete:
        reasons.append(f"{len(incomplete)} of {len(task.blocks)} blocks are incomplete: {', '.join(incomplete)}")
    elif not checked:
        reasons.append("its output was not checked")
    wrong = [one["block"] for one in checked.get("blocks", []) if not one["equal"]]
    if wrong:
        reasons.append(f"{counted(len(wrong), 'block')} not what was read + {task.iterations}: {', '.join(wrong)}")
    if starts > 1 or any(record["attempt"] != task.attempt for record in records):
        reasons.append("it was interrupted and taken up again")
    if any(record.get("suspended") for record in records):
        reasons.append("it was suspended and resumed")
    if task.cache_problem:
        reasons.append(task.cache_problem)
    asked = min(task.parallelism, len(task.blocks))
    if not incomplete and most < asked:
        reasons.append(f"at most {counted(most, 'block')} ran at once, not {asked}")
    return reasons


def outputs_text(rows: Rows) -> str:
    """Whether the outputs of all checked runs are the same, in words; empty if fewer than two were checked."""
    checksums = [row["sha256"] for row in rows if row["sha256"]]
    same = "byte-identical" if len(set(checksums)) == 1 else "NOT the same"
    return f"outputs of {len(checksums)} runs are {same}" if len(checksums) > 1 else ""
