"""What each member of the model predicts for the published conditions of the BigBrain incrementation.

``paper``
    Eq. (1) with Table I.
``fluid a priori``
    The fluid model with Table I, the number of memory modules and the kernel's settings; nothing is fitted.
``fluid fitted``
    The fluid model with speeds fitted to the runs with 25 processes on the 40 um image, for each device and, where
    the mode makes another device of it, mode. Everything else is predicted: 96 processes, and the 20 um image.

What the model cannot know: how often memory that is Optane misses its DRAM cache; that loading programs from Isilon
waits behind the blocks; and the cost of the JVM, its serialisation and garbage collection, so that for Spark it knows
the bytes alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row
from neurotier.model.prediction import APRIORI, FITTED, PAPER, Simulated, predict_makespan
from neurotier.model.workload import Step, Workload
from neurotier.published.bigbrain import INCREMENT, WRITE, BlockRun
from neurotier.published.conditions import device_and_mode, steady
from neurotier.published.fits import FIT, Fits, Speeds, Succession, device_of, is_known, known
from neurotier.published.replay import Replay
from neurotier.published.server import page_cache, server

TIER = "device"
"""The model's name of the one tier that there is."""


def predictions(replay: Replay, fits: Fits) -> list[Row]:
    """Rows of ``published_predictions.tsv``: each member for each of the paper's conditions on a known device."""
    rows = []
    for condition, runs in replay.conditions.items():
        if not is_known(condition):
            continue
        equation_s = replay.equation_one_s(condition)
        if equation_s is not None:
            rows.append(row_of(condition, runs, PAPER, equation_s))
        apriori = fluid_prediction(replay, condition, runs, known(replay, condition), Succession())
        rows.append(row_of(condition, runs, APRIORI, apriori.makespan_s, apriori))
        speeds = fits.speeds.get(device_of(condition))
        if speeds:
            fitted = fluid_prediction(replay, condition, runs, speeds, fits.launch)
            rows.append(row_of(condition, runs, FITTED, fitted.makespan_s, fitted))
    return rows


def row_of(
    condition: IncrementCondition,
    runs: Sequence[BlockRun],
    member: str,
    predicted_s: float,
    simulated: Simulated | None = None,
) -> Row:
    """The row of a prediction, held against the mean of the runs that were not stalled."""
    going, (device, mode) = steady(runs), device_and_mode(condition)
    measured_s = statistics.fmean(run.makespan_s for run in going) if going else None
    return {
        "resolution_um": condition.resolution_um,
        "engine": condition.engine,
        "processes": condition.parallelism,
        "device": device,
        "mode": mode,
        "member": member,
        "fitted_on": member == FITTED and condition.panel == FIT,
        "predicted_s": predicted_s,
        "low_s": simulated.low_s if simulated else None,
        "high_s": simulated.high_s if simulated else None,
        "measured_s": measured_s,
        "stalled": len(runs) - len(going),
        "ratio": predicted_s / measured_s if measured_s else None,
        "limit": simulated.usual.limit if simulated else None,
    }


def fluid_prediction(
    replay: Replay, condition: IncrementCondition, runs: Sequence[BlockRun], speeds: Speeds, launch: Succession
) -> Simulated:
    """What the fluid model predicts for a condition."""
    size = float(runs[0].block_bytes)
    task = (Step(INCREMENT, "read", size, TIER), Step(WRITE, "write", size, TIER))
    workload = Workload([task] * condition.blocks, launch.spawn_s, launch.launch_s, launch_counts=False)
    machine = server(TIER, speeds.tier, speeds.memory, page_cache(replay.root, device_and_mode(condition)[1]))
    return predict_makespan(workload, machine, condition.parallelism, {TIER: speeds.spread})
