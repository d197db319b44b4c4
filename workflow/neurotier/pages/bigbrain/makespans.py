"""Makespans of the incrementation, Eq. (1) and the fluid model (the paper's Figures 1a, 3a, 5a to 8a)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import counted, seconds
from neurotier.core.tables import Row
from neurotier.model.prediction import PAPER, Prediction
from neurotier.pages.bigbrain.marks import MARKS, draw_predictions, in_order, logarithmic
from neurotier.pages.bigbrain.names import (
    NO_RUN,
    image_panels,
    off_factor,
    own,
    published,
    published_name,
    range_text,
    ratio_text,
    shown,
)
from neurotier.pages.bigbrain.tables import Tables, cells
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import Panel, annotate_lane, draw_legend, label_lanes, panel_axes
from neurotier.pages.kit.style import BLACK, empty_figure, house_style, save_figure, set_title
from neurotier.published.conditions import is_outlier

CIRCLE: dict[str, Any] = {"marker": "o", "markersize": 5, "fillstyle": "none", "color": BLACK, "markeredgewidth": 0.8}
CROSS = CIRCLE | {"marker": "x"}
NOTE = (
    "Bar: {middle} over valid repetitions; circle: a repetition; line through a prediction: its interval; axes are"
    " logarithmic, and each has a range of its own. Right: {middle}, and how many times that Eq. (1) says. Factors"
    " above: geometric means."
)
PUBLISHED_NOTE = (
    " Published: latest end - earliest start of the tasks that ended; of Spark, the driver's time. Eq. (1) with Table"
    " I; the fluid model measured from the logs of other conditions."
)
INCOMPLETE = " * Some blocks were read and not written (the SSD was full): their tasks never ended and do not count."
OUTLIERS = " Outlier: 1.5 times the middle repetition, or less than that part of it; in the {middle}{as_published}."
AS_PUBLISHED = ", as published, and not in the factor above"


@dataclass(frozen=True)
class Makespans:
    """Makespans of a condition: of its repetitions, apart from outliers, and as predicted, s."""

    middle_s: float
    steady_s: Sequence[float]
    outliers_s: Sequence[float]
    predictions: Mapping[str, Prediction]

    @property
    def ends_s(self) -> list[float]:
        """Everything that the axis must hold."""
        predicted = [end for one in self.predictions.values() for end in (one.makespan_s, one.low_s, one.high_s)]
        return [*self.steady_s, *self.outliers_s, *predicted]


def parts(tables: Tables) -> dict[str, Tables]:
    """Of the replay, a figure for each image, and one of what is in no figure of the paper."""
    return tables.parts(lambda one: f"{one.resolution_um}um", "others")


def finding(tables: Tables) -> Finding:
    """From which makespan to which, of one's own, and how far predictions are off; without any, of the paper's."""
    rows = tables.conditions
    if tables.is_replay:
        return Finding(replay_finding(tables))
    if own(rows):
        return Finding("; ".join(filter(None, [range_text(own(rows)), factors_text(own(rows))])))
    return Finding(f"{NO_RUN}; published ones: {factors_text(published(rows))}" if published(rows) else NO_RUN)


def factors_text(rows: Sequence[Row]) -> str:
    """By how much predictions miss; empty without any.

    >>> factors_text([{"equation_one_ratio": 0.5, "fluid_ratio": 1.2}])
    'Eq. (1) is off by a factor of 2.00, the fluid model by 1.20 (1 condition)'
    """
    ratios = {
        "Eq. (1)": [row["equation_one_ratio"] for row in rows if row["equation_one_ratio"]],
        "the fluid model": [row["fluid_ratio"] for row in rows if row["fluid_ratio"]],
    }
    factors = {name: factor for name, some in ratios.items() if (factor := off_factor(some)) is not None}
    counts = {name: counted(len(ratios[name]), "condition") for name in factors}
    same_count = len(set(counts.values())) == 1
    parts = [
        f"{name} by {ratio_text(off)}{'' if same_count else f' ({counts[name]})'}" for name, off in factors.items()
    ]
    text = ", ".join(parts).replace(" by ", " is off by a factor of ", 1)
    return f"{text} ({counts[next(iter(factors))]})" if factors and same_count else text


def replay_finding(tables: Tables) -> str:
    """The widest gap between devices, and how far Eq. (1) is off, outliers left out of that."""
    repetitions = tables.repetitions()
    rows = {IncrementCondition.of(row): row for row in tables.conditions}
    times, ratios = {one: row["makespan_s"] for one, row in rows.items()}, []
    for one, row in rows.items():
        steady_s, _ = apart([run["makespan_s"] for run in repetitions[one]])
        if row["equation_one_s"]:
            ratios.append(row["equation_one_s"] / statistics.fmean(steady_s))
    factor = off_factor(ratios)
    off = f"; Eq. (1) is off by a factor of {ratio_text(factor)}" if factor else ""
    off += " on average" if factor and len(times) > 1 else ""
    if len(times) == 1:
        (only,) = times
        return f"{published_name(only)}: {seconds(times[only])}{off}"
    panels: dict[tuple[int, str, int], list[IncrementCondition]] = {}
    for one in times:
        if one.panel:
            panels.setdefault(one.panel, []).append(one)
    ordered = [sorted(members, key=lambda one: times[one]) for members in panels.values()]
    gaps = [(times[members[-1]] / times[members[0]], members[0], members[-1]) for members in ordered]
    ratio, fast, slow = max(gaps, key=lambda gap: gap[0], default=(1.0, None, None))
    if fast is None or slow is None or ratio <= 1:
        ends = (min(times, key=lambda one: times[one]), max(times, key=lambda one: times[one]))
        low, high = (f"{seconds(times[one])} ({published_name(one)})" for one in ends)
        return f"Makespans from {low} to {high}"
    said = f"{slow.tier} ({seconds(times[slow])}) takes {ratio_text(ratio)} times as long as {fast.tier}"
    return f"{said} ({seconds(times[fast])}) with {slow.parallelism} processes{off}"


def apart(makespans_s: Sequence[float]) -> tuple[list[float], list[float]]:
    """Repetitions that went on, and the outliers, s."""
    outliers_s = [one for one in makespans_s if is_outlier(one, makespans_s)]
    return [one for one in makespans_s if one not in outliers_s], outliers_s


def draw(tables: Tables, stem: Path) -> None:
    """Draw the makespans of all conditions; write SVG, PNG and TSV."""
    repetitions, rows = tables.repetitions(), shown(tables.conditions)

    def measured(row: Row) -> Makespans:
        values = [run["makespan_s"] for run in repetitions.get(IncrementCondition.of(row), [])]
        return Makespans(row["makespan_s"], *apart(values), tables.predictions(row))

    with house_style():
        panels = image_panels(rows, measured, "a")
        if panels:
            figure = draw_panels(panels, tables.middle)
            has_outliers = any(one.outliers_s for panel in panels for _, one in panel.filled())
            note = NOTE.format(middle=tables.middle) + PUBLISHED_NOTE * bool(published(rows))
            note += INCOMPLETE * any(row["incomplete_blocks"] for row in rows)
            note += OUTLIERS.format(middle=tables.middle, as_published=AS_PUBLISHED * tables.is_replay) * has_outliers
            set_title(figure, finding(tables).sentence, note)
        else:
            figure = empty_figure(finding(tables).sentence)
        save_figure(figure, stem, table(tables, repetitions))


def draw_panels(panels: Sequence[Panel[Makespans]], middle: str) -> plot.Figure:
    """What was measured and predicted of each lane, on logarithmic axes; ``middle`` is what the bar is, in a word."""
    figure, (legend, *all_axes) = panel_axes(panels, legend=True)
    for axes, panel in zip(all_axes, panels, strict=True):
        for lane, one in panel.filled():
            axes.plot([one.middle_s] * 2, [lane - 0.36, lane + 0.06], color=BLACK, linewidth=2.2, solid_capstyle="butt")
            label = panel.lanes[lane].label
            for values, style in ((one.steady_s, CIRCLE), (one.outliers_s, CROSS)):
                (points,) = axes.plot(values, [lane - 0.15] * len(values), linestyle="", **style)
                points.set_url(hover(f"{label}: {', '.join(map(seconds, values))}"))
            draw_predictions(axes, lane, label, one.predictions)
            annotate_lane(axes, lane, text_of(one))
        label_lanes(axes, panel)
        ends_s = [end for _, one in panel.filled() for end in one.ends_s]
        logarithmic(axes, min(ends_s), max(ends_s))
    all_axes[-1].set_xlabel("Makespan (s)")
    every = [one for panel in panels for _, one in panel.filled()]
    handles = [
        plot.Line2D([], [], linestyle="", marker="|", markersize=10, markeredgewidth=2.2, color=BLACK, label=middle),
        plot.Line2D([], [], linestyle="", **CIRCLE, label="repetition"),
    ]
    if any(one.outliers_s for one in every):
        handles.append(plot.Line2D([], [], linestyle="", **CROSS, label="outlier"))
    members = in_order(member for one in every for member in one.predictions)
    draw_legend(legend, [*handles, *(MARKS[member].handle() for member in members)])
    return figure


def text_of(one: Makespans) -> str:
    """Mean or median makespan, and what Eq. (1) says of it."""
    if PAPER not in one.predictions:
        return seconds(one.middle_s)
    return f"{seconds(one.middle_s)}; Eq. (1) {ratio_text(one.predictions[PAPER].makespan_s / one.middle_s)} x"


def table(tables: Tables, repetitions: Mapping[IncrementCondition, Sequence[Row]]) -> list[Row]:
    """The numbers behind the figure: a row per repetition, and one per prediction."""
    found = []
    for row in shown(tables.conditions):
        about = cells(row)
        for run in repetitions.get(IncrementCondition.of(row), []):
            times = {"makespan_s": run["makespan_s"], "low_s": None, "high_s": None}
            found.append({**about, "kind": "measured", "of": f"repetition {run['repetition']}", **times})
        for member, one in tables.predictions(row).items():
            times = {"makespan_s": one.makespan_s, "low_s": one.low_s, "high_s": one.high_s}
            found.append({**about, "kind": "predicted", "of": member, **times})
    return found
