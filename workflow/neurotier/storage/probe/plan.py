"""What rules need to know about probes: which tiers, how long they may take, and what makes an earlier one outdated."""

from __future__ import annotations

import math
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.core.errors import StateError, TierError
from neurotier.core.places import Places
from neurotier.core.quantities import counted, percent, size
from neurotier.core.settings import ProbeSettings, Settings
from neurotier.core.tables import read_table
from neurotier.core.tiers import Tier, find_mount, tier_named
from neurotier.storage.fio import MIB

MOST_STREAMS = 96
"""As in the published experiment; the user must ask for more."""

LEAST_MINUTES = 21
"""Makes half an hour in total with the default duration of a probe."""

BLOCK_BYTES = MIB
"""As in the published ``dd``."""

SMALLEST_BYTES = 16 * MIB
"""Bytes that all streams together must move at least for their bandwidth to mean something: a disk throttled to 20 MB/s
takes the first MiB at 500 MB/s. Slow tiers move as much, with fewer repetitions, however short the time limit is."""

START_S = 0.5
"""Time that fio takes to start, s (measured: 0.3 s with one stream, 0.5 s with 64)."""

LEAST_SLICE_S, MOST_SLICE_S = 0.5, 1.5
JOBS = 7
"""Jobs of a repetition outside the curve, and as many again for each number of streams, where reading into the page
cache and small files count as one each; tiers in memory have fewer."""


@dataclass
class ProbePlan:
    """What the rules need to know about probes.

    Parameters
    ----------
    settings, places
        Those of the run.
    cores
        Cores that Snakemake was given; on a cluster, those of a job.
    node_class
        Class of the nodes that are measured; empty for this host.
    on_cluster
        Whether other nodes are measured, to which nothing that can be seen on this one applies.
    """

    settings: Settings
    places: Places
    cores: int | None
    node_class: str = ""
    on_cluster: bool = False

    @property
    def tiers(self) -> list[str]:
        """Tiers to probe: those named in the settings, otherwise those of all placements."""
        return self.settings.probe.tiers or self.settings.placed_tiers

    def tables(self) -> list[Path]:
        """The table of each of these tiers."""
        return [self.table(name) for name in self.tiers]

    def table(self, tier: str) -> Path:
        """The table of a tier."""
        return self.places.probe_table(tier, self.node_class)

    def streams(self, tier: str) -> int:
        """Most streams at once.

        If ``--cores`` alone sets the limit, a curve that was measured with more streams is kept: ``--cores 1`` is no
        reason to repeat a probe made with ``--cores 25``.
        """
        if self.settings.probe.streams:
            return self.settings.probe.streams
        if self.settings.is_campaign:
            return min(MOST_STREAMS, max(self.settings.campaign.parallelism))
        measured = 1
        with suppress(FileNotFoundError, StateError):  # an unreadable table counts as missing
            measured = max((row["streams"] for row in read_table(self.table(tier), "probe", {"streams"})), default=1)
        return max(measured, min(MOST_STREAMS, self.cores or 1))

    @property
    def minutes(self) -> int:
        """Time to request from a cluster for a tier's probe, min; on a slow tier, a probe takes longer than planned."""
        return LEAST_MINUTES + math.ceil(3 * self.settings.probe.time_s / 60)

    def asked(self, tier: str) -> dict[str, Any]:
        """What a probe depends on; if this changes, the tier is probed again.

        Where each node has a tier of its own, only the job can look at it, and this process has only its declaration.
        On a cluster, this holds for all tiers.
        """
        probe, declared = self.settings.probe, tier_named(self.settings, tier)
        effort = {key: getattr(probe, key) for key in ("file_mib", "share", "time_s", "repetitions")}
        place = {"path": str(declared.path), "kind": declared.kind}
        if not self.on_cluster:
            place["kernel"] = platform.release()
        if not declared.node and not self.on_cluster:
            mount = find_mount(declared.path)
            place |= {"mount_point": mount.mount_point, "fs_type": mount.fs_type, "device": mount.source}
        return {**place, **effort, "streams": self.streams(tier)}

    def has_room(self, tier: str) -> bool:
        """Whether a tier of this machine has been probed, or has room for a probe."""
        if self.table(tier).exists():
            return True
        try:
            effort_for(tier_named(self.settings, tier), self.settings.probe, self.streams(tier))
        except TierError:
            return False
        return True


def levels(streams: int) -> list[int]:
    """The numbers of streams to measure: the powers of two below the largest number, and that number itself.

    >>> levels(1), levels(2), levels(6), levels(96)
    ([1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16, 32, 64, 96])
    """
    return [*(2**power for power in range((streams - 1).bit_length())), streams]


@dataclass(frozen=True)
class Effort:
    """The limits of one tier's probe.

    Attributes
    ----------
    streams
        Most streams at once.
    repetitions
        How often everything is measured, if time allows.
    time_s
        Planned duration, s.
    file_bytes
        Size of a stream's file at most.
    room_bytes
        Size of all files together at most.
    """

    streams: int
    repetitions: int
    time_s: float
    file_bytes: int
    room_bytes: int

    @property
    def slice_s(self) -> float:
        """How long each job may take, s."""
        jobs = JOBS * (1 + len(levels(self.streams)))
        return min(MOST_SLICE_S, max(LEAST_SLICE_S, self.time_s / (self.repetitions * jobs) - START_S))

    def stream_bytes(self, streams: int, bandwidth_bytes_per_s: float) -> int:
        """Size of each stream's file: as configured, but no more than the room, and what a slice can move, allow."""
        together = min(self.room_bytes, max(SMALLEST_BYTES, self.slice_s * bandwidth_bytes_per_s))
        return max(1, int(min(self.file_bytes, together / streams)) // BLOCK_BYTES) * BLOCK_BYTES


def effort_for(tier: Tier, settings: ProbeSettings, streams: int) -> Effort:
    """The limits of a probe of this tier, given its free space now.

    Raises
    ------
    TierError
        If the smallest meaningful files exceed the probe's share of the tier.
    """
    free = tier.usable_bytes()
    room, needed = int(settings.share * free), streams * SMALLEST_BYTES
    if room < needed:
        raise TierError(
            f"a probe with {counted(streams, 'stream')} needs {size(needed)}, and it may take {size(room)} "
            f"({percent(settings.share)} of {size(free)} free)",
            f"tier {tier.name!r}",
            "make room, leave that tier out, raise probe.share, or lower probe.streams",
        )
    return Effort(streams, settings.repetitions, settings.time_s, settings.file_mib * MIB, room)
