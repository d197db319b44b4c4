"""The report of the incrementation: conditions of one's own and published ones in one table, figures, verdict, page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.core.places import Places
from neurotier.core.tables import Row, columns, write_table
from neurotier.pages.bigbrain import PAGE
from neurotier.pages.bigbrain.page import not_compared, spark, verdicts
from neurotier.pages.bigbrain.tables import Tables, read_tables
from neurotier.published.conditions import condition, key_cells
from neurotier.published.replay import read_published, write_tables
from page_reader import read
from published_logs import spark_log, write_checkout, write_log
from report_data import ROWS
from shown_values import shown


def run(engine: str, tier: str, makespan_s: float, **cells: Any) -> Row:
    """A row of ``bigbrain_runs.tsv``: 24 blocks of 1 MB, two at once, once."""
    about = {"engine": engine, "tier": tier, "makespan_s": makespan_s, "sha256": "a" * 64}
    return dict.fromkeys(columns("bigbrain_runs"), 0) | ROWS["bigbrain_runs"] | about | cells


BROKEN = "invalid: it was interrupted and taken up again"
RUNS = [
    run("spark", "disk", 12.0, read_s=None),
    run("gnu-parallel", "disk", 5.0),
    run("gnu-parallel", "disk", 7.0, repetition=2, write_s=5.0),
    run("gnu-parallel", "disk", 1.0, repetition=3, valid=BROKEN),
    run("gnu-parallel", "memory $1$", 4.0, cache="memory"),
    run("gnu-parallel", "memory $1$", 3.0, cache="memory", repetition=2),
    run("snakemake", "memory $1$", 0.5, valid="invalid: 1 of 24 blocks are incomplete: a", sha256=None),
]
PREDICTIONS = [
    {"engine": "gnu-parallel", "tier": tier, "parallelism": 2, "member": member, "limit": None}
    | {"predicted_s": predicted_s, "low_s": low_s, "high_s": high_s}
    for tier, member, predicted_s, low_s, high_s in (
        ("disk", "paper", 3.0, None, None),
        ("disk", "fluid", 6.0, 5.0, 9.0),
        ("memory $1$", "paper", 7.0, None, None),
    )
]


def phases(run: Row) -> list[Row]:
    """Rows of ``bigbrain_phases.tsv``: two blocks side by side, a second for each phase, in pieces."""
    names = ("start_up", "load_header", "read", "increment", "write", "delay")
    cells = {name: run[name] for name in ("engine", "tier", "parallelism", "repetition")}
    cells |= {"iteration": 1, "pieces": 3, "bytes": 0, "duration_s": 0.5}
    return [
        cells | {"block": block, "phase": phase, "start_s": start_s, "end_s": start_s + 1.0}
        for block in ("a", "b")
        for start_s, phase in enumerate(names, 1_700_000_000)
    ]


def collect(folder: Path, runs: list[Row], predictions: list[Row], published: bool = False) -> Tables:
    """The tables of some runs, through their files; with the published ones of a small checkout."""
    places = Places(*[folder] * 5)
    for name, rows in (
        ("bigbrain_runs", runs),
        ("bigbrain_phases", [row for one in runs for row in phases(one)]),
        ("bigbrain_predictions", predictions),
        ("bigbrain_spark", []),
    ):
        write_table(places.bigbrain / f"{name}.tsv", name, rows)
    if published:
        root = write_checkout(folder / "checkout")
        write_log(root / "20bb", "spark-1-optaneAD_1it_25cpus_20bb-0.out", spark_log(1000, 25, driver_s=300.0))
        write_tables(read_published(root), places.published)
        said = [
            dict.fromkeys(columns("published_predictions"))
            | key_cells(condition(40, "gnu-parallel", 25, tier))
            | {"stalled": 0, "member": member, "predicted_s": predicted_s}
            for tier, member, predicted_s in (
                ("DRAM", "paper", 60.0),
                ("DRAM", "fluid measured", 9.0),
                ("Optane, Memory mode", "paper", 30.0),
            )
        ]
        write_table(places.published / "published_predictions.tsv", "published_predictions", said)
    return read_tables(places, settings_at(folder, published="logs" if published else None))


def headline_and_lines(collected: Tables) -> tuple[str, list[str]]:
    """What the page says first."""
    first, *_ = verdicts(collected)
    return first.text, [line.removesuffix(".") for line in first.more]


def test_conditions_have_medians_of_valid_runs_and_the_verdict_says_what_mattered_and_what_is_not_sure(
    tmp_path: Path,
) -> None:
    alone = collect(tmp_path, RUNS, PREDICTIONS)
    rows = {(row["engine"], row["tier"]): row for row in alone.conditions}
    disk = rows["gnu-parallel", "disk"]
    names = "origin runs cache makespan_s makespan_low_s makespan_high_s write_s read_s"
    assert shown(disk, names) == "here 2 cold 6 5 7 4 2"
    assert rows["spark", "disk"]["read_s"] is None
    assert {engine for engine, _ in rows} == {"gnu-parallel", "spark"}, "the run of snakemake is not valid"
    headline, lines = headline_and_lines(alone)
    assert headline == (
        "Shortest makespan for 24 blocks: gnu-parallel on memory $1$, 2 at once: 3.50 s (median of 2 runs),"
        " of 3 conditions; whether it beats spark on disk, 2 at once or gnu-parallel on disk, 2 at once is not sure"
    )
    assert lines[0] == (
        "disk took 1.71 times as long as memory $1$ with gnu-parallel, 2 at once"
        " (not told apart with 2 repetitions; at least 3 are needed)"
    )
    assert lines[-1] == "Outputs of 6 runs are byte-identical"
    left_out = not_compared(alone)
    assert left_out
    assert left_out.items == [
        "gnu-parallel on disk, 2 at once, repetition 3: it was interrupted and taken up again",
        "snakemake on memory $1$, 2 at once, repetition 1: 1 of 24 blocks are incomplete: a",
    ]
    assert [one.kind for one in verdicts(alone)] == ["open", "bad"]


@pytest.mark.parametrize(("ssd_s", "kind"), [([2.02, 2.0, 2.03], "open"), ([4.0, 4.1, 3.9], "good")])
def test_the_fastest_beats_every_other_condition_for_sure(tmp_path: Path, ssd_s: list[float], kind: str) -> None:
    tiers = {"hdd": [12.0, 12.1, 11.9], "nvme": [2.0, 2.02, 1.98], "ssd": ssd_s}
    runs = [
        run("gnu-parallel", tier, makespan_s, repetition=repetition)
        for tier, each_s in tiers.items()
        for repetition, makespan_s in enumerate(each_s, 1)
    ]
    (verdict,) = verdicts(collect(tmp_path, runs, []))
    assert verdict.kind == kind
    assert verdict.text.startswith("Fastest for 24 blocks: gnu-parallel on nvme") == (kind == "good")
    assert verdict.text.endswith("; whether it beats gnu-parallel on ssd, 2 at once is not sure") == (kind == "open")


def test_what_starts_take_is_a_share_of_what_processes_do_and_not_of_their_time(tmp_path: Path) -> None:
    """Starts of 4.5 s, work of 0.5 s and pauses of 5 s are half of the processes' time, and 90 % of what they do."""
    busy = {"start_up_s": 4.5, "write_s": 0.5, "load_header_s": 0.0, "read_s": 0.0, "increment_s": 0.0}
    _, lines = headline_and_lines(collect(tmp_path, [run("gnu-parallel", "disk", 5.0, **busy)], []))
    assert "With gnu-parallel on disk, 2 at once, 90 % of what processes did, pauses aside, was" in "".join(lines)


def test_verdict_names_engine_tier_and_parallelism_by_their_weight(tmp_path: Path) -> None:
    runs = [run("gnu-parallel", "disk", 4.0), run("gnu-parallel", "memory", 2.0), run("spark", "memory", 6.0)]
    runs += [run("gnu-parallel", "memory", 5.0, parallelism=1, peak_parallelism=1)]
    collected = collect(tmp_path, runs, [])
    alone = " (not told apart with 1 repetition; at least 3 are needed)"
    line, same = headline_and_lines(collected)[1]
    assert line.removesuffix(alone).split(f"{alone}; ") == [
        "The engine may have mattered most: spark took 3.00 times as long as gnu-parallel on memory, 2 at once",
        "1 at once took 2.50 times as long as 2 at once with gnu-parallel on memory",
        "disk took 2.00 times as long as memory with gnu-parallel, 2 at once",
    ]
    assert same == "Outputs of 4 runs are byte-identical"
    assert [one.kind for one in verdicts(collected)] == ["open"]
    other = [one | {"origin": "here"} for one in (*runs, run("spark", "disk", 9.0, sha256="b" * 64))]
    assert headline_and_lines(Tables([], other))[1] == ["Outputs of 5 runs are NOT the same"]
    assert headline_and_lines(Tables([], []))[0] == "No valid run of the incrementation"


def test_parts_of_spark_are_medians_of_the_last_starts_of_valid_runs() -> None:
    runs = [run("spark", "disk", 10.0, repetition=number, origin="here") for number in (1, 2)]
    runs.append(run("spark", "disk", 1.0, repetition=3, origin="here", valid=BROKEN))
    parts = [
        {"engine": "spark", "tier": "disk", "parallelism": 2, "repetition": repetition, "attempt": attempt, "tasks": 24}
        | {"of": of, "part": part, "sum_s": sum_s}
        for repetition, attempt, of, part, sum_s in (
            *((1, 1, "driver", "planning", 2.0), (1, 1, "tasks", "python", 7.0)),
            *((2, 1, "driver", "planning", 99.0), (2, 2, "driver", "planning", 4.0)),
            (3, 1, "driver", "planning", 50.0),
        )
    ]
    assert spark(Tables([], runs, spark=parts)).rows == [
        {"tier": "disk", "parallelism": 2, "of": "driver", "planning_s": 3.0, "python_s": None},
        {"tier": "disk", "parallelism": 2, "of": "tasks", "planning_s": None, "python_s": 7.0},
    ]
    assert spark(Tables([], runs)).rows == []


def test_page_has_the_verdict_first_both_origins_and_links_that_lead_somewhere(tmp_path: Path) -> None:
    both = collect(tmp_path, RUNS, PREDICTIONS, published=True)
    PAGE.render(both, tmp_path, None)
    reader = read(tmp_path / "bigbrain.html")
    assert reader.text.index("Shortest makespan for 24 blocks") < reader.text.index("2 runs not compared") < 2000
    assert "here: 24 blocks, 22.89 MiB in all, 2 iterations gnu-parallel, 2 at once disk cold 2 6.00 s" in reader.text
    assert "6.00 s 5.00 s 7.00 s 3.00 s 0.50 6.00 s 1.00" in reader.text
    assert "published, 40 µm: 125 blocks, 74.93 GiB in all GNU Parallel, 25 at once (Figure 1)" in reader.text
    assert (
        "Published runs: Eq. (1) is off by a factor of 2.00 (2 conditions), the fluid model by 1.67 (1 condition)."
        in reader.text
    )
    for kind, address in reader.addresses:
        assert address.startswith(("#", "data:")) or (tmp_path / address).exists(), (kind, address)
    assert {figure.chart.__name__ for figure in PAGE.figures} < set(reader.ids)
