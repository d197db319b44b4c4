"""The figure ``cpu_io_sums``: CPU time and I/O as the paper counts it, by placement and parallelism (its Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, seconds
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import NO_RUN, PAPER_IO, Names, condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import by_condition
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import CPU_COLOUR, IO_COLOUR, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

KINDS = (Kind("CPU time", CPU_COLOUR), Kind(PAPER_IO, IO_COLOUR))
COLUMNS = {"cpu": "cpu_sum_s", "io": "io_sum_s"}
NOTE = (
    "Medians over repetitions of the sums over participant jobs; line: least to greatest. I/O as the paper counts it"
    " contains waiting for a core. Beside the bars: CPU + I/O. Valid runs only."
)


def sums(runs: Sequence[Row]) -> dict[Condition, dict[str, Spread]]:
    """Summed CPU time and I/O of every condition, s."""
    return {
        condition: {name: Spread(tuple(run[column] for run in members)) for name, column in COLUMNS.items()}
        for condition, members in by_condition(runs).items()
    }


def io_share(times: dict[str, Spread]) -> float:
    """Share of I/O of the sum of both; 0 of no time."""
    whole_s = times["cpu"].median + times["io"].median
    return times["io"].median / whole_s if whole_s > 0 else 0.0


def finding(tables: Compared) -> Finding:
    """Between which shares of the summed time is I/O as the paper counts it, and where."""
    sums_by_condition = sums(tables.runs)
    if not sums_by_condition:
        return Finding(NO_RUN, shown=False)
    names = Names(sums_by_condition)
    ordered = sorted(sums_by_condition, key=lambda condition: io_share(sums_by_condition[condition]))
    low, high = (percent(io_share(sums_by_condition[condition])) for condition in (ordered[0], ordered[-1]))
    if low == high:
        return Finding(
            f"{PAPER_IO} takes {low} of the summed time" + (" in every condition" if len(sums_by_condition) > 1 else "")
        )
    return Finding(
        f"{PAPER_IO} takes from {low} of the summed time ({names.of(ordered[0])}) to {high} ({names.of(ordered[-1])})"
    )


def draw(tables: Compared, stem: Path) -> None:
    """Draw the summed CPU time and I/O of all valid runs; write SVG, PNG and TSV."""
    sums_by_condition = sums(tables.runs)
    write_figure(
        stem,
        finding(tables),
        table(sums_by_condition),
        lambda: figure_of(sums_by_condition),
        NOTE + below_zero(sums_by_condition),
    )


def figure_of(sums_by_condition: dict[Condition, dict[str, Spread]]) -> plot.Figure:
    """The figure of at least one condition."""
    panels = group_panels(
        sums_by_condition, lambda condition: [Lane(condition.placement, bar(sums_by_condition[condition]))]
    )
    return draw_stacked(panels, KINDS, "Sum over participant jobs (s)", ranges=True)


def bar(times: dict[str, Spread]) -> Bar:
    """The bar of one condition."""
    cpu, io = (seconds(times[name].median).removesuffix(" s") for name in COLUMNS)
    return Bar(tuple(times.values()), f"{cpu} + {io} s; {percent(io_share(times))} I/O")


def below_zero(sums_by_condition: dict[Condition, dict[str, Spread]]) -> str:
    """What was clipped, if anything."""
    if all(times["io"].median >= 0 for times in sums_by_condition.values()):
        return ""
    return " Where CPU exceeds wall time (several cores at once), I/O below 0 is drawn as 0."


def table(sums_by_condition: dict[Condition, dict[str, Spread]]) -> list[Row]:
    """The numbers behind the figure: one row per condition, unclipped."""
    return [
        {
            **condition_cells(condition),
            "repetitions": len(times["cpu"].values),
            **spread_cells("cpu_sum", "s", times["cpu"]),
            **spread_cells("io_sum", "s", times["io"]),
        }
        for condition, times in sums_by_condition.items()
    ]
