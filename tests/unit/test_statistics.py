"""Statistics of the comparison, against differences that the rows were made with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparison_rows import job_rows, run_row
from neurotier.pages.comparison.statistics import (
    paired_differences,
    speed_ups,
)
from neurotier.run.compared import Condition

SHIFT_S = 3.0
FAST = Condition("campaign", "brainextractor", "cold", 2, "tmpfs")
SLOW = replace(FAST, placement="nfs")


def walls(count: int, shift_s: float, seed: int) -> list[float]:
    """Wall times that differ much between participants and little between runs."""
    own = np.random.default_rng(1).uniform(20, 200, count)
    return list(own + shift_s + np.random.default_rng(seed).normal(0, 1, count))


@pytest.mark.parametrize("first", ["nfs", "tmpfs"])
def test_a_known_shift_is_found_whichever_comes_first(first: str) -> None:
    names = sorted({"nfs", "tmpfs"}, key=first.__ne__)
    runs = [run_row(f"{name}-{n}", name, 100.0, repetition=n) for name in names for n in (1, 2)]
    shifts = {"nfs": SHIFT_S, "tmpfs": 0.0}
    phases = [
        row
        for seed, run in enumerate(runs, start=2)
        for row in job_rows(run["run"], walls(60, shifts[run["placement"]], seed), {"stage_in": 0.25, "compute": 0.75})
    ]
    (found,) = paired_differences(runs, phases)
    assert (found.slower, found.faster, found.participants) == (SLOW, FAST, 60)
    assert found.median_s == pytest.approx(SHIFT_S, abs=0.5)


def test_means_are_over_repetitions_and_pairs_over_common_participants() -> None:
    rows_of = {"a1": ("nfs", 9.0, 1), "a2": ("nfs", 9.0, 2), "b1": ("tmpfs", 5.0, 1)}
    runs = [run_row(run, at, makespan_s, repetition=n) for run, (at, makespan_s, n) in rows_of.items()]
    walls_s = {"a1": [10.0, 20.0, 30.0], "a2": [14.0, 20.0], "b1": [10.0, 15.0]}
    (found,) = paired_differences(runs, [row for run, each in walls_s.items() for row in job_rows(run, each)])
    assert (found.participants, found.median_s) == (2, 2.5)  # 10 - 10 and 20 - 15: a2 has no run of tmpfs beside it
    alone = [{**run, "origin": "other"} for run in runs]  # in no blocks: all runs
    rows = [row for run, each in walls_s.items() for row in job_rows(run, each, origin="other")]
    (found,) = paired_differences(alone, rows)
    assert (found.participants, found.median_s) == (2, 3.5)  # 12 - 10 and 20 - 15


@pytest.mark.parametrize("change", [{"origin": "other"}, {"tool": "bet"}, {"cache": "warm"}, {"parallelism": 4}])
def test_what_differs_in_more_than_its_placement_is_not_compared(change: dict[str, Any]) -> None:
    runs = [run_row("a", "nfs", 9.0), run_row("b", "tmpfs", 5.0, **change)]
    jobs = job_rows("b", [1.0] * 8, origin=change.get("origin", "campaign"))
    assert paired_differences(runs, job_rows("a", [2.0] * 8) + jobs) == []


def test_speed_up_spans_all_repetitions() -> None:
    times = {2: (100.0, 110.0), 4: (50.0, 55.0), 8: (40.0,)}
    runs = [
        run_row(f"{jobs}-{makespan}", "nfs", makespan, parallelism=jobs)
        for jobs, makespans in times.items()
        for makespan in makespans
    ] + [run_row("lone", "tmpfs", 9.0)]
    four, eight = speed_ups(runs)
    assert (four.lower.parallelism, four.higher.parallelism, four.ideal) == (2, 4, 2.0)
    assert (four.ratio.low, four.ratio.median, four.ratio.high) == pytest.approx((100 / 55, 2.0, 110 / 50))
    assert (eight.higher.parallelism, eight.ideal, eight.ratio.values) == (8, 4.0, (2.5, 2.75))
