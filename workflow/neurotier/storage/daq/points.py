"""Which points a DAQ run has: an engine, so many writers at a fixed rate, on a tier or dealt out over several."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from neurotier.core.errors import SettingsError
from neurotier.core.settings import DaqSettings
from neurotier.core.tiers import parse_size
from neurotier.storage.workload.points import in_order

CHECKED_TIMES = 2
"""What is written is read again, which takes as long at least on a tier that writes as fast as it reads."""

LAID_OUT = ("mmap", "libpmem")
"""Engines whose files fio writes once beforehand, since what is mapped must be there."""


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    set_name
        The engine and, if there are several, the tiers.
    engine
        I/O engine of fio: ``psync``, ``mmap`` or ``libpmem``.
    over
        Names of the tiers that writers are dealt out over, the first first, joined by ``+``; one name as a rule.
    writers
        Writers at once, each with a file of its own.
    rate_bytes_per_s
        Rate at which each gets its data.
    record_bytes
        Bytes that it writes at a time.
    repetition
        Which repetition, from 1.
    writing_s
        How long they write, s.
    flush_s
        How often each flushes to the device, s.
    """

    set_name: str
    engine: str
    over: str
    writers: int
    rate_bytes_per_s: int
    record_bytes: int
    repetition: int
    writing_s: float
    flush_s: float

    @property
    def seconds(self) -> float:
        """Time that it takes at least, s: what is written is read again."""
        return CHECKED_TIMES * self.writing_s

    @property
    def records(self) -> int:
        """Records that come to each writer."""
        return max(1, math.ceil(self.rate_bytes_per_s * self.writing_s / self.record_bytes))

    @property
    def file_bytes(self) -> int:
        """Bytes that come to each writer."""
        return self.records * self.record_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes that come to all of them; mapped files are laid out before."""
        return self.writers * self.file_bytes * (2 if self.engine in LAID_OUT else 1)

    @property
    def input_bytes_per_s(self) -> int:
        """Rate at which data come to all of them."""
        return self.writers * self.rate_bytes_per_s

    @property
    def tiers(self) -> list[str]:
        """Tiers that writers are dealt out over."""
        return self.over.split("+")


def daq_plan(settings: DaqSettings) -> dict[str, dict[str, list[Point]]]:
    """The points of every engine on every tier, in the order in which they are measured.

    Points over several tiers belong to the first of them.

    Raises
    ------
    SettingsError
        If a size is none, or what is written cannot be measured.
    """
    rate_bytes_per_s = parse_size(settings.rate, "config key daq.rate")
    if rate_bytes_per_s < settings.record_bytes:
        fix = "raise daq.rate, which is in bytes per second, or lower daq.record_bytes"
        raise SettingsError("less than a record comes per second", where="config key daq.rate", fix=fix)
    for group in settings.together:
        if len(set(group)) < 2 or not set(group) <= set(settings.tiers):
            fix = "name two or more of daq.tiers"
            raise SettingsError("tiers are to be several, and of daq.tiers", where="config key daq.together", fix=fix)
    plan: dict[str, dict[str, list[Point]]] = {name: {} for name in settings.tiers}
    groups = [[name] for name in settings.tiers] + [list(dict.fromkeys(group)) for group in settings.together]
    for tiers, engine in itertools.product(groups, settings.engines):
        set_name = engine if len(tiers) == 1 else "-".join([engine, "over", *tiers])
        fixed = (rate_bytes_per_s, settings.record_bytes)
        points = [
            Point(set_name, engine, "+".join(tiers), count, *fixed, repetition, settings.seconds, settings.flush_s)
            for repetition in range(1, settings.repetitions + 1)
            for count in settings.writers
        ]
        plan[tiers[0]][set_name] = in_order(points, settings.seed)
    return plan
