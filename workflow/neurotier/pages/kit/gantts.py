"""Small Gantt charts side by side: jobs or blocks by phase, on lanes that hold one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neurotier.core.quantities import counted, seconds
from neurotier.core.tables import Row, gathered
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, GREY, WIDTH_IN, Chart, hover
from neurotier.pages.kit.marks import LEGEND_IN, READABLE_LANES, draw_legend

LANE_IN, LANES_IN = 0.25, 1.6
"""Height of a lane, and of all of one of several charts, at most, in."""

AROUND_IN = 0.7
"""Height of a chart's title and axis, in."""

VECTOR_JOBS = 400
"""With more jobs in a figure, bars are pixels: an SVG of thousands of them is large and slow."""

CROSS: dict[str, Any] = {"linestyle": "", "marker": "x", "color": BLACK, "markersize": 4, "markeredgewidth": 1.0}


def in_lanes(rows: Iterable[Row], name: str, slack_s: float = 0.0) -> list[Row]:
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
    placed, ends_s = list[Row](), list[float]()
    for phases in jobs.values():
        free = (lane for lane, end_s in enumerate(ends_s) if end_s <= phases[0]["start_s"] + slack_s)
        lane = next(free, len(ends_s))
        ends_s[lane : lane + 1] = [max(row["end_s"] for row in phases)]
        placed += [{"lane": lane} | row for row in phases]
    return placed


def spans(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], tuple[float, float]]:
    """From when to when the phases are of each job, which some columns name, s."""
    jobs = gathered((tuple(row.get(name) for name in names), row) for row in rows)
    return {job: (min(row["start_s"] for row in own), max(row["end_s"] for row in own)) for job, own in jobs.items()}


class Panel(NamedTuple):
    """One Gantt chart: its title, and its phases as :func:`in_lanes` has them, on a clock that begins with the first.

    A cross stands at the end of each job that is ``left`` incomplete; lanes may have names, at their places.
    """

    title: str
    rows: Sequence[Row]
    left: frozenset[str] = frozenset()
    names: Mapping[float, str] = {}


@dataclass(frozen=True)
class Gantts(Chart):
    """Gantt charts of at least one job each, two side by side; their rows are the table if none is given.

    Attributes
    ----------
    panels
        The charts.
    name
        Column that names jobs.
    colours
        Colour of each phase, in the order of the legend; phases that no job had are left out of it.
    """

    panels: Sequence[Panel] = ()
    name: str = "participant"
    colours: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "table", self.table or [row for panel in self.panels for row in panel.rows if row["phase"]]
        )

    def draw(self) -> plot.Figure:
        """The charts, and one legend."""
        columns = min(2, len(self.panels))
        counts = [1 + max(row["lane"] for row in panel.rows) for panel in self.panels]
        lines = math.ceil(len(counts) / columns)
        lanes_in = min(LANES_IN if columns > 1 else LANE_IN * READABLE_LANES, LANE_IN * (1 + max(counts)))
        height_in = AROUND_IN + lanes_in
        figure = plot.Figure(figsize=(WIDTH_IN, lines * height_in + LEGEND_IN + self.around_in))
        cells = figure.add_gridspec(lines + 1, columns, height_ratios=[LEGEND_IN, *[height_in] * lines])
        pixels = len({(place, row[self.name]) for place, panel in enumerate(self.panels) for row in panel.rows})
        for place, (panel, count) in enumerate(zip(self.panels, counts, strict=True)):
            axes = figure.add_subplot(cells[1 + place // columns, place % columns])
            self.draw_panel(axes, panel, min(8.0, 0.8 * lanes_in * 72 / count), pixels > VECTOR_JOBS)
            axes.set_ylim(count - 0.4, -0.6)
            axes.set_title(panel.title, fontsize=8.5)
            axes.set_yticks([*panel.names], [*panel.names.values()])
            axes.set_ylabel("" if panel.names else counted(count, "lane"), fontsize=8)
            axes.tick_params(labelsize=8)
            axes.xaxis.set_major_locator(plot.MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
            if place >= len(counts) - columns:  # the lowest of each column
                axes.set_xlabel("Time since the first start (s)", fontsize=8)
        drawn = {row["phase"] for row in self.table}
        handles: list[plot.Artist] = [
            plot.Patch(color=colour, label=phase) for phase, colour in self.colours.items() if phase in drawn
        ]
        if any(panel.left for panel in self.panels):
            handles.append(plot.Line2D([], [], label="not written", **CROSS))
        draw_legend(figure.add_subplot(cells[0, :]), handles)
        return figure

    def draw_panel(self, axes: plot.Axes, panel: Panel, lane_points: float, pixels: bool) -> None:
        """The jobs of one chart, grey lines from their starts to their ends, and its axis."""
        found = spans(panel.rows, "lane", self.name, "iteration")
        whole = [{"lane": lane, "start_s": start, "end_s": end} for (lane, *_), (start, end) in found.items()]
        for phase, colour in {"": GREY, **self.colours}.items():
            own = [row for row in panel.rows if row["phase"] == phase] if phase else whole
            lanes, starts_s, ends_s = ([row[name] for row in own] for name in ("lane", "start_s", "end_s"))
            axes.hlines(
                lanes,
                starts_s,
                ends_s,
                colors=colour,
                linewidths=lane_points if phase else min(0.8, lane_points),
                capstyle="butt",
                rasterized=pixels,
                urls=[
                    hover(f"{row[self.name]}, {phase}: {seconds(row['end_s'] - row['start_s'])}")
                    for row in (own if phase else ())
                ],
            )
        left = [(end_s, lane) for (lane, name, _), (_, end_s) in found.items() if name in panel.left]
        if left:
            axes.plot(*zip(*left, strict=True), **CROSS)
        axes.set_xlim(0, 1.01 * max((row["end_s"] for row in panel.rows), default=0) or 1)
        axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
        axes.grid(visible=False, axis="y")
