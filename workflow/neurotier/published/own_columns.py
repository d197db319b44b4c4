"""Published BigBrain runs with the columns of the user's own runs: those of ``bigbrain_runs.tsv``, and an origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from neurotier.bigbrain.tasks import HEADER, INCREMENT, WRITE
from neurotier.core.tables import Row, Rows
from neurotier.published import bigbrain
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import condition_of, order

PHASES = {bigbrain.HEADER: HEADER, bigbrain.INCREMENT: INCREMENT, bigbrain.WRITE: WRITE}
"""The phases of blocks as named in the user's own runs. Incrementing includes reading; with Spark, no phase does."""


def run_rows(runs: Iterable[Row], phases: Iterable[Row]) -> Rows:
    """The published runs with the columns that conditions and figures need, in the order of the paper's figures.

    Parameters
    ----------
    runs, phases
        Rows of ``published_runs.tsv`` and ``published_phases.tsv``.
    """
    sums = {(row["run"], PHASES[row["phase"]]): row["sum_s"] for row in phases if row["phase"] in PHASES}
    kept = ("run", "repetition", "valid", "incomplete_blocks", "makespan_s", "mean_parallelism")
    return [
        vars(condition_of(run))
        | {f"{phase}_s": sums.get((run["run"], phase), 0.0) for phase in PHASES.values()}
        | dict.fromkeys(("cache", "start_up_s", "read_s"))
        | {name: run[name] for name in kept}
        for run in sorted(runs, key=lambda run: order(condition_of(run)))
    ]


def phase_rows(run: BlockRun) -> Rows:
    """The phases of a run's blocks, with the columns that a chart of ``bigbrain_phases.tsv`` needs.

    The n-th phase of a name and block belongs to iteration n.
    """
    iterations = Counter[tuple[str, str]]()
    rows = []
    for phase in run.work:
        iterations[phase.block, phase.name] += 1
        cells = {"iteration": iterations[phase.block, phase.name], "block": phase.block, "phase": PHASES[phase.name]}
        rows.append(cells | {"start_s": phase.start_s, "end_s": phase.end_s})
    return rows
