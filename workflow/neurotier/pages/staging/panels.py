"""Panels of response times against a number of processes, with the numbers that the report states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from neurotier.core.quantities import seconds
from neurotier.core.tables import Row
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import LEGEND_IN
from neurotier.pages.kit.style import BLACK, BLUE, GREEN, GREY, LIGHT_GREY, ORANGE, PURPLE, SKY, VERMILION, WIDTH_IN
from neurotier.storage.staging.curves import Curve

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, BLACK)
MARKERS = "os^Dv<>"
PANEL_IN = 3.0
ROOM = 1.25
"""Empty part of an axis, as a factor, beyond what is on it."""


@dataclass(frozen=True)
class Panel:
    """What is on one axes.

    Attributes
    ----------
    title, axis
        What it shows, and against which number of processes.
    curves
        Its lines.
    published
        Numbers of processes that the report states, least and greatest, and what of them; ``None`` if it states none.
    """

    title: str
    axis: str
    curves: Sequence[Curve]
    published: tuple[int, int, str] | None = None


def panels_figure(panels: Sequence[Panel]) -> Figure:
    """A figure of panels side by side, of which at least one has a curve."""
    names = list(dict.fromkeys(one.name for panel in panels for one in panel.curves))
    looks = {name: (COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]) for place, name in enumerate(names)}
    lines = -(-len(names) // 2)
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN + LEGEND_IN * lines + 1.1))
    grid = figure.subplots(2, len(panels), squeeze=False, height_ratios=[LEGEND_IN * lines, PANEL_IN])
    for axes in grid[0]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], color=colour, marker=mark, label=name, markersize=4, linewidth=1.4)
        for name, (colour, mark) in looks.items()
    ]
    legend = grid[0][0].legend(handles=handles, ncols=2, fontsize=8, loc="center left", bbox_to_anchor=(0, 0.5))
    legend.set_in_layout(False)
    for axes, panel in zip(grid[1], panels, strict=True):
        draw_panel(axes, panel, looks)
    grid[1][0].set_ylabel("Response time of a step (s)")
    return figure


def label(curve: Curve) -> str:
    """What tells a line from others."""
    return f"{curve.name} ({curve.others_text})"


def draw_panel(axes: Axes, panel: Panel, looks: dict[str, tuple[str, str]]) -> None:
    """The lines of a panel, above what is published."""
    axes.set_title(panel.title, fontsize=9, weight="bold")
    axes.set_xlabel(panel.axis.capitalize())
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.9g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    counts = [count for curve in panel.curves for count in curve.times]
    if panel.published is not None:
        low, high, said = panel.published
        counts += [low, high]
        axes.axvspan(low / 1.04, high * 1.04, color=LIGHT_GREY, alpha=0.7, linewidth=0)
        place: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        axes.annotate(said, (high, 1), (-2, 3), ha="right", va="bottom", fontsize=7.5, color=GREY, **place)
        axes.title.set_position((0, 1.0))
        axes.set_title(panel.title, fontsize=9, weight="bold", pad=16)
    if not panel.curves:
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", color=GREY, transform=axes.transAxes)
        axes.set_yticks([])
    if counts:
        axes.set_xlim(min(counts) / ROOM, max(counts) * ROOM)
    for curve in panel.curves:
        colour, mark = looks[curve.name]
        places = list(curve.times)
        middle = [curve.times[count].median for count in places]
        axes.plot(places, middle, color=colour, marker=mark, markersize=4, linewidth=1.4)
        for count in places:
            spread = curve.times[count]
            axes.plot([count, count], [spread.low, spread.high], color=colour, linewidth=1)
            url = hover(f"{label(curve)}, {count} {panel.axis}: {seconds(spread.median)}")
            axes.scatter([count], [spread.median], s=40, alpha=0, url=url)


def table(panels: Iterable[Panel]) -> list[Row]:
    """The numbers behind the figure: one row per point of a line, and per number that is published."""
    rows: list[Row] = []
    for panel in panels:
        for curve in panel.curves:
            for count, spread in curve.times.items():
                rows.append(
                    {
                        "panel": panel.title,
                        "line": label(curve),
                        "axis": panel.axis,
                        "processes": count,
                        "repetitions": len(spread.values),
                        "response_median_s": spread.median,
                        "response_min_s": spread.low,
                        "response_max_s": spread.high,
                    }
                )
        if panel.published is not None:
            for count in dict.fromkeys(panel.published[:2]):
                cells = {"panel": panel.title, "line": panel.published[2], "axis": panel.axis, "processes": count}
                times = dict.fromkeys(("repetitions", "response_median_s", "response_min_s", "response_max_s"))
                rows.append({**cells, **times})
    return rows
