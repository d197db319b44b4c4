"""The grid: which points a sweep has."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from neurotier.core.errors import SettingsError
from neurotier.core.settings import SweepSetSettings, SweepSettings
from neurotier.core.tiers import parse_size
from neurotier.storage.workload.points import in_order


@dataclass(frozen=True)
class Point:
    """One measurement of a sweep.

    Attributes
    ----------
    set_name
        Set of the configuration that it belongs to.
    pattern
        ``read``, ``write``, ``randread``, ``randwrite`` or ``mixed``.
    block_bytes
        Size of a request, bytes.
    processes
        Processes at once, each on a file of its own.
    queue_depth
        Requests that each process has under way.
    repetition
        Which repetition, from 1.
    file_bytes
        Size of each process's file, bytes.
    seconds
        Time that it is measured for, s.
    wants_direct
        Whether the page cache is to be bypassed where that can be.
    wants_engine
        I/O engine of fio that is asked for, or ``auto``.
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


def points_of_set(name: str, given: SweepSetSettings) -> list[Point]:
    """Points of one set, in the order of the grid.

    Raises
    ------
    SettingsError
        If a size is none, or a block is larger than the file.
    """
    where = f"config key sweep.sets.{name}"
    file_bytes = parse_size(given.file_size, f"{where}.file_size")
    blocks = [parse_size(size, f"{where}.block_sizes") for size in given.block_sizes]
    for size, block_bytes in zip(given.block_sizes, blocks, strict=True):
        if not 1 <= block_bytes <= file_bytes:
            raise SettingsError(
                f"a block of {size} does not fit into a file of {given.file_size}",
                where=f"{where}.block_sizes",
                fix="choose smaller blocks, or a larger file_size",
            )
    fixed = (file_bytes, given.seconds, given.direct, given.engine)
    axes = range(1, given.repetitions + 1), given.patterns, given.queue_depths, blocks, given.processes
    return [
        Point(name, pattern, block_bytes, processes, queue_depth, repetition, *fixed)
        for repetition, pattern, queue_depth, block_bytes, processes in itertools.product(*axes)
    ]


def sweep_plan(settings: SweepSettings) -> dict[str, dict[str, list[Point]]]:
    """The points of every set, in the order in which they are measured, the same on each tier.

    Raises
    ------
    SettingsError
        If a set cannot be measured as it is written.
    """
    sets = {name: in_order(points_of_set(name, given), settings.seed) for name, given in settings.sets.items()}
    return dict.fromkeys(settings.tiers, sets)
