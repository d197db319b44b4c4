"""Answers for the rules: which tiers are probed, how long that may take, and what outdates an earlier probe."""

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
"""As in the published experiment; more must be requested."""

LEAST_MINUTES = 21
"""Half an hour in total with the default duration of a probe."""

BLOCK_BYTES = MIB
"""As in the published ``dd``."""

SMALLEST_BYTES = 16 * MIB
"""Least that all streams together must move for their bandwidth to mean something: a disk throttled to 20 MB/s takes
the first MiB at 500 MB/s. On slow tiers it is moved, too, and repeated less often, however little time was given."""

START_S = 0.5
"""What fio takes to start (measured: 0.3 s with one stream, 0.5 s with 64)."""

LEAST_SLICE_S, MOST_SLICE_S = 0.5, 1.5
JOBS = 7
"""Jobs of a repetition outside the curve, and as many for each number of streams, where reading into the page cache and
small files count as one each; fewer on tiers in memory."""


@dataclass
class ProbePlan:
    """Answers for the rules.

    Parameters
    ----------
    settings, places
        Of the run.
    cores
        Cores that Snakemake was given, on a cluster those of a job.
    node_class
        Class of the nodes that are measured; empty for this host.
    elsewhere
        Whether these are other nodes than this one, so that nothing seen here applies.
    """

    settings: Settings
    places: Places
    cores: int | None
    node_class: str = ""
    elsewhere: bool = False

    @property
    def tiers(self) -> list[str]:
        """Tiers to probe: those that are named, otherwise those of all placements."""
        return self.settings.probe.tiers or self.settings.placed_tiers

    def tables(self) -> list[Path]:
        """Tables of those tiers."""
        return [self.table(name) for name in self.tiers]

    def table(self, tier: str) -> Path:
        """Table of a tier."""
        return self.places.probed(tier, self.node_class)

    def streams(self, tier: str) -> int:
        """Most streams at once.

        If only ``--cores`` sets the limit, a curve that was measured further stays: ``--cores 1`` is no reason to probe
        again what ``--cores 25`` has probed.
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
        """Time that the probe of a tier requests from a cluster, min; on a slow tier it takes longer than planned."""
        return LEAST_MINUTES + math.ceil(3 * self.settings.probe.time_s / 60)

    def asked(self, tier: str) -> dict[str, Any]:
        """What a probe depends on; if it changes, the tier is probed again.

        A tier that each node has for itself is found by the job, and only known by its name here; on a cluster, this
        holds for all tiers.
        """
        probe, declared = self.settings.probe, tier_named(self.settings, tier)
        effort = {key: getattr(probe, key) for key in ("file_mib", "share", "time_s", "repetitions")}
        place = {"path": str(declared.path), "kind": declared.kind}
        if not self.elsewhere:
            place["kernel"] = platform.release()
        if not declared.node and not self.elsewhere:
            mount = find_mount(declared.path)
            place |= {"mount_point": mount.mount_point, "fs_type": mount.fs_type, "device": mount.source}
        return {**place, **effort, "streams": self.streams(tier)}

    def has_room(self, tier: str) -> bool:
        """Whether a tier of this machine has been probed, or has room for that."""
        if self.table(tier).exists():
            return True
        try:
            effort_for(tier_named(self.settings, tier), self.settings.probe, self.streams(tier))
        except TierError:
            return False
        return True


def levels(streams: int) -> list[int]:
    """Numbers of streams: the powers of two below the largest number, and that number.

    >>> levels(1), levels(2), levels(6), levels(96)
    ([1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16, 32, 64, 96])
    """
    return [*(2**power for power in range((streams - 1).bit_length())), streams]


@dataclass(frozen=True)
class Effort:
    """What a probe of one tier may take.

    Attributes
    ----------
    streams
        Most streams at once.
    repetitions
        How often everything is measured, if time allows.
    time_s
        Duration of the tier's probe, s.
    file_bytes
        Largest file of a stream.
    room_bytes
        For all files together.
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
        """Size of each stream's file: as requested, but limited by the room, and by what can be moved in a slice."""
        together = min(self.room_bytes, max(SMALLEST_BYTES, self.slice_s * bandwidth_bytes_per_s))
        blocks = int(min(self.file_bytes, together / streams)) // BLOCK_BYTES
        return max(1, blocks) * BLOCK_BYTES


def effort_for(tier: Tier, settings: ProbeSettings, streams: int) -> Effort:
    """What a probe may take of this tier now.

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
