"""The tables of the incrementation, made from what its runs left in the results; the same for all engines."""

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
"""How precisely the kernel tells when a process was started, s."""


def tabulate(folders: Iterable[Path]) -> dict[str, Rows]:
    """Rows of ``bigbrain_phases.tsv``, ``bigbrain_runs.tsv`` and ``bigbrain_spark.tsv``, by the middle of the names.

    Each run, of which the folder in the results is given, has begun, and may not have ended.
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
    """Write the three tables in a folder."""
    for name, some in rows.items():
        write_table(folder / f"bigbrain_{name}.tsv", f"bigbrain_{name}", some)


def lines_of(runs: Rows) -> list[str]:
    """A line about each run, and one about their output."""
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
    """What all iterations of all blocks left, as far as they are done."""
    places = [task.record(block, k) for block in task.blocks for k in range(1, task.iterations + 1)]
    return [read_json(place) for place in places if place.exists()]


def phase_rows(task: Task, records: Rows) -> Rows:
    """One row per phase, iteration and block."""
    return [
        task.condition | {"iteration": record["iteration"], "block": record["block"]} | phase
        for record in records
        for phase in record["phases"]
    ]


def run_row(task: Task, records: Rows, checked: Row, driver: Driver | None, starts: int = 1) -> Row:
    """One run: makespan, phase sums, parallelism, and whether it is valid.

    Parameters
    ----------
    task, records
        The run, and what its iterations left.
    checked, driver
        What its check left, empty without; and what the start of Spark did that finished it.
    starts
        How often Spark was started for it.
    """
    times, moved = Counter[str](), Counter[str]()
    for phase in (phase for record in records for phase in record["phases"]):
        times[phase["phase"]] += phase["duration_s"]
        moved[phase["phase"]] += phase["bytes"]
    ends = extent([*map(span, records), *([(driver.start_s, driver.end_s)] if driver and driver.end_s else [])])
    makespan_s = ends and ends[1] - ends[0]
    most = peak([busy(record) for record in records])
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


def busy(record: Row) -> Span:
    """When it ran beside others: the start of a process is known to 10 ms only, and may seem to precede it."""
    start_s, end_s = span(record)
    return start_s + TICK_S * any(phase["phase"] == START_UP for phase in record["phases"]), end_s


def invalid_because(task: Task, records: Rows, checked: Row, most: int, starts: int) -> list[str]:
    """Why a run's makespan cannot be compared with others; empty if it can.

    Every incomplete block is named: the published runs lost some in silence.
    """
    reasons, incomplete = [], task.incomplete()
    if incomplete:
        names = ", ".join(incomplete)
        reasons.append(f"{len(incomplete)} of {len(task.blocks)} blocks are incomplete: {names}")
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
    """Whether the outputs of the runs that were checked are the same; empty of fewer than two."""
    checksums = [row["sha256"] for row in rows if row["sha256"]]
    same = "byte-identical" if len(set(checksums)) == 1 else "NOT the same"
    return f"outputs of {len(checksums)} runs are {same}" if len(checksums) > 1 else ""
