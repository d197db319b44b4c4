"""The storage benchmark of the paper: every measurement and what Table I of the paper prints."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import number
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.marks import logarithmic
from neurotier.pages.bigbrain.names import ratio_text
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, SKY, VERMILION
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, Panel, draw_lanes
from neurotier.pages.kit.style import write_figure
from neurotier.pages.published.tables import Replayed
from neurotier.published.bigbrain import APP_DIRECT
from neurotier.published.table_one import Bandwidth

WAYS = (("Read", SKY, "o"), ("Write", VERMILION, "D"))
NOTE = (
    "One stream of dd; small: a measurement, bar: mean, cross: as printed in Table I, which is App Direct mode. 1 GB is"
    " counted as 1,024 MB, as printed; dd means 1,000. Right: mean and median; the axis is logarithmic."
)


def parts(tables: Replayed) -> dict[str, Replayed]:
    """Itself if there is a benchmark."""
    return {"": tables} if tables.replay.bandwidths else {}


def finding(tables: Replayed) -> Finding:
    """How far apart the devices are, and whether the means are those that are printed."""
    bandwidths = tables.replay.bandwidths
    in_table = [one for one in bandwidths if one.mode == APP_DIRECT] or bandwidths
    reads = {one: one.of(statistics.fmean) for one in in_table}
    fast, slow = (chosen(reads, key=lambda one: reads[one][0]) for chosen in (max, min))
    printed = [one for one in in_table if one.published]
    as_printed = [one for one in printed if tuple(round(value, 1) for value in reads[one]) == one.published]
    note = ""
    if printed:
        note = "; the means are Table I" if len(as_printed) == len(printed) else "; the means are not those of Table I"
    if fast == slow:
        read, write = map(number, reads[fast])
        return Finding(f"{fast.device} reads {read} MB/s and writes {write} MB/s{note}")
    by_read, by_write = (ratio_text(reads[fast][way] / reads[slow][way]) for way in (0, 1))
    return Finding(f"{fast.device} reads {by_read} times and writes {by_write} times as fast as {slow.device}{note}")


def draw(tables: Replayed, stem: Path) -> None:
    """Draw at least one device; write SVG, PNG and TSV."""
    bandwidths = tables.replay.bandwidths
    write_figure(stem, finding(tables), table(bandwidths), lambda: figure_of(bandwidths), NOTE)


def figure_of(bandwidths: Sequence[Bandwidth]) -> plot.Figure:
    """The figure: a panel for reading and one for writing."""

    def draw_lane(axes: plot.Axes, lane: int, _label: str, value: tuple[int, Bandwidth]) -> str:
        way, one = value
        _, colour, marker = WAYS[way]
        values = (one.read_mb_s, one.write_mb_s)[way]
        average, places = statistics.fmean(values), side_by_side(lane, len(values), 0.5)
        axes.plot(values, places, linestyle="", marker=marker, markersize=3.5, color=colour, alpha=0.8)
        axes.plot([average] * 2, [lane - 0.38, lane + 0.38], color=BLACK, linewidth=1.8)
        if one.published:
            axes.plot([one.published[way]], [lane], linestyle="", marker="x", markersize=8, color=BLACK)
        return f"{number(average, 1)}; {number(statistics.median(values), 1)} MB/s"

    panels = [
        Panel(name, tuple(Lane(f"{one.device}, {one.mode}", (way, one)) for one in bandwidths))
        for way, (name, *_) in enumerate(WAYS)
    ]
    handles = [
        *(
            plot.Line2D([], [], linestyle="", marker=marker, color=colour, label=way.lower())
            for way, colour, marker in WAYS
        ),
        plot.Line2D([], [], linestyle="", marker="|", markersize=10, markeredgewidth=1.8, color=BLACK, label="mean"),
        plot.Line2D([], [], linestyle="", marker="x", markersize=7, color=BLACK, label="Table I as printed"),
    ]
    figure = draw_lanes(panels, draw_lane, "Bandwidth (MB/s)", handles)
    for axes in figure.axes[1:]:
        logarithmic(axes)
    return figure


def table(bandwidths: Sequence[Bandwidth]) -> list[Row]:
    """The numbers behind the figure: one row per measurement."""
    return [
        {"device": one.device, "mode": one.mode, "number": place, "read_mb_s": read, "write_mb_s": write}
        for one in bandwidths
        for place, (read, write) in enumerate(zip(one.read_mb_s, one.write_mb_s, strict=True), start=1)
    ]


def side_by_side(lane: float, count: int, height: float) -> list[float]:
    """Where dots of a lane stand, one beside the other, so that equal values are seen.

    >>> side_by_side(1, 3, 0.8)
    [0.8, 1.0, 1.2]
    """
    return [lane + height * (place - (count - 1) / 2) / max(4, count) for place in range(count)]
