"""The figure ``differences``: how much longer each participant took with one placement than with another."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.quantities import counted, percent, seconds, share_of, shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import LONGEST_NAME, NO_RUN, Names, difference_cells
from neurotier.pages.comparison.panels import headed
from neurotier.pages.comparison.statistics import (
    Difference,
    by_condition,
    families,
    family_contrasts,
    mean_walls,
    paired_differences,
)
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.spread import draw_distribution
from neurotier.pages.kit.style import GREY, VERMILION, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

MOST_PAIRS = 60
"""With more pairs of placements, those with the fastest are drawn."""

NOTE = (
    "Wall time of each participant's job, mean over repetitions, the second placement's taken from the first's,"
    " on each node where there are several. Box: quartiles; line: 5th to 95th per cent; dots: participants, if few;"
    " diamond: median. It shows how far participants agree, not what moved a whole run: see the dots of the makespan."
)


@dataclass(frozen=True)
class Pair:
    """A difference, and its share of the median time with the faster placement."""

    difference: Difference
    share: float


def pairs(tables: Compared) -> list[Pair]:
    """All differences of placements with the values behind them."""
    means = mean_walls(tables.runs, tables.participants)
    found = []
    for difference in paired_differences(tables.runs, tables.participants):
        typical_s = statistics.median(means[difference.faster][name] for name in difference.by_participant)
        found.append(Pair(difference, share_of(difference.median_s, typical_s) or 0.0))
    return found


def chosen(all_pairs: Sequence[Pair]) -> tuple[list[Pair], str]:
    """What is drawn, and a sentence about what is not; empty if all is."""
    if len(all_pairs) <= MOST_PAIRS:
        return list(all_pairs), ""
    beaten: dict[Condition, int] = {}
    for pair in all_pairs:
        beaten.setdefault(pair.difference.faster, 0)
        beaten[pair.difference.slower] = beaten.get(pair.difference.slower, 0) + 1
    fastest = {
        min(members, key=lambda condition: (beaten[condition], condition)) for members in families(beaten).values()
    }
    shown = [pair for pair in all_pairs if {pair.difference.slower, pair.difference.faster} & fastest]
    text = f" Of {len(all_pairs):,} pairs of placements, those with the fastest are drawn"
    if len(shown) > MOST_PAIRS:
        text += f", the first {MOST_PAIRS} of {len(shown):,}"
    return shown[:MOST_PAIRS], f"{text}."


def finding(tables: Compared) -> Finding:
    """The difference that is largest beside the time itself, and whether the makespans differ by more than chance."""
    conditions, all_pairs = by_condition(tables.runs), pairs(tables)
    if not conditions:
        return Finding(NO_RUN, shown=False)
    if not all_pairs:
        return Finding("No two placements ran the same participants under the same conditions", shown=False)
    names = Names(conditions)
    largest = max(all_pairs, key=lambda pair: pair.share)
    difference = largest.difference
    slower, faster = (
        shorten(condition.placement, LONGEST_NAME) for condition in (difference.slower, difference.faster)
    )
    where = f", {about}" if (about := names.about(difference.slower)) else ""
    much = f"{seconds(difference.median_s)} or {percent(largest.share)}"
    text = f"The median participant took {much} longer on {slower} than on {faster}{where}"
    contrast = family_contrasts(conditions)[difference.slower, difference.faster]
    return Finding(text if contrast.is_longer else f"{text}; their makespans are {contrast.doubt}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the differences between placements; write SVG, PNG and TSV."""
    shown, left = chosen(pairs(tables))
    write_figure(stem, finding(tables), table(shown), lambda: figure_of(shown), NOTE + left)


def figure_of(shown: Sequence[Pair]) -> plot.Figure:
    """The figure of at least one pair."""
    panels = group(shown)
    figure, all_axes = panel_axes(panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.axvline(0, color=GREY, linewidth=1)
        for lane, pair in panel.filled():
            values, difference = list(pair.difference.by_participant.values()), pair.difference
            draw_distribution(axes, lane, values, difference.median_s, VERMILION)
            annotate_lane(axes, lane, difference_text(difference))
        label_lanes(axes, panel)
        axes.set_xlabel("Difference of wall time per participant (s)")
        axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,g}"))
    return figure


def difference_text(difference: Difference) -> str:
    """What stands beside a lane."""
    return f"{seconds(difference.median_s)}, {counted(difference.participants, 'participant')}"


def group(shown: Sequence[Pair]) -> list[Panel[Pair]]:
    """Panels as in the other figures; one lane per pair."""
    conditions = {condition for pair in shown for condition in (pair.difference.slower, pair.difference.faster)}
    return headed(
        (
            family,
            [
                Lane(pair_name(pair.difference), pair)
                for pair in shown
                if pair.difference.slower in members and pair.difference.faster in members
            ],
        )
        for family, members in families(conditions).items()
    )


def pair_name(difference: Difference) -> str:
    """What is taken from what."""
    return f"{shorten(difference.slower.placement, 18)} - {shorten(difference.faster.placement, 18)}"


def table(shown: Sequence[Pair]) -> list[Row]:
    """The numbers behind the figure: one row per pair and participant, with the pair's median."""
    return [
        {
            **difference_cells(pair.difference),
            "participant": participant,
            "difference_s": value,
        }
        for pair in shown
        for participant, value in pair.difference.by_participant.items()
    ]
