"""The figure of Spark's time: parts are the table's, times are GNU parallel's, and without Spark it says so."""

from __future__ import annotations

from typing import Any

import pytest
from neurotier.bigbrain.engines.spark_events import DRIVER, DRIVER_PARTS, TASK_PARTS, TASKS
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.figures import SPARK_PARTS, bigbrain_spark
from neurotier.pages.bigbrain.tables import Tables
from neurotier.pages.kit.marks import Lanes


def run(engine: str, tier: str, makespan_s: float, **cells: Any) -> Row:
    run_cells = {"origin": "here", "engine": engine, "tier": tier, "parallelism": 2, "repetition": 1, "blocks": 24}
    return {**run_cells, "valid": "valid", "makespan_s": makespan_s, "start_up_s": 6.0, **cells}


def parts(tier: str, sum_s: float, **cells: Any) -> list[Row]:
    """Every part of a start took as long."""
    start_cells = {"tier": tier, "parallelism": 2, "repetition": 1, "attempt": 1, **cells}
    return [
        {**start_cells, "of": of, "part": part, "sum_s": sum_s}
        for of, names in ((DRIVER, DRIVER_PARTS), (TASKS, TASK_PARTS))
        for part in names
    ]


INVALID = run("spark", "memory $1$", 0.5, valid="invalid: 1 of 24 blocks are incomplete: a", repetition=2)
RUNS = [
    run("gnu-parallel", "disk", 6.0),
    run("gnu-parallel", "memory $1$", 4.0),
    run("gnu-parallel", "memory $1$", 6.0, repetition=2),
    run("spark", "disk", 12.0),
    run("spark", "disk", 15.0, repetition=2),
    run("spark", "disk", 18.0, repetition=3),
    run("spark", "memory $1$", 10.0),
    INVALID,
]
SPARK_ROWS = [
    *parts("disk", 50.0),
    *parts("disk", 1.0, attempt=2),
    *parts("disk", 2.0, repetition=2),
    *parts("disk", 3.0, repetition=3),
    *parts("memory $1$", 4.0),
    *parts("memory $1$", 70.0, repetition=2),
]


TIMES = "Spark took 2.00 to 2.50 times as long as GNU parallel for 24 blocks"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (RUNS, f"{TIMES}; the start of its session was 40 % to 60 % of its time"),
        (
            [*RUNS[:3], RUNS[3] | {"parallelism": 4}],
            "Spark took 12.0 s for 24 blocks; the start of its session was 50 % of its time",
        ),
        ([*RUNS[:3], INVALID], "No run of Spark is valid"),
        (RUNS[:3], "No run of the incrementation was Spark's"),
        ([], "No run of the incrementation was Spark's"),
    ],
)
def test_title_says_how_much_longer_spark_took(rows: list[Row], sentence: str) -> None:
    assert bigbrain_spark(Tables([], rows)).says == sentence


def medians(lane: Row) -> list[float]:
    """The parts of a bar."""
    return [part.median for part in lane.values() if isinstance(part, Spread)]


def test_bars_are_medians_of_the_last_starts_of_valid_runs() -> None:
    chart = bigbrain_spark(Tables([], RUNS, spark=SPARK_ROWS))
    assert isinstance(chart, Lanes)
    driver, tasks, memory, _ = chart.lanes
    assert [(lane["panel"], lane["group"], lane["lane"]) for lane in (driver, tasks)] == [
        ("tier disk", "2 at once", "driver"),
        ("tier disk", "2 at once", "tasks"),
    ]
    assert medians(driver) == [2.0] * sum(of == DRIVER for of, _ in SPARK_PARTS)
    assert driver["text"] == "15.0 s; 2.50 times GNU parallel's"
    assert sum(medians(tasks)) == 2.0 * len(TASK_PARTS)
    assert tasks["text"] == "20.0 s, summed"
    assert sum(medians(memory)) == 4.0 * len(DRIVER_PARTS)
