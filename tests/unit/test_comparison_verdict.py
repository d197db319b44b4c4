"""The verdict of a comparison and its statistics: sure only of more than chance, never more than the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from comparison_rows import job_rows, repeated, run_row
from neurotier.core.errors import InputError
from neurotier.pages import partial
from neurotier.pages.comparison.verdict import (
    INSEPARABLE,
    Comparison,
    FamilyVerdict,
    all_compared,
    causes_text,
    counts_text,
    families,
    inputs_text,
    judge,
    without_runs,
)
from neurotier.run.compared import Condition, write_comparison_tables
from neurotier.storage.spread import Spread
from report_data import make_results


@pytest.mark.parametrize(("origin", "expected"), [("campaign", [0.0, 5.0]), ("elsewhere", [2.0, 5.0])])
def test_the_slower_takes_longer_by_means_of_repetitions_for_common_participants(
    origin: str, expected: list[float]
) -> None:
    """Of a campaign 10 - 10 and 20 - 15 s, as only one run is in a block; elsewhere none is: 12 - 10 and 20 - 15 s."""
    runs = repeated({"tmpfs": [9.0, 9.0], "nfs": [5.0]}, origin=origin)
    walls_s = [10.0, 20.0, 30.0], [14.0, 20.0], [10.0, 15.0]
    parts = {"stage_in": 0.25, "compute": 0.75}
    rows = [row for run, each in zip(runs, walls_s, strict=True) for row in job_rows(run["run"], each, parts)]
    comparison = Comparison(runs, [row | {"origin": origin} for row in rows])
    ((pair, found),) = comparison.differences.items()
    assert ([one.placement for one in pair], [*found.values()]) == (["tmpfs", "nfs"], expected)
    assert {one.paired for one in comparison.contrasts.values()} == {origin == "campaign"}


def test_inputs_in_memory_stand_beside_every_cache_state() -> None:
    """They have no page cache before them; without others they are a family of their own."""
    cold, warm, memory = (Condition("x", "brainextractor", cache, 2, cache) for cache in ("cold", "warm", "memory"))
    found = families([memory, warm, cold])
    assert {family.cache: [one.placement for one in members] for family, members in found.items()} == {
        "cold": ["cold", "memory"],
        "warm": ["warm", "memory"],
    }
    other = replace(memory, tool="bet")
    assert [family.cache for family in families([other, cold])] == ["memory", "cold"]
    assert [inputs_text(cache) for cache in ("memory", "cold")] == ["inputs in memory", "page cache cold"]


def test_everything_that_is_there_is_compared_and_counted_on_the_terminal(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path / "a", 5)
    assert all_compared(None, [], None).runs == []
    compared = all_compared(None, [str(places.results)], None)
    (run,) = compared.runs
    assert (run["origin"], run["participants"]) == (str(places.results), 5)
    write_comparison_tables(compared, places.comparison)
    assert partial.verdict(settings, places)[0] == "1 run compared, 0 left out"
    with pytest.raises(InputError):
        all_compared(None, [str(places.results)], str(tmp_path / "gone"))
    with pytest.raises((InputError, OSError)):
        all_compared(tmp_path / "gone.json", [], None)


SPREAD = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def compared(fast: list[float], slow: list[float], shift_s: float = 2.0, **changes: Any) -> Comparison:
    """Runs on tmpfs and nfs with these makespans; participants take ``shift_s`` longer on nfs, more or less."""
    runs, phases = [], []
    for placement, makespans, longer in (("tmpfs", fast, 0.0), ("nfs", slow, 1.0)):
        for run in repeated(
            {placement: makespans}, wall_sum_s=100.0 + 10 * shift_s * longer, **changes.get(placement, {})
        ):
            runs.append(run)
            phases += job_rows(run["run"], [10 + longer * (shift_s + own_s) for own_s in SPREAD])
    return Comparison(runs, phases)


def only(data: Comparison) -> FamilyVerdict:
    (family,) = judge(data)
    return family


FAST, SLOW = [100.0, 104.0, 102.0], [150.0, 157.0, 152.0]


def test_what_differs_in_every_repetition_is_sure() -> None:
    """Inputs in memory, of which no page cache is known, stand beside cold ones."""
    data = compared(FAST, SLOW, nfs={"input_resident_before": 0.0})
    family = only(data)
    assert (family.sure, family.reasons) == (True, [])
    assert family.headline == (
        "tmpfs is fastest: makespan 102 s; nfs took 1.50 times as long (1.48 to 1.52, 3 repetitions)"
    )
    tmpfs, nfs = family.placements
    assert family.name == "campaign, brainextractor, 2 at once, page cache cold"
    assert (tmpfs.makespan, tmpfs.longer_s, tmpfs.causes) == (Spread((100.0, 104.0, 102.0)), None, {})
    assert (nfs.condition.placement, nfs.makespan, nfs.doubts) == ("nfs", Spread((150.0, 157.0, 152.0)), [])
    assert nfs.longer_s == pytest.approx(2.45)
    assert only(compared(FAST, SLOW, shift_s=-2.45)).placements[1].longer_s == pytest.approx(-2.0)


def test_what_the_page_cache_held_is_said_and_is_no_doubt_if_it_held_as_much_before_all_runs() -> None:
    known = only(compared(FAST, SLOW, tmpfs={"input_resident_before": 0.06}, nfs={"input_resident_before": 0.08}))
    unknown = only(compared(FAST, SLOW, tmpfs={"cache": "as found"}, nfs={"cache": "as found"}))
    assert known.sure
    assert [line.partition(" of the inputs;")[0] for line in [*known.reasons, *unknown.reasons]] == [
        "Page cache: before the runs of nfs it held 8 %",
        "Page cache: before the runs of tmpfs it held 6 %",
        "Page cache: before the runs of nfs, tmpfs it held an unknown share",
    ]
    runs = repeated({"nfs": SLOW}, cache="as found") + repeated({"tmpfs": FAST}, cache="as found", dataset_tier="fast")
    (line,) = only(Comparison(runs, in_memory=["fast"])).reasons
    assert line.startswith("Page cache: before the runs of nfs it held"), "inputs in memory have none before them"


@pytest.mark.parametrize(
    ("fast", "slow", "given", "doubt"),
    [
        ([100.0], [150.0, 151.0], {}, "not told apart with 1 repetition; at least 3 are needed"),
        (
            [100.0, 151.0, 90.0],
            [150.0, 140.0, 160.0],
            {},
            "not told apart with 3 repetitions; a difference of 10 % shows with about 101",
        ),
        (FAST, SLOW, {"nfs": {"participants": 9}}, "the runs did not analyse equally many participants"),
        (
            FAST,
            SLOW,
            {"tmpfs": {"input_resident_before": 0.12}, "nfs": {"input_resident_before": 0.0}},
            "the page cache held more of the inputs in some runs than in others",
        ),
        (
            [20.0, 20.1, 20.05, 10.0, 10.1, 10.05, 10.02],
            [18.0, 18.1, 18.03],
            {},
            "run in turn, the other took 0.90 times as long (0.90 to 0.90, 3 repetitions)",
        ),
    ],
)
def test_not_sure_and_why(fast: list[float], slow: list[float], given: dict[str, Any], doubt: str) -> None:
    family = only(compared(fast, slow, **given))
    assert not family.sure
    assert family.headline.startswith("tmpfs had the shortest makespan")
    assert "; whether it beats nfs is not sure: " in family.headline
    assert family.headline.endswith(doubt)


def test_nodes_are_not_taken_for_placements() -> None:
    """Each placement on a node of its own; then both on both, where one is slow."""
    apart = compared(FAST, SLOW, tmpfs={"nodes": "n1"}, nfs={"nodes": "n2"})
    assert only(apart).placements[1].doubts == [INSEPARABLE]
    said = "differences are between runs of one node, makespans of all runs"
    assert only(apart).reasons[0] == f"Runs were on different nodes: nfs on n2; tmpfs on n1; {said}"

    first = repeated({"tmpfs": [50.0] * 2, "nfs": [60.0] * 2}, nodes="n1")
    runs = first + repeated({"tmpfs": [90.0] * 2, "nfs": [110.0] * 2}, first=3, nodes="n2")
    phases = [row for run in runs for row in job_rows(run["run"], [run["makespan_s"] / 10])]
    both = only(Comparison(runs, phases))
    assert both.placements[1].doubts == []
    assert both.reasons[0] == f"Runs were on different nodes: nfs on n1, n2; tmpfs on n1, n2; {said}"
    assert both.placements[1].longer_s == pytest.approx(1.5)  # 1 s on the fast node, 2 s on the slow one


def test_the_placement_that_is_named_is_one_that_is_slower_for_sure() -> None:
    runs = repeated({"a": (10.0, 12.0, 11.0), "near": (11.0, 11.5, 11.2), "b": (20.0, 24.1, 22.2)})
    jobs = [row for run in runs for row in job_rows(run["run"], [run["makespan_s"] + own_s for own_s in SPREAD])]
    family = only(Comparison(runs, jobs))
    assert not family.sure
    assert family.headline == (
        "a had the shortest makespan, 11.0 s; b took 2.01 times as long (1.97 to 2.05, 3 repetitions);"
        " whether it beats near is not sure: not told apart with 3 repetitions; a difference of 10 % shows with about 5"
    )


def test_runs_left_out_are_counted_with_their_reasons() -> None:
    runs = [run_row("a", "nfs", 9.0), run_row("b", "tmpfs", 1.0, valid="invalid: the machine swapped")]
    data = Comparison([*runs, run_row("c", "nfs", None)])
    assert counts_text(data) == "1 run compared, 2 left out"
    assert list(without_runs(data).values()) == ["no valid run of tmpfs: see what is left out"]
    assert only(data).headline == "nfs alone has valid runs: makespan 9.00 s (1 run); nothing to compare it with"
    assert not only(data).sure
    assert judge(Comparison()) == []


def test_a_difference_is_attributed_to_its_causes_with_signs() -> None:
    """Of 10 participants: 10 s each on tmpfs, 9.2 of them on a CPU; 20 s on nfs, 8 waiting for storage, 10 on a CPU."""
    computing = {"account_user_s": 0.9, "account_system_s": 0.02, "account_run_queue_s": 0.08}
    storing = {"account_user_s": 0.3, "account_system_s": 0.2, "account_block_io_s": 0.4, "account_other_s": 0.1}
    family = only(compared([9.0], [19.0], shift_s=10.0, tmpfs={"account": computing}, nfs={"account": storing}))
    parts = "+8.00 s waiting for storage, +3.80 s in the kernel, -3.00 s in user code, +2.00 s asleep"
    assert causes_text(family.placements[1].causes) == f"10.0 s longer: {parts}"
    assert only(compared(FAST, SLOW, nfs={"participants": 0})).placements[1].causes == {}
    assert [causes_text({"cpu_s": cpu_s}) for cpu_s in (0.0, 0.5)] == ["no longer", "0.50 s longer: +0.50 s on a CPU"]
