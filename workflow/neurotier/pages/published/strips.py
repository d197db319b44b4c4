"""Small Gantt charts of blocks, for the published runs and for those of one's own."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.kit.lanes import LEGEND_IN, draw_legend
from neurotier.pages.kit.style import BLACK, LIGHT_GREY, WIDTH_IN
from neurotier.published.bigbrain import Phase

COLUMNS = 2
LANES_IN, LANE_IN = 1.6, 0.25
"""Height of all lanes of a chart at most, and of one lane at most, in."""

AROUND_IN = 0.7
"""Height of a chart's title and axis, in."""

VECTOR_BLOCKS = 400
"""With more blocks in the whole figure, bars are pixels: an SVG of thousands of them is large and slow."""


@dataclass(frozen=True)
class Strip:
    """What a lane shows of a block without a break: from its start to its end, s, its phases in order of time."""

    block: str
    start_s: float
    end_s: float
    phases: Sequence[Phase]
    written: bool = True


@dataclass(frozen=True)
class Chart:
    """One small Gantt chart of at least one strip; its clock begins with the first."""

    title: str
    strips: Sequence[Strip]
    slack_s: float = 0.0
    """By how much a strip may begin before the end of the one before it on its lane, s: clocks are not exact."""

    @property
    def origin_s(self) -> float:
        """When its clock begins, s."""
        return min(strip.start_s for strip in self.strips)

    def lanes(self) -> list[tuple[int, Strip]]:
        """Each strip and its lane: the lowest that is free at its start."""
        found, busy, free = [], list[tuple[float, int]](), list[int]()
        for strip in sorted(self.strips, key=lambda strip: (strip.start_s, strip.end_s, strip.block)):
            while busy and busy[0][0] <= strip.start_s + self.slack_s:
                heapq.heappush(free, heapq.heappop(busy)[1])
            lane = heapq.heappop(free) if free else len(busy)
            heapq.heappush(busy, (strip.end_s, lane))
            found.append((lane, strip))
        return found

    @property
    def lane_count(self) -> int:
        """How many lanes it needs."""
        return 1 + max(lane for lane, _ in self.lanes())

    def rows(self) -> Iterable[Row]:
        """One row per phase drawn, s since the first start."""
        for lane, strip in self.lanes():
            for phase in strip.phases:
                times = {"start_s": phase.start_s - self.origin_s, "end_s": phase.end_s - self.origin_s}
                yield {"lane": lane, "block": strip.block, "phase": phase.name, **times}


def draw_charts(charts: Sequence[Chart], colours: Mapping[str, str]) -> Figure:
    """A figure of at least one chart; ``colours`` has the phases in the order of the legend."""
    columns = min(COLUMNS, len(charts))
    heights = [max(map(height_in, charts[at : at + columns])) for at in range(0, len(charts), columns)]
    figure = Figure(figsize=(WIDTH_IN, sum(heights) + LEGEND_IN + 1.1))
    cells_of = figure.add_gridspec(len(heights) + 1, columns, height_ratios=[LEGEND_IN, *heights])
    rasterized = sum(len(chart.strips) for chart in charts) > VECTOR_BLOCKS
    for place, chart in enumerate(charts):
        axes = figure.add_subplot(cells_of[1 + place // columns, place % columns])
        draw_chart(axes, chart, colours, rasterized)
        axes.set_title(chart.title, fontsize=8.5)
        if place >= len(charts) - columns:
            axes.set_xlabel("Time since the first phase (s)", fontsize=8)
    handles: list[Patch | Line2D] = [Patch(color=colour, label=phase) for phase, colour in colours.items()]
    if not all(strip.written for chart in charts for strip in chart.strips):
        cross: dict[str, Any] = {"marker": "x", "color": BLACK, "markersize": 4, "markeredgewidth": 1.0}
        handles.append(Line2D([], [], linestyle="", label="not written", **cross))
    draw_legend(figure.add_subplot(cells_of[0, :]), handles)
    return figure


def height_in(chart: Chart) -> float:
    """Height of a chart, in: few lanes need less."""
    return AROUND_IN + min(LANES_IN, LANE_IN * (1 + chart.lane_count))


def draw_chart(axes: Axes, chart: Chart, colours: Mapping[str, str], rasterized: bool) -> None:
    """The strips of one chart, grey where a block is in no phase."""
    lanes, origin_s, count = chart.lanes(), chart.origin_s, chart.lane_count
    width = min(8.0, 0.8 * LANES_IN * 72 / count)
    whole = [[(strip.start_s - origin_s, lane), (strip.end_s - origin_s, lane)] for lane, strip in lanes]
    drawn = [LineCollection(whole, colors=LIGHT_GREY, linewidths=min(0.8, width))]
    for name, colour in colours.items():
        segments = [
            [(phase.start_s - origin_s, lane), (phase.end_s - origin_s, lane)]
            for lane, strip in lanes
            for phase in strip.phases
            if phase.name == name
        ]
        drawn.append(LineCollection(segments, colors=colour, linewidths=width, capstyle="butt"))
    for lines in drawn:
        lines.set_rasterized(rasterized)
        axes.add_collection(lines)
    left = [(strip.end_s - origin_s, lane) for lane, strip in lanes if not strip.written]
    if left:
        axes.plot(*zip(*left, strict=True), linestyle="", marker="x", color=BLACK, markersize=4, markeredgewidth=1.0)
    axes.set_xlim(0, 1.01 * max(strip.end_s - origin_s for strip in chart.strips))
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks([])
    axes.set_ylabel(counted(count, "lane"), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.grid(visible=False, axis="y")
