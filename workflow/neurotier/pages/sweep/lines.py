"""The figure ``lines``: bandwidth and requests per second against block size, and bandwidth against processes.

As Figures 2, 3 and 5 of the DUNE paper and Figure 1 of the Optane report; a row of panels per pattern and queue depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neurotier.core.spread import Spread
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import WIDTH_IN, empty_figure, house_style, save_figure, set_title
from neurotier.pages.sweep.figures import SweepTables, by_set
from neurotier.pages.sweep.heat_map import NOTHING, table
from neurotier.storage.sweep.medians import (
    MB,
    READING,
    WRITING,
    Measured,
    Spot,
    block_text,
    medians,
    panel_title,
    panels,
    requests_text,
    setting_text,
)

NOTE = "Median over repetitions, bars from least to greatest; all processes together. Both axes are logarithmic."
MOST_LINES = 5
"""Most block sizes that get a line against the number of processes."""

MOST_TICKS = 3
"""Most labels that fit below a panel."""

RELATIVE = 1e-6
NEAR = 0.9
"""Share of the highest bandwidth at which a block size is called large enough."""

PANEL_IN, LEGEND_IN = 1.5, 0.5
MAP, DARKEST, LIGHTEST = "viridis", 0.0, 0.88
MARKERS = "os^Dv<>PX*"


@dataclass(frozen=True)
class Series:
    """Lines of a panel: what tells them apart, and what is on their axes.

    Attributes
    ----------
    values
        What each line is for.
    along, across
        A spot's place on the axis, and its line.
    of
        What is drawn.
    scale
        Size of the axis' unit.
    """

    values: tuple[int, ...]
    along: Callable[[Spot], int]
    across: Callable[[Spot], int]
    of: Callable[[Measured], Spread]
    scale: float = 1.0


parts = by_set


def finding(tables: SweepTables) -> Finding:
    """How large blocks must be on one tier and in one set, and how many requests there are at most."""
    spots = medians(tables.points)
    if not spots:
        return Finding(NOTHING, shown=False)
    most = max(spots, key=lambda spot: spots[spot].requests.median)
    text = f"{tables.points[0]['tier']}: at most {requests_text(spots[most].requests.median)} ({setting_text(most)})"
    needed = [
        f"{block_text(block)} {verb}"
        for patterns, verb in ((READING, "to read"), (WRITING, "to write"), (("mixed",), "to do both"))
        if (block := large_enough(spots, patterns)) is not None
    ]
    if len({spot.block_bytes for spot in spots}) > 1:
        text += f"; {NEAR:.0%} of the highest bandwidth takes blocks of {' and '.join(needed)}".replace("%", " %")
    return Finding(text)


def large_enough(spots: dict[Spot, Measured], patterns: Sequence[str]) -> int | None:
    """The smallest block, bytes, with which some point comes near the highest bandwidth."""
    known = [(spot.block_bytes, one.bandwidth.median) for spot, one in spots.items() if spot.pattern in patterns]
    most = max((reached for _, reached in known), default=0.0)
    return min((block for block, reached in known if reached >= NEAR * most), default=None)


def draw(tables: SweepTables, stem: Path) -> None:
    """Draw the lines of one tier and set; write SVG, PNG and TSV."""
    said, spots = finding(tables), medians(tables.points)
    with house_style():
        figure = lines(spots) if said.shown else empty_figure(said.sentence)
        if said.shown:
            set_title(figure, said.sentence, NOTE)
        save_figure(figure, stem, table(spots))


def lines(spots: dict[Spot, Measured]) -> plot.Figure:
    """The figure of at least one measured spot."""
    shown = panels(spots)
    blocks = tuple(sorted({spot.block_bytes for spot in spots}))
    processes = tuple(sorted({spot.processes for spot in spots}))
    chosen = some_of(blocks)
    columns = (
        Series(processes, lambda spot: spot.block_bytes, lambda spot: spot.processes, lambda one: one.bandwidth, MB),
        Series(processes, lambda spot: spot.block_bytes, lambda spot: spot.processes, lambda one: one.requests),
        Series(chosen, lambda spot: spot.processes, lambda spot: spot.block_bytes, lambda one: one.bandwidth, MB),
    )
    figure = plot.Figure(figsize=(WIDTH_IN, LEGEND_IN + (PANEL_IN + 0.35) * len(shown) + 1.2))
    heights = [LEGEND_IN, *[PANEL_IN] * len(shown)]
    grid = figure.subplots(len(heights), 3, squeeze=False, height_ratios=heights)
    for column in range(3):
        for axes in grid[2:, column]:
            axes.sharex(grid[1, column])
            axes.sharey(grid[1, column])
    for axes in grid[0]:
        axes.set_axis_off()
    draw_legend(grid[0, 0], "Processes", 0, processes, str)
    draw_legend(grid[0, 2], "Block size", 1, chosen, block_text)
    for (queue_depth, pattern), line in zip(shown, grid[1:], strict=True):
        own = {spot: one for spot, one in spots.items() if (spot.queue_depth, spot.pattern) == (queue_depth, pattern)}
        line[0].set_title(panel_title(queue_depth, pattern, own.values()), fontsize=9, weight="bold")
        for axes, series in zip(line, columns, strict=True):
            draw_series(axes, own, series)
            axes.tick_params(labelbottom=axes in grid[-1])
        for axes, label in zip(line, ("Bandwidth (MB/s)", "Requests per s", "Bandwidth (MB/s)"), strict=True):
            axes.set_ylabel(label)
    for axes, values in zip(grid[-1], (blocks, blocks, processes), strict=True):
        ticks = some_of(values, MOST_TICKS)
        axes.set_xticks(ticks, [str(value) if values is processes else block_text(value) for value in ticks])
    for axes, label in zip(grid[-1], ("Block size", "Block size", "Processes"), strict=True):
        axes.set_xlabel(label)
    for axes in grid[1]:
        widen(axes)
    return figure


def widen(axes: plot.Axes) -> None:
    """Give room around a single value; matplotlib gives a logarithmic axis none, and draws nothing at all."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    if right < (1 + RELATIVE) * left:
        axes.set_xlim(left / 4, 4 * right)
    if high < (1 + RELATIVE) * low:
        axes.set_ylim(low / 4, 4 * high)


def some_of(values: tuple[int, ...], most: int = MOST_LINES) -> tuple[int, ...]:
    """Values evenly drawn from many, the first and the last among them.

    >>> some_of((1, 2, 4, 8, 16, 32, 64), 4)
    (1, 4, 16, 64)
    """
    if len(values) <= most:
        return values
    return tuple(values[place] for place in np.linspace(0, len(values) - 1, most).round().astype(int))


def looks(values: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Colour and mark of each line: darker is less, and marks tell what colours alone might not."""
    shades = np.linspace(DARKEST, LIGHTEST, max(2, len(values)))
    return {
        value: {
            "color": plot.colormaps[MAP](shade),
            "marker": MARKERS[place % len(MARKERS)],
            "markersize": 3.5,
            "linewidth": 1.2,
        }
        for place, (value, shade) in enumerate(zip(values, shades, strict=False))
    }


def draw_legend(axes: plot.Axes, title: str, side: int, values: Sequence[int], name: Callable[[int], str]) -> None:
    """A legend in a place of its own, above the panels that it is for, at their left (``side`` 0) or right (1)."""
    handles = [plot.Line2D([], [], label=name(value), **look) for value, look in looks(values).items()]
    place: Any = {
        "loc": ("lower left", "lower right")[side],
        "bbox_to_anchor": (side, 0),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    legend = axes.legend(
        handles=handles,
        title=title,
        ncols=3 if side else 8,
        fontsize=8,
        title_fontsize=8,
        alignment="left",
        handlelength=1.4,
        columnspacing=1.0,
        **place,
    )
    legend.set_in_layout(False)


def draw_series(axes: plot.Axes, own: dict[Spot, Measured], series: Series) -> None:
    """The lines of a panel."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_minor_locator(plot.NullLocator())
    axes.yaxis.set_major_locator(plot.LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_minor_formatter(plot.NullFormatter())
    axes.yaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:,.9g}"))
    for value, look in looks(series.values).items():
        line = sorted((series.along(spot), series.of(one)) for spot, one in own.items() if series.across(spot) == value)
        if not line:
            continue
        places = [place for place, _ in line]
        middle = [spread.median / series.scale for _, spread in line]
        axes.plot(places, middle, **look)
        low = [spread.low / series.scale for _, spread in line]
        high = [spread.high / series.scale for _, spread in line]
        axes.vlines(places, low, high, color=look["color"], linewidth=1)
