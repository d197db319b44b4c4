"""The figure of the incrementation: its numbers are the table's, its title the finding, invalid runs stay out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurotier.bigbrain.figure import conditions as conditions_of
from neurotier.bigbrain.figure import draw_phases, finding, panels_of
from neurotier.tables import Row


def row(engine: str, tier: str, makespan_s: float, **cells: Any) -> Row:
    phases = {"start_up_s": 1.0, "load_header_s": 0.1, "read_s": 2.0, "increment_s": 1.0, "write_s": 3.0}
    counts = {"parallelism": 2, "repetition": 1, "blocks": 24, "mean_parallelism": 1.5}
    told = {"engine": engine, "tier": tier, "pairing": "streaming", "valid": "valid", "makespan_s": makespan_s}
    return {**told, **counts, **phases, **cells}


ROWS = [
    row("spark", "disk", 9.0, read_s=None),
    row("gnu-parallel", "disk", 4.0),
    row("gnu-parallel", "disk", 6.0, repetition=2),
    row("gnu-parallel", "memory $1$", 2.0),
    row("snakemake", "memory $1$", 0.5, valid="invalid: 1 of 24 blocks are incomplete: a"),
]


def test_title_names_the_fastest_and_the_slowest_valid_condition() -> None:
    assert finding(ROWS) == (
        "Incrementing 24 blocks took from 2.00 s (gnu-parallel on memory $1$, 2 at once) to 9.00 s (spark on disk,"
        " 2 at once)"
    )
    assert finding(ROWS[3:4]) == "Incrementing 24 blocks took 2.00 s (gnu-parallel on memory $1$, 2 at once)"
    assert finding(ROWS[4:]) == "No run of the incrementation is valid"


def test_bars_are_medians_of_the_valid_runs() -> None:
    disk, memory = panels_of(conditions_of(ROWS))
    assert [lane.label for lane in disk.lanes] == ["2 at once", "spark", "gnu-parallel"]
    assert [lane.label for lane in memory.lanes] == ["2 at once", "gnu-parallel"]
    (_, spark), (_, parallel) = disk.filled()
    assert spark.medians() == [1.0, 0.1, 0.0, 1.0, 3.0]
    assert parallel.text == "5.00 s; 1.50 at once"


def test_figure_is_written_with_its_numbers_even_without_a_valid_run(tmp_path: Path) -> None:
    for name, rows in (("all", ROWS), ("none", ROWS[4:]), ("nothing", [])):
        draw_phases(rows, tmp_path / name)
        assert (tmp_path / f"{name}.png").stat().st_size > 0
        lines = (tmp_path / f"{name}.tsv").read_text().splitlines()
        assert len(lines) == (1 + len(rows) if rows else len(lines))
