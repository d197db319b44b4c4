"""The figure ``differences``: how much longer each participant took with one placement than with another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import counted, percent, seconds, shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import LONGEST_NAME, NO_RUN, Names, difference_cells
from neurotier.pages.comparison.panels import headed
from neurotier.pages.comparison.statistics import (
    Difference,
    Family,
    by_condition,
    families,
    family_contrasts,
    paired_differences,
)
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import GREY, VERMILION
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, draw_lanes
from neurotier.pages.kit.spread import draw_distribution
from neurotier.pages.kit.style import write_figure
from neurotier.run.compared import Compared

MOST_PAIRS = 60
"""Of more pairs of placements, so many are drawn."""

NOTE = (
    "Wall time of each participant's job, mean over repetitions, the second placement's taken from the first's,"
    " on each node where there are several. Box: quartiles; line: 5th to 95th per cent; dots: participants, if few;"
    " diamond: median. It shows how far participants agree, not what moved a whole run: see the dots of the makespan."
)


def chosen(every: Sequence[Difference]) -> tuple[list[Difference], str]:
    """What is drawn, and a sentence about what is not; empty if all is."""
    if len(every) <= MOST_PAIRS:
        return list(every), ""
    largest = sorted(every, key=lambda difference: -difference.share)[:MOST_PAIRS]
    return largest, f" Of {len(every):,} pairs of placements, the {MOST_PAIRS} that differ most are drawn."


def finding(tables: Compared) -> Finding:
    """The difference that is largest beside the time itself, and whether the makespans differ by more than chance."""
    conditions, every = by_condition(tables.runs), paired_differences(tables.runs, tables.participants)
    if not conditions:
        return Finding(NO_RUN, shown=False)
    if not every:
        return Finding("No two placements ran the same participants under the same conditions", shown=False)
    names = Names(conditions)
    difference = max(every, key=lambda difference: difference.share)
    slower, faster = (
        shorten(condition.placement, LONGEST_NAME) for condition in (difference.slower, difference.faster)
    )
    where = f", {about}" if (about := names.about(difference.slower)) else ""
    much = f"{seconds(difference.median_s)} or {percent(difference.share)}"
    text = f"The median participant took {much} longer on {slower} than on {faster}{where}"
    contrast = family_contrasts(conditions)[difference.slower, difference.faster]
    return Finding(text if contrast.is_longer else f"{text}; their makespans are {contrast.doubt}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the differences between placements; write SVG, PNG and TSV."""
    shown, left = chosen(paired_differences(tables.runs, tables.participants))
    write_figure(stem, finding(tables), table(shown), lambda: figure_of(shown), NOTE + left)


def figure_of(shown: Sequence[Difference]) -> plot.Figure:
    """The figure of at least one pair, a lane each, in panels as in the other figures."""
    lanes: dict[Family, list[Lane[Difference]]] = {}
    for family, members in families({one for pair in shown for one in (pair.slower, pair.faster)}).items():
        lanes[family] = [
            Lane(f"{shorten(pair.slower.placement, 18)} - {shorten(pair.faster.placement, 18)}", pair)
            for pair in shown
            if pair.slower in members and pair.faster in members
        ]

    def draw_pair(axes: plot.Axes, lane: int, _label: str, pair: Difference) -> str:
        values = list(pair.by_participant.values())
        draw_distribution(axes, lane, values, pair.median_s, VERMILION)
        return f"{seconds(pair.median_s)}, {counted(len(values), 'participant')}"

    figure = draw_lanes(headed(lanes.items()), draw_pair, "Difference of wall time per participant (s)")
    for axes in figure.axes:
        axes.axvline(0, color=GREY, linewidth=1)
    return figure


def table(shown: Sequence[Difference]) -> list[Row]:
    """The numbers behind the figure: one row per pair and participant, with the pair's median."""
    return [
        {
            **difference_cells(difference),
            "participant": participant,
            "difference_s": value,
        }
        for difference in shown
        for participant, value in difference.by_participant.items()
    ]
