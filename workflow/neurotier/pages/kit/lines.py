"""Line charts: measurements against a number of processes or time, with the numbers that papers state.

Lines with the same name look the same in all panels. A limit is a dashed line, and a published number a star.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from neurotier.core.tables import Row, grouped
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    UNITS,
    VERMILION,
    WIDTH_IN,
    Chart,
    hover,
    label_powers,
)
from neurotier.storage.published import PublishedNumber
from neurotier.storage.spread import Spread

MEASURED, LIMIT, PUBLISHED = "measured", "limit", "published"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE)
MARKERS = "os^Dv<"
COLUMNS = 3
NAME = 32
"""Characters in a line of a panel's title, and of a name in the legend."""

PANEL_IN, NAME_IN = 2.9, 0.18
"""Height of a panel, and of a line of the legend."""

FEW_TICKS = 8
"""With more labels than this on the horizontal axis, they are turned upright."""

APART = 1.15
"""Positions closer than this ratio share a label, that of the greater one."""


def point(kind: str, panel: str, line: str, at: float | None, median: float, low: Any = None, high: Any = None) -> Row:
    """A row of a figure's table: a point of a line, a limit, or a published number."""
    return {"kind": kind, "panel": panel, "line": line, "at": at, "median": median, "low": low, "high": high}


def measured(panel: str, line: str, at: float, value: Spread) -> Row:
    """The row of a point that was measured in several repetitions."""
    return point(MEASURED, panel, line, at, value.median, value.low, value.high)


def published(panel: str, number: PublishedNumber) -> Row:
    """The row of a number that a paper states."""
    return point(PUBLISHED, panel, f"{number.source}, {number.place}: {number.name}", number.at, number.value)


@dataclass(frozen=True)
class Lines(Chart):
    """A line chart of rows made by :func:`point`.

    Attributes
    ----------
    panels
        The name of the horizontal axis of each panel, by the panel's title.
    label, unit
        Name of the vertical axis, and the unit of the table's values.
    counts
        Whether the horizontal axis has numbers, on a logarithmic scale, instead of time.
    logarithmic
        Whether the vertical axis is logarithmic; panels then share it.
    place_text
        Formats a number on the horizontal axis.
    """

    panels: Mapping[str, str] = field(default_factory=dict)
    label: str = "Bandwidth"
    unit: str = "bytes/s"
    counts: bool = True
    logarithmic: bool = True
    place_text: Callable[[float], str] = "{:g}".format

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", [row | {"unit": self.unit} for row in self.table])

    def draw(self) -> plot.Figure:
        """Draw the panels, at most three side by side, and one legend."""
        names = list(dict.fromkeys(row["line"] for row in self.table if row["kind"] == MEASURED))
        looks = {name: look(place, len(names)) for place, name in enumerate(names)}
        columns = min(COLUMNS, len(self.panels))
        lines = -(-len(self.panels) // columns)
        legend_in = NAME_IN * sum(len(textwrap.wrap(name, NAME)) for name in [PUBLISHED, *names])
        figure = plot.Figure(figsize=(WIDTH_IN, self.around_in + max(PANEL_IN * lines, legend_in)))
        grid = figure.subplots(lines, columns, sharey=self.logarithmic, squeeze=False)
        for axes, title in zip(grid.flat, self.panels, strict=False):
            self.draw_panel(axes, title, looks)
        for axes in grid.flat[len(self.panels) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel(f"{self.label} ({UNITS[self.unit].label})")
        found = [axes.get_legend_handles_labels() for axes in grid.flat]
        handles = {name: handle for each in found for handle, name in zip(*each, strict=True)}
        texts = [textwrap.fill(name, NAME) for name in handles]
        grid[0][-1].legend(handles.values(), texts, loc="upper left", bbox_to_anchor=(1.01, 1))
        return figure

    def draw_panel(self, axes: plot.Axes, title: str, looks: Mapping[str, dict[str, Any]]) -> None:
        """Draw one panel and its axes."""
        own = [row for row in self.table if row["panel"] == title]
        for (_, name), points in grouped(((row["kind"], row["line"]), row) for row in own).items():
            draw_points(axes, points, UNITS[self.unit].scale, looks.get(name, {"color": GREY}))
        axes.set_title(textwrap.fill(title, NAME))
        axes.set_xlabel(self.panels[title])
        if self.counts:
            label_counts(axes, sorted({row["at"] for row in own}), self.place_text)
        if self.logarithmic:
            axes.set_yscale("log")
            label_powers(axes.yaxis)
        else:
            axes.axhline(0, alpha=0)  # so that the margin is a share of the axis from 0, and no value is cut at the top
            axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,.9g}")


def look(place: int, count: int) -> dict[str, Any]:
    """The colour and the marker of a line; with many lines, darker colours come first."""
    colour = COLOURS[place] if count <= len(COLOURS) else plot.colormaps["viridis"](0.88 * place / (count - 1))
    return {"color": colour, "marker": MARKERS[place % len(MARKERS)], "markersize": 5}


def draw_points(axes: plot.Axes, points: Sequence[Row], scale: float, line: Mapping[str, Any]) -> None:
    """Draw the points of one kind and name; points without a range become a line without marks."""
    kind, name, places = points[0]["kind"], points[0]["line"], [row["at"] for row in points]
    values = [row["median"] / scale for row in points]
    if kind == LIMIT:
        alone = {"marker": "_", "markersize": 18} if len(places) == 1 else {}
        axes.plot(places, values, color=line["color"], linestyle="--", linewidth=1, **alone)
    elif kind == MEASURED and points[0]["low"] is None:
        axes.plot(places, values, color=line["color"], linewidth=1.6, label=name)
    elif kind == MEASURED:
        ends = [[abs(row["median"] - row[end]) / scale for row in points] for end in ("low", "high")]
        axes.errorbar(places, values, ends, label=name, elinewidth=0.8, capsize=2, **line)
        texts = [hover(f"{name}, {at:g}: {value:,.4g}") for at, value in zip(places, values, strict=True)]
        axes.scatter(places, values, s=40, alpha=0).set_urls(texts)
    else:
        axes.plot(places, values, "*", color=BLACK, markersize=12, zorder=5, label=PUBLISHED)


def label_counts(axes: plot.Axes, places: Sequence[float], text: Callable[[float], str]) -> None:
    """Label a horizontal axis of numbers on a scale of powers of two."""
    ticks = [place for place, after in pairwise([*places, math.inf]) if after > APART * place]
    axes.set_xscale("log", base=2)
    if places:
        axes.set_xlim(places[0] / 1.2, places[-1] * 1.2)
    axes.set_xticks(ticks, [text(place) for place in ticks])
    axes.tick_params(axis="x", rotation=90 if len(ticks) > FEW_TICKS else 0)
    axes.xaxis.set_minor_locator(plot.NullLocator())
