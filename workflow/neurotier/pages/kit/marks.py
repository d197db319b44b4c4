"""Charts of lanes: in each a name, what is drawn of its row, and a text beside it; panels have axes of their own.

Times of several origins differ by orders, and are not to be compared at a glance. Rows of one panel stand below each
other, under a heading for each group; marks draw what they read from the rows' columns.
"""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from neurotier.core.quantities import MISSING, seconds, shorten
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, BLUE, GREY, LIGHT_GREY, VERMILION, WIDTH_IN, Chart, hover

LANE_IN, LEGEND_IN = 0.23, 0.2
READABLE_DOTS = 100
"""Most values that get a dot each."""

READABLE_LANES, SQUEEZED_IN = 40, 3.4
"""Most lanes of a panel that have names; more are squeezed into a panel of this height, in."""

DRAWN_SINGLY = 200
"""Of more, bars are areas of pixels: the page would not open otherwise."""

WIDE = 600
"""From this ratio of its ends on, a logarithmic axis has a label for each power of ten alone."""

Words = Callable[[float], str]
Placed = Sequence[tuple[int, Row]]
"""The rows of a panel, each with its place."""


def told(row: Row, label: str, text: str) -> str:
    """What a mark says under the pointer: lane, part, and value."""
    return hover(", ".join(filter(None, (row["lane"], label))) + f": {text}")


class Kind(NamedTuple):
    """One part of stacked bars: how it is named and filled; hatched for what is not a measured cause."""

    label: str
    colour: str
    hatched: bool = False

    @property
    def filling(self) -> dict[str, Any]:
        """How it is filled."""
        if self.hatched:
            return {"facecolor": self.colour, "edgecolor": GREY, "hatch": "/////", "linewidth": 0}
        return {"color": self.colour, "linewidth": 0}


class Mark(ABC):
    """What is drawn of the rows of a panel."""

    @abstractmethod
    def draw(self, axes: plot.Axes, rows: Placed, scale: float, words: Words) -> float:
        """Draw it, with values divided by a scale; where it ends."""

    def handles(self) -> list[plot.Artist]:
        """What the legend has of it: nothing, where the note says what it is."""
        return []


@dataclass(frozen=True)
class Stack(Mark):
    """A bar of parts, one after the other: columns to their looks. Below 0 nothing is drawn.

    ``colour`` gives the colour of a row's bar of a single part.
    """

    kinds: Mapping[str, Kind]
    colour: Callable[[Row], str] | None = None

    def draw(self, axes: plot.Axes, rows: Placed, scale: float, words: Words) -> float:
        """Draw the bars."""
        places, ends = [place for place, _ in rows], [0.0] * len(rows)
        for column, kind in self.kinds.items():
            values = [row[column] for _, row in rows]
            widths = [max(0.0, value or 0.0) / scale for value in values]
            after = [end + width for end, width in zip(ends, widths, strict=True)]
            look = dict(kind.filling)
            if self.colour:
                look["color"] = [self.colour(row) for _, row in rows]
            if len(rows) > DRAWN_SINGLY:
                edges = [place - 0.5 for place in (*places, places[-1] + 1)]
                axes.stairs(after, edges, baseline=ends, orientation="horizontal", fill=True, rasterized=True, **look)
            else:
                height = 0.7 if len(rows) <= READABLE_LANES else 1.0
                drawn = axes.barh(places, widths, left=ends, height=height, **look)
                for patch, (_, row), value in zip(drawn, rows, values, strict=True):
                    patch.set_url(told(row, kind.label, MISSING if value is None else words(value)))
            ends = after
        return max(ends)

    def handles(self) -> list[plot.Artist]:
        """The parts, if there are several."""
        return [plot.Patch(label=kind.label, **kind.filling) for kind in self.kinds.values() if len(self.kinds) > 1]


@dataclass(frozen=True)
class Line(Mark):
    """A line from one column to another; ``above`` the middle of the lane by so much."""

    low: str
    high: str
    colour: str = BLACK
    above: float = 0.0

    def draw(self, axes: plot.Axes, rows: Placed, scale: float, words: Words) -> float:
        """Draw the lines."""
        for place, row in rows:
            if row[self.low] is not None and row[self.high] != row[self.low]:
                ends = [row[self.low] / scale, row[self.high] / scale]
                axes.plot(ends, [place - self.above] * 2, color=self.colour, linewidth=1.0, marker="|", markersize=4)
        return max((row[self.high] / scale for _, row in rows if row[self.high] is not None), default=0.0)


@dataclass(frozen=True)
class Points(Mark):
    """A number, or each number of a list, as points side by side; ``above`` the middle of the lane by so much.

    Of a list, ``apart`` is the height over which its points are laid out; with 0 equal ones lie on each other.
    """

    column: str
    label: str = ""
    marker: str = "o"
    colour: str = BLACK
    filled: bool = False
    above: float = 0.0
    size: float = 4.5
    apart: float = 0.44

    @property
    def look(self) -> dict[str, Any]:
        """How a point looks."""
        fill = {} if self.filled or self.marker in "x|" else {"markerfacecolor": "white"}
        edge = 2.2 if self.marker == "|" else 1.0
        look = {"linestyle": "", "marker": self.marker, "markersize": self.size, "markeredgewidth": edge}
        return look | {"color": self.colour} | fill

    def draw(self, axes: plot.Axes, rows: Placed, scale: float, words: Words) -> float:
        """Draw the points."""
        reach = 0.0
        for place, row in rows:
            found = row[self.column]
            values = [value / scale for value in (found if isinstance(found, list) else [found]) if value is not None]
            if values:
                (points,) = axes.plot(values, side_by_side(place - self.above, len(values), self.apart), **self.look)
                said = ", ".join(words(value * scale) for value in values)
                points.set_url(told(row, self.label, said))
            reach = max([reach, *values])
        return reach

    def handles(self) -> list[plot.Artist]:
        """The point, if it is named."""
        return [plot.Line2D([], [], label=self.label, **self.look)] if self.label else []


@dataclass(frozen=True)
class Box(Mark):
    """The distribution of a list: a box of the quartiles, a line from the 5th to the 95th per cent, few values as dots,
    the median as a diamond; and what each of them says (a list, too), in red those that are to be seen."""

    column: str
    said: str = ""
    marked: str = ""

    def draw(self, axes: plot.Axes, rows: Placed, scale: float, words: Words) -> float:
        """Draw the distributions."""
        for place, row in rows:
            values = [value / scale for value in row[self.column]]
            axes.boxplot(
                [values],
                positions=[place],
                orientation="horizontal",
                widths=0.6,
                whis=(5, 95),
                showfliers=False,
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": LIGHT_GREY, "linewidth": 0},
                medianprops={"linewidth": 0},
                whiskerprops={"color": "#8c8c8c", "linewidth": 1},
                capprops={"linewidth": 0},
            )
            spots = [place + 0.2 * math.sin(2.4 * number) for number in range(len(values))]
            said = [hover(text) for text in row[self.said]] if self.said else []
            marked = row[self.marked] if self.marked else [False] * len(values)
            shown = [number for number in range(len(values)) if len(values) <= READABLE_DOTS or marked[number]]
            looks: dict[str, Any] = {"color": [VERMILION if marked[number] else BLUE for number in shown]}
            looks["s"] = [40 if marked[number] else 12 for number in shown]
            at = [values[number] for number in shown], [spots[number] for number in shown]
            dots = axes.scatter(*at, alpha=0.7, linewidths=0, **looks)
            dots.set_urls([said[number] for number in shown if said] * 2)  # matplotlib drops that of a lone marker
            median = statistics.median(values)
            axes.plot([median], [place], marker="D", markersize=5, color=BLUE, markeredgecolor=BLACK)
        return 0.0


@dataclass(frozen=True)
class Lanes(Chart):
    """A chart of lanes.

    Attributes
    ----------
    marks, x
        What is drawn of each row, and the name of the axes.
    lanes
        Rows with ``panel``, ``group``, ``lane``, ``text`` and what the marks read; ``panel`` and ``group`` may be left
        out. By default the table.
    scale, words
        Size of the axis' unit in that of the values, and how a value is said under the pointer.
    shared
        Whether all panels have one range.
    logarithmic, marked
        Whether axes are; and a value that a line marks, which need not be the axis' end.
    """

    marks: Sequence[Mark] = ()
    x: str = ""
    lanes: Sequence[Row] = ()
    scale: float = 1.0
    words: Words = seconds
    shared: bool = False
    logarithmic: bool = False
    marked: float | None = None

    def draw(self) -> plot.Figure:
        """A panel above the other, each as high as its lanes need."""
        rows = self.lanes or self.table
        panels = {title: with_places(list(own)) for title, own in groupby(rows, lambda row: row.get("panel", ""))}
        handles = [handle for mark in self.marks for handle in mark.handles()]
        heights = [LEGEND_IN] * bool(handles)
        for title, own in panels.items():
            lanes_in = LANE_IN * (1 + own[-1][0]) if len(own) <= READABLE_LANES else SQUEEZED_IN
            heights.append(lanes_in + (0.75 if title else 0.6))
        figure = plot.Figure(figsize=(WIDTH_IN, sum(heights) + self.around_in))
        grid = list(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
        if handles:
            draw_legend(grid.pop(0), handles)
        ends = [self.draw_panel(axes, title, own) for axes, (title, own) in zip(grid, panels.items(), strict=True)]
        for axes, end in zip(grid, ends, strict=True):
            if end and not self.logarithmic and self.marked is None:
                axes.set_xlim(0, 1.02 * (max(ends) if self.shared else end))
        return figure

    def draw_panel(self, axes: plot.Axes, title: str, rows: Placed) -> float:
        """One panel; where its marks end."""
        if self.logarithmic:
            axes.set_xscale("log")
        reach = max(mark.draw(axes, rows, self.scale, self.words) for mark in self.marks)
        if self.marked is not None:
            axes.axvline(self.marked, color=GREY, linewidth=1)
        names = {place: shorten(row["lane"], 42) for place, row in rows if len(rows) <= READABLE_LANES}
        taken = {place for place, _ in rows}
        heads = {place - 1: row["group"] for place, row in rows if place - 1 not in taken and row.get("group")}
        axes.set_yticks([*heads, *names], [*heads.values(), *names.values()])
        for text, place in zip(axes.get_yticklabels(), [*heads, *names], strict=True):
            text.set_fontweight("bold" if place in heads else "normal")
        for place, row in rows:
            beside(axes, place, row.get("text", ""))
        axes.set_ylim(rows[-1][0] + 0.6, -0.6)
        axes.set_title(shorten(title, 110), fontsize=9, weight="bold")
        axes.set_xlabel(self.x)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
        if self.logarithmic:
            low, high = axes.get_xlim()
            axes.xaxis.set_major_locator(plot.LogLocator(subs=(1.0, 2.0, 5.0) if high / low < WIDE else (1.0,)))
            axes.xaxis.set_minor_formatter(plot.NullFormatter())
        return reach


def with_places(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Rows with their places, one of them left free above each group for its heading."""
    placed, place = list[tuple[int, Row]](), 0
    for group, own in groupby(rows, lambda row: row.get("group")):
        place += bool(group)
        for row in own:
            placed.append((place, row))
            place += 1
    return placed


def beside(axes: plot.Axes, place: float, text: str) -> None:
    """Write at the right of a lane, outside the axes."""
    look: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "fontsize": 8}
    axes.annotate(text, (1, place), (6, 0), **look)


def draw_legend(axes: plot.Axes, handles: Sequence[plot.Artist]) -> None:
    """A legend in a line, in axes of its own."""
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (0, 0.5), "borderaxespad": 0, "borderpad": 0}
    look: dict[str, Any] = {"ncols": len(handles), "fontsize": 8, "handlelength": 1.2, "columnspacing": 1.2}
    axes.set_axis_off()
    axes.legend(handles=handles, **look, **place).set_in_layout(False)


def side_by_side(lane: float, count: int, height: float) -> list[float]:
    """Where dots of a lane stand, one beside the other, so that equal values are seen.

    >>> side_by_side(1, 3, 0.8)
    [0.8, 1.0, 1.2]
    """
    return [lane + height * (place - (count - 1) / 2) / max(4, count) for place in range(count)]
