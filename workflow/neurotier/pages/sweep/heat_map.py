"""The figure ``heat_map``: bandwidth by block size and processes, a panel per pattern and queue depth.

As Figures 2 to 5 of the Optane report, with the values written into the cells where there is room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neurotier.core.quantities import rate
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.counts import NOTHING
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import BLACK, LIGHT_GREY, VERMILION, WIDTH_IN, write_figure
from neurotier.pages.sweep.figures import by_set
from neurotier.storage.sweep.medians import (
    MB,
    READING,
    WRITING,
    Measured,
    Spot,
    best,
    block_text,
    digits,
    medians,
    panel_title,
    panels,
    setting_text,
)

NOTE = (
    "Median over repetitions, all processes together; one colour scale for all panels, each step a factor. Outlined:"
    " the highest of a panel. Hatched: not measured (the page says why)."
)
CELL_IN, PANEL_IN = 0.27, 0.85
SMALLEST_PT, LARGEST_PT = 4.5, 8.0
DIGIT_WIDTH = 0.66
"""Width of a digit, in its size."""

MEDIAN = "bandwidth_median_bytes_per_s"
MAP = "cividis"
LIGHT = 0.55
"""Colours above this part of the map want dark letters."""

parts = by_set


def finding(rows: Sequence[Row]) -> Finding:
    """Where the bandwidths of one tier and set are highest."""
    spots = medians(rows)
    if not spots:
        return Finding(NOTHING, shown=False)
    clauses = []
    for patterns, verb in ((READING, "reading"), (WRITING, "writing"), (("mixed",), "reading and writing")):
        spot = best(spots, patterns, lambda one: one.bandwidth)
        if spot is not None:
            reached = rate(spots[spot].bandwidth.median)
            clauses.append(f"{verb} is fastest at {reached} ({setting_text(spot)})")
    return Finding(f"{rows[0]['tier']}: {'; '.join(clauses)}")


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the bandwidths of one tier and set; write SVG, PNG and TSV."""
    spots = medians(rows)
    cells = table(spots)
    write_figure(stem, finding(rows), cells, lambda: heat_maps(rows, panels(spots), pd.DataFrame(cells)), NOTE)


def heat_maps(rows: Sequence[Row], shown: Sequence[tuple[int, str]], table: pd.DataFrame) -> plot.Figure:
    """The figure of at least one cell, from the table of cells; ``shown`` has queue depth and pattern of each panel."""
    blocks = sorted({row["block_bytes"] for row in rows})
    processes = sorted({row["processes"] for row in rows})
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure = plot.Figure(figsize=(WIDTH_IN, lines * (CELL_IN * len(processes) + PANEL_IN) + 1.1))
    axes_of = figure.subplots(lines, columns, squeeze=False)
    low, high = table[MEDIAN].min() / MB, table[MEDIAN].max() / MB
    scale = plot.LogNorm(low, high) if high > low else plot.LogNorm(low / 4, 4 * low)
    for axes, (queue_depth, pattern) in zip(axes_of.flat, shown, strict=False):
        own = table[(table["queue_depth"] == queue_depth) & (table["pattern"] == pattern)]
        cells = own.pivot(index="processes", columns="block_bytes", values=MEDIAN) / MB
        cells = cells.reindex(index=processes, columns=blocks).to_numpy()
        draw_panel(axes, cells, scale, WIDTH_IN * 0.84 / columns / len(blocks))
        axes.set_title(panel_title(queue_depth, pattern, own.itertuples()), fontsize=9, weight="bold")
        axes.set_xticks(range(len(blocks)), [block_text(block) for block in blocks])
        axes.tick_params(axis="x", rotation=90 if len(blocks) > 8 else 0)
        axes.set_yticks(range(len(processes)), [str(count) for count in processes])
    for axes in axes_of.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in axes_of[:, 0]:
        axes.set_ylabel("Processes")
    for axes in axes_of[-1]:
        axes.set_xlabel("Block size")
    bar = figure.colorbar(axes_of.flat[0].images[0], ax=axes_of, label="Bandwidth (MB/s)", aspect=30)
    bar.ax.yaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:,.9g}"))
    bar.ax.yaxis.set_major_locator(plot.LogLocator(subs=(1.0, 3.0)))
    bar.ax.yaxis.set_minor_formatter(plot.NullFormatter())
    return figure


def draw_panel(axes: plot.Axes, cells: np.ndarray, scale: plot.LogNorm, cell_in: float) -> None:
    """A heat map; ``cells`` has a row for each number of processes, ``cell_in`` is the width of a cell, inches."""
    axes.imshow(np.ma.masked_invalid(cells), cmap=MAP, norm=scale, origin="lower", aspect="auto")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    known = [value for value in cells.flat if not np.isnan(value)]
    longest = max(len(digits(value)) for value in known)
    size_pt = min(LARGEST_PT, 72 * cell_in / (DIGIT_WIDTH * (longest + 1)))
    for (line, column), value in np.ndenumerate(cells):
        if np.isnan(value):
            style: Any = {"facecolor": "white", "edgecolor": LIGHT_GREY, "hatch": "////", "linewidth": 0}
            axes.add_patch(plot.Rectangle((column - 0.5, line - 0.5), 1, 1, **style))
        elif size_pt >= SMALLEST_PT:
            colour = BLACK if scale(value) > LIGHT else "white"
            axes.text(column, line, digits(value), ha="center", va="center", fontsize=size_pt, color=colour)
    line, column = np.unravel_index(np.nanargmax(cells), cells.shape)
    axes.add_patch(plot.Rectangle((column - 0.5, line - 0.5), 1, 1, fill=False, edgecolor=VERMILION, linewidth=1.6))


def table(spots: dict[Spot, Measured]) -> list[Row]:
    """The numbers behind the figure: one row per cell."""
    return [
        {
            **asdict(spot),
            "repetitions": len(one.bandwidth.values),
            MEDIAN: one.bandwidth.median,
            "bandwidth_low_bytes_per_s": one.bandwidth.low,
            "bandwidth_high_bytes_per_s": one.bandwidth.high,
            "requests_median_per_s": one.requests.median,
            "engine": one.engine,
            "direct": one.direct,
        }
        for spot, one in spots.items()
    ]
