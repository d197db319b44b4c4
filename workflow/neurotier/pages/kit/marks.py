"""Charts of lanes: each has a name, marks drawn from its rows, and a text next to it; panels have separate axes.

Times of several origins differ by orders, and are not to be compared at a glance. Rows of one panel stand below each
other, under a heading for each group; rows that follow each other under one name share a lane. Marks draw what they
read from the rows' columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from neurotier.core.quantities import shorten
from neurotier.core.tables import Row, Rows, gathered
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import (
    BLACK,
    BLUE,
    GREY,
    LIGHT_GREY,
    UNITS,
    VERMILION,
    WIDTH_IN,
    Chart,
    Unit,
    hover,
    label_powers,
)

LANE_IN, LEGEND_IN = 0.23, 0.2
READABLE_DOTS = 100
"""Most values that are drawn as one dot each."""

READABLE_LANES, SQUEEZED_IN = 40, 3.4
"""Most lanes of a panel that all have names; more, and lanes without names, are squeezed into this height, in."""

FEW_LANES, FEW_TEXTS = 20, 5
"""About how many of them have names and texts then, and how many texts may stand anywhere."""

DRAWN_SINGLY = 400
"""More bars than this are drawn as pixels: otherwise the page would not open."""

CROSS: dict[str, Any] = {
    "label": "not written",
    "linestyle": "",
    "marker": "x",
    "color": BLACK,
    "markersize": 4,
    "markeredgewidth": 1.0,
}

Placed = Sequence[tuple[int, Row]]
"""The rows of a panel, each with the place of its lane."""


class Kind(NamedTuple):
    """One part of bars: how it is named and filled; hatched for what is not a measured cause."""

    label: str
    colour: str
    hatched: bool = False

    @property
    def filling(self) -> dict[str, Any]:
        """How it is filled."""
        hatch = {"edgecolor": GREY, "hatch": "/////"} if self.hatched else {}
        return {"facecolor": self.colour, "linewidth": 0} | hatch


class Mark(ABC):
    """What is drawn of the rows of a panel."""

    @abstractmethod
    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw it."""

    def handles(self, rows: Iterable[Row]) -> list[plot.Artist]:
        """What the legend has of it: nothing, where the note says what it is."""
        return []


def draw_bars(axes: plot.Axes, bars: Sequence[Sequence[float]], says: Sequence[str], **look: Any) -> None:
    """Draw bars, of which each has a place, a begin and an end, with what they say under the pointer."""
    half = 0.35 if len({place for place, *_ in bars}) <= READABLE_LANES else 0.5
    corners = [
        [(begin, place - half), (end, place - half), (end, place + half), (begin, place + half)]
        for place, begin, end in bars
    ]
    pixels = len(bars) > DRAWN_SINGLY
    drawn = plot.PolyCollection(corners, rasterized=pixels, antialiased=not pixels, **look)
    drawn.set_urls([hover(text) for text in says] * 2)  # matplotlib drops that of a lone one
    axes.add_collection(drawn)


@dataclass(frozen=True)
class Stack(Mark):
    """A bar of parts, one after the other: columns to their looks. Below 0 nothing is drawn.

    The ``colour`` of a row, if it has one, is that of its bar.
    """

    kinds: Mapping[str, Kind]

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the bars."""
        places, ends = [place for place, _ in rows], [0.0] * len(rows)
        for column, kind in self.kinds.items():
            starts, values = ends, [row.get(column) for _, row in rows]
            ends = [start + max(0.0, value or 0.0) / unit.scale for start, value in zip(starts, values, strict=True)]
            if len(rows) > DRAWN_SINGLY:
                axes.fill_betweenx(places, starts, ends, step="mid", rasterized=True, **kind.filling)
                continue
            said = [
                f"{', '.join(filter(None, (row['lane'], kind.label)))}: {unit.words(value)}"
                for (_, row), value in zip(rows, values, strict=True)
            ]
            colours = {"facecolor": [row.get("colour", kind.colour) for _, row in rows]}
            draw_bars(axes, [*zip(places, starts, ends, strict=True)], said, **kind.filling | colours)

    def handles(self, rows: Iterable[Row]) -> list[plot.Artist]:
        """The parts that there are, if there are several."""
        present = [kind for column, kind in self.kinds.items() if any(row.get(column) for row in rows)]
        return [plot.Patch(label=kind.label, **kind.filling) for kind in present if len(present) > 1]


@dataclass(frozen=True)
class Spans(Mark):
    """Phases of jobs, from ``start_s`` to ``end_s``, and a grey line from the start of each job to its end; a cross at
    the end of one that is ``left`` before all was written.

    Attributes
    ----------
    name
        Column that names jobs; each ``iteration`` of one is a job of its own.
    colours
        Colour of each phase; what is in no phase of its job has an empty one.
    """

    name: str
    colours: Mapping[str, str]

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the phases."""
        jobs = gathered(((place, row[self.name], row.get("iteration")), row) for place, row in rows)
        places = [place for place, *_ in jobs]
        ends = [max(row["end_s"] for row in own) for own in jobs.values()]
        axes.hlines(
            places, [min(row["start_s"] for row in own) for own in jobs.values()], ends, GREY, linewidth=0.8, zorder=1
        )
        phases = [(place, row) for place, row in rows if row["phase"]]
        bars = [(place, row["start_s"], row["end_s"]) for place, row in phases]
        said = [f"{row[self.name]}, {row['phase']}: {unit.words(row['end_s'] - row['start_s'])}" for _, row in phases]
        draw_bars(axes, bars, said, facecolor=[self.colours[row["phase"]] for _, row in phases], linewidth=0)
        left = [place for *place, own in zip(ends, places, jobs.values(), strict=True) if own[0].get("left")]
        if left:
            axes.plot(*zip(*left, strict=True), **CROSS)

    def handles(self, rows: Iterable[Row]) -> list[plot.Artist]:
        """The phases that there are, and the cross."""
        rows = list(rows)
        drawn = {row["phase"] for row in rows}
        found: list[plot.Artist] = [
            plot.Patch(label=phase, color=colour) for phase, colour in self.colours.items() if phase in drawn
        ]
        return found + [plot.Line2D([], [], **CROSS)] * any(row.get("left") for row in rows)


@dataclass(frozen=True)
class Line(Mark):
    """A line from one column to another; ``above`` the middle of the lane by so much."""

    low: str
    high: str
    colour: str = BLACK
    above: float = 0.0

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the lines."""
        for place, row in rows:
            if row.get(self.low) is not None:
                ends = [row[self.low] / unit.scale, row[self.high] / unit.scale]
                axes.plot(ends, [place - self.above] * 2, color=self.colour, linewidth=1.0, marker="|", markersize=4)


@dataclass(frozen=True)
class Points(Mark):
    """The numbers of a lane as points side by side; ``above`` its middle by so much."""

    column: str
    label: str = ""
    marker: str = "o"
    colour: str = BLACK
    above: float = 0.0

    @property
    def look(self) -> dict[str, Any]:
        """How a point looks."""
        size, edge = (11, 2.2) if self.marker == "|" else (4.5, 1.0)
        return {
            "linestyle": "",
            "marker": self.marker,
            "markersize": size,
            "markeredgewidth": edge,
            "color": self.colour,
            "markerfacecolor": "white" if self.marker == "o" else self.colour,
        }

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the points."""
        for place, own in gathered(rows).items():
            cells = [row.get(self.column) for row in own]
            listed = [value for cell in cells for value in (cell if isinstance(cell, list) else [cell])]
            values = [value / unit.scale for value in listed if value is not None]
            if values:
                (points,) = axes.plot(values, side_by_side(place - self.above, len(values)), **self.look)
                said = ", ".join(unit.words(value * unit.scale) for value in values)
                named = ", ".join(filter(None, (own[0]["lane"], self.label)))
                points.set_url(hover(f"{named}: {said}"))

    def handles(self, rows: Iterable[Row]) -> list[plot.Artist]:
        """The point, if it is named."""
        return [plot.Line2D([], [], label=self.label, **self.look)] if self.label else []


@dataclass(frozen=True)
class Box(Mark):
    """How the numbers of a lane are distributed: a box of the quartiles, a line from the 5th to the 95th per cent, few
    values as dots that say what they are of, the median as a diamond; in red those that are to be seen."""

    column: str
    name: str
    seen: str = ""

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the distributions."""
        import numpy as np  # the rules read pages, and draw nothing

        for place, own in gathered(rows).items():
            values = [row[self.column] / unit.scale for row in own]
            low, lower, median, upper, high = np.percentile(values, (5, 25, 50, 75, 95))
            axes.hlines(place, low, high, GREY, linewidth=1)
            axes.barh(place, upper - lower, 0.6, lower, color=LIGHT_GREY)
            shown = [item for item in enumerate(own) if item[1].get(self.seen) or len(own) <= READABLE_DOTS]
            looks = [(40, VERMILION) if row.get(self.seen) else (12, BLUE) for _, row in shown]
            dots = axes.scatter(
                [row[self.column] / unit.scale for _, row in shown],
                [place + 0.2 * math.sin(2.4 * number) for number, _ in shown],
                *zip(*looks, strict=True),
                alpha=0.7,
                linewidths=0,
            )
            said = [hover(f"{row[self.name]}: {unit.words(row[self.column])}") for _, row in shown]
            dots.set_urls(said * 2)  # as of bars
            axes.plot([median], [place], "D", markersize=5, color=BLUE, markeredgecolor=BLACK)


@dataclass(frozen=True)
class Lanes(Chart):
    """A chart of lanes.

    Attributes
    ----------
    marks
        What is drawn of the rows.
    x, unit
        Name of the axes, and the unit of the rows' values.
    lanes
        Rows with ``panel``, ``group``, ``lane``, ``text`` and what the marks read, by default the table; all but the
        lane may be left out. A lane that is a number has no name.
    shared
        Whether all panels have one range.
    logarithmic, marked
        Whether axes are; and a value that a line marks, which need not be the axis' end.
    """

    marks: Sequence[Mark] = ()
    x: str = ""
    unit: str = "s"
    lanes: Sequence[Row] = ()
    shared: bool = False
    logarithmic: bool = False
    marked: float | None = None

    def draw(self) -> plot.Figure:
        """A panel above the other, each as high as its lanes need."""
        rows = self.lanes or self.table
        panels = [with_places(list(own)) for _, own in groupby(rows, lambda row: row.get("panel"))]
        handles = [handle for mark in self.marks for handle in mark.handles(rows)]
        heights = [LEGEND_IN] * bool(handles) + [lanes_in(own) + 0.75 for own in panels]
        figure = plot.Figure(figsize=(WIDTH_IN, sum(heights) + self.around_in))
        grid = list(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
        if handles:
            legend = grid.pop(0)
            legend.set_axis_off()
            legend.legend(
                handles=handles,
                loc="center left",
                bbox_to_anchor=(0, 0.5),
                borderpad=0,
                ncols=len(handles),
                handlelength=1.2,
                columnspacing=1.2,
            ).set_in_layout(False)
        for axes, own in zip(grid, panels, strict=True):
            self.draw_panel(axes, own)
        ends = [axes.dataLim.x1 for axes in grid]
        for axes, end in zip(grid, ends, strict=True):
            if end > 0 and not self.logarithmic and not isinstance(self.marks[0], Box):
                axes.set_xlim(0, 1.02 * (max(ends) if self.shared else end))
        return figure

    def draw_panel(self, axes: plot.Axes, rows: Placed) -> None:
        """One panel and its axes."""
        unit = UNITS[self.unit]
        for mark in self.marks:
            mark.draw(axes, rows, unit)
        if self.marked is not None:
            axes.axvline(self.marked, color=GREY, linewidth=1)
        lanes = dict(reversed(rows))
        kept = [*lanes][:: 1 if is_named(rows) else -(-len(lanes) // FEW_LANES)]  # of many, those that can be read
        texts = [place for place, row in lanes.items() if row.get("text")]
        texts = texts if len(texts) <= FEW_TEXTS else [place for place in texts if place in kept]
        named = lanes if is_named(rows) else texts
        names = {place: shorten(lanes[place]["lane"], 42) for place in named if isinstance(lanes[place]["lane"], str)}
        heads = {place - 1: row["group"] for place, row in lanes.items() if place - 1 not in lanes and row.get("group")}
        axes.set_yticks([*heads, *names], [*heads.values(), *names.values()])
        for text in axes.get_yticklabels()[: len(heads)]:
            text.set_fontweight("bold")
        for place in texts:
            axes.annotate(
                lanes[place]["text"],
                (1, place),
                (6, 0),
                ("axes fraction", "data"),
                "offset points",
                va="center",
                fontsize=8,
            )
        axes.set_ylim(max(lanes) + 0.6, -0.6)
        axes.set_title(shorten(rows[0][1].get("panel", ""), 110))
        axes.set_xlabel(f"{self.x} ({unit.label})" if unit.label else self.x)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        if self.logarithmic:
            axes.set_xscale("log")
            label_powers(axes.xaxis)
        axes.xaxis.set_major_formatter("{x:,.10g}")


def with_places(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Rows with the places of their lanes, one of them left free above each group for its heading."""
    placed, place = list[tuple[int, Row]](), 0
    for group, members in groupby(rows, lambda row: row.get("group")):
        place += bool(group)
        for _, own in groupby(members, lambda row: row["lane"]):
            placed += [(place, row) for row in own]
            place += 1
    return placed


def is_named(rows: Placed) -> bool:
    """Whether lanes have names that can be read."""
    return isinstance(rows[0][1]["lane"], str) and len({place for place, _ in rows}) <= READABLE_LANES


def lanes_in(rows: Placed) -> float:
    """Height of the lanes of a panel, in."""
    height_in = LANE_IN * (1 + rows[-1][0])
    return height_in if is_named(rows) else min(SQUEEZED_IN, height_in)


def side_by_side(lane: float, count: int) -> list[float]:
    """Where dots of a lane stand, one beside the other, so that equal values are seen.

    >>> side_by_side(1, 3)
    [0.9, 1.0, 1.1]
    """
    return [lane + 0.4 * (place - (count - 1) / 2) / max(4, count) for place in range(count)]


def in_lanes(rows: Iterable[Row], name: str, slack_s: float = 0.0) -> Rows:
    """Phases with the lane of their job: the lowest that is free when it starts, so as many as ran at once.

    Parameters
    ----------
    rows
        With ``phase``, and ``start_s`` and ``end_s`` on any clock. What is in no phase of its job has an empty one.
        Where there are ``iteration``s, each is a job of its own.
    name
        Column that names jobs.
    slack_s
        By how much a job may begin before the one before it on its lane has ended, s: clocks are not exact.

    Examples
    --------
    >>> spans = {"a": (7, 9), "b": (7, 8), "c": (8, 10)}
    >>> rows = [{"job": job, "start_s": start, "end_s": end} for job, (start, end) in spans.items()]
    >>> [(row["lane"], row["job"]) for row in in_lanes(rows, "job")]
    [(0, 'a'), (1, 'b'), (1, 'c')]
    """
    ordered = sorted(rows, key=lambda row: (row["start_s"], row[name]))
    jobs = gathered(((row[name], row.get("iteration")), row) for row in ordered)
    placed, ends_s = Rows(), list[float]()
    for phases in jobs.values():
        free = (lane for lane, end_s in enumerate(ends_s) if end_s <= phases[0]["start_s"] + slack_s)
        lane = next(free, len(ends_s))
        ends_s[lane : lane + 1] = [max(row["end_s"] for row in phases)]
        placed += [{"lane": lane} | row for row in phases]
    return sorted(placed, key=lambda row: row["lane"])
