"""The figures ``makespan_*``: makespans of the BigBrain runs, Eq. (1) and the model (Figures 1a, 3a, 5a to 8a)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from neurotier.core.quantities import seconds
from neurotier.core.tables import Row
from neurotier.pages.kit.lanes import Lane, Panel, beside, draw_legend, label_lanes, panel_axes
from neurotier.pages.kit.style import BLACK, house_style, save_figure, state
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import (
    ENGINES,
    Condition,
    cells,
    incomplete_text,
    is_stalled,
    mean,
    off_factor,
    panel_title,
    panels,
    ratio_text,
)
from neurotier.published.members import MARKS, PAPER, Guess, Marks, draw_predictions, mark_of, predicted

Runs = Mapping[Condition, Sequence[BlockRun]]
Estimates = Mapping[Condition, float | None]
Key = TypeVar("Key")
Value = TypeVar("Value")

CIRCLE: dict[str, Any] = {"marker": "o", "markersize": 5, "fillstyle": "none", "color": BLACK, "markeredgewidth": 0.8}
CROSS = CIRCLE | {"marker": "x"}
NOTE = (
    "Bar: mean over repetitions; circle: a repetition; the axis is logarithmic. Makespan: latest end - earliest start"
    " of the tasks that ended; of Spark, the driver's time. Right: mean, and how many times that Eq. (1) says."
)
INCOMPLETE = " * Some blocks were read and not written (the SSD was full): their tasks never ended and do not count."
APART = " Stalled: beyond 1.5 times the middle repetition; in the mean, as published, and not in the factor above."


@dataclass(frozen=True)
class Measured:
    """A condition's makespans: mean or median, repetitions apart from those that stalled, and predictions, all in s."""

    middle_s: float
    steady_s: Sequence[float]
    guesses: Sequence[Guess]
    stalled_s: Sequence[float] = ()

    @property
    def ends(self) -> list[float]:
        """Everything that the axis must hold."""
        return [*self.steady_s, *self.stalled_s, *(end for _, *times in self.guesses for end in times)]


def any_stalled(runs: Runs) -> bool:
    """Whether any repetition stalled."""
    return any(is_stalled(run, members) for members in runs.values() for run in members)


def estimate_factor(runs: Runs, estimates: Estimates) -> float | None:
    """Geometric mean of the factors by which Eq. (1) misses mean makespans, stalled repetitions left out."""
    ratios = []
    for condition, members in runs.items():
        steady = [run for run in members if not is_stalled(run, members)]
        if estimate := estimates.get(condition):
            ratios.append(estimate / mean(steady, "makespan_s"))
    return off_factor(ratios)


def makespan_finding(runs: Runs, estimates: Estimates) -> str:
    """The widest gap between devices, and how far Eq. (1) is off."""
    times = {condition: mean(members, "makespan_s") for condition, members in runs.items()}
    factor = estimate_factor(runs, estimates)
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

    def measured(condition: Condition) -> Measured:
        stalled, steady = list[float](), list[float]()
        for run in runs[condition]:
            (stalled if is_stalled(run, runs[condition]) else steady).append(run.makespan_s)
        guesses = predicted(predictions, condition, estimates.get(condition))
        return Measured(statistics.fmean([*steady, *stalled]), steady, guesses, stalled)

    return draw_lanes(filled_with(lane_panels(runs), measured), "mean")


def filled_with(panels: Sequence[Panel[Key]], value: Callable[[Key], Value]) -> list[Panel[Value]]:
    """The same panels with what stands for each lane's key in place of it; headings stay."""
    return [
        Panel(
            panel.title,
            tuple(Lane(lane.label, None if lane.value is None else value(lane.value)) for lane in panel.lanes),
        )
        for panel in panels
    ]


def draw_lanes(panels: Sequence[Panel[Measured]], middle: str, marks: Marks = MARKS, shared: bool = True) -> Figure:
    """What was measured and predicted of each lane, on logarithmic axes.

    Parameters
    ----------
    panels
        At least one, each with a lane that has a value.
    middle
        What the bar is of the repetitions, such as ``mean``.
    marks
        How each member of the model is drawn, in the order of the legend.
    shared
        Whether all panels have the same range.
    """
    figure, (legend, *all_axes) = panel_axes(panels, legend=True)
    for axes, panel in zip(all_axes, panels, strict=True):
        for lane, one in panel.filled():
            axes.plot([one.middle_s] * 2, [lane - 0.36, lane + 0.06], color=BLACK, linewidth=2.2, solid_capstyle="butt")
            for values, style in ((one.steady_s, CIRCLE), (one.stalled_s, CROSS)):
                axes.plot(values, [lane - 0.15] * len(values), linestyle="", **style)
            draw_predictions(axes, lane, one.guesses, marks)
            beside(axes, lane, text_of(one.middle_s, one.guesses))
        label_lanes(axes, panel)
    for axes, panel in zip(all_axes, panels, strict=True):
        ends = [end for each in (panels if shared else [panel]) for _, one in each.filled() for end in one.ends]
        logarithmic(axes, min(ends), max(ends))
    all_axes[-1].set_xlabel("Makespan (s)")
    everything = [one for panel in panels for _, one in panel.filled()]
    handles = [
        Line2D([], [], linestyle="", marker="|", markersize=10, markeredgewidth=2.2, color=BLACK, label=middle),
        Line2D([], [], linestyle="", **CIRCLE, label="repetition"),
    ]
    if any(one.stalled_s for one in everything):
        handles.append(Line2D([], [], linestyle="", **CROSS, label="stalled repetition"))
    drawn = {member for one in everything for member, *_ in one.guesses}
    order = [*(member for member in marks if member in drawn), *sorted(drawn - marks.keys())]
    draw_legend(legend, [*handles, *(mark_of(member, marks).handle() for member in order)])
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


def text_of(middle_s: float, guesses: Sequence[Guess]) -> str:
    """Mean or median makespan, and what Eq. (1) says of it."""
    paper = [value for member, value, *_ in guesses if member == PAPER]
    return f"{seconds(middle_s)}; Eq. (1) {ratio_text(paper[0] / middle_s)} x" if paper else seconds(middle_s)


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
