"""Effort: how much of a tier and of the user's time a probe takes, and that it refuses to take more."""

from __future__ import annotations

from dataclasses import dataclass

from neurotier.core.errors import TierError
from neurotier.core.quantities import counted, percent, size
from neurotier.core.settings import ProbeSettings
from neurotier.core.tiers import Tier
from neurotier.storage.access import MIB
from neurotier.storage.probe.measurements import BLOCK_BYTES, levels

SMALLEST_BYTES = 16 * MIB
"""Least that all streams together have to move for their bandwidth to mean something: a disk throttled to 20 MB/s takes
the first MiB at 500 MB/s. On slow tiers it is moved, and repeated less often, however little time was given."""

START_S = 0.5
"""What fio takes to start (measured: 0.3 s with one stream, 0.5 s with 64)."""

LEAST_SLICE_S, MOST_SLICE_S = 0.5, 1.5
JOBS, JOBS_OF_LEVEL = 7, 7
"""Jobs of a repetition beside the curve, and of each number of streams, where reading into the page cache and small
files count as one each; fewer on memory-backed tiers."""


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
        For the tier, s.
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
        """What each job may take, s."""
        jobs = JOBS + JOBS_OF_LEVEL * len(levels(self.streams))
        return min(MOST_SLICE_S, max(LEAST_SLICE_S, self.time_s / (self.repetitions * jobs) - START_S))

    def stream_bytes(self, streams: int, bandwidth_bytes_per_s: float) -> int:
        """Size of each stream's file: as large as asked for, but for the room, and what can be moved in a slice."""
        together = min(self.room_bytes, max(SMALLEST_BYTES, self.slice_s * bandwidth_bytes_per_s))
        blocks = int(min(self.file_bytes, together / streams)) // BLOCK_BYTES
        return max(1, blocks) * BLOCK_BYTES


def effort_for(tier: Tier, settings: ProbeSettings, streams: int) -> Effort:
    """What a probe may take of this tier now.

    Raises
    ------
    TierError
        If the smallest files that make sense are more than its share.
    """
    free = tier.usable_bytes()
    room, needed = int(settings.share * free), streams * SMALLEST_BYTES
    if room < needed:
        raise TierError(
            f"a probe with {counted(streams, 'stream')} needs {size(needed)}, and it may take {size(room)} "
            f"({percent(settings.share)} of {size(free)} free)",
            where=f"tier {tier.name!r}",
            fix="make room, raise probe.share, or lower probe.streams",
        )
    return Effort(streams, settings.repetitions, settings.time_s, settings.file_mib * MIB, room)
