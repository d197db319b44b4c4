"""How many blocks were in a phase at once, of as many as were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import mean_count, percent
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.names import NO_RUN, image_panels, name_of, own, published, shown
from neurotier.pages.bigbrain.tables import Tables, cells
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import Panel, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.style import (
    BLACK,
    LIGHT_GREY,
    SKY,
    VERMILION,
    empty_figure,
    house_style,
    save_figure,
    set_title,
)

NOTE = (
    "Blue: {middle} over valid repetitions of the mean number of blocks in a phase; circle: a repetition; grey: asked"
    " for; red: most at the same moment, the start of processes included. As published, the mean is the sum of the four"
    " phases over the makespan: the start of processes and pauses count in the makespan alone."
)
PUBLISHED_NOTE = (
    " The most is not known of published runs. On the SSD the sum has the reading of blocks that were never written;"
    " the makespan has not."
)


@dataclass(frozen=True)
class Busy:
    """Blocks at once in a condition: as many as were asked for, in the middle, of each repetition, and the most."""

    asked: int
    middle: float
    values: Sequence[float]
    peak: int | None


def parts(tables: Tables) -> dict[str, Tables]:
    """Of the replay, one figure for all of the paper's."""
    return tables.parts(lambda _: "")


def share(row: Row) -> float:
    """Mean number of blocks in a phase at once, over as many as were asked for."""
    return float(row["mean_parallelism"] or 0.0) / int(row["parallelism"])


def finding(tables: Tables) -> Finding:
    """Between which means of blocks at once; of one's own, or else of the paper."""
    ordered = sorted(own(tables.conditions) or published(tables.conditions), key=share)
    if not ordered:
        return Finding(NO_RUN)

    def described(row: Row) -> str:
        return f"{mean_count(row['mean_parallelism'])} of {row['parallelism']} ({row['engine']} on {row['tier']})"

    if len(ordered) == 1:
        count = mean_count(ordered[0]["mean_parallelism"])
        return Finding(f"On average {count} blocks were in a phase ({name_of(ordered[0])})")
    return Finding(f"Blocks in a phase at once, on average: from {described(ordered[0])} to {described(ordered[-1])}")


def draw(tables: Tables, stem: Path) -> None:
    """Draw the parallelism of all conditions; write SVG, PNG and TSV."""
    rows, repetitions = shown(tables.conditions), tables.repetitions()

    def busy(row: Row) -> Busy:
        values = [run["mean_parallelism"] or 0.0 for run in repetitions.get(IncrementCondition.of(row), [])]
        return Busy(row["parallelism"], row["mean_parallelism"] or 0.0, values, row["peak_parallelism"])

    with house_style():
        panels = image_panels(rows, busy)
        if panels:
            figure = draw_panels(panels)
            note = NOTE.format(middle=tables.middle) + PUBLISHED_NOTE * bool(published(rows))
            set_title(figure, finding(tables).sentence, note)
        else:
            figure = empty_figure(finding(tables).sentence)
        columns = ("runs", "mean_parallelism", "peak_parallelism")
        save_figure(figure, stem, [cells(row) | {name: row[name] for name in columns} for row in rows])


def draw_panels(panels: Sequence[Panel[Busy]]) -> plot.Figure:
    """What was asked for and what there was on each lane; the axes have one unit and no common range."""
    figure, all_axes = panel_axes(panels)
    circle: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4, "markerfacecolor": "white"}
    for axes, panel in zip(all_axes, panels, strict=True):
        for lane, busy in panel.filled():
            axes.barh(lane, busy.asked, height=0.66, color=LIGHT_GREY, linewidth=0)
            (bar,) = axes.barh(lane, busy.middle, height=0.66, color=SKY, linewidth=0)
            bar.set_url(hover(f"{panel.lanes[lane].label}: {mean_count(busy.middle)} of {busy.asked} at once"))
            axes.plot(busy.values, [lane] * len(busy.values), color=BLACK, **circle)
            text = f"{mean_count(busy.middle)}; {percent(busy.middle / busy.asked)}"
            if busy.peak is not None:
                axes.plot([busy.peak] * 2, [lane - 0.33, lane + 0.33], color=VERMILION, linewidth=2)
                text += f"; peak {busy.peak:,}"
            annotate_lane(axes, lane, text)
        label_lanes(axes, panel)
        axes.set_xlim(0, 1.02 * max(max(busy.asked, busy.peak or 0, *busy.values) for _, busy in panel.filled()))
    all_axes[-1].set_xlabel("Blocks in a phase at once")
    return figure
