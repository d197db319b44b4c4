"""Statistics of the comparison: spread over repetitions, speed-up, paired differences, and what is sure.

Only valid runs are compared; how many are left out is counted. A run is told apart by its condition.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pandas as pd

from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.run.compared import MEMORY, is_compared
from neurotier.run.conditions import Condition

CONFIDENCE = 0.95
"""Confidence of the intervals of paired differences, where there are participants enough for it (6)."""


def run_key(row: Row) -> tuple[str, str]:
    """What tells runs apart, in every table of the comparison: origin and name."""
    return row["origin"], row["run"]


def by_condition(runs: Iterable[Row]) -> dict[Condition, list[Row]]:
    """Valid runs by condition, in order."""
    groups: dict[Condition, list[Row]] = {}
    for run in runs:
        if is_compared(run):
            groups.setdefault(Condition.of(run), []).append(run)
    return dict(sorted(groups.items()))


def left_out(runs: Iterable[Row]) -> list[Row]:
    """Runs that are not valid."""
    return [run for run in runs if not is_compared(run)]


@dataclass(frozen=True)
class Difference:
    """How much longer participants took in one condition than in another, by participant.

    Attributes
    ----------
    participants
        Participants that both conditions have.
    median_s
        Median over participants of the difference of wall times, slower - faster, s; never below 0.
    low_s, high_s
        Confidence interval of that median, s; the range of the differences where there are fewer than 6.
    confidence
        Confidence of the interval: 0.95, or less with fewer than 6 participants.
    """

    slower: Condition
    faster: Condition
    participants: int
    median_s: float
    low_s: float
    high_s: float
    confidence: float = CONFIDENCE


def paired_differences(runs: Sequence[Row], phases: Sequence[Row]) -> list[Difference]:
    """Between every two placements of the same origin, tool, parallelism and cache state (:func:`families`).

    Per participant the mean over repetitions of the job's wall time in each condition; then the median over
    participants of the difference. The interval says how far participants agree. It knows nothing of what moved a
    whole run (a busy neighbour, a warm cache): that shows between repetitions alone.

    Parameters
    ----------
    runs
        Rows of ``compared_runs.tsv``.
    phases
        Rows of ``compared_participants.tsv``.
    """
    means = mean_walls(runs, phases)
    pairs = dict.fromkeys(pair for members in families(means).values() for pair in combinations(members, 2))
    differences = []
    for one, other in pairs:
        common = means[one].keys() & means[other].keys()
        if common:
            differences.append(
                difference(one, other, [means[one][name] - means[other][name] for name in sorted(common)])
            )
    return differences


@dataclass(frozen=True, order=True)
class Family:
    """What conditions share that differ in their placement alone."""

    origin: str
    tool: str
    parallelism: int
    cache: str


def families(conditions: Iterable[Condition]) -> dict[Family, list[Condition]]:
    """Conditions that may be set against each other, in order.

    Inputs in memory have no page cache before them: such conditions stand beside those of every cache state.
    """
    groups: dict[Family, list[Condition]] = {}
    for condition in sorted(conditions):
        family = Family(condition.origin, condition.tool, condition.parallelism, condition.cache)
        groups.setdefault(family, []).append(condition)
    for family in [family for family in groups if family.cache == MEMORY]:
        others = [other for other in groups if other != family and replace(other, cache=MEMORY) == family]
        for other in others:
            groups[other] += groups[family]
        if others:
            del groups[family]
    return dict(sorted(groups.items()))


def mean_walls(runs: Sequence[Row], phases: Sequence[Row]) -> dict[Condition, dict[str, float]]:
    """Mean over repetitions of each participant job's wall time, s, by condition and participant."""
    jobs = pd.DataFrame(phases, columns=["origin", "run", "participant", "wall_s"])
    walls = jobs.groupby(["origin", "run", "participant"])["wall_s"].sum().unstack("participant")
    return {
        condition: walls[walls.index.isin([run_key(run) for run in members])].mean().dropna().to_dict()
        for condition, members in by_condition(runs).items()
    }


def difference(one: Condition, other: Condition, differences: Sequence[float]) -> Difference:
    """The difference of two conditions, whichever is slower."""
    median_s = statistics.median(differences)
    if median_s < 0:
        return difference(other, one, [-value for value in differences])
    low_s, high_s, confidence = median_interval(differences)
    return Difference(one, other, len(differences), median_s, low_s, high_s, confidence)


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Interval of the median that holds for any distribution (order statistics), and its confidence.

    Fewer than 6 values hold no interval of 95 %; theirs is their range, with the confidence that it has.

    >>> median_interval([1.0, 2.0, 4.0])
    (1.0, 4.0, 0.75)
    """
    from scipy.stats import quantile_test  # it takes a second to load, and few who need this module need it

    interval = quantile_test(np.asarray(values), p=0.5).confidence_interval(CONFIDENCE)
    low, high = float(interval.low), float(interval.high)
    if np.isnan(low) or np.isnan(high):
        return min(values), max(values), 1 - 2 * 0.5 ** len(values)
    return low, high, CONFIDENCE


@dataclass(frozen=True)
class SpeedUp:
    """Makespan at a lower parallelism over makespan at a higher one, same placement; ideal is the ratio of the two."""

    lower: Condition
    higher: Condition
    ratio: Spread

    @property
    def ideal(self) -> float:
        """Speed-up if nothing were shared."""
        return self.higher.parallelism / self.lower.parallelism


def speed_ups(runs: Sequence[Row]) -> list[SpeedUp]:
    """From the lowest parallelism of each placement to its others; every repetition of one over every one of the other.

    Repetitions of two conditions are no pairs, so every two of them are compared; the range is the widest there is.
    """
    families: dict[tuple[str, str, str, str], list[Condition]] = {}
    groups = by_condition(runs)
    for condition in groups:
        family = (condition.origin, condition.tool, condition.cache, condition.placement)
        families.setdefault(family, []).append(condition)
    ups = []
    for lower, *others in families.values():
        for higher in others:
            pairs = product(groups[lower], groups[higher])
            ratios = tuple(slow["makespan_s"] / fast["makespan_s"] for slow, fast in pairs if fast["makespan_s"] > 0)
            if ratios:
                ups.append(SpeedUp(lower, higher, Spread(ratios)))
    return ups
