"""The figure ``concurrency``: bandwidth of each tier by the number of streams at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import rate
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import LEGEND_IN, draw_legend
from neurotier.pages.kit.style import (
    BLUE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH_IN,
    empty_figure,
    house_style,
    save_figure,
    set_title,
)

LINES = {
    "read": ("Read", BLUE, "o"),
    "write": ("Write", VERMILION, "s"),
    "mixed": ("Half and half", PURPLE, "D"),
    "cached_read": ("Read from the page cache", SKY, "^"),
    "buffered_write": ("Write to the page cache", ORANGE, "v"),
}
"""Label, colour and marker by pattern."""

COLUMNS = 3
PANEL_HEIGHT_IN = 3.0
FULL_SHARE = 0.9
"""Share of the greatest bandwidth from which further streams are said to gain nothing."""

NOTE = (
    "Bandwidth of all streams together; a file for each, 1 MiB a request, one at a time; half and half counts both"
    " ways. Medians of the repetitions; whiskers: their range. Writes include the flush to the device."
)


def by_tier(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Rows of the curves by tier and pattern, in order of streams."""
    curves: dict[str, dict[str, list[Row]]] = {}
    for row in sorted((row for row in rows if row["part"] == "concurrency"), key=lambda row: row["streams"]):
        curves.setdefault(row["tier"], {}).setdefault(row["pattern"], []).append(row)
    order = list(dict.fromkeys(row["tier"] for row in rows))
    return {tier: curves[tier] for tier in order if tier in curves}


def most(curve: Sequence[Row]) -> float:
    """Greatest bandwidth of a curve, bytes/s."""
    return max(float(row["bandwidth_bytes_per_s"]) for row in curve)


def full_at(curve: Sequence[Row]) -> int:
    """Streams from which further ones gain nothing that the repetitions agree on."""
    enough = FULL_SHARE * most(curve)
    return next(int(row["streams"]) for row in curve if row["bandwidth_high_bytes_per_s"] >= enough)


def finding(rows: Sequence[Row]) -> Finding:
    """Which tier reads fastest, and where each stops scaling."""
    curves = {tier: patterns["read"] for tier, patterns in by_tier(rows).items()}
    if not curves:
        return Finding("No tier has been measured", shown=False)
    ordered = sorted(curves, key=lambda tier: most(curves[tier]), reverse=True)
    fast, slow = ordered[0], ordered[-1]
    sentence = f"{fast} reads {rate(most(curves[fast]))}"
    if len(ordered) > 1:
        ratio = most(curves[fast]) / most(curves[slow])
        sentence += f", {ratio:,.{1 if ratio < 10 else 0}f} times as much as {slow}"
    clauses, gaining = [], []
    for tier in ordered:
        last, full = curves[tier][-1]["streams"], full_at(curves[tier])
        if full < last:
            end = f"stops scaling at {full} streams" if full > 1 else "gains nothing from a second stream"
            clauses.append(f"{tier} {end}")
        elif last > 1:
            gaining.append(tier)
    if gaining:
        last = max(curves[tier][-1]["streams"] for tier in gaining)
        clauses.append(f"{' and '.join(gaining)} {'gains' if len(gaining) == 1 else 'gain'} up to {last} streams")
    return Finding("; ".join([sentence, *clauses]))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the curves of all tiers; write SVG, PNG and TSV."""
    tiers, said = by_tier(rows), finding(rows)
    with house_style():
        figure = curves_figure(tiers) if said.shown else empty_figure(said.sentence)
        if said.shown:
            set_title(figure, said.sentence, NOTE)
        save_figure(figure, stem, table(tiers))


def curves_figure(tiers: dict[str, dict[str, list[Row]]]) -> plot.Figure:
    """The figure of at least one tier, a panel for each, all on the same scales."""
    columns = min(COLUMNS, len(tiers))
    lines = -(-len(tiers) // columns)
    figure = plot.Figure(figsize=(WIDTH_IN, 1.2 + lines * PANEL_HEIGHT_IN))
    heights = [LEGEND_IN, *[PANEL_HEIGHT_IN] * lines]
    room = figure.add_gridspec(lines + 1, columns, height_ratios=heights)
    first = figure.add_subplot(room[1, 0])
    panels = [first]
    for place in range(1, len(tiers)):
        line, column = divmod(place, columns)
        panels.append(figure.add_subplot(room[line + 1, column], sharex=first, sharey=first))
        panels[-1].tick_params(labelleft=column == 0)
    for axes, (tier, patterns) in zip(panels, tiers.items(), strict=True):
        for pattern, curve in patterns.items():
            draw_curve(axes, pattern, curve)
        about = next(iter(patterns.values()))[0]
        axes.set_title(f"{tier} ({about['kind']}, {about['fs_type']})")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    streams = sorted({row["streams"] for patterns in tiers.values() for curve in patterns.values() for row in curve})
    panels[0].set_xticks(streams)
    panels[0].set_xlim(streams[0] / 1.2, streams[-1] * 1.2)
    panels[0].xaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].xaxis.set_minor_locator(plot.NullLocator())
    panels[0].yaxis.set_major_locator(plot.LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    panels[0].yaxis.set_major_formatter(plot.FuncFormatter(lambda value, _: short_rate(value)))
    panels[0].yaxis.set_minor_formatter(plot.NullFormatter())
    for place, axes in enumerate(panels):
        axes.set_xlabel("Streams at once")
        axes.set_ylabel("" if place % columns else "Bandwidth")
    drawn = {pattern for patterns in tiers.values() for pattern in patterns}
    lines_drawn = [line for pattern, line in LINES.items() if pattern in drawn]
    handles = [plot.Line2D([], [], label=label, color=colour, marker=marker) for label, colour, marker in lines_drawn]
    draw_legend(figure.add_subplot(room[0, :]), handles)
    return figure


def draw_curve(axes: plot.Axes, pattern: str, curve: Sequence[Row]) -> None:
    """One line with whiskers."""
    _, colour, marker = LINES[pattern]
    streams = [row["streams"] for row in curve]
    middle = [row["bandwidth_bytes_per_s"] for row in curve]
    below = [row["bandwidth_bytes_per_s"] - row["bandwidth_low_bytes_per_s"] for row in curve]
    above = [row["bandwidth_high_bytes_per_s"] - row["bandwidth_bytes_per_s"] for row in curve]
    axes.errorbar(streams, middle, [below, above], color=colour, elinewidth=0.8, capsize=2, marker=marker, markersize=5)


def short_rate(value: float) -> str:
    """A bandwidth beside an axis.

    >>> short_rate(2e9), short_rate(5e8), short_rate(0.0)
    ('2 GB/s', '500 MB/s', '0')
    """
    if value == 0:
        return "0"
    return f"{value / 1e9:g} GB/s" if value >= 1e9 else f"{value / 1e6:g} MB/s"


def table(tiers: dict[str, dict[str, list[Row]]]) -> list[Row]:
    """The numbers behind the figure."""
    kept = ("tier", "pattern", "engine", "direct", "streams", "repetitions")
    figures = ("bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s")
    return [
        {name: row[name] for name in (*kept, *figures)}
        for patterns in tiers.values()
        for curve in patterns.values()
        for row in curve
    ]
