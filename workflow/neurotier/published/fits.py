"""What is known of each published device: from Table I, and fitted to its runs with 25 processes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row
from neurotier.model.fit import fit_tier
from neurotier.model.machine import TierSpeed
from neurotier.model.observed import Observed
from neurotier.published.bigbrain import GNU_PARALLEL
from neurotier.published.conditions import device_and_mode
from neurotier.published.evidence import Succession, follow_up, middle_of, streams_of
from neurotier.published.replay import Replay
from neurotier.published.server import DEVICE_KINDS, MEMORY_DEVICES, known_beforehand, page_cache
from neurotier.published.table_one import device_bandwidths

FIT = (40, GNU_PARALLEL, 25)
"""Resolution (um), engine and processes of the runs that speeds are fitted to."""

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
class Fits:
    """Everything that is fitted: how processes follow each other, and the speeds of each device that has runs."""

    launch: Succession = field(default_factory=Succession)
    speeds: dict[Device, Speeds] = field(default_factory=dict)


def fit_all(replay: Replay) -> Fits:
    """Fit what can be fitted to the runs at hand."""
    devices = {device_of(one): None for one in replay.conditions if is_known(one)}
    found = {device: fit_device(replay, device) for device in devices}
    return Fits(launch_of(replay), {device: speeds for device, speeds in found.items() if speeds})


def is_known(condition: IncrementCondition) -> bool:
    """Whether it is one of the paper's conditions on a device that is described."""
    return not condition.variant and device_and_mode(condition) in DEVICE_KINDS


def speed_rows(replay: Replay, fits: Fits) -> list[Row]:
    """Rows of ``published_speeds.tsv``: what the model is given of each device."""
    rows = []
    for device in dict.fromkeys(device_of(one) for one in replay.conditions if is_known(one)):
        condition = next(one for one in replay.conditions if is_known(one) and device_of(one) == device)
        of_device = {"Table I": known(replay, condition)} | (
            {"25 processes": fits.speeds[device]} if device in fits.speeds else {}
        )
        rows += [speed_row(device, source, speeds) for source, speeds in of_device.items()]
    return rows


def speed_row(device: Device, source: str, speeds: Speeds) -> Row:
    """The row of one device from one source."""
    tier = speeds.tier
    return {
        "device": device[0],
        "mode": device[1] or "both",
        "source": source,
        "read_bytes_per_s": tier.read_bytes_per_s,
        "write_bytes_per_s": tier.write_bytes_per_s,
        "read_stream_bytes_per_s": tier.read_stream_bytes_per_s,
        "write_stream_bytes_per_s": tier.write_stream_bytes_per_s,
        "mixed": tier.mixed,
        "unevenness": tier.unevenness,
        "write_back": tier.write_back,
        "memory_write_stream_bytes_per_s": speeds.memory.write_stream_bytes_per_s if tier.write_back else None,
    }


def device_of(condition: IncrementCondition) -> Device:
    """The device: Optane is one of memory, and another of storage; others are the same in both modes."""
    device, mode = device_and_mode(condition)
    return device, mode if device == "Optane" else ""


def known(replay: Replay, condition: IncrementCondition) -> Speeds:
    """What Table I, the number of memory modules and the kind of the device tell.

    In Memory mode the benchmark of tmpfs, which is not in the printed table, tells of Optane as memory.
    """
    printed = device_bandwidths(replay.bandwidths)
    own = {(one.device, one.mode): one.of(statistics.fmean) for one in replay.bandwidths}
    place = device_and_mode(condition)
    kind, here = DEVICE_KINDS[place], own.get(place, printed[place[0]])
    devices = MEMORY_DEVICES if kind == "tmpfs" else 1
    return Speeds(of_table(kind, here, devices), of_table("tmpfs", printed["DRAM"], MEMORY_DEVICES), TABLE_SPREAD)


def of_table(kind: str, read_write_mb_s: tuple[float, float], devices: int) -> TierSpeed:
    """A tier by its row of Table I."""
    read, write = read_write_mb_s
    return known_beforehand(kind, 1e6 * read, 1e6 * write, devices)


def fit_device(replay: Replay, device: Device) -> Speeds | None:
    """Speeds fitted to a device's runs with 25 processes; ``None`` without such runs."""
    conditions = [one for one in replay.conditions if one.panel == FIT and device_of(one) == device]
    observed = [
        Observed(streams_of(run), page_cache(replay.root, device_and_mode(condition)[1]))
        for condition in conditions
        for run in replay.conditions[condition]
    ]
    if not observed:
        return None
    kind, beforehand = DEVICE_KINDS[device_and_mode(conditions[0])], known(replay, conditions[0])
    one_stream = known_beforehand(
        kind, beforehand.tier.read_stream_bytes_per_s, beforehand.tier.write_stream_bytes_per_s
    )
    tier, memory = fit_tier(observed, one_stream, kind, beforehand.memory if one_stream.write_back else None)
    return Speeds(tier, memory or beforehand.memory, FITTED_SPREAD)


def launch_of(replay: Replay) -> Succession:
    """How GNU Parallel's processes followed each other, as the median over runs on all devices.

    Starting Python is the same everywhere; what it takes longer on Isilon, it waits behind the blocks of others.
    """
    found = []
    for condition, runs in replay.conditions.items():
        if condition.panel == FIT:
            found += [one for run in runs if (one := follow_up(run)) is not None]
    return middle_of(found) if found else Succession()
