"""The verdict of a comparison: which placement is fastest, by how much, whether that is certain, and why.

A difference is sure if makespans differ by more than chance (:mod:`neurotier.pages.kit.contrasts`), and if all runs did
the same number of the same participants and found about as much of their inputs in the page cache, as far as known.

A condition has an account of its wall time if all its runs have one. Otherwise, only CPU time is known, and I/O as the
paper counts it (wall - CPU), which includes waiting for a core.

Nodes are a blocking factor, since a slow node must not be mistaken for a slow tier. Runs of a campaign may be on
several nodes of a cluster if its job was stopped and continued on another node. Two conditions are then compared on the
nodes that ran both. If no node ran both, the effects of placement and node cannot be told apart, and the verdict says
so.

Only valid runs are compared; the number of runs left out is given. Runs are grouped by condition.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.tables import Row, Rows, grouped
from neurotier.meter.usage import LABELS
from neurotier.pages.kit.causes import BLOCK_IO, CPU, OTHER, PAPER_IO, RUN_QUEUE
from neurotier.pages.kit.contrasts import Contrast, blocks, contrasts
from neurotier.pages.kit.findings import at_once, between, spread_text
from neurotier.published.bids_app import published_runs
from neurotier.run.compared import MEMORY, OF_CAMPAIGN, Compared, Condition, campaign_runs, is_compared, runs_of_results
from neurotier.storage.page_cache import COLD_SHARE
from neurotier.storage.spread import Spread, spread

Groups = Mapping[Condition, Sequence[Row]]
"""Valid runs by condition."""

Pair = tuple[Condition, Condition]


def all_compared(campaign: Path | None, results: Sequence[str], published: str | None) -> Compared:
    """All runs to compare, as far as they exist.

    Parameters
    ----------
    campaign
        Plan of a campaign, with its runs next to it; ``None`` if there is no campaign.
    results
        Results folders, each of which is an origin of its own.
    published
        Folder of the published logs; ``None`` if they are not compared.
    """
    compared = campaign_runs(campaign) if campaign is not None else Compared()
    for folder in results:
        compared += runs_of_results(Path(folder), origin=folder)
    return compared + published_runs(Path(published)) if published else compared


@dataclass(frozen=True)
class Comparison(Compared):
    """The runs that are compared.

    Attributes
    ----------
    missing_runs
        What is still to be done in a campaign, if anything.
    in_memory
        Names of the campaign's tiers in memory, which have no page cache in front of them.
    """

    missing_runs: str = ""
    in_memory: Collection[str] = ()

    @cached_property
    def conditions(self) -> dict[Condition, Rows]:
        """Valid runs by condition, in order."""
        return dict(sorted(grouped((Condition.of(run), run) for run in self.runs if is_compared(run)).items()))

    @cached_property
    def contrasts(self) -> dict[Pair, Contrast]:
        """The contrast of every two placements of a family; only the runs of a campaign are in blocks."""
        found: dict[Pair, Contrast] = {}
        for family, members in families(self.conditions).items():
            found |= contrasts({one: self.conditions[one] for one in members}, family.origin == OF_CAMPAIGN)
        return found

    @cached_property
    def differences(self) -> dict[Pair, dict[str, float]]:
        """How much longer each participant takes with the slower of two placements than with the faster, s.

        For each participant, it is a difference of mean wall times of the job over the repetitions in which both
        placements were run in turn on the same nodes (if there are none, over all runs). The slower placement is the
        one for which the median over participants is not negative. These differences do not show effects on a whole
        run, which only appear between repetitions.
        """
        walls_s: dict[tuple[str, str], Counter[str]] = {}
        for row in self.participants:
            walls_s.setdefault(run_key(row), Counter())[row["participant"]] += row["wall_s"]
        found: dict[Pair, dict[str, float]] = {}
        for one, other in self.contrasts:
            if (other, one) not in found:
                sides = comparable_runs(self.conditions[one], self.conditions[other])
                ones, others = (means(walls_s.get(run_key(run), {}) for run in side) for side in sides)
                longer = {name: ones[name] - others[name] for name in sorted(ones.keys() & others.keys())}
                if longer and statistics.median(longer.values()) >= 0:
                    found[one, other] = longer
        return found


def run_key(row: Row) -> tuple[str, str]:
    """What identifies a run in every table of the comparison: its origin and name."""
    return row["origin"], row["run"]


def sum_of(cause: str) -> str:
    """The column of a run with the sum of a cause.

    >>> sum_of("account_user_s")
    'account_user_sum_s'
    """
    return f"{cause.removesuffix('_s')}_sum_s"


def means(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean value of each participant over the runs that have the participant."""
    found = grouped(item for run in runs for item in run.items())
    return {name: statistics.fmean(values) for name, values in found.items()}


def comparable_runs(one: Sequence[Row], other: Sequence[Row]) -> list[Sequence[Row]]:
    """The runs of two conditions that are in common blocks; without blocks, all runs."""
    found = blocks(one, other) if one[0]["origin"] == OF_CAMPAIGN else []
    return [*zip(*found, strict=True)] if found else [one, other]


def inputs_text(cache: str) -> str:
    """The state of the page cache of a condition, in words."""
    return "inputs in memory" if cache == MEMORY else f"page cache {cache}"


def families(conditions: Iterable[Condition]) -> dict[Condition, list[Condition]]:
    """The families of conditions that may be compared with each other, in order.

    Each family is given by what its conditions share: a condition without a placement. Conditions with inputs in memory
    have no page cache, so they are in the families of every cache state.
    """
    groups = grouped((replace(condition, placement=""), condition) for condition in sorted(conditions))
    for family in [family for family in groups if family.cache == MEMORY]:
        others = [other for other in groups if other != family and replace(other, cache=MEMORY) == family]
        for other in others:
            groups[other] += groups[family]
        if others:
            del groups[family]
    return groups


CACHED_APART = 0.1
"""Runs are not alike if their shares of inputs in the page cache differ by more than this."""


class PlacementVerdict(NamedTuple):
    """A placement compared with the fastest of its family.

    Attributes
    ----------
    makespan
        Makespans of its repetitions, s.
    contrast
        The contrast with the fastest; ``None`` for the fastest itself.
    longer_s
        How much longer the median participant takes than with the fastest, s; ``None`` if no participant is in both.
    doubts
        Why it is not sure that the fastest is faster; empty if it is sure.
    causes
        How much longer a participant job takes on average than with the fastest, s, by cause.
    """

    condition: Condition
    makespan: Spread
    contrast: Contrast | None = None
    longer_s: float | None = None
    doubts: Sequence[str] = ()
    causes: Mapping[str, float] = {}


class FamilyVerdict(NamedTuple):
    """The verdict on conditions that differ only in their placement.

    Attributes
    ----------
    name
        What they share, for a heading.
    placements
        The fastest by median makespan, followed by the others.
    headline
        The result in one sentence, without a full stop.
    reasons
        What may mislead in this comparison, in sentences.
    """

    name: str
    placements: Sequence[PlacementVerdict]
    headline: str
    reasons: Sequence[str]

    @property
    def sure(self) -> bool:
        """Whether the fastest placement is surely faster than every other."""
        return len(self.placements) > 1 and not any(other.doubts for other in self.placements)


def judge(data: Comparison) -> list[FamilyVerdict]:
    """The verdict on each family."""
    return [judge_family(data, family, members) for family, members in families(data.conditions).items()]


def counts_text(data: Comparison) -> str:
    """How many runs are compared and left out, in words."""
    compared = sum(map(len, data.conditions.values()))
    return f"{counted(compared, 'run')} compared, {len(data.runs) - compared:,} left out"


def without_runs(data: Comparison) -> dict[str, str]:
    """The placements without a valid run, in words, by what their conditions share."""
    lost = families({Condition.of(run) for run in data.runs} - data.conditions.keys())
    return {
        family_name(family): f"no valid run of {', '.join(one.placement for one in members)}: see what is left out"
        for family, members in lost.items()
    }


def family_name(family: Condition) -> str:
    """What the conditions of a family share, in words.

    >>> family_name(Condition("campaign", "bet", "cold", 25, ""))
    'campaign, bet, 25 at once, page cache cold'
    """
    return f"{family.origin}, {family.tool}, {at_once(family.parallelism)}, {inputs_text(family.cache)}"


def judge_family(data: Comparison, family: Condition, members: Sequence[Condition]) -> FamilyVerdict:
    """The verdict on one family of conditions."""
    groups = {condition: data.conditions[condition] for condition in members}
    makespans = {condition: Spread.of(runs, "makespan_s") for condition, runs in groups.items()}
    fastest, *others = sorted(members, key=lambda condition: (makespans[condition].median, condition))
    placements = [PlacementVerdict(fastest, makespans[fastest])]
    for other in others:
        contrast, longer_s = data.contrasts[other, fastest], None
        for pair, sign in (((other, fastest), 1), ((fastest, other), -1)):
            if pair in data.differences:
                longer_s = sign * statistics.median(data.differences[pair].values())
        doubts = doubts_of(groups[fastest], groups[other], contrast, longer_s is not None)
        causes = longer_by_cause(*comparable_runs(groups[fastest], groups[other]))
        placements.append(PlacementVerdict(other, makespans[other], contrast, longer_s, doubts, causes))
    reasons = [*node_lines(groups), *cache_lines(groups, data.in_memory)]
    return FamilyVerdict(family_name(family), placements, headline(placements), reasons)


def headline(placements: Sequence[PlacementVerdict]) -> str:
    """A sentence on the fastest placement, and by how much it is faster than another, which is surely slower if any is.

    Parameters
    ----------
    placements
        The placements in the order of their makespans.
    """
    best, *others = placements
    fastest, makespan = best.condition.placement, seconds(best.makespan.median)
    if not others:
        return f"{fastest} alone has valid runs: makespan {spread_text(best.makespan)}; nothing to compare it with"
    doubtful = [other for other in others if other.doubts]
    text = f"{fastest} {'had the shortest makespan,' if doubtful else 'is fastest: makespan'} {makespan}"
    if slower := [other for other in others if not other.doubts]:
        text += f"; {slower[0].condition.placement} took {slower[0].contrast}"
    for doubts in dict.fromkeys(tuple(other.doubts) for other in doubtful):
        names = " or ".join(other.condition.placement for other in doubtful if tuple(other.doubts) == doubts)
        text += f"; whether it beats {names} is not sure: {', '.join(doubts)}"
    return text


def doubts_of(fast: Runs, slow: Runs, contrast: Contrast, in_both: bool) -> list[str]:
    """Why it is not certain that one condition is faster than another; empty if it is.

    Parameters
    ----------
    fast, slow
        The runs of the two conditions.
    contrast
        The contrast of the two.
    in_both
        Whether any participant is in both.
    """
    doubts, runs = [], [*fast, *slow]
    if {run["nodes"] for run in fast}.isdisjoint(run["nodes"] for run in slow):
        doubts.append(INSEPARABLE)
    elif contrast.paired and contrast.ends and contrast.ends[1] < 1:  # the slower one lacks fast runs
        doubts.append(f"run in turn, the other took {contrast}")
    elif not contrast.is_longer:
        doubts.append(contrast.doubt)
    if len({run["participants"] for run in runs}) > 1:
        doubts.append("the runs did not analyse equally many participants")
    resident = spread([run for run in runs if run["cache"] != MEMORY], "input_resident_before")
    if resident and resident.high - resident.low > CACHED_APART:
        doubts.append("the page cache held more of the inputs in some runs than in others")
    if not in_both:
        doubts.append("no participant is in both")
    return doubts


Runs = Sequence[Row]

TOLD_SHARE = 0.1
"""A cause is named if it makes up at least this share of a difference."""

INSEPARABLE = "no node had runs of both, so that nodes and placements cannot be told apart"

CAUSES = (
    LABELS | dict(zip(CPU, ("in user code", "in the kernel"), strict=True)) | {"cpu_s": "on a CPU", "io_s": PAPER_IO}
)
"""The parts into which a difference is divided."""


def causes_of(runs: Runs) -> list[str]:
    """The parts of wall time: the causes of the account if all runs have one, otherwise CPU and the paper's I/O.

    If stalls for memory are not known, they are part of the time asleep.
    """
    known = all(run[sum_of(cause)] is not None for run in runs for cause in (*CPU, RUN_QUEUE, BLOCK_IO, OTHER))
    return list(LABELS) if known else ["cpu_s", "io_s"]


def longer_by_cause(fast: Runs, slow: Runs) -> dict[str, float]:
    """How much longer a participant job takes in the slow runs than in the fast ones, s, by cause.

    This is an average over participants and runs, and negative for a cause that takes less.
    """
    fast, slow = ([run for run in runs if run["participants"]] for runs in (fast, slow))

    def mean_s(runs: Runs, cause: str) -> float:
        return statistics.fmean((run[sum_of(cause)] or 0.0) / run["participants"] for run in runs)

    causes = causes_of([*fast, *slow]) if fast and slow else ()
    return {cause: mean_s(slow, cause) - mean_s(fast, cause) for cause in causes}


def causes_text(longer: Mapping[str, float]) -> str:
    """A difference in words, with signed parts, greatest first.

    >>> causes_text({"cpu_s": -1.0, "io_s": 11.0})
    '10.0 s longer: +11.0 s I/O as the paper counts it (wall - CPU), -1.00 s on a CPU'
    """
    total_s = sum(longer.values())
    if total_s <= 0:
        return "no longer"
    mentioned = [cause for cause in longer if abs(longer[cause]) >= TOLD_SHARE * total_s]
    ordered = sorted(mentioned, key=lambda cause: -abs(longer[cause]))
    parts = (f"{'+' * (longer[cause] > 0)}{seconds(longer[cause])} {CAUSES[cause]}" for cause in ordered)
    return f"{seconds(total_s)} longer: {', '.join(parts)}"


def cache_lines(groups: Groups, in_memory: Collection[str]) -> list[str]:
    """Sentences on how much of the inputs was in the page cache, for tiers that have one.

    Conditions of a campaign are named for the requested state of the page cache, even if their inputs are
    ``in_memory``.
    """
    placements = grouped(
        (between(map(percent, (known.low, known.high))) if known else "an unknown share", condition.placement)
        for condition, runs in groups.items()
        if condition.cache != MEMORY and not (condition.origin == OF_CAMPAIGN and runs[0]["dataset_tier"] in in_memory)
        for known in [spread(runs, "input_resident_before")]
        if (known.high > COLD_SHARE if known else condition.cache == "as found")
    )
    return [
        f"Page cache: before the runs of {', '.join(names)} it held {share} of the inputs; what it holds is not read"
        " from a tier"
        for share, names in placements.items()
    ]


def node_lines(groups: Groups) -> list[str]:
    """Sentences on which placements ran on which nodes, if there are several, and what that means for differences.

    The nodes of published logs are not known.
    """
    on = {condition: dict.fromkeys(run["nodes"] for run in runs) for condition, runs in groups.items()}
    if len(set().union(*on.values())) < 2:
        return []
    where = "; ".join(
        f"{condition.placement} on {', '.join(node or 'an unknown node' for node in nodes)}"
        for condition, nodes in on.items()
    )
    return [f"Runs were on different nodes: {where}; differences are between runs of one node, makespans of all runs"]
