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
from neurotier.pages.kit.style import BLACK, BLUE, LIGHT_GREY, ORANGE, WIDTH_IN, house_style, save_figure, set_title

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
    rows_by_panel = panels(rows)
    with house_style():
        figure = plot.Figure(figsize=(WIDTH_IN, 1.9 + LANE_IN * len(rows) + 0.4 * len(rows_by_panel)))
        axes = figure.subplots(
            len(rows_by_panel),
            1,
            sharex=True,
            squeeze=False,
            height_ratios=[len(each) for each in rows_by_panel.values()],
        )[:, 0]
        for one, ((jobs, cache), each) in zip(axes, rows_by_panel.items(), strict=True):
            one.set_title(f"{jobs} at once, page cache {cache}, {each[0]['participants']:,} participants")
            for lane, row in enumerate(each):
                (bar,) = one.barh(lane, row["predicted_s"], height=0.6, color=BLUE if row["fits"] else LIGHT_GREY)
                bar.set_url(hover(f"{row['placement']}: {interval(row)}"))
                one.plot([row["low_s"], row["high_s"]], [lane, lane], color=BLACK, linewidth=1.4)
                one.plot([row["paper_s"]], [lane], linestyle="", marker="D", markersize=5, color=ORANGE)
                reason = "" if row["fits"] else f"; {row['reason']}"
                label = f"{interval(row)}, {row['limit']} ({percent(row['limit_share'])}){reason}"
                end = max(row["high_s"], row["paper_s"])
                one.annotate(label, (end, lane), (6, 0), textcoords="offset points", va="center")
            names = [row["placement"] + (" (in use)" if row["in_use"] else "") for row in each]
            one.set_yticks(range(len(each)), names)
            one.set_ylim(len(each) - 0.5, -0.5)
            one.grid(visible=False, axis="y")
        axes[-1].set_xlim(0, 1.9 * max(max(row["high_s"], row["paper_s"]) for row in rows))
        axes[-1].set_xlabel("Predicted makespan (s)")
        set_title(figure, finding(rows).sentence, NOTE)
        save_figure(figure, stem, rows)
