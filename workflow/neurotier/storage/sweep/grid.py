"""The grid: which points a sweep has, and in what order they are measured.

The order is random, drawn anew within each repetition (a randomised block design, as in campaigns) from a seed that
stands in the configuration. In the order of the grid, what drifts meanwhile would look like an effect of the block
size: a flash drive's SLC cache that fills up, a cloud disk whose burst credit runs out, a device that warms up.
Tiers are swept one after the other, because the files of one that is memory would take the page cache from another;
so are sets, whose files then need the room of the largest alone.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict, dataclass

import numpy as np

from neurotier.core.errors import SettingsError
from neurotier.core.places import short_hash
from neurotier.core.settings import SweepSetSettings, SweepSettings
from neurotier.core.tiers import parse_size

LEAST_MINUTES = 30


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
    direct
        Whether the page cache is to be bypassed where that can be.
    engine
        I/O engine of fio that was asked for, or ``auto``.
    """

    set_name: str
    pattern: str
    block_bytes: int
    processes: int
    queue_depth: int
    repetition: int
    file_bytes: int
    seconds: float
    direct: bool
    engine: str

    @property
    def is_written(self) -> bool:
        """Whether any request writes."""
        return self.pattern not in ("read", "randread")

    def name(self, where: str) -> str:
        """A file's name that tells measurements apart.

        Parameters
        ----------
        where
            What else tells them apart: host and place of the tier.
        """
        digest = short_hash(json.dumps([where, asdict(self)]))
        grid = f"{self.pattern}_{self.block_bytes}_{self.processes}_{self.queue_depth}_{self.repetition}"
        return f"{self.set_name}_{grid}_{digest}"


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


def in_order(points: list[Point], seed: int) -> list[Point]:
    """Points in the order in which they are measured: repetition by repetition, and at random within each."""
    order: list[Point] = []
    for repetition in sorted({point.repetition for point in points}):
        block = [point for point in points if point.repetition == repetition]
        rng = np.random.default_rng([seed, repetition])
        order += [block[place] for place in rng.permutation(len(block))]
    return order


def planned_sets(settings: SweepSettings) -> dict[str, list[Point]]:
    """The points of every set, in the order in which they are measured on each tier.

    Raises
    ------
    SettingsError
        If there is nothing to sweep, or a set cannot be measured as it is written.
    """
    if not settings.tiers or not settings.sets:
        missing = "tiers" if not settings.tiers else "sets"
        fix = "take one of config/examples/sweep-*.yaml, or see config/README.md"
        raise SettingsError("there is nothing to sweep", where=f"config key sweep.{missing}", fix=fix)
    return {name: in_order(points_of_set(name, given), settings.seed) for name, given in settings.sets.items()}


def sweep_minutes(settings: SweepSettings) -> int:
    """Time that a sweep asks a cluster for, min: twice that of its points, and some to lay out files.

    A sweep that takes longer goes on where it was when it is started again.
    """
    try:
        planned = planned_sets(settings)
    except SettingsError:  # the sweep itself says why
        return LEAST_MINUTES
    points_s = len(settings.tiers) * sum(point.seconds for points in planned.values() for point in points)
    return LEAST_MINUTES + math.ceil(2 * points_s / 60)


def room_bytes(points: list[Point]) -> int:
    """Bytes that the files of a set's points take: the nth process has the nth file in every point."""
    return max((point.processes * point.file_bytes for point in points), default=0)
