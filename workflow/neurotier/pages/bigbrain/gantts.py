"""The figure ``bigbrain_gantts``: when each block was read, incremented and written (the paper's Figures 2 and 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from neurotier.bigbrain.tabulation import TICK_S
from neurotier.bigbrain.tasks import DELAY, HEADER, INCREMENT, READ, SPARK, START_UP, WRITE
from neurotier.core.quantities import mean_count, percent, seconds
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.conditions import Condition
from neurotier.pages.bigbrain.lanes import NO_RUN, name_of, own
from neurotier.pages.bigbrain.makespans import valid_runs
from neurotier.pages.bigbrain.phase_sums import KINDS
from neurotier.pages.kit.style import YELLOW, empty_figure, house_style, save_figure, state
from neurotier.pages.published.strips import Chart, Strip, draw_charts
from neurotier.published.bigbrain import Phase

ORDER = (START_UP, HEADER, READ, INCREMENT, WRITE, DELAY)
COLOURS = {kind.label: kind.colour for kind in KINDS.values()} | {"pause": YELLOW}
LABELS = dict(zip(ORDER, COLOURS, strict=True))
CELLS = ("origin", "engine", "tier", "parallelism")
NOTE = (
    "Of each condition the valid repetition of middle makespan. A lane holds blocks that came one after the other, each"
    " iteration a bar of its own; every panel has a clock of its own. Streaming, phases alternate in pieces of 2 MiB:"
    " within a bar they are drawn one after the other with their summed durations, and what remains is a grey line."
)
SPARK_NOTE = " Spark's own start and end are before and after what is drawn; its makespan has them."


def middle(runs: Sequence[Row]) -> Row:
    """The repetition of middle makespan; the shorter of two."""
    return sorted(runs, key=lambda run: float(run["makespan_s"]))[(len(runs) - 1) // 2]


def strips(phases: Sequence[Row]) -> list[Strip]:
    """The iterations of the blocks of one run, from its rows of ``bigbrain_phases.tsv``."""
    found: dict[tuple[str, int], dict[str, Row]] = {}
    for row in phases:
        found.setdefault((row["block"], row["iteration"]), {})[row["phase"]] = row
    return [strip_of(block, members) for (block, _), members in found.items()]


def strip_of(block: str, members: dict[str, Row]) -> Strip:
    """An iteration of a block: its phases one after the other, each as long as its pieces together."""
    start_s, end_s = min(row["start_s"] for row in members.values()), max(row["end_s"] for row in members.values())
    phases, clock_s = [], start_s
    for name in ORDER:
        if name in members:
            phases.append(Phase(LABELS[name], clock_s, clock_s + members[name]["duration_s"], block))
            clock_s = phases[-1].end_s
    return Strip(block, start_s, max(end_s, clock_s), phases)


def charts(rows: Sequence[Row], runs: Sequence[Row], phases: Sequence[Row]) -> list[tuple[Row, Row, Chart]]:
    """Each condition of one's own with its middle repetition and the chart of that.

    Parameters
    ----------
    rows
        Rows of ``bigbrain_conditions.tsv``.
    runs
        Runs of all origins, alike.
    phases
        Rows of ``bigbrain_phases.tsv``.
    """
    repetitions, by_run = valid_runs(runs), dict[tuple[object, ...], list[Row]]()
    for phase in phases:
        by_run.setdefault(run_key(phase), []).append(phase)
    found = []
    for row in own(rows):
        run = middle(repetitions[Condition.of(row)])
        told = f"{seconds(run['makespan_s'])}, {mean_count(run['mean_parallelism'])} of {row['parallelism']} in a phase"
        if row["engine"] == SPARK:
            told += f"; start of Spark {seconds(run['start_up_s'])}"
        found.append((row, run, Chart(f"{name_of(row)}\n{told}", strips(by_run[run_key(run)]), TICK_S)))
    return found


def run_key(row: Row) -> tuple[object, ...]:
    """What tells a run of one's own from others."""
    return tuple(row[name] for name in ("engine", "tier", "parallelism", "repetition"))


def busy_share(row: Row, run: Row, chart: Chart) -> float:
    """Share of the workers' time, from first start to last end, that is in a phase or the start of a process."""
    drawn_s = math.fsum(phase.duration_s for strip in chart.strips for phase in strip.phases)
    return drawn_s / (float(run["makespan_s"]) * int(row["parallelism"]))


def gantt_finding(shown: Sequence[tuple[Row, Row, Chart]]) -> str:
    """How much of their time workers are busy; the rest is the engine's own and waiting."""
    if not shown:
        return NO_RUN
    ordered = sorted(shown, key=lambda one: busy_share(*one))
    low, high = (f"{percent(busy_share(*one))} ({name_of(one[0])})" for one in (ordered[0], ordered[-1]))
    told = f"{low} of the time" if len(shown) == 1 else f"from {low} to {high} of the time"
    return f"Workers are busy, starts and pauses included, {told}"


def draw_gantts(rows: Sequence[Row], runs: Sequence[Row], phases: Sequence[Row], stem: Path) -> None:
    """Draw a run of each condition of one's own; write SVG, PNG and TSV. See :func:`charts`."""
    shown = charts(rows, runs, phases)
    with house_style():
        if shown:
            drawn = {phase.name for *_, chart in shown for strip in chart.strips for phase in strip.phases}
            colours = {name: colour for name, colour in COLOURS.items() if name in drawn}
            figure = draw_charts([chart for *_, chart in shown], colours)
            spark = any(row["engine"] == SPARK for row, *_ in shown)
            state(figure, gantt_finding(shown), NOTE + SPARK_NOTE * spark)
        else:
            figure = empty_figure(NO_RUN)
        save_figure(
            figure,
            stem,
            [
                {name: row[name] for name in CELLS} | {"repetition": run["repetition"]} | one
                for row, run, chart in shown
                for one in chart.rows()
            ],
        )
