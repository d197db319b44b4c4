"""The figure ``mean_parallelism``: how many blocks were in a phase at once, of the processes asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from neurotier.core.quantities import mean_count, percent
from neurotier.core.tables import Row
from neurotier.pages.kit.lanes import Lane, Panel, beside, label_lanes, panel_axes
from neurotier.pages.kit.style import BLACK, LIGHT_GREY, SKY, VERMILION, house_style, save_figure, state
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import ENGINES, Condition, cells, mean, panels

Runs = Mapping[Condition, Sequence[BlockRun]]
NOTE = (
    "Bar: mean over repetitions, grey: processes asked for; circle: a repetition. As published: sum of the phases over"
    " the makespan. On the SSD the sum has the reading of blocks that were never written, and the makespan has not."
)


@dataclass(frozen=True)
class Busy:
    """Blocks at once in a condition: as many as were asked for, in the middle, of each repetition, and the most."""

    asked: int
    middle: float
    values: Sequence[float]
    peak: int | None = None


def parallelism_finding(runs: Runs) -> str:
    """Between which shares of the processes asked for were busy with a block."""

    def share(condition: Condition) -> float:
        return mean(runs[condition], "mean_parallelism") / condition.processes

    def told(condition: Condition) -> str:
        return f"{mean_count(mean(runs[condition], 'mean_parallelism'))} of {condition.processes} ({condition.place})"

    ordered = sorted(runs, key=share)
    if len(ordered) == 1:
        return f"{told(ordered[0])} processes were busy with a block, on average"
    return f"Processes busy with a block, on average: from {told(ordered[0])} to {told(ordered[-1])}"


def draw_parallelism(runs: Runs, stem: Path) -> None:
    """Draw the mean parallelism of at least one condition of the paper's figures; write SVG, PNG and TSV."""
    with house_style():
        figure = draw(runs)
        state(figure, parallelism_finding(runs), NOTE)
        save_figure(figure, stem, table(runs))


def draw(runs: Runs) -> Figure:
    """The figure: a panel for each image, engine and number of processes."""
    shown = [
        Panel(
            f"{panel[0]} µm, {ENGINES[panel[1]]}, {panel[2]} processes",
            tuple(Lane(one.place, busy_of(runs[one])) for one in members),
        )
        for panel, members in panels(runs).items()
    ]
    return draw_lanes(shown)


def busy_of(members: Sequence[BlockRun]) -> Busy:
    """How busy the processes of a condition were."""
    return Busy(members[0].processes, mean(members, "mean_parallelism"), [run.mean_parallelism for run in members])


def draw_lanes(panels: Sequence[Panel[Busy]]) -> Figure:
    """What was asked for and what there was on each lane; the axes have one unit and no common range."""
    figure, all_axes = panel_axes(panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        for lane, busy in panel.filled():
            axes.barh(lane, busy.asked, height=0.66, color=LIGHT_GREY, linewidth=0)
            axes.barh(lane, busy.middle, height=0.66, color=SKY, linewidth=0)
            circle: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4, "markerfacecolor": "white"}
            axes.plot(busy.values, [lane] * len(busy.values), color=BLACK, **circle)
            text = f"{mean_count(busy.middle)}; {percent(busy.middle / busy.asked)}"
            if busy.peak is not None:
                axes.plot([busy.peak] * 2, [lane - 0.33, lane + 0.33], color=VERMILION, linewidth=2)
                text += f"; peak {busy.peak:,}"
            beside(axes, lane, text)
        label_lanes(axes, panel)
        axes.set_xlim(0, 1.02 * max(max(busy.asked, busy.peak or 0, *busy.values) for _, busy in panel.filled()))
    all_axes[-1].set_xlabel("Blocks in a phase at once")
    return figure


def table(runs: Runs) -> list[Row]:
    """The numbers behind the figure: one row per repetition."""
    return [
        {**cells(condition), "repetition": run.repetition, "mean_parallelism": run.mean_parallelism}
        for condition, members in runs.items()
        for run in members
    ]
