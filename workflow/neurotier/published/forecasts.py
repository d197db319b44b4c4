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
from dataclasses import astuple, dataclass

from neurotier.model.fit import fit_tier
from neurotier.model.forecast import Forecast, forecast
from neurotier.model.machine import TierSpeed
from neurotier.model.observed import Observed, Stream
from neurotier.model.workload import Step, Workload
from neurotier.published.bigbrain import BLOCKS, GNU_PARALLEL, INCREMENT, TASK, WRITE, BlockRun
from neurotier.published.conditions import Condition, cells, is_stalled
from neurotier.published.replay import Replay
from neurotier.published.server import KINDS, MEMORY_DEVICES, known_beforehand, page_cache, server
from neurotier.published.table_one import device_bandwidths
from neurotier.tables import Row

PAPER, APRIORI, FITTED = "paper", "fluid a priori", "fluid fitted"
FIT = (40, GNU_PARALLEL, 25)
"""Resolution (um), engine and processes of the runs that speeds are fitted to."""

TIER = "device"
"""The model's name of the one tier that there is."""

FITTED_SPREAD = 0.1
"""How well fitted speeds are known: on the SSD, runs of one condition differ by 17 %, means of the modes by 8 %."""

TABLE_SPREAD = 0.3
"""How well Table I, one stream at a time, tells speeds under load."""

Device = tuple[str, str]
"""Device, and mode where that makes another device of it, else empty."""


@dataclass(frozen=True)
class Speeds:
    """What is known of a device, and of the memory that its writes go to first, and how well (as a logarithm)."""

    tier: TierSpeed
    memory: TierSpeed
    spread: float


@dataclass(frozen=True)
class Launch:
    """How processes follow each other.

    Attributes
    ----------
    spawn_s
        From one start to the next at the beginning, s.
    launch_s
        From the end of a process to the first row of its successor, s: starting Python and its libraries.
    """

    spawn_s: float = 0.0
    launch_s: float = 0.0


def predictions(replay: Replay) -> list[Row]:
    """Rows of ``published_predictions.tsv``: each member for each of the paper's conditions on a known device."""
    launch, fitted = launch_of(replay), dict[Device, Speeds | None]()
    rows = []
    for condition, runs in replay.conditions.items():
        if condition.variant or (condition.device, condition.mode) not in KINDS:
            continue
        device = device_of(condition)
        if device not in fitted:
            fitted[device] = fit_device(replay, device)
        equation_s = replay.equation_one_s(condition)
        if equation_s is not None:
            rows.append(row_of(condition, runs, PAPER, equation_s))
        beforehand = known(replay, condition)
        apriori = forecast_of(replay, condition, runs, beforehand, Launch())
        rows.append(row_of(condition, runs, APRIORI, apriori.makespan_s, apriori))
        speeds = fitted[device]
        if speeds:
            of_runs = forecast_of(replay, condition, runs, speeds, launch)
            rows.append(row_of(condition, runs, FITTED, of_runs.makespan_s, of_runs))
    return rows


def row_of(
    condition: Condition, runs: Sequence[BlockRun], member: str, predicted_s: float, told: Forecast | None = None
) -> Row:
    """The row of a prediction, held against the mean of the runs that were not stalled."""
    going = [run for run in runs if not is_stalled(run, runs)]
    measured_s = statistics.fmean(run.makespan_s for run in going) if going else None
    return {
        **{name: value for name, value in cells(condition).items() if name != "variant"},
        "member": member,
        "fitted_on": member == FITTED and condition.panel == FIT,
        "predicted_s": predicted_s,
        "low_s": told.low_s if told else None,
        "high_s": told.high_s if told else None,
        "measured_s": measured_s,
        "stalled": len(runs) - len(going),
        "ratio": predicted_s / measured_s if measured_s else None,
        "limit": told.predicted.limit if told else None,
    }


def device_of(condition: Condition) -> Device:
    """The device: Optane is one of memory, and another of storage; others are the same in both modes."""
    return condition.device, condition.mode if condition.device == "Optane" else ""


def known(replay: Replay, condition: Condition) -> Speeds:
    """What Table I, the number of memory modules and the kind of the device tell.

    In Memory mode the benchmark of tmpfs, which is not in the printed table, tells of Optane as memory.
    """
    printed = device_bandwidths(replay.bandwidths)
    own = {(one.device, one.mode): one.of(statistics.fmean) for one in replay.bandwidths}
    kind = KINDS[condition.device, condition.mode]
    here = own.get((condition.device, condition.mode), printed[condition.device])
    devices = MEMORY_DEVICES if kind == "tmpfs" else 1
    return Speeds(of_table(kind, here, devices), of_table("tmpfs", printed["DRAM"], MEMORY_DEVICES), TABLE_SPREAD)


def of_table(kind: str, read_write_mb_s: tuple[float, float], devices: int) -> TierSpeed:
    """A tier by its row of Table I."""
    read, write = read_write_mb_s
    return known_beforehand(kind, 1e6 * read, 1e6 * write, devices)


def fit_device(replay: Replay, device: Device) -> Speeds | None:
    """Speeds fitted to a device's runs with 25 processes; ``None`` without such runs."""
    conditions = [one for one in replay.conditions if one.panel == FIT and not one.variant and device_of(one) == device]
    observed = [
        Observed(streams_of(run), page_cache(replay.root, condition.mode))
        for condition in conditions
        for run in replay.conditions[condition]
    ]
    if not observed:
        return None
    kind, beforehand = KINDS[conditions[0].device, conditions[0].mode], known(replay, conditions[0])
    one_stream = known_beforehand(
        kind, beforehand.tier.read_stream_bytes_per_s, beforehand.tier.write_stream_bytes_per_s
    )
    tier, memory = fit_tier(observed, one_stream, kind, beforehand.memory if one_stream.write_back else None)
    return Speeds(tier, memory or beforehand.memory, FITTED_SPREAD)


def streams_of(run: BlockRun) -> list[Stream]:
    """What read from the device and wrote to it: NiBabel reads a block when it is incremented."""
    return [
        Stream(phase.name == WRITE, run.block_bytes, phase.start_s, phase.end_s)
        for phase in run.named(INCREMENT, WRITE)
    ]


def launch_of(replay: Replay) -> Launch:
    """How GNU Parallel's processes followed each other, as the median over runs on all devices.

    Starting Python is the same everywhere; what it takes longer on Isilon, it waits behind the blocks of others.
    """
    found = []
    for condition, runs in replay.conditions.items():
        if condition.panel == FIT and not condition.variant:
            found += [one for run in runs if (one := follow_up(run)) is not None]
    if not found:
        return Launch()
    return Launch(*(statistics.median(values) for values in zip(*map(astuple, found), strict=True)))


def follow_up(run: BlockRun) -> Launch | None:
    """How processes followed each other in one run; ``None`` if none did."""
    tasks, slots = run.named(TASK), run.processes
    starts, ends = sorted(task.start_s for task in tasks), sorted(task.end_s for task in tasks)
    gaps = [start - end for start, end in zip(starts[slots:], ends, strict=False)]
    if not gaps:
        return None
    return Launch((starts[slots - 1] - starts[0]) / max(slots - 1, 1), max(statistics.median(gaps), 0.0))


def forecast_of(
    replay: Replay, condition: Condition, runs: Sequence[BlockRun], speeds: Speeds, launch: Launch
) -> Forecast:
    """What the fluid model predicts for a condition."""
    size = float(runs[0].block_bytes)
    task = (Step(INCREMENT, "read", size, TIER), Step(WRITE, "write", size, TIER))
    workload = Workload([task] * BLOCKS[condition.resolution_um], launch.spawn_s, launch.launch_s, launch_counts=False)
    machine = server(TIER, speeds.tier, speeds.memory, page_cache(replay.root, condition.mode))
    return forecast(workload, machine, condition.processes, {TIER: speeds.spread})
