"""What the published runs of one condition show, for the member of the model whose speeds are measured.

Each condition is read by itself, so that what is learned without one knows nothing of it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neurotier.bigbrain.tasks import SPARK
from neurotier.model.loaded import Loaded, Stream, loaded, pooled, unevenness
from neurotier.published.bigbrain import HEADER, INCREMENT, TASK, WRITE, BlockRun
from neurotier.published.conditions import PLACES, device_and_mode, steady
from neurotier.published.replay import Replay

if TYPE_CHECKING:
    from pandas import DataFrame

PAUSE = 4.0
"""The JVM stood still where blocks came so many times later than usual: by chance that is one gap in 55 (e^-4)."""

FASTEST_WAVES = 0.95
"""Where something else limits a Spark run, its fastest twentieth of waves shows what the JVM can ship."""


class Shipping(NamedTuple):
    """What runs of Spark show of its JVM, which reads whole files and ships them to Python.

    Attributes
    ----------
    first_s
        From the start of the driver to the first phase of a block, s: the first wave is shipped meanwhile.
    bytes_per_s
        What it shipped on average after the first wave.
    fastest_bytes_per_s
        What it shipped in the fastest waves.
    pauses
        Part of the time in which it shipped nothing.
    load_s, increment_s
        Median time of making an image of a block, and of incrementing it, s.
    """

    first_s: float
    bytes_per_s: float
    fastest_bytes_per_s: float
    pauses: float
    load_s: float
    increment_s: float


def evidence_of(replay: Replay) -> DataFrame:
    """What the runs show of every condition of the paper's figures, on devices that are described: a row for each.

    Its columns are those of :class:`Loaded` and ``unevenness`` (of its streams), of :class:`Shipping`, and
    ``launch_s``, from the end of a process to the first row of its successor, s: starting Python and its libraries. Of
    Spark, only what its JVM does is known, because no row of its logs shows its reading.
    """
    from pandas import DataFrame

    known = [one for one in replay.conditions if not one.variant and device_and_mode(one) in PLACES]
    columns = [*Loaded._fields, "unevenness", "launch_s", *Shipping._fields]
    shown = [read_evidence(steady(replay.conditions[one])) for one in known]
    return DataFrame(shown, known, columns, dtype=float)


def read_evidence(runs: Sequence[BlockRun]) -> dict[str, float | None]:
    """What is known of a condition, from the repetitions that are no outliers."""
    if runs[0].condition.engine == SPARK:
        shown = [one for one in map(shipping_in, runs) if one is not None]
        return dict(zip(Shipping._fields, map(statistics.fmean, zip(*shown, strict=True)), strict=bool(shown)))
    if not all(run.named(INCREMENT) and run.named(WRITE) for run in runs):
        return {}
    observed = [streams_of(run) for run in runs]
    gaps_s = [gap_s for gap_s in map(launch_s, runs) if gap_s is not None]
    launching_s = statistics.median(gaps_s) if gaps_s else None
    return {**pooled(map(loaded, observed)), "unevenness": unevenness(observed), "launch_s": launching_s}


def streams_of(run: BlockRun) -> list[Stream]:
    """What read from the device and wrote to it: NiBabel reads a block when it is incremented."""
    return [
        Stream(phase.name == WRITE, run.block_bytes, phase.start_s, phase.end_s)
        for phase in run.named(INCREMENT, WRITE)
    ]


def launch_s(run: BlockRun) -> float | None:
    """From the end of a process to the start of its successor in one run, s; ``None`` if none followed another."""
    starts, ends = (sorted(getattr(task, name) for task in run.named(TASK)) for name in ("start_s", "end_s"))
    gaps_s = [start - end for start, end in zip(starts[run.condition.parallelism :], ends, strict=False)]
    return max(statistics.median(gaps_s), 0.0) if gaps_s else None


def shipping_in(run: BlockRun) -> Shipping | None:
    """What one run shows: a block has been shipped when Python begins with it."""
    wave, made = run.condition.parallelism, run.named(HEADER)
    starts = np.sort([phase.start_s for phase in made])
    if len(starts) <= 2 * wave or starts[-1] <= starts[wave]:
        return None
    gaps, waves_s = np.diff(starts[wave:]), starts[wave:] - starts[:-wave]
    return Shipping(
        first_s=float(starts[0]),
        bytes_per_s=float(len(gaps) * run.block_bytes / gaps.sum()),
        fastest_bytes_per_s=float(wave * run.block_bytes / np.quantile(waves_s, 1 - FASTEST_WAVES)),
        pauses=float(gaps[gaps > PAUSE * gaps.mean()].sum() / gaps.sum()),
        load_s=statistics.median(phase.duration_s for phase in made),
        increment_s=statistics.median(phase.duration_s for phase in run.named(INCREMENT)),
    )
