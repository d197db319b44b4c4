"""How many blocks were in a phase at once, of as many as were asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import mean_count, percent
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.names import NO_RUN, image_panels, name_of, own, published, shown
from neurotier.pages.bigbrain.tables import Tables, cells
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, LIGHT_GREY, SKY, VERMILION, hover
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import draw_lanes
from neurotier.pages.kit.style import write_figure

NOTE = (
    "Blue: {middle} over valid repetitions of the mean number of blocks in a phase; circle: a repetition; grey: asked"
    " for; red: most at the same moment, the start of processes included. As published, the mean is the sum of the four"
    " phases over the makespan: the start of processes and pauses count in the makespan alone."
)
PUBLISHED_NOTE = (
    " The most is not known of published runs. On the SSD the sum has the reading of blocks that were never written;"
    " the makespan has not."
)


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
        return Finding(NO_RUN, shown=False)

    def described(row: Row) -> str:
        return f"{mean_count(row['mean_parallelism'])} of {row['parallelism']} ({row['engine']} on {row['tier']})"

    if len(ordered) == 1:
        count = mean_count(ordered[0]["mean_parallelism"])
        return Finding(f"On average {count} blocks were in a phase ({name_of(ordered[0])})")
    return Finding(f"Blocks in a phase at once, on average: from {described(ordered[0])} to {described(ordered[-1])}")


def draw(tables: Tables, stem: Path) -> None:
    """Draw the parallelism of all conditions; write SVG, PNG and TSV."""
    rows = shown(tables.conditions)
    note = NOTE.format(middle=tables.middle) + PUBLISHED_NOTE * bool(published(rows))
    columns = ("runs", "mean_parallelism", "peak_parallelism")
    table = [cells(row) | {name: row[name] for name in columns} for row in rows]
    write_figure(stem, finding(tables), table, lambda: figure_of(tables), note)


def figure_of(tables: Tables) -> plot.Figure:
    """What was asked for and what there was in each condition; the axes have one unit and no common range."""
    repetitions = tables.repetitions()
    circle: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4, "markerfacecolor": "white"}

    def draw_lane(axes: plot.Axes, lane: int, label: str, row: Row) -> str:
        count, asked = mean_count(row["mean_parallelism"]), row["parallelism"]
        axes.barh(lane, asked, height=0.66, color=LIGHT_GREY, linewidth=0)
        (bar,) = axes.barh(lane, row["mean_parallelism"] or 0.0, height=0.66, color=SKY, linewidth=0)
        bar.set_url(hover(f"{label}: {count} of {asked} at once"))
        values = [run["mean_parallelism"] or 0.0 for run in repetitions.get(IncrementCondition.of(row), [])]
        axes.plot(values, [lane] * len(values), color=BLACK, **circle)
        text = f"{count}; {percent(share(row))}"
        if (peak := row["peak_parallelism"]) is None:
            return text
        axes.plot([peak] * 2, [lane - 0.33, lane + 0.33], color=VERMILION, linewidth=2)
        return f"{text}; peak {peak:,}"

    return draw_lanes(image_panels(tables.conditions), draw_lane, "Blocks in a phase at once")
