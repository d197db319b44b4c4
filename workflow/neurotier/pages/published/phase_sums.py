"""The figures ``phases_*``: summed phases of the BigBrain runs (the paper's Figures 1b, 3b, 5b to 8b)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from neurotier.core.quantities import percent, seconds
from neurotier.core.tables import Row
from neurotier.pages.kit.lanes import Lane, Panel, beside, draw_legend, label_lanes, panel_axes
from neurotier.pages.kit.style import GREY, SKY, VERMILION, house_style, save_figure, state
from neurotier.pages.published.makespans import logarithmic
from neurotier.published.bigbrain import HEADER, INCREMENT, SPARK, WRITE, BlockRun
from neurotier.published.conditions import Condition, cells, incomplete_text, panel_title, panels

Runs = Mapping[Condition, Sequence[BlockRun]]

MARKS = {HEADER: ("o", GREY), INCREMENT: ("s", SKY), WRITE: ("D", VERMILION)}
"""Marker and colour of each phase."""

NOTE = (
    "Large: mean over repetitions of the sum over all blocks; small: a repetition; the axis is logarithmic. Right: the"
    " means' sum and the share of writing."
)
SPARK_NOTE = (
    " Spark: 'load header' turns bytes into images, 'read+increment' increments; its reading is in no phase, so only"
    " writing compares with GNU Parallel."
)
INCOMPLETE = " * Some blocks were not written (the SSD was full): their reading counts, their writing is short of them."


def means(members: Sequence[BlockRun]) -> dict[str, float]:
    """Mean over repetitions of the sum of each phase, s."""
    return {phase: statistics.fmean(run.sum_s(phase) for run in members) for phase in MARKS}


def write_share(members: Sequence[BlockRun]) -> float:
    """Share of writing in the summed phases; 0 of no time."""
    sums = means(members)
    whole_s = sum(sums.values())
    return sums[WRITE] / whole_s if whole_s else 0.0


def phase_finding(runs: Runs) -> str:
    """Between which shares of the summed time is writing, and where."""
    several = len({condition.panel for condition in runs}) > 1
    ordered = sorted(runs, key=lambda condition: write_share(runs[condition]))

    def told(condition: Condition) -> str:
        about = f", {condition.processes} processes" if several else ""
        return f"{percent(write_share(runs[condition]))} ({condition.place}{about})"

    if len(ordered) == 1:
        return f"Writing takes {told(ordered[0])} of the summed time"
    return f"Writing takes from {told(ordered[0])} to {told(ordered[-1])} of the summed time"


def draw_phase_sums(runs: Runs, stem: Path) -> None:
    """Draw the phase sums of at least one condition of the paper's figures; write SVG, PNG and TSV."""
    with house_style():
        figure = draw(runs)
        spark = any(condition.engine == SPARK for condition in runs)
        incomplete = any(incomplete_text(members) for members in runs.values())
        state(figure, phase_finding(runs), NOTE + SPARK_NOTE * spark + INCOMPLETE * incomplete)
        save_figure(figure, stem, table(runs))


def draw(runs: Runs) -> Figure:
    """The figure: a panel for each engine and number of processes, three phases a lane."""
    shown = [
        Panel(panel_title(panel, "b"), tuple(Lane(label_of(condition, runs), condition) for condition in members))
        for panel, members in panels(runs).items()
    ]
    figure, (legend, *all_axes) = panel_axes(shown, legend=True)
    sums = [run.sum_s(phase) for members in runs.values() for run in members for phase in MARKS]
    known = [value for value in sums if value > 0]
    for axes, panel in zip(all_axes, shown, strict=True):
        for lane, condition in panel.filled():
            members = runs[condition]
            average = means(members)
            for step, (phase, (marker, colour)) in zip((-0.22, 0.0, 0.22), MARKS.items(), strict=True):
                style: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour}
                axes.plot(
                    [run.sum_s(phase) for run in members],
                    [lane + step] * len(members),
                    markersize=2.5,
                    alpha=0.6,
                    **style,
                )
                axes.plot([average[phase]], [lane + step], markersize=5.5, **style)
            beside(axes, lane, f"{seconds(sum(average.values()))}; {percent(write_share(members))}")
        label_lanes(axes, panel)
        logarithmic(axes, min(known), max(known))
    all_axes[-1].set_xlabel("Sum over all blocks (s)")
    handles = [
        Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6, label=phase)
        for phase, (marker, colour) in MARKS.items()
    ]
    draw_legend(legend, handles)
    return figure


def label_of(condition: Condition, runs: Runs) -> str:
    """Device and mode, with a star where blocks were not written."""
    star = "*" if incomplete_text(runs[condition]) else ""
    return f"{condition.device}{star}{condition.place[len(condition.device) :]}"


def table(runs: Runs) -> list[Row]:
    """The numbers behind the figure: one row per repetition."""
    return [
        {
            **cells(condition),
            "repetition": run.repetition,
            "load_header_s": run.header_s,
            "read_increment_s": run.increment_s,
            "write_s": run.write_s,
            "incomplete_blocks": len(run.incomplete_blocks),
        }
        for condition, members in runs.items()
        for run in members
    ]
