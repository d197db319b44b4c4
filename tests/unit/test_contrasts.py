"""Contrasts between conditions, held against SciPy's own tests, and against the noncentral t distribution."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from comparison_rows import run_row
from neurotier.core.tables import Row
from neurotier.pages.kit.contrasts import CHANCE, Contrast, blocks, contrasts
from scipy import stats

SLOW = [120.0, 131.0, 125.0, 122.0]
FAST = [100.0, 104.0, 109.0, 101.0]
LOGARITHMS = [math.log(one / other) for one, other in zip(SLOW, FAST, strict=True)]


def runs(placement: str, makespans_s: list[float]) -> list[Row]:
    """A run in each repetition."""
    return [run_row(f"{placement}-{n}", placement, one, repetition=n) for n, one in enumerate(makespans_s, start=1)]


def test_blocks_are_judged_by_student_s_test() -> None:
    found = contrasts({"slow": runs("slow", SLOW), "fast": runs("fast", FAST)}, paired=True)
    expected = stats.ttest_1samp(LOGARITHMS, 0.0)
    one, other = found["slow", "fast"], found["fast", "slow"]
    assert (one.repetitions, one.freedom, one.level) == pytest.approx((4, 3, CHANCE))
    assert one.ratio == pytest.approx(stats.gmean(SLOW) / stats.gmean(FAST))
    assert one.chance == pytest.approx(expected.pvalue)
    assert one.ends == pytest.approx([math.exp(end) for end in expected.confidence_interval(0.95)])
    assert other.ends == pytest.approx([1 / end for end in reversed(one.ends or ())])
    assert (one.is_longer, other.is_longer) == (True, False)
    assert one.noise == pytest.approx(np.std(LOGARITHMS, ddof=1)), "of a difference within a block"


def test_runs_in_no_blocks_are_judged_by_welch_s_test() -> None:
    slow, fast = SLOW, FAST[:3]
    one = contrasts({"slow": runs("slow", slow), "fast": runs("fast", fast)}, paired=False)["slow", "fast"]
    expected = stats.ttest_ind(np.log(slow), np.log(fast), equal_var=False)
    assert (one.repetitions, one.paired) == (3, False)
    assert one.freedom == pytest.approx(expected.df)
    assert one.chance == pytest.approx(expected.pvalue)
    assert one.ends == pytest.approx([math.exp(end) for end in expected.confidence_interval(0.95)])
    assert str(one).endswith(", 3 repetitions, not paired)")


def test_no_pair_is_sure_more_often_than_all_of_them_may_be_by_chance() -> None:
    """Holm: of three pairs the surest at a third of 5 %, the next at a half, then 5 %, until one is not told apart."""
    rng = np.random.default_rng(3)
    own = {"a": 1.0, "b": 1.5, "c": 1.52}
    groups = {name: runs(name, list(100 * by * np.exp(rng.normal(0, 0.02, 5)))) for name, by in own.items()}
    found = contrasts(groups, paired=True)
    pairs = sorted([("a", "b"), ("a", "c"), ("b", "c")], key=lambda pair: found[pair].chance)
    assert [found[pair].level for pair in pairs] == pytest.approx([0.05 / 3, 0.05 / 2, 0.05])
    alike = {name: runs(name, list(100 * np.exp(rng.normal(0, 0.02, 5)))) for name in own}
    levels = {one.level for one in contrasts(alike, paired=True).values()}
    assert levels == {0.05 / 3}, "the surest of them is not told apart, so no other is"
    margin = stats.t.ppf(1 - 0.05 / 6, 4) * found[pairs[0]].error
    assert found[pairs[0]].ends == pytest.approx([math.exp(found[pairs[0]].mean + sign * margin) for sign in (-1, 1)])


def test_two_repetitions_never_suffice() -> None:
    found = contrasts({"slow": runs("slow", SLOW[:2]), "fast": runs("fast", FAST[:2])}, paired=True)["slow", "fast"]
    assert (found.ends, found.is_longer, found.level) == (None, False, CHANCE)
    assert found.doubt == "not told apart with 2 repetitions; at least 3 are needed"
    assert "(0.00 to inf, 2 repetitions)" in str(found)
    three = contrasts({"slow": runs("slow", SLOW[:3]), "fast": runs("fast", FAST[:3])}, paired=True)["slow", "fast"]
    assert three.is_longer


def test_repetitions_that_are_all_the_same_are_sure() -> None:
    found = contrasts({"slow": runs("slow", [110.0] * 3), "fast": runs("fast", [100.0] * 3)}, paired=True)
    assert found["slow", "fast"].is_longer
    assert found["slow", "fast"].ends == pytest.approx((1.1, 1.1))
    same = contrasts({"slow": runs("slow", [100.0] * 3), "fast": runs("fast", [100.0] * 3)}, paired=True)
    assert not same["slow", "fast"].is_longer
    assert not Contrast(1.0, 1.0, 1, 3, paired=True).is_longer


def test_a_run_that_took_no_time_is_left_out() -> None:
    found = contrasts({"slow": runs("slow", [*SLOW, 0.0]), "fast": runs("fast", [*FAST, 50.0])}, paired=True)
    assert found["slow", "fast"].repetitions == 4
    short = contrasts({"slow": runs("slow", [0.5] * 3), "fast": runs("fast", [0.25] * 3)}, paired=True)
    assert short["slow", "fast"].ratio == pytest.approx(2.0)


@pytest.mark.parametrize("noise", [0.004, 0.03, 0.1, 0.3])
def test_so_many_repetitions_as_are_said_show_a_difference_in_four_of_five_cases(noise: float) -> None:
    """The power of Student's test over n blocks, by the noncentral t distribution: 80 %, to a repetition or two."""
    doubt = Contrast(0.0, noise, 2, 3, paired=True, noise=noise).doubt
    said = re.fullmatch(r"not told apart with 3 repetitions; a difference of (\d+) % shows with about ([\d,]+)", doubt)
    assert said is not None
    share, count = int(said[1]) / 100, int(said[2].replace(",", ""))

    def power(blocks: int) -> float:
        away, critical = math.log1p(share) / noise * math.sqrt(blocks), stats.t.ppf(0.975, blocks - 1)
        return float(stats.nct.sf(critical, blocks - 1, away))

    assert count > 3
    assert power(count + 1) > 0.8 > power(count - 2)


def test_the_greatest_difference_that_needs_more_repetitions_is_said() -> None:
    said = [Contrast(0.0, 1.0, 2, 3, paired=True, noise=noise).doubt for noise in (0.2, 0.03, 0.01, 0.005, 1e-6)]
    assert [re.findall(r"(\d+) %", one) for one in said] == [["10"], ["5"], ["2"], ["1"], []]
    assert Contrast(0.0, 1.0, 9, 100, paired=True, noise=1e-6).doubt == "not told apart with 100 repetitions"


def test_blocks_are_of_runs_that_followed_each_other() -> None:
    """Of one repetition, on the same nodes; a third run of either in between belongs to the one that it follows."""

    def run(name: str, start_s: float | None, repetition: int | None, nodes: str | None = None) -> Row:
        return {"run": name, "start_s": start_s, "repetition": repetition, "nodes": nodes, "makespan_s": 1.0}

    def names(one: list[Row], other: list[Row]) -> list[tuple[str, str]]:
        return [(first["run"], second["run"]) for first, second in blocks(one, other)]

    one = [run("a1", 10.0, 1), run("a2", 40.0, 2), run("a3", 50.0, 3)]
    other = [run("b1", 20.0, 1), run("b2", 30.0, 2), run("b3", 500.0, 4)]
    assert names(one, other) == [("a1", "b1"), ("a2", "b2")]
    assert names(other, one) == [("b1", "a1"), ("b2", "a2")]
    apart = [run("a1", 10.0, 1, "n1"), run("a2", 40.0, 2, "n2")], [run("b1", 20.0, 1, "n2"), run("b2", 30.0, 2, "n2")]
    assert names(*apart) == [("a2", "b2")]
    unknown = [run("a1", None, 1), run("a2", None, 2)], [run("b1", None, 1), run("b2", None, 2)]
    assert names(*unknown) == [("a1", "b1"), ("a2", "b2")], "without times, by repetition"
    assert names([run("a1", None, None)], [run("b1", 0.5, None)]) == [("a1", "b1")]


def test_without_a_block_there_is_a_ratio_alone() -> None:
    late = [run | {"repetition": run["repetition"] + 10} for run in runs("fast", FAST)]
    found = contrasts({"slow": runs("slow", SLOW), "fast": late}, paired=True)["slow", "fast"]
    assert (found.repetitions, found.ends, found.paired) == (0, None, True)
    assert found.ratio == pytest.approx(stats.gmean(SLOW) / stats.gmean(FAST))
