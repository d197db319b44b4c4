"""The tables of the incrementation, made from what its runs left in the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from neurotier.bigbrain.engines.numa import NOTICE, ONE_NODE
from neurotier.bigbrain.engines.spark_events import drivers_of, spark_rows
from neurotier.bigbrain.plan import CHECKED, FINISHED
from neurotier.bigbrain.tabulation import outputs_text, phase_rows, records_of, run_row
from neurotier.bigbrain.tasks import Task
from neurotier.core.files import read_json
from neurotier.core.quantities import seconds
from neurotier.core.tables import Row, Rows, write_table


def tabulate(folders: Iterable[Path]) -> dict[str, Rows]:
    """Rows of ``bigbrain_phases.tsv``, ``bigbrain_runs.tsv`` and ``bigbrain_spark.tsv``, by the middle of the names.

    Each run, of which the folder in the results is given, has begun, and may not have ended.
    """
    rows: dict[str, Rows] = {"phases": [], "runs": [], "spark": []}
    for folder in folders:
        task, drivers = Task.load(folder / "plan.json"), drivers_of(folder)
        records = records_of(task)
        rows["phases"] += phase_rows(task, records)
        rows["spark"] += spark_rows(task, drivers, records)
        left = read_if_there(folder / CHECKED), read_if_there(folder / FINISHED)
        rows["runs"].append(run_row(task, records, *left, starts=len(drivers)))
    return rows


def write_tables(rows: Mapping[str, Iterable[Row]], folder: Path) -> None:
    """Write the three tables in a folder."""
    for name, some in rows.items():
        write_table(folder / f"bigbrain_{name}.tsv", f"bigbrain_{name}", some)


def lines_of(runs: Sequence[Row]) -> list[str]:
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


def read_if_there(file: Path) -> Row:
    """The content of a JSON file; empty if the file is missing."""
    return dict(read_json(file)) if file.exists() else {}
