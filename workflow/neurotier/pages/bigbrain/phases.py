"""Where the time of the incrementation goes: summed phases (the paper's Figures 1b, 3b, 5b to 8b)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from neurotier.pages.kit.chart import GREEN, GREY, PURPLE, SKY, VERMILION, hover
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import draw_lanes
from neurotier.pages.kit.style import write_figure

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
        return Finding(NO_RUN, shown=False)
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
    rows = shown(tables.conditions)
    note = NOTE.format(middle=tables.middle) + PUBLISHED_NOTE * bool(published(rows))
    note += SPARK_NOTE * any(row["engine"] == SPARK for row in published(rows))
    note += INCOMPLETE * any(row["incomplete_blocks"] for row in rows)
    columns = ("runs", "makespan_s", *SUMS, "mean_parallelism", "incomplete_blocks")
    table = [cells(row) | {name: row[name] for name in columns} for row in rows]
    write_figure(stem, finding(tables), table, lambda: figure_of(tables), note)


def figure_of(tables: Tables) -> plot.Figure:
    """The phases that are known of each condition, one below the other, on logarithmic axes."""
    repetitions = tables.repetitions()

    def draw_lane(axes: plot.Axes, lane: int, label: str, row: Row) -> str:
        names = [name for name in SUMS if row[name]]
        for place, name in enumerate(names):
            phase, marker, colour = KINDS[name]
            at = lane + 0.66 * ((place + 0.5) / len(names) - 0.5)
            style: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour}
            values = [run[name] for run in repetitions[IncrementCondition.of(row)] if run[name]]
            axes.plot(values, [at] * len(values), markersize=2.5, alpha=0.6, **style)
            (point,) = axes.plot([row[name]], [at], markersize=5.5, **style)
            point.set_url(hover(f"{label}, {phase}: {seconds(row[name])}"))
        at_once = mean_count(row["mean_parallelism"])
        return f"{seconds(row['makespan_s'])}; {percent(write_share(row))} writing; {at_once} at once"

    handles = [
        plot.Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6, label=label)
        for name, (label, marker, colour) in KINDS.items()
        if any(row[name] for row in shown(tables.conditions))
    ]
    figure = draw_lanes(image_panels(tables.conditions, "b"), draw_lane, "Sum over all blocks (s)", handles)
    for axes in figure.axes[1:]:
        logarithmic(axes)
    return figure
