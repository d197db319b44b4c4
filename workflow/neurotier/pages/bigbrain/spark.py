"""Where Spark's time goes, and how much longer it takes than GNU parallel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from neurotier.bigbrain.engines.spark_events import DRIVER, TASKS
from neurotier.bigbrain.tasks import DELAY, GNU_PARALLEL, SPARK, WORK_PHASES
from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.tables import Tables
from neurotier.pages.kit.chart import BLACK, BLUE, GREEN, GREY, LIGHT_GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from neurotier.pages.kit.findings import Finding, at_once, between, times_text
from neurotier.pages.kit.lanes import Lane, Panel
from neurotier.pages.kit.marks import Kind
from neurotier.pages.kit.stacks import Bar, draw_stacked
from neurotier.pages.kit.style import write_figure
from neurotier.run.compared import is_compared

Group = tuple[str, tuple[str, ...]]
"""Whose time, and which parts of it are drawn as one."""

KINDS: dict[Group, Kind] = {
    (DRIVER, ("jvm_start",)): Kind("JVM start", GREY),
    (DRIVER, ("context",)): Kind("context", BLUE),
    (DRIVER, ("planning",)): Kind("planning", SKY),
    (DRIVER, ("tasks",)): Kind("tasks run", LIGHT_GREY),
    (DRIVER, ("ending",)): Kind("ending", BLACK),
    (TASKS, ("scheduling", "deserialise", "serialise")): Kind("shipping", YELLOW),
    (TASKS, ("garbage",)): Kind("garbage", VERMILION),
    (TASKS, ("python",)): Kind("Python", PURPLE),
    (TASKS, WORK_PHASES): Kind("our phases", GREEN),
    (TASKS, (DELAY,)): Kind("delay", ORANGE),
}
NOTE = (
    "Medians over repetitions of valid runs. Driver: wall time of the driver program; 'planning' is while no task runs"
    " before the last one has ended. Tasks: sums over tasks (side by side) of the time from launch to end; 'shipping'"
    " is scheduling, sending, and (de)serialising; 'garbage' the JVM's collections beside our phases; 'Python' starting"
    " workers, importing, and moving data between files, JVM and Python; 'our phases' load_header, read, increment and"
    " write."
)

Place = tuple[str, int]
"""Tier and parallelism."""


def conditions(run_rows: Sequence[Row], engine: str) -> dict[Place, list[Row]]:
    """Conditions of an engine to the valid repetitions, in the order of the table."""
    found: dict[Place, list[Row]] = {}
    for row in run_rows:
        if row["engine"] == engine and is_compared(row):
            found.setdefault((row["tier"], row["parallelism"]), []).append(row)
    return found


def makespan_s(rows: Sequence[Row]) -> float:
    """Median makespan of at least one run, s."""
    found = spread(rows, "makespan_s")
    return found.median if found else 0.0


def ratios(run_rows: Sequence[Row]) -> dict[Place, float]:
    """How many times GNU parallel's median makespan Spark took, where both have valid runs."""
    spark, parallel = (conditions(run_rows, engine) for engine in (SPARK, GNU_PARALLEL))
    return {
        condition: makespan_s(rows) / makespan_s(parallel[condition])
        for condition, rows in spark.items()
        if condition in parallel
    }


def finding(tables: Tables) -> Finding:
    """How much longer Spark took than GNU parallel, and how much of it was the start of its session."""
    run_rows = tables.own_runs
    spark, ratio_by_condition = conditions(run_rows, SPARK), ratios(run_rows)
    if not spark:
        asked = any(row["engine"] == SPARK for row in run_rows)
        return Finding("No run of Spark is valid" if asked else "No run of the incrementation was Spark's", shown=False)
    starts = [spread(rows, "start_up_s") for rows in spark.values()]
    shares = [start.median / makespan_s(rows) for start, rows in zip(starts, spark.values(), strict=True) if start]
    times = (
        f"{between(ratio_by_condition.values(), times_text)} times as long as GNU parallel"
        if ratio_by_condition
        else between(map(makespan_s, spark.values()), seconds)
    )
    blocks = counted(max(row["blocks"] for rows in spark.values() for row in rows), "block")
    start = f"the start of its session was {between(shares, percent)} of its time"
    return Finding(f"Spark took {times} for {blocks}; {start}")


def draw(tables: Tables, stem: Path) -> None:
    """Draw the parts of Spark's time in every condition; write SVG, PNG and TSV."""
    panels, label = panels_of(tables.spark, tables.own_runs), "Wall time of the driver, sum over tasks (s)"
    write_figure(stem, finding(tables), tables.spark, lambda: draw_stacked(panels, list(KINDS.values()), label), NOTE)


def panels_of(spark_rows: Sequence[Row], run_rows: Sequence[Row]) -> list[Panel[Bar]]:
    """A panel for each tier, in it a heading for each parallelism, a lane for the driver and one for the tasks."""
    lanes: dict[str, list[Lane[Bar]]] = {}
    ratio_by_condition = ratios(run_rows)
    for condition, runs in conditions(run_rows, SPARK).items():
        (tier, parallelism), every = condition, [parts_of(run, spark_rows) for run in runs]
        driver, tasks = (tuple(group_spread(every, group, of) for group in KINDS) for of in (DRIVER, TASKS))
        times = (
            f"; {times_text(ratio_by_condition[condition])} times GNU parallel's"
            if condition in ratio_by_condition
            else ""
        )
        lanes.setdefault(tier, []).extend(
            (
                Lane(at_once(parallelism)),
                Lane("driver", Bar(driver, f"{seconds(makespan_s(runs))}{times}")),
                Lane("tasks", Bar(tasks, f"{seconds(sum(part.median for part in tasks if part))}, summed")),
            )
        )
    return [Panel(f"tier {tier}", tuple(some)) for tier, some in lanes.items()]


def parts_of(run: Row, spark_rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Whose time, and which part of it, to how long it took in the last start of a run, s."""
    keys = ("tier", "parallelism", "repetition")
    rows = [row for row in spark_rows if all(row[key] == run[key] for key in keys)]
    last = max((row["attempt"] for row in rows), default=None)
    return {(row["of"], row["part"]): row["sum_s"] for row in rows if row["attempt"] == last}


def group_spread(every: Sequence[Mapping[tuple[str, str], float]], group: Group, of: str) -> Spread | None:
    """Spread over runs of what is drawn as one; ``None`` on the lane of the other."""
    if group[0] != of:
        return None
    return Spread(tuple(math.fsum(parts.get((of, part), 0.0) for part in group[1]) for parts in every))
