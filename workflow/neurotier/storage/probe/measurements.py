"""Measurements: what a probe does to a tier, as jobs of fio, and how much of it and of time that takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neurotier.core.errors import TierError
from neurotier.core.kinds import is_in_memory
from neurotier.core.quantities import counted, percent, size
from neurotier.core.settings import ProbeSettings
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.fio import MIB, Access, FioJob

FILES = "files"

BLOCK_BYTES = MIB
"""As the published ``dd``."""

SMALL_BYTES = 4096
DEEP = 32
"""Queue depth of small requests, besides 1."""

PATIENCE = 3.0
"""How many times the slice that is planned for it a job may go on."""

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
class Measurement(FioJob):
    """A row of the table before it is measured: fio's job, named by its pattern, and what it is a ``part`` of.

    Of :data:`FILES` it says what our own processes do.
    """

    part: str = ""


Samples = dict[Measurement, list[Row]]
"""Figures of each measurement, by repetition."""


def one_stream(kind: str, file_bytes: int) -> list[Measurement]:
    """One stream as by ``dd``: a write with its flush, a read from the device, and a read from the page cache."""
    read = Measurement("read", "read", BLOCK_BYTES, file_bytes, files="one", part="one_stream")
    write = replace(read, name="write", pattern="write", end_fsync=True, fresh=True)
    cached = [] if is_in_memory(kind) else [replace(read, name="cached_read", evict=False)]
    return [write, read, *cached]


def small(access: Access, kind: str, file_bytes: int, slice_s: float) -> list[Measurement]:
    """Small random requests, one and many at once, on the file of one stream.

    Buffered writes would end in the page cache; they are flushed one by one.
    """
    read = Measurement(
        name="random_read",
        pattern="randread",
        block_bytes=SMALL_BYTES,
        file_bytes=file_bytes,
        engine=access.engine,
        direct=access.direct,
        runtime_s=slice_s,
        repeat=True,
        files="one",
        part="small",
    )
    flushed = () if access.direct or is_in_memory(kind) else (("sync", "1"),)
    both = read, replace(read, name="random_write", pattern="randwrite", options=flushed)
    depths = (1, DEEP) if access.queues else (1,)
    return [replace(each, queue_depth=depth) for each in both for depth in depths]


def concurrency(access: Access, kind: str, streams: int, file_bytes: int, slice_s: float) -> list[Measurement]:
    """Streams at once: to and from the device, half and half, and to and from the page cache if there is one.

    All are to run at the same time, and some start later than others; so files that are read are gone over again
    until the slice is over, unless that would find them in the page cache.
    """
    buffered = Measurement(
        name="write",
        pattern="write",
        block_bytes=BLOCK_BYTES,
        file_bytes=file_bytes,
        streams=streams,
        runtime_s=PATIENCE * slice_s,
        files="curve",
        part="concurrency",
    )
    past = replace(buffered, engine=access.engine, direct=access.direct)
    again = replace(past, runtime_s=slice_s, repeat=True) if access.direct or is_in_memory(kind) else past
    measurements = [
        replace(past, end_fsync=True, fresh=True),
        replace(again, name="read", pattern="read"),
        replace(again, name="mixed", pattern="rw", end_fsync=True),
    ]
    if not is_in_memory(kind):
        cached = replace(buffered, name="cached_read", pattern="read", preread=True, runtime_s=slice_s, repeat=True)
        measurements += [cached, replace(buffered, name="buffered_write", fresh=True)]
    return measurements


def levels(streams: int) -> list[int]:
    """Numbers of streams: the powers of two below the most, and the most.

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
