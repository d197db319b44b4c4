"""Contrasts between conditions, held against SciPy's own tests, and against the noncentral t distribution."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from comparison_rows import repeated
from neurotier.core.tables import Row
from neurotier.pages.kit.contrasts import Contrast, blocks, contrasts
from scipy import stats
from shown_values import shown

SLOW = [120.0, 131.0, 125.0, 122.0]
FAST = [100.0, 104.0, 109.0, 101.0]


def pair(
    slow: Sequence[float], fast: Sequence[float], paired: bool = True, first: int = 1
) -> tuple[Contrast, Contrast]:
    found = contrasts({"slow": repeated({"slow": slow}), "fast": repeated({"fast": fast}, first)}, paired=paired)
    return found["slow", "fast"], found["fast", "slow"]


@pytest.mark.parametrize("paired", [True, False])
def test_pairs_are_judged_by_the_tests_of_student_and_welch(paired: bool) -> None:
    fast = FAST if paired else FAST[:3]
    one, other = pair(SLOW, fast, paired)
    logarithms = np.log(SLOW), np.log(fast)
    if paired:
        expected = stats.ttest_rel(*logarithms)
        assert one.noise == pytest.approx(np.std(np.subtract(*logarithms), ddof=1)), "of a difference within a block"
    else:
        expected = stats.ttest_ind(*logarithms, equal_var=False)
        assert str(one).endswith(", 3 repetitions, not paired)")
    ends = [math.exp(end) for end in expected.confidence_interval(0.95)]
    assert shown(one, "repetitions paired level") == f"{len(fast)} {paired} 0.05"
    assert [one.freedom, one.chance, *(one.ends or ())] == pytest.approx([expected.df, expected.pvalue, *ends])
    assert one.ratio == pytest.approx(stats.gmean(SLOW) / stats.gmean(fast))
    assert other.ends == pytest.approx([1 / end for end in reversed(ends)])
    assert (one.is_longer, other.is_longer) == (True, False)


def test_no_pair_is_sure_more_often_than_all_of_them_may_be_by_chance() -> None:
    """Holm: of three pairs the surest at a third of 5 %, the next at a half, then 5 %, until one is not told apart."""
    rng = np.random.default_rng(3)

    def found(*own: float) -> list[Contrast]:
        """Of each pair, the surest first."""
        groups = {by: repeated({str(by): list(100 * by * np.exp(rng.normal(0, 0.02, 5)))}) for by in own}
        return sorted(contrasts(groups, paired=True).values(), key=lambda one: one.chance)[::2]

    surest, *others = found(1.0, 1.5, 1.52)
    assert [one.level for one in (surest, *others)] == pytest.approx([0.05 / 3, 0.05 / 2, 0.05])
    margin = stats.t.ppf(1 - 0.05 / 6, 4) * surest.error
    assert surest.ends == pytest.approx([math.exp(surest.mean + sign * margin) for sign in (-1, 1)])
    alike = found(1.0, 1.0 + 1e-9, 1.0 - 1e-9)
    assert [one.level for one in alike] == [0.05 / 3] * 3, "the surest is not told apart, so no other is"


def test_two_repetitions_never_suffice() -> None:
    two, three = (pair(SLOW[:count], FAST[:count])[0] for count in (2, 3))
    assert two.error == pytest.approx(stats.sem(np.log(SLOW[:2]) - np.log(FAST[:2])))
    assert (shown(two, "ends is_longer level"), three.is_longer) == ("- False 0.05", True)
    assert two.doubt == "not told apart with 2 repetitions; at least 3 are needed"
    assert str(two).endswith("times as long (2 repetitions)")


def test_repetitions_that_are_all_the_same_are_sure_and_a_run_that_took_no_time_is_left_out() -> None:
    found, same = (pair([slow] * 3, [100.0] * 3)[0] for slow in (110.0, 100.0))
    assert [one.is_longer for one in (found, same, Contrast(1.0, 1.0, 1, 3, paired=True))] == [True, False, False]
    assert found.ends == pytest.approx((1.1, 1.1))
    assert pair([*SLOW, 0.0], [*FAST, 50.0])[0].repetitions == 4
    assert pair([0.5] * 3, [0.25] * 3)[0].ratio == pytest.approx(2.0)


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


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # a third run of either in between belongs to the one that it follows, and b3 is of no repetition of theirs
        ("a1 10 1, a2 40 2, a3 50 3", "b1 20 1, b2 30 2, b3 500 4", "a1 b1, a2 b2"),
        ("a1 10 1 n1, a2 40 2 n2", "b1 20 1 n2, b2 30 2 n2", "a2 b2"),  # on the same nodes
        ("a1 - 1, a2 - 2", "b1 - 1, b2 - 2", "a1 b1, a2 b2"),  # without times, by repetition
        ("a1 - -", "b1 0.5 -", ""),  # nobody says that they were made in turn
        ("a1 - 1", "b1 0.5 1, b2 0.75 2", "a1 b1"),  # without a time it is the first
    ],
)
def test_blocks_are_of_runs_that_followed_each_other(one: str, other: str, expected: str) -> None:
    """Of runs the name, when it began, of which repetition, and on which nodes."""

    def rows(text: str) -> list[Row]:
        return [row(*run.split()) for run in text.split(", ")]

    def row(name: str, start_s: str, repetition: str, nodes: str | None = None) -> Row:
        began, turn = (None if text == "-" else float(text) for text in (start_s, repetition))
        return {"run": name, "start_s": began, "repetition": turn, "nodes": nodes, "makespan_s": 1.0}

    found = blocks(rows(one), rows(other))
    assert ", ".join(f"{first['run']} {second['run']}" for first, second in found) == expected


def test_without_a_block_there_is_a_ratio_alone() -> None:
    found, _ = pair(SLOW, FAST, first=11)
    assert shown(found, "repetitions ends paired") == "0 - True"
    assert found.ratio == pytest.approx(stats.gmean(SLOW) / stats.gmean(FAST))
