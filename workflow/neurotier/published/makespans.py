"""The figures ``makespan_*``: makespans of the BigBrain runs, Eq. (1) and the model (Figures 1a, 3a, 5a to 8a)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from neurotier.comparison.panels import Lane, Panel, beside, draw_legend, label_lanes, panel_axes
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import (
    ENGINES,
    Condition,
    cells,
    incomplete_text,
    is_stalled,
    mean,
    panel_title,
    panels,
    ratio_text,
)
from neurotier.published.members import PAPER, draw_predictions, mark_of, members_of, predicted
from neurotier.report.quantities import seconds
from neurotier.report.style import BLACK, house_style, save_figure, state
from neurotier.tables import Row

Runs = Mapping[Condition, Sequence[BlockRun]]
Estimates = Mapping[Condition, float | None]

CIRCLE: dict[str, Any] = {"marker": "o", "markersize": 5, "fillstyle": "none", "color": BLACK, "markeredgewidth": 0.8}
CROSS = CIRCLE | {"marker": "x"}
NOTE = (
    "Bar: mean over repetitions; circle: a repetition; the axis is logarithmic. Makespan: latest end - earliest start"
    " of the tasks that ended; of Spark, the driver's time. Right: mean, and how many times that Eq. (1) says."
)
INCOMPLETE = " * Some blocks were read and not written (the SSD was full): their tasks never ended and do not count."
APART = " Stalled: beyond 1.5 times the middle repetition; in the mean, as published, and not in the factor above."


def any_stalled(runs: Runs) -> bool:
    """Whether any repetition stalled."""
    return any(is_stalled(run, members) for members in runs.values() for run in members)


def off_factor(runs: Runs, estimates: Estimates) -> float | None:
    """Geometric mean of the factors by which Eq. (1) misses mean makespans, stalled repetitions left out."""
    factors = []
    for condition, members in runs.items():
        steady = [run for run in members if not is_stalled(run, members)]
        if estimate := estimates.get(condition):
            factors.append(abs(math.log(estimate / mean(steady, "makespan_s"))))
    return math.exp(statistics.fmean(factors)) if factors else None


def makespan_finding(runs: Runs, estimates: Estimates) -> str:
    """The widest gap between devices, and how far Eq. (1) is off."""
    times = {condition: mean(members, "makespan_s") for condition, members in runs.items()}
    factor = off_factor(runs, estimates)
    off = f"; Eq. (1) is off by a factor of {ratio_text(factor)}" if factor else ""
    off += " on average" if factor and len(times) > 1 else ""
    gaps = []
    for members in panels(runs).values():
        ordered = sorted(members, key=lambda condition: times[condition])
        gaps.append((times[ordered[-1]] / times[ordered[0]], ordered[0], ordered[-1]))
    if len(times) == 1:
        (only,) = times
        return f"{only.name}: {seconds(times[only])}{off}"
    if not any(ratio > 1 for ratio, *_ in gaps):
        ordered = sorted(times, key=lambda condition: times[condition])
        low, high = (f"{seconds(times[one])} ({one.name})" for one in (ordered[0], ordered[-1]))
        return f"Makespans from {low} to {high}"
    ratio, fast, slow = max(gaps, key=lambda gap: gap[0])
    said = f"{slow.place} ({seconds(times[slow])}) takes {ratio_text(ratio)} times as long as {fast.place}"
    return f"{said} ({seconds(times[fast])}) with {slow.processes} processes{off}"


def draw_makespans(runs: Runs, estimates: Estimates, predictions: Sequence[Row], stem: Path) -> None:
    """Draw the makespans of at least one condition; write SVG, PNG and TSV.

    Parameters
    ----------
    runs
        Runs by condition, in order; those of a panel stand together.
    estimates
        Eq. (1) by condition, s.
    predictions
        Rows of ``published_predictions.tsv``; may be empty.
    stem
        Path of the files, without extension.
    """
    with house_style():
        figure = draw(runs, estimates, predictions)
        incomplete = any(incomplete_text(members) for members in runs.values())
        note = NOTE + INCOMPLETE * incomplete + APART * any_stalled(runs)
        state(figure, makespan_finding(runs, estimates), note)
        save_figure(figure, stem, table(runs, estimates, predictions))


def lane_panels(runs: Runs) -> list[Panel[Condition]]:
    """A panel for each engine and number of processes, a lane for each condition."""
    groups: dict[tuple[int, str, int], list[Lane[Condition]]] = {}
    for condition, members in runs.items():
        star = "*" if incomplete_text(members) else ""
        place = f"{condition.device}{star}{condition.place[len(condition.device) :]}"
        label = f"{place}: {condition.variant}" if condition.variant else place
        groups.setdefault(condition.panel, []).append(Lane(label, condition))
    shown = [Panel(panel_title(panel, "a"), tuple(lanes)) for panel, lanes in groups.items()]
    if not any(condition.variant for condition in runs):
        return shown
    titles = (f"{size} µm, {ENGINES[engine]}, {processes} processes" for size, engine, processes in groups)
    return [replace(panel, title=title) for panel, title in zip(shown, titles, strict=True)]


def draw(runs: Runs, estimates: Estimates, predictions: Sequence[Row]) -> Figure:
    """The figure of at least one condition."""
    shown = lane_panels(runs)
    figure, (legend, *all_axes) = panel_axes(shown, legend=True)
    drawn: list[str] = []
    ends: list[float] = []
    for axes, panel in zip(all_axes, shown, strict=True):
        for lane, condition in panel.filled():
            values = [run.makespan_s for run in runs[condition]]
            guesses = predicted(predictions, condition, estimates.get(condition))
            average = statistics.fmean(values)
            axes.plot([average] * 2, [lane - 0.36, lane + 0.06], color=BLACK, linewidth=2.2, solid_capstyle="butt")
            for run in runs[condition]:
                style = CROSS if is_stalled(run, runs[condition]) else CIRCLE
                axes.plot([run.makespan_s], [lane - 0.15], linestyle="", **style)
            draw_predictions(axes, lane, guesses)
            beside(axes, lane, text_of(average, guesses))
            drawn += [member for member, *_ in guesses if member not in drawn]
            ends += [*values, *(end for _, *times in guesses for end in times)]
        label_lanes(axes, panel)
    for axes in all_axes:
        logarithmic(axes, min(ends), max(ends))
    all_axes[-1].set_xlabel("Makespan (s)")
    measured = [
        Line2D([], [], linestyle="", marker="|", markersize=10, markeredgewidth=2.2, color=BLACK, label="mean"),
        Line2D([], [], linestyle="", **CIRCLE, label="repetition"),
    ]
    if any_stalled(runs):
        measured.append(Line2D([], [], linestyle="", **CROSS, label="stalled repetition"))
    order = [member for member in [PAPER, *members_of(predictions)] if member in drawn]
    draw_legend(legend, [*measured, *(mark_of(member).handle() for member in dict.fromkeys(order))])
    return figure


def logarithmic(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis of times from a little below the least to a little above the greatest, s."""
    axes.set_xscale("log")
    axes.set_xlim(low / 1.4, high * 1.4)
    decades = math.log10(high / low) if low > 0 else 1
    steps = (1, 2, 5) if decades < 2.5 else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def text_of(average: float, guesses: Sequence[tuple[str, float, float, float]]) -> str:
    """Mean makespan, and what Eq. (1) says of it."""
    paper = [value for member, value, *_ in guesses if member == PAPER]
    return f"{seconds(average)}; Eq. (1) {ratio_text(paper[0] / average)} x" if paper else seconds(average)


def table(runs: Runs, estimates: Estimates, predictions: Sequence[Row]) -> list[Row]:
    """The numbers behind the figure: a row per repetition, and one per prediction."""
    rows = []
    for condition, members in runs.items():
        for run in members:
            about = {"kind": "measured", "of": f"repetition {run.repetition}", "makespan_s": run.makespan_s}
            ends = {"low_s": None, "high_s": None, "incomplete_blocks": len(run.incomplete_blocks)}
            rows.append({**cells(condition), **about, **ends})
        for member, value, low, high in predicted(predictions, condition, estimates.get(condition)):
            about = {"kind": "predicted", "of": member, "makespan_s": value}
            rows.append({**cells(condition), **about, "low_s": low, "high_s": high, "incomplete_blocks": None})
    return rows
