"""Makespans of the incrementation, Eq. (1) and the fluid model (the paper's Figures 1a, 3a, 5a to 8a)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import counted, seconds
from neurotier.core.tables import Row
from neurotier.model.prediction import PAPER
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
from neurotier.pages.kit.chart import BLACK, hover
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import draw_lanes
from neurotier.pages.kit.style import write_figure
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
    if published(rows):
        return Finding(f"{NO_RUN}; published ones: {factors_text(published(rows))}")
    return Finding(NO_RUN, shown=False)


def factors_text(rows: Sequence[Row]) -> str:
    """By how much predictions miss; empty without any.

    >>> factors_text([{"equation_one_ratio": 0.5, "fluid_ratio": 1.2}])
    'Eq. (1) is off by a factor of 2.00 (1 condition), the fluid model by 1.20 (1 condition)'
    """
    ratios = {
        "Eq. (1)": [row["equation_one_ratio"] for row in rows if row["equation_one_ratio"]],
        "the fluid model": [row["fluid_ratio"] for row in rows if row["fluid_ratio"]],
    }
    texts: list[str] = []
    for name, some in ratios.items():
        if (factor := off_factor(some)) is not None:
            much = f"{ratio_text(factor)} ({counted(len(some), 'condition')})"
            texts.append(f"{name} by {much}" if texts else f"{name} is off by a factor of {much}")
    return ", ".join(texts)


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
    rows, times = shown(tables.conditions), makespans(tables)
    note = NOTE.format(middle=tables.middle) + PUBLISHED_NOTE * bool(published(rows))
    note += INCOMPLETE * any(row["incomplete_blocks"] for row in rows)
    if any(apart(one)[1] for one in times.values()):
        note += OUTLIERS.format(middle=tables.middle, as_published=AS_PUBLISHED * tables.is_replay)
    write_figure(stem, finding(tables), table(tables), lambda: figure_of(tables), note)


def makespans(tables: Tables) -> dict[IncrementCondition, list[float]]:
    """Makespans of the repetitions of each condition that is shown, s."""
    repetitions = tables.repetitions()
    return {
        one: [run["makespan_s"] for run in repetitions.get(one, [])]
        for one in map(IncrementCondition.of, shown(tables.conditions))
    }


def figure_of(tables: Tables) -> plot.Figure:
    """What was measured and predicted of each condition, on logarithmic axes."""
    times = makespans(tables)

    def draw_lane(axes: plot.Axes, lane: int, label: str, row: Row) -> str:
        middle_s, predictions = row["makespan_s"], tables.predictions(row)
        axes.plot([middle_s] * 2, [lane - 0.36, lane + 0.06], color=BLACK, linewidth=2.2, solid_capstyle="butt")
        for values, style in zip(apart(times[IncrementCondition.of(row)]), (CIRCLE, CROSS), strict=True):
            (points,) = axes.plot(values, [lane - 0.15] * len(values), linestyle="", **style)
            points.set_url(hover(f"{label}: {', '.join(map(seconds, values))}"))
        draw_predictions(axes, lane, label, predictions)
        if PAPER not in predictions:
            return seconds(middle_s)
        return f"{seconds(middle_s)}; Eq. (1) {ratio_text(predictions[PAPER].makespan_s / middle_s)} x"

    bar: dict[str, Any] = {"marker": "|", "markersize": 10, "markeredgewidth": 2.2, "color": BLACK}
    handles = [
        plot.Line2D([], [], linestyle="", **bar, label=tables.middle),
        plot.Line2D([], [], linestyle="", **CIRCLE, label="repetition"),
    ]
    if any(apart(one)[1] for one in times.values()):
        handles.append(plot.Line2D([], [], linestyle="", **CROSS, label="outlier"))
    members = in_order(member for row in shown(tables.conditions) for member in tables.predictions(row))
    handles += [MARKS[member].handle() for member in members]
    figure = draw_lanes(image_panels(tables.conditions, "a"), draw_lane, "Makespan (s)", handles)
    for axes in figure.axes[1:]:
        logarithmic(axes)
    return figure


def table(tables: Tables) -> list[Row]:
    """The numbers behind the figure: a row per repetition, and one per prediction."""
    repetitions, found = tables.repetitions(), list[Row]()
    for row in shown(tables.conditions):
        about = cells(row)
        for run in repetitions.get(IncrementCondition.of(row), []):
            times = {"makespan_s": run["makespan_s"], "low_s": None, "high_s": None}
            found.append({**about, "kind": "measured", "of": f"repetition {run['repetition']}", **times})
        for member, one in tables.predictions(row).items():
            times = {"makespan_s": one.makespan_s, "low_s": one.low_s, "high_s": one.high_s}
            found.append({**about, "kind": "predicted", "of": member, **times})
    return found
