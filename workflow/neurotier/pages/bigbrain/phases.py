"""Where the time of the incrementation goes: summed phases (the paper's Figures 1b, 3b, 5b to 8b)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.bigbrain.tasks import SPARK
from neurotier.core.quantities import counted, mean_count, percent, seconds
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.marks import logarithmic
from neurotier.pages.bigbrain.names import NO_RUN, image_panels, own, published, shown
from neurotier.pages.bigbrain.tables import SUMS, Tables, cells
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import Panel, annotate_lane, draw_legend, label_lanes, panel_axes
from neurotier.pages.kit.style import (
    GREEN,
    GREY,
    PURPLE,
    SKY,
    VERMILION,
    empty_figure,
    house_style,
    save_figure,
    set_title,
)

KINDS = dict(
    zip(
        SUMS,
        (
            ("start of processes", "v", GREY),
            ("load header", "o", PURPLE),
            ("read", "^", SKY),
            ("increment", "s", GREEN),
            ("write", "D", VERMILION),
        ),
        strict=True,
    )
)
"""Phase by its column: name, marker and colour."""

NOTE = (
    "Large: {middle} over valid repetitions of the sum over all blocks and iterations; small: a repetition; axes are"
    " logarithmic. Right: {middle} makespan, share of writing in the sum of the four phases, and the mean number of"
    " blocks in a phase at once. In the pairing 'published', reading is within incrementing (GNU parallel, Snakemake)"
    " or in no phase (Spark)."
)
PUBLISHED_NOTE = " Published runs are of that pairing; the start of their processes is not known."
SPARK_NOTE = " Spark as published: 'load header' turns bytes into images; only writing compares with GNU Parallel's."
INCOMPLETE = " * Some blocks were not written (the SSD was full): their reading counts, their writing is short of them."


@dataclass(frozen=True)
class Sums:
    """Summed phases of a condition, by column, s: in the middle and of each repetition; what is written beside them."""

    middle: Row
    repetitions: Sequence[Row]
    text: str


def parts(tables: Tables) -> dict[str, Tables]:
    """Of the replay, a figure for each image."""
    return tables.parts(lambda one: f"{one.resolution_um}um")


def write_share(row: Row) -> float:
    """Share of writing in the summed phases; 0 of no time."""
    whole_s = sum(row[name] or 0.0 for name in SUMS[1:])
    return (row["write_s"] or 0.0) / whole_s if whole_s else 0.0


def finding(tables: Tables) -> Finding:
    """Which phase takes longest, in how many conditions of one's own, or else of the paper; of the replay, writing."""
    known = own(tables.conditions) or published(tables.conditions)
    if not known:
        return Finding(NO_RUN)
    if tables.is_replay:
        return Finding(replay_finding(known))
    longest = Counter(max(KINDS, key=lambda name: row[name] or 0.0) for row in known)
    (first, count), *others = longest.most_common()
    among = "published condition" if not own(tables.conditions) else "condition"
    text = f"The longest phase is {KINDS[first][0]} in {count:,} of {counted(len(known), among)}"
    return Finding(", ".join([text, *(f"{KINDS[name][0]} in {times:,}" for name, times in others)]))


def replay_finding(rows: Sequence[Row]) -> str:
    """Between which shares of the summed time is writing, and where."""
    several = len({IncrementCondition.of(row).panel for row in rows}) > 1
    ordered = sorted(rows, key=write_share)

    def described(row: Row) -> str:
        about = f", {row['parallelism']} processes" if several else ""
        return f"{percent(write_share(row))} ({row['tier']}{about})"

    if len(ordered) == 1:
        return f"Writing takes {described(ordered[0])} of the summed time"
    return f"Writing takes from {described(ordered[0])} to {described(ordered[-1])} of the summed time"


def draw(tables: Tables, stem: Path) -> None:
    """Draw the phase sums of all conditions; write SVG, PNG and TSV."""
    rows, repetitions = shown(tables.conditions), tables.repetitions()

    def sums(row: Row) -> Sums:
        text = f"{seconds(row['makespan_s'])}; {percent(write_share(row))} writing"
        text += f"; {mean_count(row['mean_parallelism'])} at once"
        return Sums(row, repetitions[IncrementCondition.of(row)], text)

    with house_style():
        panels = image_panels(rows, sums, "b")
        if panels:
            figure = draw_panels(panels)
            spark = any(row["engine"] == SPARK for row in published(rows))
            note = NOTE.format(middle=tables.middle) + PUBLISHED_NOTE * bool(published(rows)) + SPARK_NOTE * spark
            note += INCOMPLETE * any(row["incomplete_blocks"] for row in rows)
            set_title(figure, finding(tables).sentence, note)
        else:
            figure = empty_figure(finding(tables).sentence)
        columns = ("runs", "makespan_s", *SUMS, "mean_parallelism", "incomplete_blocks")
        save_figure(figure, stem, [cells(row) | {name: row[name] for name in columns} for row in rows])


def draw_panels(panels: Sequence[Panel[Sums]]) -> plot.Figure:
    """The phases that are known of each lane, one below the other."""
    figure, (legend, *all_axes) = panel_axes(panels, legend=True)
    drawn = set()
    for axes, panel in zip(all_axes, panels, strict=True):
        known = []
        for lane, sums in panel.filled():
            names = [name for name in SUMS if sums.middle[name]]
            for place, name in enumerate(names):
                phase, marker, colour = KINDS[name]
                at = lane + 0.66 * ((place + 0.5) / len(names) - 0.5)
                style: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour}
                values = [run[name] for run in sums.repetitions if run[name]]
                axes.plot(values, [at] * len(values), markersize=2.5, alpha=0.6, **style)
                (point,) = axes.plot([sums.middle[name]], [at], markersize=5.5, **style)
                point.set_url(hover(f"{panel.lanes[lane].label}, {phase}: {seconds(sums.middle[name])}"))
                known += [sums.middle[name], *values]
            drawn.update(names)
            annotate_lane(axes, lane, sums.text)
        label_lanes(axes, panel)
        if known:
            logarithmic(axes, min(known), max(known))
    all_axes[-1].set_xlabel("Sum over all blocks (s)")
    handles = [
        plot.Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6, label=label)
        for name, (label, marker, colour) in KINDS.items()
        if name in drawn
    ]
    draw_legend(legend, handles)
    return figure
