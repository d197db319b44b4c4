"""The page of storage sweeps: heat maps and lines of every set on every tier."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from neurotier.core.quantities import percent, rate
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, LIGHT_GREY, NOTHING, VERMILION, WIDTH_IN, Chart
from neurotier.pages.kit.findings import at_once
from neurotier.pages.kit.lines import Lines, measured
from neurotier.pages.kit.page import Data, Figure, Page, Section, Verdict
from neurotier.pages.kit.workloads import measured_of, tiers, unmeasured
from neurotier.storage.sweep.medians import (
    MB,
    PATTERNS,
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
    requests_text,
    setting_text,
)

if TYPE_CHECKING:
    import numpy as np

CELL_IN, PANEL_IN = 0.27, 0.85
SMALLEST_PT, LARGEST_PT = 4.5, 8.0
DIGIT_WIDTH = 0.66
"""Width of a digit, in its size."""

MEDIAN = "bandwidth_median_bytes_per_s"
MAP = "cividis"
LIGHT = 0.55
"""Colours above this part of the map want dark letters."""

NEAR = 0.9
"""Share of the highest bandwidth at which a block size is called large enough."""

KINDS = (
    (READING, "reading", "to read"),
    (WRITING, "writing", "to write"),
    (("mixed",), "reading and writing", "to do both"),
)


def parts(settings: Any) -> Iterator[str]:
    """Every set on every tier, of which a figure is drawn each."""
    return (f"{tier}_{name}" for tier in settings.sweep.tiers for name in settings.sweep.sets)


def rows_of(data: Data, part: str) -> list[Row]:
    """The points of a set on a tier."""
    return [row for row in data["sweep"] if f"{row['tier']}_{row['set']}" == part]


def fastest_text(rows: Sequence[Row]) -> str:
    """Where the bandwidths of one tier and set are highest."""
    spots, clauses = medians(rows), []
    for patterns, verb, _ in KINDS:
        spot = best(spots, patterns, lambda one: one.bandwidth)
        if spot is not None:
            reached = rate(spots[spot].bandwidth.median)
            clauses.append(f"{verb} is fastest at {reached} ({setting_text(spot)})")
    return f"{rows[0]['tier']}: {'; '.join(clauses)}" if clauses else NOTHING


def verdicts(data: Data) -> list[Verdict]:
    """Where each tier is fastest in each set."""
    sets = dict.fromkeys(f"{row['tier']}_{row['set']}" for row in data["sweep"])
    found = [rows_of(data, part) for part in sets]
    return [Verdict(fastest_text(rows), about=f"Set {rows[0]['set']}") for rows in found]


@dataclass(frozen=True)
class HeatMaps(Chart):
    """A chart of bandwidths by block size and processes, a panel per pattern and queue depth, from a row per cell."""

    blocks: Sequence[int] = ()
    processes: Sequence[int] = ()
    shown: Sequence[tuple[int, str]] = ()

    def draw(self) -> plot.Figure:
        """The panels, of one colour scale."""
        import pandas as pd

        table, blocks, processes, shown = pd.DataFrame(self.table), self.blocks, self.processes, self.shown
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
    import numpy as np

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


def heat_map(data: Data, part: str) -> Chart:
    """A panel per pattern and queue depth, a cell per block size and number of processes, in it the bandwidth of all
    processes together. As Figures 2 to 5 of the Optane report.
    """
    rows = rows_of(data, part)
    spots = medians(rows)
    if not spots:
        return Chart(NOTHING)
    cells = [
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
    return HeatMaps(
        fastest_text(rows),
        cells,
        "Median over repetitions, all processes together; one colour scale for all panels, each step a factor."
        " Outlined: the highest of a panel. Hatched: not measured (the page says why).",
        blocks=sorted({row["block_bytes"] for row in rows}),
        processes=sorted({row["processes"] for row in rows}),
        shown=panels(spots),
    )


def lines(data: Data, part: str) -> Chart:
    """A panel per pattern and queue depth, a line per number of processes. As Figures 2 and 5 of the DUNE paper."""
    spots = medians(rows_of(data, part))
    if not spots:
        return Chart(NOTHING)
    most = max(spots, key=lambda spot: spots[spot].requests.median)
    says = f"{most.tier}: at most {requests_text(spots[most].requests.median)} ({setting_text(most)})"
    needed = [
        f"{block_text(block)} {verb}"
        for patterns, _, verb in KINDS
        if (block := large_enough(spots, patterns)) is not None
    ]
    if len({spot.block_bytes for spot in spots}) > 1:
        says += f"; {percent(NEAR)} of the highest bandwidth takes blocks of {' and '.join(needed)}"
    table = [
        measured(
            f"{PATTERNS[spot.pattern].capitalize()}, queue depth {spot.queue_depth}",
            at_once(spot.processes),
            spot.block_bytes,
            one.bandwidth,
        )
        for spot, one in spots.items()
    ]
    return Lines(
        says,
        table,
        "Median over repetitions, whiskers from least to greatest; all processes together. Both axes are logarithmic.",
        panels={row["panel"]: "Block size" for row in table},
        label="Bandwidth",
        unit="bytes/s",
        place_text=lambda value: block_text(int(value)),
    )


def large_enough(spots: dict[Spot, Measured], patterns: Sequence[str]) -> int | None:
    """The smallest block, bytes, with which some point comes near the highest bandwidth."""
    known = [(spot.block_bytes, one.bandwidth.median) for spot, one in spots.items() if spot.pattern in patterns]
    most = max((reached for _, reached in known), default=0.0)
    return min((block for block, reached in known if reached >= NEAR * most), default=None)


PAGE = Page(
    name="sweep",
    title="Storage sweep",
    category="Sweep",
    caption="The sweep on one page: where each tier is fastest, what was not measured and why, heat maps and"
    " lines. The page shows which requests suit a tier.",
    under=measured_of("sweep", " with fio"),
    tables={"sweep": "sweep/sweep.tsv"},
    verdicts=verdicts,
    parts=(
        Figure("Bandwidth by block size and processes", heat_map, parts),
        Figure("Bandwidth by block size", lines, parts),
        tiers("sweep"),
        unmeasured("sweep"),
        Section(
            "How it is measured",
            """
            Each process works on a file of its own, laid out before; bandwidths and requests are those of all processes
            together over the time of the point. Points are measured in a random order, another in each repetition, so
            that what drifts (a flash drive's fast cache, burst credit, heat) does not look like an effect of block size
            or processes.

            Direct: past the page cache, so the device's own figure. Buffered: through the page cache; on memory (tmpfs)
            there is nothing else, on other tiers reads may come from memory, and writes are measured until they are on
            the device. The Optane report's processes shared one device of 128 GB without a file system, and the DUNE
            paper's were threads of one process; short points here are within what a drive or a virtual disk takes
            in its
            own cache.
            """,
        ),
    ),
)
