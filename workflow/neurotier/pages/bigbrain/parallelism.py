"""The figure ``bigbrain_parallelism``: how many blocks were in a phase at once, of as many as were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import mean_count
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.conditions import Condition
from neurotier.pages.bigbrain.lanes import NO_RUN, image_panels, name_of, own, published, shown
from neurotier.pages.bigbrain.makespans import CELLS, valid_runs
from neurotier.pages.kit.style import empty_figure, house_style, save_figure, state
from neurotier.pages.published.makespans import filled_with
from neurotier.pages.published.parallelism import Busy, draw_lanes

NOTE = (
    "Blue: median over valid repetitions of the mean number of blocks in a phase; circle: a repetition; grey: asked"
    " for; red: most at the same moment, the start of processes included. As published, the mean is the sum of the four"
    " phases over the makespan: the start of processes and pauses count in the makespan alone."
)
PUBLISHED_NOTE = " The most is not known of published runs."


def share(row: Row) -> float:
    """Mean number of blocks in a phase at once, over as many as were asked for."""
    return float(row["mean_parallelism"] or 0.0) / int(row["parallelism"])


def parallelism_finding(rows: Sequence[Row]) -> str:
    """Between which means of blocks at once; of one's own, or else of the paper."""
    ordered = sorted(own(rows) or published(rows), key=share)
    if not ordered:
        return NO_RUN

    def told(row: Row) -> str:
        return f"{mean_count(row['mean_parallelism'])} of {row['parallelism']} ({row['engine']} on {row['tier']})"

    if len(ordered) == 1:
        return f"On average {mean_count(ordered[0]['mean_parallelism'])} blocks were in a phase ({name_of(ordered[0])})"
    return f"Blocks in a phase at once, on average: from {told(ordered[0])} to {told(ordered[-1])}"


def draw_parallelism(rows: Sequence[Row], runs: Sequence[Row], stem: Path) -> None:
    """Draw the parallelism of all conditions; write SVG, PNG and TSV.

    Parameters
    ----------
    rows
        Rows of ``bigbrain_conditions.tsv``.
    runs
        Runs of all origins, alike.
    stem
        Path of the files, without extension.
    """
    repetitions = valid_runs(runs)

    def busy(row: Row) -> Busy:
        values = [run["mean_parallelism"] or 0.0 for run in repetitions.get(Condition.of(row), [])]
        return Busy(row["parallelism"], row["mean_parallelism"] or 0.0, values, row["peak_parallelism"])

    with house_style():
        panels = filled_with(image_panels(rows), busy)
        if panels:
            figure = draw_lanes(panels)
            state(figure, parallelism_finding(rows), NOTE + PUBLISHED_NOTE * bool(published(rows)))
        else:
            figure = empty_figure(parallelism_finding(rows))
        measured = ("runs", "mean_parallelism", "peak_parallelism")
        save_figure(figure, stem, [{name: row[name] for name in (*CELLS, *measured)} for row in shown(rows)])
