"""The sweep as a workload: lay out files for a set, and measure every point of its grid on them with fio.

A tier in memory has no queue and no page cache to bypass: requests there are copies that the process itself makes, one
after the other. A point that cannot be measured exactly as configured is left out, and the table says why.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import psutil

from neurotier.core.errors import SettingsError
from neurotier.core.kinds import KINDS, is_in_memory
from neurotier.core.quantities import size
from neurotier.core.settings import Say, SweepSettings
from neurotier.core.tables import Row
from neurotier.core.tiers import parse_size
from neurotier.storage.fio import BUFFERED, Access, FioJob, find_access, supports_direct
from neurotier.storage.workload import Workload
from neurotier.storage.workspace import Workspace, patience_s

BUFFER_SHARE = 0.5
"""Largest share of the free memory that fio's buffers may take: each process has one per request in flight."""


@dataclass(frozen=True)
class Point:
    """One measurement of a sweep.

    Attributes
    ----------
    set_name
        The configured set that it belongs to.
    pattern
        ``read``, ``write``, ``randread``, ``randwrite`` or ``mixed``.
    block_bytes
        Size of a request, bytes.
    processes
        Processes at once, each with a file of its own.
    queue_depth
        Requests that each process has in flight.
    repetition
        Number of the repetition, from 1.
    file_bytes
        Size of each process's file, bytes.
    seconds
        Duration of the measurement, s.
    wants_direct
        Whether to bypass the page cache where possible.
    wants_engine
        The requested I/O engine of fio, or ``auto``.
    """

    set_name: str
    pattern: str
    block_bytes: int
    processes: int
    queue_depth: int
    repetition: int
    file_bytes: int
    seconds: float
    wants_direct: bool
    wants_engine: str
    written_bytes: ClassVar[int] = 0


def access_for(point: Point, best: Access) -> Access:
    """How a point accesses its tier's files, given the best way there.

    Parameters
    ----------
    point
        The point to be measured.
    best
        The best way to access files of its tier (:func:`neurotier.storage.fio.find_access`).
    """
    if point.wants_engine == "auto":
        return best if point.wants_direct else BUFFERED
    return Access(point.wants_engine, point.wants_direct and best.direct and point.wants_engine != "mmap")


def reason_left_out(point: Point, way: Access, direct_blocks: set[int], memory_bytes: int) -> str:
    """Why a point is left out; empty if it is not.

    Parameters
    ----------
    point, way
        The point, and how it accesses its files.
    direct_blocks
        Block sizes with which the page cache can be bypassed.
    memory_bytes
        Free memory, less what the files will take of it.
    """
    if way.direct and way.engine != "libpmem" and point.block_bytes not in direct_blocks:
        return f"blocks of {size(point.block_bytes)} cannot bypass the page cache here"
    if point.queue_depth > 1 and not (way.queues and way.direct):
        return f"{way.engine} can have only one request in flight here, not {point.queue_depth}"
    buffers_bytes = point.processes * point.queue_depth * point.block_bytes
    if buffers_bytes > BUFFER_SHARE * memory_bytes:
        return f"the requests under way would take {size(buffers_bytes)} of memory, and {size(memory_bytes)} are free"
    return ""


def job_of(point: Point, way: Access, in_memory: bool) -> FioJob:
    """The fio job for a point.

    As in the published script, buffers are refilled for every write, and random requests may hit a block twice. Through
    the page cache, however, each block is moved only once, since further accesses would be served from memory: a file
    is evicted before fio reads it again, and a write is measured until it is on the device. Writes, and reads of mapped
    files, which are not evicted, stop at the end of their file. None of this applies to a tier in memory, which has
    nothing behind the page cache.
    """
    flushed = not way.direct and point.pattern not in ("read", "randread")
    again = in_memory or way.direct
    return FioJob(
        name=f"{point.set_name}-{point.pattern}",
        pattern="rw" if point.pattern == "mixed" else point.pattern,
        block_bytes=point.block_bytes,
        file_bytes=point.file_bytes,
        streams=point.processes,
        queue_depth=point.queue_depth,
        way=way,
        runtime_s=point.seconds,
        repeat=again or not (flushed or way.engine == "mmap"),
        end_fsync=flushed,
        files=point.set_name,
        options={"refill_buffers": "1", "norandommap": str(int(again)), "randrepeat": "0"},
    )


def layout_job(points: list[Point]) -> FioJob:
    """The fio job that writes the files of a set first, so that no point waits for files or reads unwritten ones."""
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


class Sweep(Workload[Point]):
    """The sweep: points of a grid, measured on files that the points of a set share."""

    target = "sweep"
    doing = "Sweeping"
    smaller = "sweep.sets.{set}.file_size or .processes"
    ways: dict[Point, Access]

    @staticmethod
    def points(section: SweepSettings, _tier: str) -> Iterator[Point]:
        """Every set in the order of its grid, the same on each tier."""
        for name, given in section.sets.items():
            where = f"config key sweep.sets.{name}"
            file_bytes = parse_size(given.file_size, f"{where}.file_size")
            blocks = [parse_size(text, f"{where}.block_sizes") for text in given.block_sizes]
            for text, block_bytes in zip(given.block_sizes, blocks, strict=True):
                if not 1 <= block_bytes <= file_bytes:
                    raise SettingsError(
                        f"a block of {text} does not fit into a file of {given.file_size}",
                        f"{where}.block_sizes",
                        "choose smaller blocks, or a larger file_size",
                    )
            fixed = (file_bytes, given.seconds, given.direct, given.engine)
            axes = range(1, given.repetitions + 1), given.patterns, given.queue_depths, blocks, given.processes
            for repetition, pattern, queue_depth, block_bytes, processes in itertools.product(*axes):
                yield Point(name, pattern, block_bytes, processes, queue_depth, repetition, *fixed)

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Decide how each point accesses its files, and lay out the files."""
        tier, folder = workspace.tier, workspace.folder
        access = find_access(folder, tier.kind)
        blocks = {point.block_bytes for point in points} if access.direct else set()
        direct = {block for block in blocks if block % mmap.PAGESIZE == 0 or supports_direct(folder, block)}
        self.ways = {point: access_for(point, access) for point in points}
        memory_bytes = psutil.virtual_memory().available - self.room(points)[0] * KINDS[tier.kind].takes_memory
        reasons = {point: reason_left_out(point, self.ways[point], direct, memory_bytes) for point in points}
        possible = [point for point in points if not reasons[point]]
        if possible:
            file_bytes = self.room(possible)[0]
            say(f"tier {tier.name}, set {points[0].set_name}: laying out {size(file_bytes)}")
            workspace.run(layout_job(possible), patience_s(file_bytes))
        return {point: reason for point, reason in reasons.items() if reason}

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Measure one point."""
        way = self.ways[point]
        job = job_of(point, way, is_in_memory(workspace.tier.kind))
        cells = workspace.run(job, 2 * point.seconds + patience_s(0)).cells()
        return {**vars(way), **cells, "requests_per_s": cells["operations_per_s"]}
