"""The grid: which exchanges are measured, scaled down for small machines by one key."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from neurotier.core.errors import SettingsError
from neurotier.core.settings import StagingSetSettings, StagingSettings
from neurotier.core.tiers import parse_size
from neurotier.storage.workload.points import in_order

WORD_BYTES = 8
"""Contents are whole words, so that another step's are made by one addition."""

STEP = "step"
"""Value of ``per``: bytes are those of a whole step (strong scaling); else of each writer and reader (weak scaling)."""

IN_MEMORY = ("adios2-sst",)
"""Engines that keep nothing on a tier; they are measured once."""

SERVED = ("ray",)
"""Engines that have servers."""

START_S, CLIENT_S, USUAL_BYTES_PER_S = 5.0, 0.3, 1e9
"""What a point takes at least: to start, for each process, and to move its bytes."""


@dataclass(frozen=True)
class Point:
    """One exchange that is measured.

    Attributes
    ----------
    set_name
        Set of the configuration that it belongs to.
    engine, writers, readers, servers
        Who stages, and how many processes of each kind; servers are 0 for engines without.
    per
        ``step`` in strong scaling, ``client`` in weak scaling.
    bytes_per_writer, bytes_per_reader
        What each of them writes and reads in a step, bytes.
    steps
        Time steps.
    flush
        Whether writes end on the device.
    repetition
        Which repetition, from 1.
    """

    set_name: str
    engine: str
    writers: int
    readers: int
    servers: int
    per: str
    bytes_per_writer: int
    bytes_per_reader: int
    steps: int
    flush: bool
    repetition: int

    @property
    def written_bytes(self) -> int:
        """Bytes that are written in all steps."""
        return self.steps * self.writers * self.bytes_per_writer

    @property
    def seconds(self) -> float:
        """Time that it takes at least, s."""
        clients = self.writers + self.readers + self.servers
        moved_bytes = self.written_bytes + self.steps * self.readers * self.bytes_per_reader
        return START_S + CLIENT_S * clients + moved_bytes / USUAL_BYTES_PER_S


def scaled(count: int, scale: float) -> int:
    """A number of writers or readers on a smaller machine.

    >>> [scaled(count, 1 / 16) for count in (1, 8, 16, 64)]
    [1, 1, 1, 4]
    """
    return max(1, round(count * scale))


def points_of_set(name: str, given: StagingSetSettings, settings: StagingSettings) -> list[Point]:
    """Points of one set, in the order of the grid; scaled down, some are the same, and are there once.

    Raises
    ------
    SettingsError
        If the size is none, or too small to be divided.
    """
    where = f"config key staging.sets.{name}.bytes"
    whole = parse_size(given.bytes, where)
    axes = range(1, given.repetitions + 1), settings.engines, given.writers, given.readers, given.servers
    points: dict[Point, None] = {}
    for repetition, engine, *counts, asked_servers in itertools.product(*axes):
        writers, readers = (scaled(int(count), settings.scale) for count in counts)
        servers = min(int(asked_servers), max(writers, readers)) if engine in SERVED else 0
        if given.per == STEP:
            words = int(whole * settings.scale) // WORD_BYTES // math.lcm(writers, readers)
            each = [words * math.lcm(writers, readers) // count * WORD_BYTES for count in (writers, readers)]
        else:
            each = [whole // WORD_BYTES * WORD_BYTES] * 2
        if not all(each):
            raise SettingsError(f"{given.bytes} cannot be divided among {writers} writers and {readers} readers", where)
        fixed = (settings.steps, settings.flush, repetition)
        points[Point(name, str(engine), writers, readers, servers, given.per, each[0], each[1], *fixed)] = None
    return list(points)


def staging_plan(settings: StagingSettings) -> dict[str, dict[str, list[Point]]]:
    """The points of every set on every tier, in the order in which they are measured.

    Raises
    ------
    SettingsError
        If a set cannot be measured as it is written.
    """
    plan: dict[str, dict[str, list[Point]]] = {}
    for tier in settings.tiers:
        sets = {name: points_of_set(name, given, settings) for name, given in settings.sets.items()}
        if plan:
            sets = {name: [one for one in points if one.engine not in IN_MEMORY] for name, points in sets.items()}
        plan[tier] = {name: in_order(points, settings.seed) for name, points in sets.items() if points}
    return plan
