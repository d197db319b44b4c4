"""Statistics of the comparison, against differences that the rows were made with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from comparison_rows import job_rows, repeated, run_row
from neurotier.core.errors import InputError
from neurotier.pages.comparison.statistics import Comparison, everything_compared, families, inputs_text
from neurotier.run.compared import Condition
from report_data import make_results

FAST = Condition("campaign", "brainextractor", "cold", 2, "tmpfs")
SLOW = replace(FAST, placement="nfs")


@pytest.mark.parametrize(("slow", "fast"), [("nfs", "tmpfs"), ("tmpfs", "nfs")])
@pytest.mark.parametrize(("origin", "expected"), [("campaign", [0.0, 5.0]), ("elsewhere", [2.0, 5.0])])
def test_the_slower_takes_longer_by_means_of_repetitions_for_common_participants(
    slow: str, fast: str, origin: str, expected: list[float]
) -> None:
    """Of a campaign 10 - 10 and 20 - 15 s, as only one run is in a block; elsewhere none is: 12 - 10 and 20 - 15 s."""
    runs = repeated({slow: [9.0, 9.0], fast: [5.0]}, origin=origin)
    walls_s = [10.0, 20.0, 30.0], [14.0, 20.0], [10.0, 15.0]
    parts = {"stage_in": 0.25, "compute": 0.75}
    rows = [row for run, each in zip(runs, walls_s, strict=True) for row in job_rows(run["run"], each, parts)]
    comparison = Comparison(runs, [row | {"origin": origin} for row in rows])
    ((pair, found),) = comparison.differences.items()
    assert ([one.placement for one in pair], [*found.values()]) == ([slow, fast], expected)


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


@pytest.mark.parametrize(("origin", "paired"), [("campaign", True), ("elsewhere", False)])
def test_a_campaign_alone_is_in_blocks(origin: str, paired: bool) -> None:
    found = Comparison(repeated({"nfs": [9.0] * 3, "tmpfs": [5.0] * 3}, origin=origin)).contrasts
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
