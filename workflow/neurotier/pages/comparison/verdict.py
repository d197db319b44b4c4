"""The verdict of a comparison: which placement is fastest, by how much, sure or not, and why.

Sure means: at least two repetitions of both, their makespans do not overlap, all runs did equally many participants
and found about as much of their inputs in the page cache (as far as it is known), and the 95 % interval of the
participants' paired differences lies on the same side of 0. Two repetitions that do
not overlap can still be chance; their number is always said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.reasons import difference_line, reason_lines
from neurotier.pages.comparison.statistics import (
    CONFIDENCE,
    Condition,
    Difference,
    Family,
    by_condition,
    families,
    left_out,
    paired_differences,
)
from neurotier.run.compared import MEMORY

CACHED_APART = 0.1
"""Shares of the inputs in the page cache that differ by more make runs unlike."""

Groups = Mapping[Condition, Sequence[Row]]
Differences = Mapping[frozenset[Condition], Difference]


@dataclass(frozen=True)
class FamilyVerdict:
    """The verdict on conditions that differ in their placement alone.

    Attributes
    ----------
    name
        What they share, for a heading.
    fastest
        The one with the shortest median makespan.
    sure
        Whether it is faster than every other one for sure.
    headline
        The result in one sentence, without a full stop.
    lines
        Each other placement against the fastest, then why.
    """

    family: Family
    name: str
    fastest: Condition
    sure: bool
    headline: str
    lines: list[str]


@dataclass(frozen=True)
class ComparisonVerdict:
    """The verdict on a whole comparison.

    Attributes
    ----------
    counts
        How many runs were compared and left out.
    left_out
        The runs that were left out, one sentence each with the reasons.
    families
        One verdict for each set of conditions that differ in their placement alone.
    """

    counts: str
    left_out: list[str]
    families: list[FamilyVerdict]


def judge(runs: Sequence[Row], phases: Sequence[Row]) -> ComparisonVerdict:
    """Sum up a comparison from rows of ``compared_runs.tsv`` and ``compared_participants.tsv``."""
    groups, excluded = by_condition(runs), left_out(runs)
    found = {frozenset((item.slower, item.faster)): item for item in paired_differences(runs, phases)}
    verdicts = [judge_family(family, members, groups, found) for family, members in families(groups).items()]
    compared = sum(len(members) for members in groups.values())
    counts = f"{counted(compared, 'run')} compared, {len(excluded):,} left out"
    return ComparisonVerdict(counts if runs else "No run to compare", [why_left_out(run) for run in excluded], verdicts)


def why_left_out(run: Row) -> str:
    """One run that is not compared, and why."""
    reason = run["valid"] if run["valid"] != "valid" else "it has no makespan"
    return f"{run['origin']}, {run['placement']}, run {run['run']}: {reason}"


def family_name(family: Family) -> str:
    """What a family's conditions share.

    >>> family_name(Family("campaign", "bet", 25, "cold"))
    'campaign, bet, 25 at once, page cache cold'
    """
    cache = "inputs in memory" if family.cache == MEMORY else f"page cache {family.cache}"
    return f"{family.origin}, {family.tool}, {family.parallelism:,} at once, {cache}"


def judge_family(
    family: Family, members: Sequence[Condition], groups: Groups, differences: Differences
) -> FamilyVerdict:
    """The verdict on one family."""
    makespans = {condition: makespan_of(groups[condition]) for condition in members}
    fastest, *others = sorted(members, key=lambda condition: (makespans[condition].median, condition))
    own = {condition: groups[condition] for condition in members}
    best = makespans[fastest]
    if not others:
        headline = f"{fastest.placement} alone was run: makespan {spread_text(best)}; nothing to compare it with"
        return FamilyVerdict(family, family_name(family), fastest, False, headline, reason_lines(own))
    doubts = {
        other: doubts_of(fastest, other, groups, differences.get(frozenset((fastest, other)))) for other in others
    }
    sure = not any(doubts.values())
    second = others[0]
    longer = longer_text(best, makespans[second])
    if sure:
        headline = f"{fastest.placement} is fastest: makespan {seconds(best.median)}; {second.placement} {longer}; sure"
    else:
        reasons = dict.fromkeys(doubt for found in doubts.values() for doubt in found)
        headline = (
            f"{fastest.placement} had the shortest makespan, {seconds(best.median)}; {second.placement} {longer};"
            f" not sure: {', '.join(reasons)}"
        )
    lines = [f"{fastest.placement}: makespan {spread_text(best)}"]
    for other in others:
        pair = differences.get(frozenset((fastest, other)))
        lines.append(pair_line(other, makespans[other], best, pair, doubts[other]))
        lines.append(difference_line(fastest, other, groups))
    return FamilyVerdict(family, family_name(family), fastest, sure, headline, lines + reason_lines(own))


def makespan_of(runs: Sequence[Row]) -> Spread:
    """Makespans of repetitions, s."""
    return Spread(tuple(run["makespan_s"] for run in runs))


def spread_text(makespan: Spread) -> str:
    """Median, and the range with the number of repetitions.

    >>> spread_text(Spread((2.0, 1.0, 4.0))), spread_text(Spread((2.0,)))
    ('2.00 s (1.00 s to 4.00 s in 3 repetitions)', '2.00 s (one repetition)')
    """
    count = len(makespan.values)
    if count == 1:
        return f"{seconds(makespan.median)} (one repetition)"
    low, high = seconds(makespan.low), seconds(makespan.high)
    return f"{seconds(makespan.median)} ({low} to {high} in {count} repetitions)"


def longer_text(best: Spread, other: Spread) -> str:
    """How much longer the other takes, by the medians.

    >>> longer_text(Spread((100.0,)), Spread((150.0,)))
    'took 1.50 times as long (50.0 s more)'
    """
    more_s = other.median - best.median
    if more_s == 0 or best.median <= 0:
        return "took as long" if more_s == 0 else f"took {seconds(more_s)} more"
    return f"took {other.median / best.median:.2f} times as long ({seconds(more_s)} more)"


def pair_line(other: Condition, makespan: Spread, best: Spread, pair: Difference | None, doubts: Sequence[str]) -> str:
    """One placement against the fastest."""
    text = f"{other.placement}: makespan {spread_text(makespan)}; it {longer_text(best, makespan)}"
    if pair is not None:
        slower = pair.slower == other
        text += f"; the median participant took {seconds(pair.median_s)} {'longer' if slower else 'less'}"
        low, high = (pair.low_s, pair.high_s)
        what = f"{percent(CONFIDENCE)} interval" if pair.confidence >= CONFIDENCE else "range"
        text += f" ({what} {seconds(low)} to {seconds(high)}, {counted(pair.participants, 'participant')})"
    return f"{text}; {'not sure: ' + ', '.join(doubts) if doubts else 'sure'}"


def doubts_of(fast: Condition, slow: Condition, groups: Groups, pair: Difference | None) -> list[str]:
    """Why it is not sure that one condition is faster than another; nothing if it is."""
    best, other = makespan_of(groups[fast]), makespan_of(groups[slow])
    doubts = []
    if min(len(best.values), len(other.values)) < 2:
        doubts.append("one repetition only")
    elif best.high >= other.low:
        doubts.append("makespans of the repetitions overlap")
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
    elif pair.confidence < CONFIDENCE:
        doubts.append(f"{counted(pair.participants, 'participant')} are too few for a {percent(CONFIDENCE)} interval")
    elif pair.low_s <= 0:
        doubts.append("the interval of the participants' differences contains 0")
    elif pair.faster != fast:
        doubts.append("the median participant took less time in the other")
    return doubts
