"""The way a point is measured: fio's engine, past the page cache or not, or why it cannot be measured at all.

A tier that is memory has no queue and no page cache to bypass: requests there are copies that the process makes
itself, one after the other. A point that could only be measured as something else than it says is left out, and the
table says why.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from neurotier.core.quantities import size
from neurotier.storage.access import BUFFERED, Access, takes_direct
from neurotier.storage.fio import FioJob
from neurotier.storage.sweep.grid import Point

BUFFER_SHARE = 0.5
"""Largest share of the free memory that fio's buffers may take: each process has one for each request under way."""


def way_of(point: Point, best: Access) -> Access:
    """The way to a tier's files, but for what the point itself asks.

    Parameters
    ----------
    point
        What is to be measured.
    best
        To files of its tier (:func:`neurotier.storage.access.find_access`).
    """
    if point.wants_engine == "auto":
        return best if point.wants_direct else BUFFERED
    return Access(point.wants_engine, point.wants_direct and best.direct and point.wants_engine != "mmap")


def left_out(point: Point, way: Access, direct_blocks: set[int], memory_bytes: int) -> str:
    """Why a point is not measured; empty if it is.

    Parameters
    ----------
    point, way
        What, and how.
    direct_blocks
        Block sizes at which the page cache can be bypassed.
    memory_bytes
        Memory that is free, without what the files take of it.
    """
    if way.direct and way.engine != "libpmem" and point.block_bytes not in direct_blocks:
        return f"blocks of {size(point.block_bytes)} cannot bypass the page cache here"
    if point.queue_depth > 1 and not (way.queues and way.direct):
        return f"{way.engine} has one request under way at once here, not {point.queue_depth}"
    buffers_bytes = point.processes * point.queue_depth * point.block_bytes
    if buffers_bytes > BUFFER_SHARE * memory_bytes:
        return f"the requests under way would take {size(buffers_bytes)} of memory, and {size(memory_bytes)} are free"
    return ""


def job_of(point: Point, way: Access) -> FioJob:
    """fio's job for a point.

    As in the published script, buffers are filled anew for every write and random requests may hit a block twice. A
    buffered write is measured until it is on the device.
    """
    return FioJob(
        name=f"{point.set_name}-{point.pattern}",
        pattern="rw" if point.pattern == "mixed" else point.pattern,
        block_bytes=point.block_bytes,
        file_bytes=point.file_bytes,
        streams=point.processes,
        queue_depth=point.queue_depth,
        engine=way.engine,
        direct=way.direct,
        runtime_s=point.seconds,
        repeat=True,
        end_fsync=point.pattern not in ("read", "randread") and not way.direct,
        files=point.set_name,
        options=(("refill_buffers", "1"), ("norandommap", "1"), ("randrepeat", "0")),
    )


def layout_job(points: list[Point]) -> FioJob:
    """fio's job that writes the files of a set, so that no point waits for files or reads unwritten ones."""
    file_bytes = points[0].file_bytes
    return FioJob(
        name=f"{points[0].set_name}-layout",
        pattern="write",
        block_bytes=min(1 << 20, file_bytes),
        file_bytes=file_bytes,
        streams=max(point.processes for point in points),
        end_fsync=True,
        files=points[0].set_name,
    )


def direct_sizes(folder: Path, block_sizes: set[int]) -> set[int]:
    """Those of some block sizes, bytes, in which files of a folder can be read past the page cache."""
    return {block for block in block_sizes if block % mmap.PAGESIZE == 0 or takes_direct(folder, block)}
