"""Statistics of the comparison, against differences that the rows were made with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from comparison_rows import job_rows, run_row
from neurotier.core.errors import InputError
from neurotier.pages.comparison.statistics import Comparison, everything_compared, families, inputs_text
from neurotier.run.compared import Condition
from report_data import make_results

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
    ((pair, found),) = Comparison(runs, phases).differences.items()
    assert (pair, len(found)) == ((SLOW, FAST), 60)
    assert median(found.values()) == pytest.approx(SHIFT_S, abs=0.5)


def test_means_are_over_repetitions_and_pairs_over_common_participants() -> None:
    rows_of = {"a1": ("nfs", 9.0, 1), "a2": ("nfs", 9.0, 2), "b1": ("tmpfs", 5.0, 1)}
    runs = [run_row(run, at, makespan_s, repetition=n) for run, (at, makespan_s, n) in rows_of.items()]
    walls_s = {"a1": [10.0, 20.0, 30.0], "a2": [14.0, 20.0], "b1": [10.0, 15.0]}
    rows = [row for run, each in walls_s.items() for row in job_rows(run, each)]
    (found,) = Comparison(runs, rows).differences.values()
    assert [*found.values()] == [0.0, 5.0]  # 10 - 10 and 20 - 15: a2 has no run of tmpfs beside it
    alone = [{**run, "origin": "other"} for run in runs]  # in no blocks: all runs
    rows = [row for run, each in walls_s.items() for row in job_rows(run, each, origin="other")]
    (found,) = Comparison(alone, rows).differences.values()
    assert [*found.values()] == [2.0, 5.0]  # 12 - 10 and 20 - 15


@pytest.mark.parametrize("change", [{"origin": "other"}, {"tool": "bet"}, {"cache": "warm"}, {"parallelism": 4}])
def test_what_differs_in_more_than_its_placement_is_not_compared(change: dict[str, Any]) -> None:
    runs = [run_row("a", "nfs", 9.0), run_row("b", "tmpfs", 5.0, **change)]
    jobs = job_rows("b", [1.0] * 8, origin=change.get("origin", "campaign"))
    assert Comparison(runs, job_rows("a", [2.0] * 8) + jobs).differences == {}


def test_inputs_in_memory_stand_beside_every_cache_state() -> None:
    """They have no page cache before them; without others they are a family of their own."""
    cold, warm, memory = (replace(FAST, cache=cache, placement=cache) for cache in ("cold", "warm", "memory"))
    found = families([memory, warm, cold])
    assert {family.cache: [one.placement for one in members] for family, members in found.items()} == {
        "cold": ["cold", "memory"],
        "warm": ["warm", "memory"],
    }
    other = replace(memory, tool="bet")
    assert [family.cache for family in families([other, cold])] == ["memory", "cold"]
    assert [inputs_text(cache) for cache in ("memory", "cold")] == ["inputs in memory", "page cache cold"]


def test_conditions_that_take_as_long_differ_by_nothing() -> None:
    runs = [run_row("a", "nfs", 9.0), run_row("b", "tmpfs", 9.0)]
    rows = [*job_rows("a", [0.0, 0.0]), *job_rows("b", [0.0, 0.0])]
    assert [*Comparison(runs, rows).differences.items()] == [((SLOW, FAST), {"sub-000": 0.0, "sub-001": 0.0})]


def test_a_campaign_alone_is_in_blocks() -> None:
    runs = [
        run_row(f"{placement}-{number}", placement, makespan_s, repetition=number)
        for placement, makespan_s in (("nfs", 9.0), ("tmpfs", 5.0))
        for number in (1, 2, 3)
    ]
    for origin, paired in (("campaign", True), ("elsewhere", False)):
        found = Comparison([run | {"origin": origin} for run in runs]).contrasts
        assert {(one.paired, round(one.ratio, 3)) for one in found.values()} == {(paired, 1.8), (paired, 0.556)}


def test_everything_that_is_there_is_compared(tmp_path: Path) -> None:
    places, _ = make_results(tmp_path / "a", 5)
    assert everything_compared(None, [], None).runs == []
    (run,) = everything_compared(None, [str(places.results)], None).runs
    assert (run["origin"], run["participants"]) == (str(places.results), 5)
    with pytest.raises(InputError):
        everything_compared(None, [str(places.results)], str(tmp_path / "gone"))
    with pytest.raises((InputError, OSError)):
        everything_compared(tmp_path / "gone.json", [], None)
