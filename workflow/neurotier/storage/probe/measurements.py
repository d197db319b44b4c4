"""Measurements: what a probe does to a tier, as jobs of fio."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from neurotier.core.kinds import is_in_memory
from neurotier.core.tables import Row
from neurotier.storage.access import MIB, Access
from neurotier.storage.fio import FioJob

FILES: Literal["files"] = "files"
Part = Literal["one_stream", "concurrency", "small", "files"]

BLOCK_BYTES = MIB
"""As the published ``dd``."""

SMALL_BYTES = 4096
DEEP = 32
"""Queue depth of small requests, besides 1."""

PATIENCE = 3.0
"""How many times the slice that is planned for it a job may go on."""


@dataclass(frozen=True)
class Measurement:
    """A row of the table before it is measured: what it is part of, and the job, named by its pattern.

    The job of :data:`FILES` says what our own processes do.
    """

    part: Part
    job: FioJob


Samples = dict[Measurement, list[Row]]
"""Figures of each measurement, by repetition."""


def one_stream(kind: str, file_bytes: int) -> list[Measurement]:
    """One stream as by ``dd``: a write with its flush, a read from the device, and a read from the page cache."""
    job = partial(FioJob, block_bytes=BLOCK_BYTES, file_bytes=file_bytes, files="one")
    measurements = [
        Measurement("one_stream", job("write", "write", end_fsync=True, fresh=True)),
        Measurement("one_stream", job("read", "read")),
    ]
    if not is_in_memory(kind):
        measurements.append(Measurement("one_stream", job("cached_read", "read", evict=False)))
    return measurements


def small(access: Access, kind: str, file_bytes: int, slice_s: float) -> list[Measurement]:
    """Small random requests, one and many at once, on the file of one stream.

    Buffered writes would end in the page cache; they are flushed one by one.
    """
    flushed = () if access.direct or is_in_memory(kind) else (("sync", "1"),)
    measurements = []
    for pattern, way, options in (("random_read", "randread", ()), ("random_write", "randwrite", flushed)):
        for depth in (1, DEEP) if access.queues else (1,):
            job = FioJob(
                name=pattern,
                pattern=way,
                block_bytes=SMALL_BYTES,
                file_bytes=file_bytes,
                queue_depth=depth,
                engine=access.engine,
                direct=access.direct,
                runtime_s=slice_s,
                repeat=True,
                files="one",
                options=options,
            )
            measurements.append(Measurement("small", job))
    return measurements


def concurrency(access: Access, kind: str, streams: int, file_bytes: int, slice_s: float) -> list[Measurement]:
    """Streams at once: to and from the device, half and half, and to and from the page cache if there is one.

    All are to run at the same time, and some start later than others; so files that are read are gone over again
    until the slice is over, unless that would find them in the page cache.
    """
    buffered = FioJob(
        name="write",
        pattern="write",
        block_bytes=BLOCK_BYTES,
        file_bytes=file_bytes,
        streams=streams,
        runtime_s=PATIENCE * slice_s,
        files="curve",
    )
    past = replace(buffered, engine=access.engine, direct=access.direct)
    again = replace(past, runtime_s=slice_s, repeat=True) if access.direct or is_in_memory(kind) else past
    measurements = [
        Measurement("concurrency", replace(past, end_fsync=True, fresh=True)),
        Measurement("concurrency", replace(again, name="read", pattern="read")),
        Measurement("concurrency", replace(again, name="mixed", pattern="rw", end_fsync=True)),
    ]
    if not is_in_memory(kind):
        cached = replace(buffered, name="cached_read", pattern="read", preread=True, runtime_s=slice_s, repeat=True)
        measurements += [
            Measurement("concurrency", cached),
            Measurement("concurrency", replace(buffered, name="buffered_write", fresh=True)),
        ]
    return measurements


def levels(streams: int) -> list[int]:
    """Numbers of streams: the powers of two below the most, and the most.

    >>> levels(1), levels(2), levels(6), levels(96)
    ([1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16, 32, 64, 96])
    """
    return [*(2**power for power in range((streams - 1).bit_length())), streams]
