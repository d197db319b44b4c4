"""Gantt charts: participant jobs or blocks by phase, on lanes that hold one after the other.

For the pages of BigBrain and of the published runs, which are no declarations yet; it goes with the last of them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neurotier.core.quantities import counted, seconds
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, GREY, WIDTH_IN, hover
from neurotier.pages.kit.lanes import LEGEND_IN, draw_legend

LANE_IN = 0.25
"""Height of a lane at most, in."""

AROUND_IN = 0.7
"""Height of a chart's title and axis, in."""

VECTOR_JOBS = 400
"""With more jobs in a figure, bars are pixels: an SVG of thousands of them is large and slow."""

CROSS: dict[str, Any] = {"linestyle": "", "marker": "x", "color": BLACK, "markersize": 4, "markeredgewidth": 1.0}


@dataclass(frozen=True, slots=True)
class Segment:
    """A phase of a job, from start to end, s."""

    phase: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Job:
    """What occupies a lane without a break.

    Attributes
    ----------
    name
        Participant or block.
    start_s, end_s
        On any clock, s.
    segments
        Its phases in order of time; between them it is drawn as a thin line.
    complete
        A cross stands at the end of one that is not.
    """

    name: str
    start_s: float
    end_s: float
    segments: Sequence[Segment]
    complete: bool = True


def pack(jobs: Iterable[Job], slack_s: float = 0.0) -> list[tuple[int, Job]]:
    """Jobs in order of their starts, each with the lowest lane that is free then: as many lanes as ran at once.

    Parameters
    ----------
    jobs
        Those that start together keep the order given here.
    slack_s
        By how much a job may begin before the one before it on its lane has ended, s: clocks are not exact.

    Examples
    --------
    >>> spans = {"a": (0.0, 2.0), "b": (0.0, 1.0), "c": (1.0, 3.0)}
    >>> [(lane, job.name) for lane, job in pack(Job(name, *span, []) for name, span in spans.items())]
    [(0, 'a'), (1, 'b'), (1, 'c')]
    """
    placed, busy, free = [], list[tuple[float, int]](), list[int]()
    for job in sorted(jobs, key=lambda job: job.start_s):
        while busy and busy[0][0] <= job.start_s + slack_s:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (job.end_s, lane))
        placed.append((lane, job))
    return placed


@dataclass(frozen=True)
class Chart:
    """A Gantt chart of at least one job; its clock begins with the first.

    Attributes
    ----------
    title
        In one line or two.
    lanes
        Jobs in order of their starts, each with its lane (:func:`pack`).
    length_s
        Length of the axis, s, where charts share a scale; by default until the last job ends.
    colour
        Of the title.
    """

    title: str
    lanes: Sequence[tuple[int, Job]]
    length_s: float | None = None
    colour: str = BLACK

    @property
    def origin_s(self) -> float:
        """When its clock begins, s."""
        return min(job.start_s for _, job in self.lanes)

    @property
    def end_s(self) -> float:
        """When the last job ends, s since the first start."""
        return max(job.end_s for _, job in self.lanes) - self.origin_s

    @property
    def lane_count(self) -> int:
        """How many lanes it needs."""
        return 1 + max(lane for lane, _ in self.lanes)

    def rows(self, job_column: str = "participant") -> list[Row]:
        """One row per phase drawn, s since the first start; ``job_column`` holds the names of jobs."""
        origin_s = self.origin_s
        return [
            {
                "lane": lane,
                job_column: job.name,
                "phase": segment.phase,
                "start_s": segment.start_s - origin_s,
                "end_s": segment.end_s - origin_s,
            }
            for lane, job in self.lanes
            for segment in job.segments
        ]


def draw_charts(charts: Sequence[Chart], colours: Mapping[str, str], since: str, columns: int = 2) -> plot.Figure:
    """A figure of small charts, in lines of two or three.

    Parameters
    ----------
    charts
        At least one.
    colours
        Colour of each phase, in the order of the legend; phases that no job had are left out of it.
    since
        With what their clocks begin, such as ``first start``.
    columns
        How many charts stand side by side at most.
    """
    columns = min(columns, len(charts))
    lanes_in, points = (1.6, 8.5) if columns < 3 else (1.05, 7.5)
    lines = math.ceil(len(charts) / columns)
    height_in = AROUND_IN + min(lanes_in, LANE_IN * (1 + max(chart.lane_count for chart in charts)))
    figure = plot.Figure(figsize=(WIDTH_IN, lines * height_in + LEGEND_IN + 1.1))
    cells = figure.add_gridspec(lines + 1, columns, height_ratios=[LEGEND_IN, *[height_in] * lines])
    rasterized = sum(len(chart.lanes) for chart in charts) > VECTOR_JOBS
    for place, chart in enumerate(charts):
        axes = figure.add_subplot(cells[1 + place // columns, place % columns])
        draw_jobs(axes, chart, colours, min(8.0, 0.8 * lanes_in * 72 / chart.lane_count), rasterized)
        axes.set_title(chart.title, fontsize=points, color=chart.colour)
        axes.set_yticks([])
        axes.set_ylabel(counted(chart.lane_count, "lane"), fontsize=points - 0.5)
        axes.tick_params(labelsize=points - 0.5)
        axes.xaxis.set_major_locator(plot.MaxNLocator(nbins=8 - columns, steps=[1, 2, 5, 10]))
        if place >= len(charts) - columns:  # the lowest of each column
            axes.set_xlabel(f"Time since the {since} (s)", fontsize=8)
    draw_legend(figure.add_subplot(cells[0, :]), phase_handles(charts, colours))
    return figure


def phase_handles(charts: Sequence[Chart], colours: Mapping[str, str]) -> list[plot.Artist]:
    """What a legend has of charts: their phases, and a cross if any job is not complete."""
    jobs = [job for chart in charts for _, job in chart.lanes]
    drawn = {segment.phase for job in jobs for segment in job.segments}
    handles: list[plot.Artist] = [plot.Patch(color=colours[phase], label=phase) for phase in colours if phase in drawn]
    if not all(job.complete for job in jobs):
        handles.append(plot.Line2D([], [], label="not written", **CROSS))
    return handles


def draw_jobs(
    axes: plot.Axes, chart: Chart, colours: Mapping[str, str], lane_points: float, rasterized: bool = False
) -> None:
    """The jobs of one chart, and its axes.

    Parameters
    ----------
    axes
        Where to; ticks and labels of lanes are left alone.
    chart
        The chart; its title is left alone.
    colours
        Colour of each phase.
    lane_points
        Height of a bar, points.
    rasterized
        Draw the bars as pixels even in an SVG; they then say nothing under the pointer.
    """
    origin_s, jobs = chart.origin_s, chart.lanes
    lines: dict[str, list[list[tuple[float, int]]]] = {phase: [] for phase in ("", *colours)}
    said: dict[str, list[str]] = {phase: [] for phase in lines}
    for lane, job in jobs:
        for part in (Segment("", job.start_s, job.end_s), *job.segments):
            lines[part.phase].append([(part.start_s - origin_s, lane), (part.end_s - origin_s, lane)])
            what = f"{job.name}, {part.phase}" if part.phase else job.name
            said[part.phase].append(hover(f"{what}: {seconds(part.end_s - part.start_s)}"))
    for phase, spans in lines.items():
        colour, width = (colours[phase], lane_points) if phase else (GREY, min(0.8, lane_points))
        look: dict[str, Any] = {"colors": colour, "linewidths": width, "capstyle": "butt"}
        axes.add_collection(plot.LineCollection(spans, **look, urls=said[phase], rasterized=rasterized))
    left = [(job.end_s - origin_s, lane) for lane, job in jobs if not job.complete]
    if left:
        axes.plot(*zip(*left, strict=True), **CROSS)
    axes.set_xlim(0, 1.01 * (chart.length_s or chart.end_s) or 1)
    axes.set_ylim(chart.lane_count - 0.4, -0.6)
    axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    axes.grid(visible=False, axis="y")
