"""The verdict of a comparison: sure only where repetitions and participants agree, and never more than the numbers."""

from __future__ import annotations

from typing import Any

import pytest
from comparison_rows import job_rows, run_row
from neurotier.core.spread import Spread
from neurotier.pages.comparison.nodes import INSEPARABLE
from neurotier.pages.comparison.reasons import causes_text
from neurotier.pages.comparison.verdict import ComparisonVerdict, FamilyVerdict, judge

SPREAD = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def compared(
    fast: list[float], slow: list[float], shift_s: float = 2.0, participants: int = 10, **changes: Any
) -> ComparisonVerdict:
    """Runs on tmpfs and nfs with these makespans; participants take ``shift_s`` longer on nfs, more or less."""
    runs, phases = [], []
    for placement, makespans, longer in (("tmpfs", fast, 0.0), ("nfs", slow, 1.0)):
        for number, makespan_s in enumerate(makespans):
            run = f"{placement}-{number}"
            own = changes.get(placement, {})
            runs.append(run_row(run, placement, makespan_s, wall_sum_s=100.0 + 10 * shift_s * longer, **own))
            phases += job_rows(run, [10 + longer * (shift_s + own_s) for own_s in SPREAD[:participants]])
    return judge(runs, phases)


def only(verdict: ComparisonVerdict) -> FamilyVerdict:
    (family,) = verdict.families
    return family


def test_sure_where_repetitions_and_participants_agree() -> None:
    verdict = compared([100.0, 104.0], [150.0, 156.0])
    family = only(verdict)
    assert family.sure
    assert (verdict.counts, family.fastest.placement) == ("4 runs compared, 0 left out", "tmpfs")
    assert family.name == "campaign, brainextractor, 2 at once, page cache cold"
    assert family.headline == "tmpfs is fastest: makespan 102 s; nfs took 1.50 times as long (51.0 s more); sure"
    tmpfs, nfs = family.placements
    assert (tmpfs.makespan, tmpfs.pair, tmpfs.longer) == (Spread((100.0, 104.0)), None, {})
    assert (nfs.condition.placement, nfs.makespan, nfs.doubts) == ("nfs", Spread((150.0, 156.0)), [])
    assert nfs.ratio == pytest.approx(1.5)
    assert nfs.pair is not None
    assert (nfs.pair.participants, nfs.pair.confidence) == (10, 0.95)
    assert nfs.paired_s == pytest.approx((2.45, 2.1, 2.8))


@pytest.mark.parametrize(
    ("fast", "slow", "given", "doubt"),
    [
        ([100.0], [150.0, 151.0], {}, "one repetition only"),
        ([100.0, 151.0], [150.0, 160.0], {}, "makespans of the repetitions overlap"),
        ([100.0, 150.0], [150.0, 160.0], {}, "makespans of the repetitions overlap"),
        ([100.0, 101.0], [150.0, 151.0], {"participants": 4}, "4 participants are too few for a 95 % interval"),
        (
            [100.0, 101.0],
            [150.0, 151.0],
            {"shift_s": -0.45},
            "the interval of the participants' differences contains 0",
        ),
        ([100.0, 101.0], [150.0, 151.0], {"shift_s": -5.0}, "the median participant took less time in the other"),
        (
            [100.0, 101.0],
            [150.0, 151.0],
            {"nfs": {"participants": 9}},
            "the runs did not do equally many participants",
        ),
        (
            [100.0, 101.0],
            [150.0, 151.0],
            {"tmpfs": {"input_resident_before": 1.0}, "nfs": {"input_resident_before": 0.0}},
            "the page cache held more of the inputs in some runs than in others",
        ),
    ],
)
def test_not_sure_and_why(fast: list[float], slow: list[float], given: dict[str, Any], doubt: str) -> None:
    family = only(compared(fast, slow, **given))
    assert not family.sure
    assert family.headline.startswith("tmpfs had the shortest makespan")
    assert family.headline.endswith(f"not sure: {doubt}")
    assert "is fastest" not in family.headline
    assert doubt in family.placements[1].doubts


def test_nodes_are_not_taken_for_placements() -> None:
    """Each placement on a node of its own; then both on both, where a slow node makes makespans that overlap."""
    apart = compared([100.0, 104.0], [150.0, 156.0], tmpfs={"nodes": "n1"}, nfs={"nodes": "n2"})
    assert only(apart).placements[1].doubts == [INSEPARABLE]
    assert only(apart).reasons[0] == "Runs were on different nodes: nfs on n2 (2 runs); tmpfs on n1 (2 runs)"
    assert only(apart).reasons[1].startswith("No node had runs of both")

    runs, phases = [], []
    for placement, node, makespan_s in (
        ("tmpfs", "n1", 50.0),
        ("tmpfs", "n2", 90.0),
        ("nfs", "n1", 60.0),
        ("nfs", "n2", 99.0),
    ):
        run = f"{placement}-{node}"
        runs.append(run_row(run, placement, makespan_s, nodes=node))
        phases += job_rows(run, [makespan_s / 10 + own_s for own_s in SPREAD])
    both = only(judge(runs, phases))
    assert both.placements[1].doubts == []
    assert "Differences are taken between runs of one node" in both.reasons[1]
    assert both.placements[1].pair is not None
    assert both.placements[1].pair.median_s == pytest.approx(0.95)  # 1.0 s on the fast node, 0.9 s on the slow one


def test_a_third_placement_can_make_it_unsure() -> None:
    runs = [
        run_row(f"{placement}-{number}", placement, makespan_s)
        for placement, makespans in {"a": (10, 12), "b": (20, 21), "c": (11, 50)}.items()
        for number, makespan_s in enumerate(makespans)
    ]
    jobs = [
        row
        for run in runs
        for row in job_rows(run["run"], [{"a": 1.0, "b": 3.0, "c": 4.0}[run["placement"]] + own_s for own_s in SPREAD])
    ]
    family = only(judge(runs, jobs))
    assert not family.sure
    assert {one.condition.placement: not one.doubts for one in family.placements[1:]} == {"b": True, "c": False}


def test_the_runner_up_that_is_named_is_one_that_is_sure() -> None:
    makespans = {"a": (10, 12), "near": (11, 13), "b": (20, 21)}
    runs = [
        run_row(f"{placement}-{number}", placement, makespan_s)
        for placement, times in makespans.items()
        for number, makespan_s in enumerate(times)
    ]
    walls = {"a": 1.0, "near": 2.0, "b": 3.0}
    jobs = [row for run in runs for row in job_rows(run["run"], [walls[run["placement"]] + own_s for own_s in SPREAD])]
    assert only(judge(runs, jobs)).headline == (
        "a had the shortest makespan, 11.0 s; b took 1.86 times as long (9.50 s more), sure;"
        " not sure against near: makespans of the repetitions overlap"
    )


def test_runs_left_out_are_counted_with_their_reasons() -> None:
    runs = [run_row("a", "nfs", 9.0), run_row("b", "nfs", 1.0, valid="invalid: the machine swapped")]
    verdict = judge(runs, [])
    assert verdict.counts == "1 run compared, 1 left out"
    assert verdict.left_out == ["campaign, nfs, run b: invalid: the machine swapped"]
    assert only(verdict).headline == "nfs alone was run: makespan 9.00 s (one repetition); nothing to compare it with"
    assert judge([], []) == ComparisonVerdict("No run to compare", [], [])


COMPUTING = {"account": {"user": 0.9, "system": 0.02, "run_queue": 0.08}}
CROWDED = {"account": {"user": 0.4, "system": 0.05, "run_queue": 0.5, "block_io": 0.05}, "oversubscribed": True}
STORING = {"account": {"user": 0.3, "system": 0.2, "run_queue": 0.0, "block_io": 0.4, "other": 0.1}}


def test_what_bounds_it_is_named() -> None:
    text = "\n".join(only(compared([9.0], [9.5], tmpfs=COMPUTING, nfs=COMPUTING)).reasons)
    assert "Compute-bound: 92 % (nfs), 92 % (tmpfs) of wall time on a CPU" in text
    assert "8 % (nfs), 8 % (tmpfs) of wall time waiting for a core" in text
    assert "Core-bound" not in text
    text = "\n".join(only(compared([9.0], [9.5], tmpfs=CROWDED, nfs=CROWDED)).reasons)
    assert "Compute-bound" not in text
    assert "Core-bound: 50 % (nfs), 50 % (tmpfs) of wall time waiting for a core" in text
    assert "Oversubscribed (tmpfs, nfs)" in text or "Oversubscribed (nfs, tmpfs)" in text


def test_a_difference_is_laid_to_its_causes_with_signs() -> None:
    # 10 participants: 10 s each on tmpfs, 9.2 of them on a CPU; 20 s on nfs, 8 waiting for storage, 10 on a CPU.
    family = only(compared([9.0], [19.0], shift_s=10.0, tmpfs=COMPUTING, nfs=STORING))
    longer = family.placements[1].longer
    assert causes_text(longer) == "10.0 s longer: +8.00 s waiting for storage, +2.00 s asleep"
    assert longer["cpu"] == pytest.approx(20 * 0.5 - 10 * 0.92)
    text = "\n".join(family.reasons)
    assert "40 % (nfs), 0 % (tmpfs) of wall time waiting for storage" in text
    assert "20 % (nfs), 2 % (tmpfs) of wall time is system time" in text
    assert "Compute-bound" not in text


def test_without_an_account_nothing_is_said_of_cores() -> None:
    family = only(compared([9.0], [19.0], nfs=STORING))
    text = "\n".join(family.reasons)
    assert "(tmpfs), I/O as the paper counts it (wall - CPU) contains waiting for a core" in text
    assert "Compute-bound" not in text
    assert "+1.00 s I/O as the paper counts it (wall - CPU)" in causes_text(family.placements[1].longer)


@pytest.mark.parametrize(
    ("cache", "resident", "sentence"),
    [
        ("warm", 1.0, "Page cache: it held the inputs of nfs (100 %)"),
        ("as found", 0.4, "Page cache: it held 40 % of the inputs of nfs before the runs"),
        ("cold", 0.0, None),
        ("as found", None, "Whether the inputs were in the page cache is not known of nfs"),
        ("memory", None, None),
    ],
)
def test_page_cache(cache: str, resident: float | None, sentence: str | None) -> None:
    changes = {"cache": cache, "input_resident_before": resident}
    reasons = [
        line for line in only(compared([9.0], [9.5], nfs=changes, tmpfs={"cache": "memory"})).reasons if "cache" in line
    ]
    assert len(reasons) == (sentence is not None)
    assert all(line.startswith(str(sentence)) for line in reasons)


def test_a_run_below_its_parallelism_says_why() -> None:
    nfs = {"limited_by": "memory for 1 job at once", "parallelism": 2}
    lines = only(compared([9.0], [9.5], nfs=nfs)).reasons
    assert "nfs: run nfs-0 stayed below 2 jobs at once: memory for 1 job at once" in lines


def test_a_sentence_that_holds_for_several_placements_is_said_once() -> None:
    warm = {"cache": "warm", "input_resident_before": 1.0}
    lines = only(compared([9.0], [9.5], nfs=warm, tmpfs=warm)).reasons
    (line,) = [line for line in lines if line.startswith("Page cache")]
    assert line.startswith("Page cache: it held the inputs of nfs, tmpfs (100 %); reading")


def test_empty_slots_are_named() -> None:
    text = "\n".join(only(compared([9.0], [9.5], nfs={"mean_parallelism": 0.65})).reasons)
    assert "Slots stood empty: mean parallelism 0.65 of 2 (nfs); launching," in text
    assert "Slots" not in "\n".join(only(compared([9.0], [9.5])).reasons)
