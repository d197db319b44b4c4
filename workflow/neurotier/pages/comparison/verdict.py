"""The verdict of a comparison: which placement is fastest, by how much, sure or not, and why.

Sure means: makespans differ by more than chance (:mod:`neurotier.pages.kit.contrasts`); all runs did equally many of
the same participants, and found about as much of their inputs in the page cache, as far as it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neurotier.core.quantities import counted, seconds
from neurotier.core.tables import Row
from neurotier.pages.comparison.reasons import INSEPARABLE, inseparable, longer_by_cause, reason_lines
from neurotier.pages.comparison.statistics import (
    Difference,
    Family,
    by_condition,
    families,
    family_contrasts,
    inputs_text,
    paired_differences,
    set_against,
)
from neurotier.pages.kit.contrasts import Contrast
from neurotier.pages.kit.findings import spread_text
from neurotier.run.compared import MEMORY, Condition
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
    """What a family's conditions share.

    >>> family_name(Family("campaign", "bet", 25, "cold"))
    'campaign, bet, 25 at once, page cache cold'
    """
    return f"{family.origin}, {family.tool}, {family.parallelism:,} at once, {inputs_text(family.cache)}"


def judge_family(
    family: Family,
    members: Sequence[Condition],
    groups: Groups,
    contrasts: Contrasts,
    differences: Differences,
) -> FamilyVerdict:
    """The verdict on one family."""
    makespans = {condition: Spread(tuple(run["makespan_s"] for run in groups[condition])) for condition in members}
    fastest, *others = sorted(members, key=lambda condition: (makespans[condition].median, condition))
    placements = [PlacementVerdict(fastest, makespans[fastest])]
    for other in others:
        contrast, pair = contrasts[other, fastest], differences.get(frozenset((fastest, other)))
        doubts = doubts_of(fastest, other, groups, contrast, pair)
        fast_runs, slow_runs, _ = set_against(groups[fastest], groups[other])
        longer = longer_by_cause(fast_runs, slow_runs)
        placements.append(PlacementVerdict(other, makespans[other], contrast, pair, doubts, longer))
    reasons = reason_lines({condition: groups[condition] for condition in members})
    return FamilyVerdict(family_name(family), placements, headline(placements), reasons)


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
        text += f"; not sure against {names}: {', '.join(doubts)}"
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
