"""The figure ``advised``: the predicted makespan of every placement, with its interval and its limit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.advice.words import interval, recommendation
from neurotier.core.quantities import percent
from neurotier.core.tables import Row
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.style import BLACK, BLUE, LIGHT_GREY, ORANGE, WIDTH_IN, write_figure

LANE_IN = 0.5
NOTE = (
    "Bar: predicted makespan; line: from the 5th to the 95th percentile of the draws; diamond: Eq. (1) of Hayot-Sasson,"
    " Brown and Glatard (2020), all bytes by one stream and no computing. Grey: does not fit."
)
Panel = tuple[int, str]


def panels(rows: Sequence[Row]) -> dict[Panel, list[Row]]:
    """Rows by parallelism and state of the page cache."""
    rows_by_panel: dict[Panel, list[Row]] = {}
    for row in rows:
        rows_by_panel.setdefault((row["parallelism"], row["cache"]), []).append(row)
    return rows_by_panel


def finding(rows: Sequence[Row]) -> Finding:
    """The recommendation for the greatest parallelism."""
    rows_by_panel = panels(rows)
    chosen = max(rows_by_panel, key=lambda panel: panel[0])
    about = f"{chosen[0]} at once, cache {chosen[1]}: " if len(rows_by_panel) > 1 else ""
    return Finding(about + recommendation(rows_by_panel[chosen]))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw a panel for each parallelism and state of the page cache; write SVG, PNG and TSV."""
    write_figure(stem, finding(rows), rows, lambda: figure_of(panels(rows)), NOTE)


def figure_of(rows_by_panel: dict[Panel, list[Row]]) -> plot.Figure:
    """The figure of at least one panel."""
    lanes = [len(rows) for rows in rows_by_panel.values()]
    figure = plot.Figure(figsize=(WIDTH_IN, 1.9 + LANE_IN * sum(lanes) + 0.4 * len(lanes)))
    all_axes = figure.subplots(len(lanes), 1, sharex=True, squeeze=False, height_ratios=lanes)[:, 0]
    for axes, ((jobs, cache), rows) in zip(all_axes, rows_by_panel.items(), strict=True):
        axes.set_title(f"{jobs} at once, page cache {cache}, {rows[0]['participants']:,} participants")
        for lane, row in enumerate(rows):
            (bar,) = axes.barh(lane, row["predicted_s"], height=0.6, color=BLUE if row["fits"] else LIGHT_GREY)
            bar.set_url(hover(f"{row['placement']}: {interval(row)}"))
            axes.plot([row["low_s"], row["high_s"]], [lane, lane], color=BLACK, linewidth=1.4)
            axes.plot([row["paper_s"]], [lane], linestyle="", marker="D", markersize=5, color=ORANGE)
            reason = "" if row["fits"] else f"; {row['reason']}"
            label = f"{interval(row)}, {row['limit']} ({percent(row['limit_share'])}){reason}"
            axes.annotate(label, (end_s(row), lane), (6, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(rows)), [row["placement"] + " (in use)" * row["in_use"] for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
    all_axes[-1].set_xlim(0, 1.9 * max(end_s(row) for rows in rows_by_panel.values() for row in rows))
    all_axes[-1].set_xlabel("Predicted makespan (s)")
    return figure


def end_s(row: Row) -> float:
    """Where the marks of a lane end, s."""
    return float(max(row["high_s"], row["paper_s"]))
