"""Conditions of the published BigBrain runs: their names, the paper's figures that show them, and which are missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neurotier.bigbrain.conditions import BLOCK_BYTES, BLOCKS, ORIGIN, IncrementCondition
from neurotier.bigbrain.tasks import PUBLISHED
from neurotier.core.configuration import read_yaml
from neurotier.core.tables import Row

if TYPE_CHECKING:
    from neurotier.published.bigbrain import BlockRun

MEMORY_MODE, APP_DIRECT = "Memory mode", "App Direct"
"""How Optane is configured."""

OPTANE_AS_MEMORY = "Optane, Memory mode"

EXPERIMENT: Row = read_yaml(Path(__file__).with_name("experiment.yaml").read_text(encoding="utf-8"))
"""What the paper and its repository say about devices, server and logs."""

FIGURES: dict[tuple[int, str, int], int] = {tuple(panel): figure for *panel, figure in EXPERIMENT["figures"]}
"""The number of the paper's figure (a: makespan, b: phase sums) by resolution (um), engine and processes."""

PLACES: dict[str, str] = EXPERIMENT["places"]
"""The kind of tier that each device in a mode (:func:`tier_of`) is, in the order of the paper's figures."""

STALLED = 1.5
"""A repetition that takes this many times as long as the median, or less than the median over this, is an outlier."""


def tier_of(device: str, mode: str) -> str:
    """The name of a device in a mode; DRAM exists in only one mode.

    >>> tier_of("Optane", "Memory mode"), tier_of("DRAM", "App Direct")
    ('Optane, Memory mode', 'DRAM')
    """
    return device if device == "DRAM" else f"{device}, {mode}"


def device_and_mode(tier: str) -> tuple[str, str]:
    """The device and the mode, from the name of a device in a mode."""
    device, _, mode = tier.partition(", ")
    return device, mode or APP_DIRECT


def device_of(condition: IncrementCondition) -> str:
    """The device of a condition; Optane counts as a different device in each mode, all others as the same in both."""
    device, _ = device_and_mode(condition.tier)
    return condition.tier if device == "Optane" else device


def condition(
    resolution_um: int, engine: str, processes: int, tier: str, iterations: int = 1, variant: str = ""
) -> IncrementCondition:
    """A published condition; ``tier`` is a device in a mode (:func:`tier_of`)."""
    blocks = BLOCKS[resolution_um]
    size = blocks * BLOCK_BYTES[resolution_um]
    return IncrementCondition(ORIGIN, engine, tier, processes, blocks, size, iterations, PUBLISHED, variant)


def key_cells(condition: IncrementCondition) -> Row:
    """The columns of the published tables that identify a condition."""
    device, mode = device_and_mode(condition.tier)
    return {
        "resolution_um": condition.resolution_um,
        "engine": condition.engine,
        "processes": condition.parallelism,
        "device": device,
        "mode": mode,
    }


def condition_of(row: Row) -> IncrementCondition:
    """The condition of a row of ``published_runs.tsv`` or ``published_predictions.tsv``."""
    about = tier_of(row["device"], row["mode"]), row.get("iterations", 1), row.get("variant") or ""
    return condition(row["resolution_um"], row["engine"], row["processes"], *about)


def order(one: IncrementCondition) -> tuple[object, ...]:
    """Sort key of a published condition: by image, engine and processes, then as in the figures."""
    at = [*PLACES, one.tier].index(one.tier)
    return -(one.resolution_um or 0), one.engine, one.parallelism, at, one.tier, one.variant


def expected() -> list[IncrementCondition]:
    """The conditions of the paper's figures, in their order; only Optane and Isilon could hold the image at 20 um."""
    return [
        condition(*panel, tier)
        for panel in FIGURES
        for tier in PLACES
        if panel[0] == 40 or tier.startswith(("Optane", "Isilon"))
    ]


def missing_conditions(conditions: Iterable[IncrementCondition]) -> dict[int, list[str]]:
    """The missing conditions of each of the paper's figures, as devices in a mode, or ``all`` if a figure has none."""
    known, found = set(conditions), dict[int, list[str]]()
    for panel, figure in FIGURES.items():
        of_figure = [one for one in expected() if one.panel == panel]
        if missing := [one.tier for one in of_figure if one not in known]:
            found[figure] = missing if len(missing) < len(of_figure) else ["all"]
    return found


def without_outliers(runs: Sequence[BlockRun]) -> list[BlockRun]:
    """The repetitions without outliers, which are far from the median (:data:`STALLED`).

    An outlier took much longer because something stalled, or much less because it did less, or found work done. If two
    repetitions are far apart, both are kept, since either may be the outlier.
    """
    middle_s = statistics.median([run.makespan_s for run in runs] or [0.0])
    near = [run for run in runs if run.makespan_s <= STALLED * middle_s and middle_s <= STALLED * run.makespan_s]
    return near or list(runs)
