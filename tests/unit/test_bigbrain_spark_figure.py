"""The figure of Spark's time: parts are the table's, times are GNU parallel's, and without Spark it says so."""

from __future__ import annotations

from typing import Any

import pytest
from neurotier.bigbrain.engines.spark_events import DRIVER, DRIVER_PARTS, TASK_PARTS, TASKS
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.spark import KINDS, finding, panels_of
from neurotier.pages.bigbrain.tables import Tables
from neurotier.pages.kit.stacks import Bar


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
    assert finding(Tables([], rows)).sentence == sentence


def medians(bar: Bar) -> list[float]:
    """The parts of a bar; 0 for those of the other lane."""
    return [part.median if part else 0.0 for part in bar.parts]


def test_bars_are_medians_of_the_last_starts_of_valid_runs() -> None:
    disk, memory = panels_of(SPARK_ROWS, RUNS)
    assert [lane.label for lane in disk.lanes] == ["2 at once", "driver", "tasks"]
    (_, driver), (_, tasks) = disk.filled()
    of_driver = sum(of == DRIVER for of, _ in KINDS)
    assert medians(driver) == [2.0] * of_driver + [0.0] * (len(KINDS) - of_driver)
    assert driver.text == "15.0 s; 2.50 times GNU parallel's"
    assert sum(medians(tasks)) == 2.0 * len(TASK_PARTS)
    assert tasks.text == "20.0 s, summed"
    assert sum(medians(memory.filled()[0][1])) == 4.0 * len(DRIVER_PARTS)


def test_every_part_is_drawn_once() -> None:
    drawn = [(of, part) for of, group in KINDS for part in group]
    assert sorted(drawn) == sorted((row["of"], row["part"]) for row in parts("disk", 1.0))
