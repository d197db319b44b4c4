"""The verdict of a comparison: which placement is fastest, by how much, sure or not, and why.

Sure means: makespans differ by more than chance (:mod:`neurotier.pages.kit.contrasts`); all runs did equally many of
the same participants, and found about as much of their inputs in the page cache, as far as it is known.

A condition has an account of its wall time if all its runs have one; without it only CPU time is known, and I/O as the
paper counts it (wall - CPU), of which waiting for a core is part.

Nodes are a blocking factor: a slow node must not be taken for a slow tier. Runs of a campaign may be on several nodes
of a cluster, if its job was stopped and went on elsewhere. Two conditions are then set against each other on the nodes
that had both. Where no node had both, the placement's part and the node's cannot be told apart, and that is said.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.tables import Row, gathered
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.statistics import (
    Difference,
    Family,
    by_condition,
    families,
    family_contrasts,
    inputs_text,
    paired_differences,
    set_against,
    sum_of,
)
from neurotier.pages.kit.causes import BLOCK_IO, CPU, OTHER, PAPER_IO, RUN_QUEUE
from neurotier.pages.kit.contrasts import Contrast
from neurotier.pages.kit.findings import at_once, between, spread_text
from neurotier.run.compared import MEMORY, Condition
from neurotier.storage.page_cache import COLD_SHARE, WARM_SHARE
from neurotier.storage.spread import Spread

CACHED_APART = 0.1
"""Shares of the inputs in the page cache that differ by more make runs unlike."""

Groups = Mapping[Condition, Sequence[Row]]
Contrasts = Mapping[tuple[Condition, Condition], Contrast]
Differences = Mapping[frozenset[Condition], Difference]


@dataclass(frozen=True)
class PlacementVerdict:
    """One placement against the fastest of its family.

    Attributes
    ----------
    makespan
        Of its repetitions, s.
    contrast
        To the fastest; ``None`` for the fastest itself.
    pair
        The difference of the same participants between it and the fastest; ``None`` for the fastest itself, and where
        no participant is in both.
    doubts
        Why it is not sure that the fastest is faster; empty if it is sure.
    longer
        By what a participant job takes longer than with the fastest on average, s by cause.
    """

    condition: Condition
    makespan: Spread
    contrast: Contrast | None = None
    pair: Difference | None = None
    doubts: Sequence[str] = ()
    longer: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FamilyVerdict:
    """The verdict on conditions that differ in their placement alone.

    Attributes
    ----------
    name
        What they share, for a heading.
    placements
        The fastest, by its median makespan, and then the others.
    headline
        The result in one sentence, without a full stop.
    reasons
        What may mislead about them, in sentences.
    """

    name: str
    placements: Sequence[PlacementVerdict]
    headline: str
    reasons: Sequence[str]

    @property
    def sure(self) -> bool:
        """Whether it is faster than every other one for sure."""
        return len(self.placements) > 1 and not any(other.doubts for other in self.placements)


@dataclass(frozen=True)
class ComparisonVerdict:
    """The verdict on a whole comparison.

    Attributes
    ----------
    counts
        How many runs were compared and left out.
    families
        One verdict for each set of conditions that differ in their placement alone.
    """

    counts: str
    families: list[FamilyVerdict]


def judge(runs: Sequence[Row], phases: Sequence[Row]) -> ComparisonVerdict:
    """Sum up a comparison from rows of ``compared_runs.tsv`` and ``compared_participants.tsv``."""
    groups = by_condition(runs)
    found = {frozenset((item.slower, item.faster)): item for item in paired_differences(runs, phases)}
    all_contrasts = family_contrasts(groups)
    verdicts = [
        judge_family(family, members, groups, all_contrasts, found) for family, members in families(groups).items()
    ]
    compared = sum(len(members) for members in groups.values())
    counts = f"{counted(compared, 'run')} compared, {len(runs) - compared:,} left out"
    return ComparisonVerdict(counts if runs else "No run to compare", verdicts)


def family_name(family: Family) -> str:
    """What the conditions of a family share.

    >>> family_name(Family("campaign", "bet", 25, "cold"))
    'campaign, bet, 25 at once, page cache cold'
    """
    return f"{family.origin}, {family.tool}, {at_once(family.parallelism)}, {inputs_text(family.cache)}"


def judge_family(
    family: Family,
    members: Sequence[Condition],
    groups: Groups,
    contrasts: Contrasts,
    differences: Differences,
) -> FamilyVerdict:
    """The verdict on one family."""
    makespans = {condition: Spread.of(groups[condition], "makespan_s") for condition in members}
    fastest, *others = sorted(members, key=lambda condition: (makespans[condition].median, condition))
    placements = [PlacementVerdict(fastest, makespans[fastest])]
    for other in others:
        contrast, pair = contrasts[other, fastest], differences.get(frozenset((fastest, other)))
        doubts = doubts_of(fastest, other, groups, contrast, pair)
        fast_runs, slow_runs, _ = set_against(groups[fastest], groups[other])
        longer = longer_by_cause(fast_runs, slow_runs)
        placements.append(PlacementVerdict(other, makespans[other], contrast, pair, doubts, longer))
    own = {condition: groups[condition] for condition in members}
    return FamilyVerdict(family_name(family), placements, headline(placements), [*node_lines(own), *cache_lines(own)])


def headline(placements: Sequence[PlacementVerdict]) -> str:
    """The fastest, and by how much: the runner-up that is named is one that is slower for sure, if there is one.

    Parameters
    ----------
    placements
        In the order of their makespans.
    """
    best, *others = placements
    fastest, makespan = best.condition.placement, seconds(best.makespan.median)
    if not others:
        return f"{fastest} alone was run: makespan {spread_text(best.makespan)}; nothing to compare it with"
    doubtful = [other for other in others if other.doubts]
    text = f"{fastest} {'had the shortest makespan,' if doubtful else 'is fastest: makespan'} {makespan}"
    if slower := [other for other in others if not other.doubts]:
        text += f"; {slower[0].condition.placement} took {slower[0].contrast}"
    for doubts in dict.fromkeys(tuple(other.doubts) for other in doubtful):
        names = ", ".join(other.condition.placement for other in doubtful if tuple(other.doubts) == doubts)
        text += f"; whether it beats {names} is not sure: {', '.join(doubts)}"
    return text


def doubts_of(
    fast: Condition, slow: Condition, groups: Groups, contrast: Contrast, pair: Difference | None
) -> list[str]:
    """Why it is not sure that one condition is faster than another; nothing if it is."""
    doubts = []
    if inseparable(groups[fast], groups[slow]):
        doubts.append(INSEPARABLE)
    elif not contrast.is_longer:
        doubts.append(contrast.doubt)
    if len({run["participants"] for condition in (fast, slow) for run in groups[condition]}) > 1:
        doubts.append("the runs did not do equally many participants")
    resident = [
        run["input_resident_before"]
        for condition in (fast, slow)
        for run in groups[condition]
        if condition.cache != MEMORY and run["input_resident_before"] is not None
    ]
    if resident and max(resident) - min(resident) > CACHED_APART:
        doubts.append("the page cache held more of the inputs in some runs than in others")
    if pair is None:
        doubts.append("no participant is in both")
    return doubts


Runs = Sequence[Row]

TOLD_SHARE = 0.1
"""From this share of a difference on, a cause of it is named."""

INSEPARABLE = "no node had runs of both, so that nodes and placements cannot be told apart"

CAUSES = LABELS | {"cpu": "on a CPU", "io": PAPER_IO}
"""What a difference is divided into."""


def accounted(runs: Sequence[Row]) -> bool:
    """Whether all runs have an account of their wall time."""
    return all(run[sum_of(cause)] is not None for run in runs for cause in (*CPU, RUN_QUEUE, BLOCK_IO, OTHER))


def longer_by_cause(fast: Runs, slow: Runs) -> dict[str, float]:
    """By what a participant job takes longer in some runs than in others, on average over participants and runs.

    Returns
    -------
    dict
        s by cause: ``cpu`` and the waits, or where one of them has no account ``cpu`` and ``io``; below 0 for what it
        takes less of. Stalls for memory that are not known are among those asleep.
    """
    columns = {"cpu": ["cpu_sum_s"], "io": ["io_sum_s"]}
    if accounted(fast) and accounted(slow):
        columns = {"cpu": [sum_of(cause) for cause in CPU]} | {one: [sum_of(one)] for one in LABELS if one not in CPU}
    means = [
        [
            statistics.fmean(sum(run[column] or 0.0 for column in of) / run["participants"] for run in known)
            for of in columns.values()
        ]
        for runs in (slow, fast)
        if (known := [run for run in runs if run["participants"]])
    ]
    return {cause: longer - less for cause, longer, less in zip(columns, *means, strict=True)} if len(means) > 1 else {}


def causes_text(longer: Mapping[str, float]) -> str:
    """A difference in words, with signs, its greatest parts first.

    >>> causes_text({"cpu": -1.0, "io": 11.0})
    '10.0 s longer: +11.0 s I/O as the paper counts it (wall - CPU), -1.00 s on a CPU'
    """
    total_s = sum(longer.values())
    if total_s <= 0:
        return "no longer; the makespans differ by how the jobs filled them"
    mentioned = [cause for cause in longer if abs(longer[cause]) >= TOLD_SHARE * total_s]
    ordered = sorted(mentioned, key=lambda cause: -abs(longer[cause]))
    parts = (f"{'+' * (longer[cause] > 0)}{seconds(longer[cause])} {CAUSES[cause]}" for cause in ordered)
    return f"{seconds(total_s)} longer: {', '.join(parts)}"


def cache_lines(groups: Groups) -> list[str]:
    """What the page cache had of the inputs, for tiers that it stands before."""
    placements_of_sentence: dict[str, list[str]] = {}
    for condition, runs in groups.items():
        if condition.cache == MEMORY:
            continue
        known = [run["input_resident_before"] for run in runs if run["input_resident_before"] is not None]
        if not known:
            sentence = "Whether the inputs were in the page cache is not known of {}"
        else:
            share = between(map(percent, sorted(known)))
            if min(known) >= WARM_SHARE:
                sentence = f"Page cache: it held the inputs of {{}} ({share}); reading them from their tier is not part"
                sentence += " of these times"
            elif max(known) > COLD_SHARE:
                sentence = f"Page cache: it held {share} of the inputs of {{}} before the runs"
            else:
                continue
        placements_of_sentence.setdefault(sentence, []).append(condition.placement)
    return [sentence.format(", ".join(placements)) for sentence, placements in placements_of_sentence.items()]


def by_nodes(runs: Runs) -> dict[str | None, list[Row]]:
    """Runs by the nodes that they were on: ``None`` where that is not known, as of published logs."""
    return gathered((run["nodes"], run) for run in runs)


def inseparable(one: Runs, other: Runs) -> bool:
    """Whether no node had runs of both."""
    return by_nodes(one).keys().isdisjoint(by_nodes(other))


def node_lines(groups: Groups) -> list[str]:
    """Which runs were on which node, if there are several, and what that means for differences; else nothing."""
    everywhere = by_nodes([run for runs in groups.values() for run in runs])
    if len(everywhere) < 2:
        return []
    where = "; ".join(f"{condition.placement} on {nodes_text(runs)}" for condition, runs in groups.items())
    lines = [f"Runs were on different nodes: {where}"]
    pairs = [inseparable(*pair) for pair in combinations(groups.values(), 2)]
    apart = sum(pairs)
    if pairs and apart < len(pairs):
        lines.append("Differences are taken between runs of one node; makespans are of all runs")
    if apart:
        of = "" if len(pairs) == 1 else f" (so of {apart} of {counted(len(pairs), 'pair')} of placements)"
        lines.append(f"{INSEPARABLE[:1].upper()}{INSEPARABLE[1:]}{of}")
    return lines


def nodes_text(runs: Runs) -> str:
    """The nodes of some runs, with how many they had.

    >>> nodes_text([{"nodes": "n1"}, {"nodes": "n2"}, {"nodes": "n1"}]), nodes_text([{"nodes": None}])
    ('n1 (2 runs), n2 (1 run)', 'an unknown node (1 run)')
    """
    return ", ".join(
        f"{nodes or 'an unknown node'} ({counted(len(found), 'run')})" for nodes, found in by_nodes(runs).items()
    )
