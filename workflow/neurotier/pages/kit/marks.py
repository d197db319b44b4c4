"""Charts of lanes: each lane has a name, marks drawn from its rows, and a text next to it.

Panels have separate axes, since times of different origins differ by orders of magnitude, and should not be compared at
a glance. In a panel, groups of lanes have a heading. Consecutive rows with the same lane name share a lane. Marks draw
what they read from the columns of the rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from neurotier.core.quantities import shorten
from neurotier.core.tables import Row, Rows, grouped
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
"""Up to this many values, each is drawn as a dot."""

READABLE_LANES, SQUEEZED_IN = 40, 3.4
"""Up to this many lanes of a panel all have names; more lanes, or lanes without names, share this height, inches."""

FEW_LANES, FEW_TEXTS = 20, 5
"""About how many of such lanes have names and texts, and how many texts are shown wherever they are."""

DRAWN_SINGLY = 400
"""More bars than this are drawn as pixels, since otherwise the page would be too large to open."""

CROSS: dict[str, Any] = {
    "label": "not written",
    "linestyle": "",
    "marker": "x",
    "color": BLACK,
    "markersize": 4,
    "markeredgewidth": 1.0,
}

Placed = Sequence[tuple[int, Row]]
"""The rows of a panel, each with the position of its lane."""


class Kind(NamedTuple):
    """A part of bars, with its name and colour; hatched if it is not a measured cause."""

    label: str
    colour: str
    hatched: bool = False

    @property
    def filling(self) -> dict[str, Any]:
        """The arguments that fill it in matplotlib."""
        hatch = {"edgecolor": GREY, "hatch": "/////"} if self.hatched else {}
        return {"facecolor": self.colour, "linewidth": 0} | hatch


class Mark(ABC):
    """A way to draw the rows of a panel."""

    @abstractmethod
    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the rows on the axes."""

    def handles(self, rows: Iterable[Row]) -> list[plot.Artist]:
        """Its entries in the legend; none if the note of the figure explains it."""
        return []


def draw_bars(axes: plot.Axes, bars: Sequence[Sequence[float]], says: Sequence[str], **look: Any) -> None:
    """Draw bars, each given by position, begin and end, with a text under the pointer."""
    half = 0.35 if len({place for place, *_ in bars}) <= READABLE_LANES else 0.5
    corners = [
        [(begin, place - half), (end, place - half), (end, place + half), (begin, place + half)]
        for place, begin, end in bars
    ]
    pixels = len(bars) > DRAWN_SINGLY
    drawn = plot.PolyCollection(corners, rasterized=pixels, antialiased=not pixels, **look)
    drawn.set_urls([hover(text) for text in says] * 2)  # twice, since matplotlib drops the address of a single bar
    axes.add_collection(drawn)


@dataclass(frozen=True)
class Stack(Mark):
    """A bar of consecutive parts; ``kinds`` says how each column is drawn. Values below 0 are not drawn.

    If a row has a ``colour``, its bar has that colour.
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
        """The parts that occur, if there are several."""
        present = [kind for column, kind in self.kinds.items() if any(row.get(column) for row in rows)]
        return [plot.Patch(label=kind.label, **kind.filling) for kind in present if len(present) > 1]


@dataclass(frozen=True)
class Spans(Mark):
    """Phases of jobs, from ``start_s`` to ``end_s``, and a grey line from the start of each job to its end.

    A job that was ``left`` before everything was written has a cross at its end.

    Attributes
    ----------
    name
        Column that names jobs; each ``iteration`` of a name is a job of its own.
    colours
        Colour of each phase; time of a job outside any phase has an empty phase, which is not drawn.
    """

    name: str
    colours: Mapping[str, str]

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the phases."""
        jobs = grouped(((place, row[self.name], row.get("iteration")), row) for place, row in rows)
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
        """The phases that occur, and the cross."""
        rows = list(rows)
        drawn = {row["phase"] for row in rows}
        found: list[plot.Artist] = [
            plot.Patch(label=phase, color=colour) for phase, colour in self.colours.items() if phase in drawn
        ]
        return found + [plot.Line2D([], [], **CROSS)] * any(row.get("left") for row in rows)


@dataclass(frozen=True)
class Line(Mark):
    """A line from the value of one column to that of another, ``above`` the middle of the lane by this much."""

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
    """The numbers of a lane as points side by side, ``above`` its middle by this much."""

    column: str
    label: str = ""
    marker: str = "o"
    colour: str = BLACK
    above: float = 0.0

    @property
    def look(self) -> dict[str, Any]:
        """The arguments for a point in matplotlib."""
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
        for place, own in grouped(rows).items():
            cells = [row.get(self.column) for row in own]
            listed = [value for cell in cells for value in (cell if isinstance(cell, list) else [cell])]
            values = [value / unit.scale for value in listed if value is not None]
            if values:
                (points,) = axes.plot(values, side_by_side(place - self.above, len(values)), **self.look)
                said = ", ".join(unit.words(value * unit.scale) for value in values)
                named = ", ".join(filter(None, (own[0]["lane"], self.label)))
                points.set_url(hover(f"{named}: {said}"))

    def handles(self, rows: Iterable[Row]) -> list[plot.Artist]:
        """A point, if it has a label."""
        return [plot.Line2D([], [], label=self.label, **self.look)] if self.label else []


@dataclass(frozen=True)
class Box(Mark):
    """The distribution of a lane's numbers: a box of the quartiles, a line from the 5th to the 95th percentile, and a
    diamond at the median. A few values are drawn as dots that show their name under the pointer. Values that should be
    ``seen`` are always drawn, in red."""

    column: str
    name: str
    seen: str = ""

    def draw(self, axes: plot.Axes, rows: Placed, unit: Unit) -> None:
        """Draw the distributions."""
        import numpy as np  # imported here, since rules import this module without drawing

        for place, own in grouped(rows).items():
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
            dots.set_urls(said * 2)  # twice, as in draw_bars
            axes.plot([median], [place], "D", markersize=5, color=BLUE, markeredgecolor=BLACK)


@dataclass(frozen=True)
class Lanes(Chart):
    """A chart of lanes.

    Attributes
    ----------
    marks
        How the rows are drawn.
    x, unit
        Name of the horizontal axes, and the unit of the rows' values.
    lanes
        Rows with ``panel``, ``group``, ``lane``, ``text`` and the columns that the marks read, by default the table;
        all but the lane may be left out. A lane that is a number has no name.
    shared
        Whether all panels have the same range.
    logarithmic
        Whether the axes are logarithmic.
    marked
        A value to mark with a line; ``None`` for none.
    """

    marks: Sequence[Mark] = ()
    x: str = ""
    unit: str = "s"
    lanes: Sequence[Row] = ()
    shared: bool = False
    logarithmic: bool = False
    marked: float | None = None

    def draw(self) -> plot.Figure:
        """Draw the panels one above the other, each as high as its lanes need."""
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
        """Draw one panel and its axes."""
        unit = UNITS[self.unit]
        for mark in self.marks:
            mark.draw(axes, rows, unit)
        if self.marked is not None:
            axes.axvline(self.marked, color=GREY, linewidth=1)
        lanes = dict(reversed(rows))
        kept = [*lanes][:: 1 if is_named(rows) else -(-len(lanes) // FEW_LANES)]  # only as many as can be read
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
    """Rows with the positions of their lanes; a position above each group is left free for its heading."""
    placed, place = list[tuple[int, Row]](), 0
    for group, members in groupby(rows, lambda row: row.get("group")):
        place += bool(group)
        for _, own in groupby(members, lambda row: row["lane"]):
            placed += [(place, row) for row in own]
            place += 1
    return placed


def is_named(rows: Placed) -> bool:
    """Whether the lanes have names, and are few enough for the names to be read."""
    return isinstance(rows[0][1]["lane"], str) and len({place for place, _ in rows}) <= READABLE_LANES


def lanes_in(rows: Placed) -> float:
    """The height of the lanes of a panel, inches."""
    height_in = LANE_IN * (1 + rows[-1][0])
    return height_in if is_named(rows) else min(SQUEEZED_IN, height_in)


def side_by_side(lane: float, count: int) -> list[float]:
    """The vertical positions of a lane's dots, side by side, so that equal values do not hide each other.

    >>> side_by_side(1, 3)
    [0.9, 1.0, 1.1]
    """
    return [lane + 0.4 * (place - (count - 1) / 2) / max(4, count) for place in range(count)]


def in_lanes(rows: Iterable[Row], name: str, slack_s: float = 0.0) -> Rows:
    """Phases with the lane of their job, the lowest one that is free when the job starts.

    So there are as many lanes as jobs ran at once.

    Parameters
    ----------
    rows
        Rows with ``phase``, and ``start_s`` and ``end_s`` on any clock. Time of a job outside any phase has an empty
        phase. If rows have an ``iteration``, each iteration is a job of its own.
    name
        Column that names jobs.
    slack_s
        By how much a job may begin before the previous one on its lane ends, s, since clocks are not exact.

    Examples
    --------
    >>> spans = {"a": (7, 9), "b": (7, 8), "c": (8, 10)}
    >>> rows = [{"job": job, "start_s": start, "end_s": end} for job, (start, end) in spans.items()]
    >>> [(row["lane"], row["job"]) for row in in_lanes(rows, "job")]
    [(0, 'a'), (1, 'b'), (1, 'c')]
    """
    ordered = sorted(rows, key=lambda row: (row["start_s"], row[name]))
    jobs = grouped(((row[name], row.get("iteration")), row) for row in ordered)
    placed, ends_s = Rows(), list[float]()
    for phases in jobs.values():
        free = (lane for lane, end_s in enumerate(ends_s) if end_s <= phases[0]["start_s"] + slack_s)
        lane = next(free, len(ends_s))
        ends_s[lane : lane + 1] = [max(row["end_s"] for row in phases)]
        placed += [{"lane": lane} | row for row in phases]
    return sorted(placed, key=lambda row: row["lane"])
