"""Statistics of the comparison: spread over repetitions, speed-up, differences between placements.

Only valid runs are compared; how many are left out is counted. A run is told apart by its condition.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import pandas as pd

from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.nodes import blocks, by_nodes, inseparable
from neurotier.pages.kit.contrasts import Contrast, contrasts
from neurotier.run.compared import MEMORY, is_compared
from neurotier.run.conditions import CAMPAIGN, Condition


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
    nodes
        Nodes that had runs of both conditions, on each of which the differences are taken; ``None`` if none had.
    by_participant
        The difference of each participant, s.
    """

    slower: Condition
    faster: Condition
    participants: int
    median_s: float
    nodes: str | None = None
    by_participant: Mapping[str, float] = field(default_factory=dict)


def paired_differences(runs: Sequence[Row], phases: Sequence[Row]) -> list[Difference]:
    """Between every two placements of the same origin, tool, parallelism and cache state (:func:`families`).

    Per participant the mean over repetitions of the job's wall time in each condition, on each node that had both
    (:mod:`neurotier.pages.comparison.nodes`), and the mean of their differences over these nodes; then the median over
    participants. It knows nothing of what moved a whole run: that shows between repetitions alone.

    Parameters
    ----------
    runs
        Rows of ``compared_runs.tsv``.
    phases
        Rows of ``compared_participants.tsv``.
    """
    walls, groups = walls_by_run(phases), by_condition(runs)
    pairs = dict.fromkeys(pair for members in families(groups).values() for pair in combinations(members, 2))
    differences = []
    for one, other in pairs:
        by_block = [
            mean_of(ones, walls) - mean_of(others, walls) for ones, others in blocks(groups[one], groups[other])
        ]
        values = pd.concat(by_block, axis=1).mean(axis=1, skipna=False).dropna().sort_index().to_dict()
        if values:
            differences.append(difference(one, other, values, common_nodes(groups[one], groups[other])))
    return differences


def common_nodes(one: Sequence[Row], other: Sequence[Row]) -> str | None:
    """Nodes that had runs of both conditions; ``None`` if none had, or that is not known."""
    ones, others = by_nodes(one), by_nodes(other)
    common = [nodes for nodes in ones if nodes is not None and nodes in others]
    between = " " if all(" " not in nodes for nodes in common) else "; "
    return None if inseparable(one, other) else between.join(sorted(common)) or None


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


def family_contrasts(groups: Mapping[Condition, Sequence[Row]]) -> dict[tuple[Condition, Condition], Contrast]:
    """How many times as long the first of every two placements takes; a campaign alone runs them in blocks."""
    found: dict[tuple[Condition, Condition], Contrast] = {}
    for family, members in families(groups).items():
        found |= contrasts({condition: groups[condition] for condition in members}, family.origin == CAMPAIGN)
    return found


def mean_walls(runs: Sequence[Row], phases: Sequence[Row]) -> dict[Condition, dict[str, float]]:
    """Mean over repetitions of each participant job's wall time, s, by condition and participant."""
    walls = walls_by_run(phases)
    return {condition: mean_of(members, walls).dropna().to_dict() for condition, members in by_condition(runs).items()}


def walls_by_run(phases: Sequence[Row]) -> pd.DataFrame:
    """Wall time of every participant job, s: a row per run, a column per participant."""
    jobs = pd.DataFrame(phases, columns=["origin", "run", "participant", "wall_s"])
    return jobs.groupby(["origin", "run", "participant"])["wall_s"].sum().unstack("participant")


def mean_of(runs: Sequence[Row], walls: pd.DataFrame) -> pd.Series:
    """Mean over some runs of each participant job's wall time, s."""
    return walls[walls.index.isin([run_key(run) for run in runs])].mean()


def difference(one: Condition, other: Condition, values: Mapping[str, float], nodes: str | None = None) -> Difference:
    """The difference of two conditions, whichever is slower, from that of each participant, s."""
    median_s = statistics.median(values.values())
    if median_s < 0:
        return difference(other, one, {name: -value for name, value in values.items()}, nodes)
    return Difference(one, other, len(values), median_s, nodes, values)


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
