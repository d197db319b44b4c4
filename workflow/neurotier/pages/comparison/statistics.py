"""Statistics of the comparison: spread over repetitions, speed-up, differences between placements.

Only valid runs are compared; how many are left out is counted. A run is told apart by its condition.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

from neurotier.core.quantities import share_of
from neurotier.core.tables import Row, gathered
from neurotier.pages.kit.contrasts import Contrast, blocks, contrasts
from neurotier.published.bids_app import published_runs
from neurotier.run.compared import MEMORY, OF_CAMPAIGN, Compared, Condition, campaign_runs, is_compared, runs_of_results
from neurotier.storage.spread import Spread


def everything_compared(campaign: Path | None, results: Sequence[str], published: str | None) -> Compared:
    """Everything that is to be compared, as far as it is there.

    Parameters
    ----------
    campaign
        Plan of a campaign, whose runs are beside it, if there is one.
    results
        Results folders, each an origin of its own.
    published
        Folder of the published logs, if they are to be compared.
    """
    compared = campaign_runs(campaign) if campaign is not None else Compared()
    for folder in results:
        compared += runs_of_results(Path(folder), origin=folder)
    return compared + published_runs(Path(published)) if published else compared


def run_key(row: Row) -> tuple[str, str]:
    """What tells runs apart, in every table of the comparison: origin and name."""
    return row["origin"], row["run"]


def by_condition(runs: Iterable[Row]) -> dict[Condition, list[Row]]:
    """Valid runs by condition, in order."""
    return dict(sorted(gathered((Condition.of(run), run) for run in runs if is_compared(run)).items()))


def sum_of(cause: str) -> str:
    """Column of a run that sums a cause.

    >>> sum_of("account_user_s")
    'account_user_sum_s'
    """
    return f"{cause.removesuffix('_s')}_sum_s"


@dataclass(frozen=True)
class Difference:
    """How much longer participants took in one condition than in another, by participant.

    Attributes
    ----------
    participants
        Participants that both conditions have.
    median_s
        Median over participants of the difference of wall times, slower - faster, s; never below 0.
    share
        Share that this is of the median time of the faster one.
    nodes
        Nodes on which both were run in turn; ``None`` if there were none, or that is not known.
    by_participant
        The difference of each participant, s.
    """

    slower: Condition
    faster: Condition
    participants: int
    median_s: float
    share: float
    nodes: str | None
    by_participant: Mapping[str, float]


def paired_differences(runs: Sequence[Row], phases: Sequence[Row]) -> list[Difference]:
    """Between every two placements of the same origin, tool, parallelism and cache state (:func:`families`).

    Per participant the mean of the job's wall time over the repetitions in which both conditions were run in turn, on
    the same nodes (over all runs where there are none); then the median over participants. It knows nothing of what
    moved a whole run: that shows between repetitions alone.

    Parameters
    ----------
    runs
        Rows of ``compared_runs.tsv``.
    phases
        Rows of ``compared_participants.tsv``.
    """
    groups, walls_s = by_condition(runs), dict[tuple[str, str], Counter[str]]()
    for row in phases:
        walls_s.setdefault(run_key(row), Counter())[row["participant"]] += row["wall_s"]
    differences = []
    for one, other in dict.fromkeys(pair for members in families(groups).values() for pair in combinations(members, 2)):
        *sides, nodes = set_against(groups[one], groups[other])
        ones, others = (means([walls_s.get(run_key(run), Counter()) for run in side]) for side in sides)
        longer = {name: ones[name] - others[name] for name in sorted(ones.keys() & others.keys())}
        if longer:
            slower, faster, typical = one, other, others
            if statistics.median(longer.values()) < 0:
                slower, faster, typical = other, one, ones
                longer = {name: -value_s for name, value_s in longer.items()}
            median_s, typical_s = (
                statistics.median(longer.values()),
                statistics.median(typical[name] for name in longer),
            )
            share = share_of(median_s, typical_s) or 0.0
            differences.append(Difference(slower, faster, len(longer), median_s, share, nodes, longer))
    return differences


def means(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean of what each participant has, over the runs that have it."""
    found = gathered(item for run in runs for item in run.items())
    return {name: statistics.fmean(values) for name, values in found.items()}


def set_against(one: Sequence[Row], other: Sequence[Row]) -> tuple[list[Row], list[Row], str | None]:
    """Runs of two conditions that are in blocks, and on which nodes; without a block, all runs."""
    found = blocks(one, other) if one[0]["origin"] == OF_CAMPAIGN else []
    nodes = sorted({run["nodes"] for run, _ in found if run["nodes"]})
    between = "; " if any(" " in each for each in nodes) else " "
    ones, others = ([*runs] for runs in zip(*found, strict=True)) if found else (list(one), list(other))
    return ones, others, between.join(nodes) or None


@dataclass(frozen=True, order=True)
class Family:
    """What conditions share that differ in their placement alone."""

    origin: str
    tool: str
    parallelism: int
    cache: str


def inputs_text(cache: str) -> str:
    """Where the inputs were, in words."""
    return "inputs in memory" if cache == MEMORY else f"page cache {cache}"


def families(conditions: Iterable[Condition]) -> dict[Family, list[Condition]]:
    """Conditions that may be set against each other, in order.

    Inputs in memory have no page cache before them: such conditions stand beside those of every cache state.
    """
    groups = gathered(
        (Family(condition.origin, condition.tool, condition.parallelism, condition.cache), condition)
        for condition in sorted(conditions)
    )
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
        found |= contrasts({condition: groups[condition] for condition in members}, family.origin == OF_CAMPAIGN)
    return found


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
    groups, ups = by_condition(runs), []
    families = gathered(((each.origin, each.tool, each.cache, each.placement), each) for each in groups)
    for lower, *others in families.values():
        for higher in others:
            pairs = product(groups[lower], groups[higher])
            ratios = tuple(slow["makespan_s"] / fast["makespan_s"] for slow, fast in pairs if fast["makespan_s"] > 0)
            if ratios:
                ups.append(SpeedUp(lower, higher, Spread(ratios)))
    return ups
