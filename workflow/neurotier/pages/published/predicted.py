"""What each member of the model predicts against what was measured, where it has not looked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.model.prediction import MEASURED, PAPER
from neurotier.pages.bigbrain.marks import MARKS, in_order
from neurotier.pages.bigbrain.names import ratio_text
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, GREY, LIGHT_GREY, WIDTH_IN
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import write_figure
from neurotier.pages.published.tables import Replayed
from neurotier.published.validation import ALONE, CLOSE, CONDITION, DEVICE, SPLITS, TWIN, Score, scores

TITLES = {held_out: SPLITS[held_out] for held_out in (CONDITION, DEVICE)}
NOTE = (
    "Line: predicted as measured; band: within a factor of 1.2. A marker per condition and member; vertical line:"
    " interval of the prediction. Factor: geometric mean of how far a member is off, either way. Outliers among the"
    " repetitions are left out. Eq. (1) learns nothing from runs, and is the same on both sides."
)


def held_against(rows: Sequence[Row]) -> list[Row]:
    """The predictions of conditions that were measured."""
    return [row for row in rows if row["measured_s"] and row["predicted_s"] > 0]


def scores_of(rows: Sequence[Row], held_out: str) -> dict[str, Score]:
    """The score of each member, by what was held out, in the order of the marks."""
    found = {score.member: score for score in scores(held_against(rows)) if score.held_out == held_out}
    return {member: found[member] for member in in_order(found)}


def parts(tables: Replayed) -> dict[str, Replayed]:
    """Itself if any condition that is predicted was measured."""
    return {"": tables} if held_against(tables.validation) else {}


def finding(tables: Replayed) -> Finding:
    """How far the measured member is off, and Eq. (1)."""
    return Finding(sentence_of(tables.validation))


def sentence_of(rows: Sequence[Row]) -> str:
    """The finding from the validation: without a condition, with a twin in the other mode or not; without a device."""
    alone = scores_of(rows, CONDITION)
    best = MEASURED if MEASURED in alone else next(iter(alone))
    score = alone[best]
    text = f"Held out, conditions are predicted within a factor of {ratio_text(score.factor)}"
    text += f" ({score.close} of {score.conditions} within {CLOSE:g}"
    text += f", {score.covered} in their interval)" if score.covered is not None else ")"
    parts = {TWIN: "with a twin in the other memory mode", ALONE: "without", DEVICE: "whole devices"}
    for split, words in parts.items():
        of_split = scores_of(rows, split)
        text += f", {words} {ratio_text(of_split[best].factor)}" if best in of_split else ""
    return text + (f"; Eq. (1): {ratio_text(alone[PAPER].factor)}" if PAPER in alone and best != PAPER else "")


def draw(tables: Replayed, stem: Path) -> None:
    """Draw predictions of which at least one was measured; write SVG, PNG and TSV."""
    rows = held_against(tables.validation)
    write_figure(stem, finding(tables), rows, lambda: draw_rows(rows), NOTE)


def draw_rows(rows: Sequence[Row]) -> plot.Figure:
    """The figure: a panel for what was held out, all axes logarithmic and of one scale."""
    figure = plot.Figure(figsize=(WIDTH_IN, 5.6))
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    times = [row[name] for row in rows for name in ("predicted_s", "measured_s")]
    ends = min(times) / 1.5, max(times) * 1.5
    for axes, held_out in zip(panels, TITLES, strict=True):
        draw_panel(axes, [row for row in rows if row["held_out"] == held_out], ends)
        axes.set_title(TITLES[held_out], fontsize=9, weight="bold")
        axes.legend(handles=handles(rows, held_out), loc="upper left", fontsize=7.5)
    panels[0].set_ylabel("Predicted makespan (s)")
    return figure


def draw_panel(axes: plot.Axes, rows: Sequence[Row], ends: tuple[float, float]) -> None:
    """One panel."""
    low, high = ([factor * end for end in ends] for factor in (1 / CLOSE, CLOSE))
    axes.fill_between(ends, low, high, color=LIGHT_GREY, linewidth=0)
    axes.plot(ends, ends, color=BLACK, linewidth=1)
    for member in in_order(row["member"] for row in rows):
        mark, mine = MARKS[member], [row for row in rows if row["member"] == member]
        best = member == MEASURED
        for row in mine if best else ():
            axes.plot([row["measured_s"]] * 2, [row["low_s"], row["high_s"]], color=mark.colour, linewidth=0.8)
        measured, said = ([row[name] for row in mine] for name in ("measured_s", "predicted_s"))
        points = axes.scatter(measured, said, s=34 if best else 22, marker=mark.marker, c=mark.colour, linewidths=0)
        points.set(alpha=0.95 if best else 0.6, zorder=4 if best else 3)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for one in (axes.xaxis, axes.yaxis):
        one.set_major_formatter(plot.StrMethodFormatter("{x:,g}"))
        one.set_minor_formatter(plot.NullFormatter())
    axes.set_aspect("equal")
    axes.set_xlabel("Measured makespan (s)")
    axes.spines[["top", "right"]].set(visible=True, color=GREY)


def handles(rows: Sequence[Row], held_out: str) -> list[plot.Line2D | plot.Patch]:
    """The legend of a panel: each member, and by how much it is off."""
    found: list[plot.Line2D | plot.Patch] = []
    for member, score in scores_of(rows, held_out).items():
        handle = MARKS[member].handle()
        handle.set_label(f"{MARKS[member].label}: off by {ratio_text(score.factor)}")
        found.append(handle)
    return [*found, plot.Patch(color=LIGHT_GREY, label=f"within a factor of {CLOSE:g}")]
