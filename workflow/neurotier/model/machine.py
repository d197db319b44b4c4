"""What the model knows about a machine: its processors, page cache and tiers; and the work to be done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal


def cache_of(tier: str) -> str:
    """Name of the page cache before a tier, which is treated as a tier; no user's tier can have such a name."""
    return f"the page cache of {tier}"


@dataclass(frozen=True)
class Processors:
    """The processors of one machine.

    Parameters
    ----------
    cores
        Physical cores.
    threads
        Hardware threads.
    smt_factor
        What all hardware threads achieve together, in units of what the cores achieve with one thread each. In the
        published CoRR runs CPU time grew 1.28 to 1.45 times from 25 to 96 processes on 48 cores with two threads
        each; two threads on a core, each 1.36 times slower, achieve 2 / 1.36 = 1.47.
    others
        Busy processes that are not the tasks': other users of the machine.
    """

    cores: int
    threads: int
    smt_factor: float = 1.47
    others: float = 0.0

    def speed(self, busy: float) -> float:
        """How fast each of ``busy`` processes runs, relative to one alone on a core.

        >>> machine = Processors(cores=2, threads=4, smt_factor=1.5)
        >>> [round(machine.speed(busy), 3) for busy in (1, 2, 4, 8)]
        [1.0, 1.0, 0.75, 0.375]
        >>> Processors(cores=2, threads=2, others=2.0).speed(2)
        0.5
        """
        busy += self.others
        if busy <= self.cores:
            return 1.0
        on_threads = min(busy, self.threads) - self.cores
        gained = (self.smt_factor - 1) * self.cores * on_threads / max(self.threads - self.cores, 1)
        return (self.cores + gained) / busy


@dataclass(frozen=True)
class PageCache:
    """How much the kernel allows to be dirty, and for how long.

    Parameters
    ----------
    available_bytes
        Memory that the page cache may take.
    background_ratio, ratio
        ``vm.dirty_background_ratio`` and ``vm.dirty_ratio`` as parts of one: above the first the kernel writes back,
        from half-way between the two it slows writers down to what the device takes.
    expiry_s
        ``vm.dirty_expire_centisecs``: what has been dirty for longer is written back.
    """

    available_bytes: float
    background_ratio: float = 0.1
    ratio: float = 0.2
    expiry_s: float = 30.0

    @property
    def background_bytes(self) -> float:
        """Dirty bytes above which the kernel writes back."""
        return self.background_ratio * self.available_bytes

    @property
    def throttling_bytes(self) -> float:
        """Dirty bytes at which writers wait for the device."""
        return (self.background_ratio + self.ratio) / 2 * self.available_bytes

    def before(self, tier: TierSpeed) -> PageCache:
        """The page cache as far as a tier allows it to be used."""
        share = min(1.0, tier.dirty_bytes / self.throttling_bytes)
        return replace(self, available_bytes=share * self.available_bytes)


@dataclass(frozen=True)
class TierSpeed:
    """What a tier gives, in bytes/s.

    Parameters
    ----------
    read_bytes_per_s, write_bytes_per_s
        Loaded bandwidth: what many streams get together.
    read_stream_bytes_per_s, write_stream_bytes_per_s
        What one stream gets at most, its own processing included.
    mixed
        What it achieves while reading and writing, in units of what it achieves when doing one of them: 1 if one takes
        from the other, up to 2 on a full-duplex link, less than 1 if they get into each other's way, as on persistent
        memory.
    unevenness
        How unequal streams are that should be alike: standard deviation of the logarithm of their speeds.
    write_back
        Whether writes go to the page cache first (disks) or not (memory, persistent memory with DAX, write-through).
    files_per_s, files_stream_per_s
        How many small files it makes, looks up and removes per second: what many streams get together, and what one
        gets at most; without the CPU time of these calls.
    dirty_bytes
        How much of it may be dirty in the page cache before its writers wait, whatever else the kernel allows.
    """

    read_bytes_per_s: float
    write_bytes_per_s: float
    read_stream_bytes_per_s: float
    write_stream_bytes_per_s: float
    mixed: float = 1.0
    unevenness: float = 0.0
    write_back: bool = False
    files_per_s: float = math.inf
    files_stream_per_s: float = math.inf
    dirty_bytes: float = math.inf


LAUNCH = "launch"
"""Phase before the first step of a task, which no log shows: it is part of no makespan, nor of its phases."""


@dataclass(frozen=True)
class Step:
    """One step of a task.

    Parameters
    ----------
    phase
        What its seconds are summed under.
    kind
        ``wait`` and ``compute`` have an amount in s (of the clock, of one core), ``read`` and ``write`` in bytes,
        ``files`` in small files, for which the tier is waited; an ``arrival`` is over when a fetch is
        (:attr:`Workload.fetches`), whose number, from 1 on, is its amount; ``take`` is over when the task's job has a
        slot for it (:attr:`Job.slots`), and ``give`` gives that back.
    amount
        Seconds, bytes or files.
    tier
        Where bytes are read or written, or files are made.
    cached
        Whether what is read is in the page cache, or what is written is removed before it would be written back.
    """

    phase: str
    kind: Literal["wait", "compute", "read", "write", "files", "arrival", "take", "give"]
    amount: float
    tier: str = ""
    cached: bool = False


@dataclass(frozen=True)
class Job:
    """Tasks that one process begins, in order.

    It begins once there is room for all that it begins at the same time, and gives that room back when the last of its
    tasks is over.

    Parameters
    ----------
    tasks
        Positions of its tasks.
    launch
        What the process does before it begins them.
    slots
        Phase to how many of its tasks may be between its ``take`` and its ``give`` at the same time.
    at_once
        How many of its tasks go on at the same time, the next when one is over.
    """

    tasks: Sequence[int]
    launch: Sequence[Step] = ()
    slots: Mapping[str, int] = field(default_factory=dict)
    at_once: int = 1


@dataclass(frozen=True)
class Workload:
    """Tasks in the order in which they are started.

    Parameters
    ----------
    tasks
        The steps of every task.
    jobs
        In order of start; if there are none, each task is a job.
    fetches
        The steps of fetches that go on beside the tasks, in this order, from the beginning on.
    fetches_at_once
        How many of them at once.
    """

    tasks: Sequence[tuple[Step, ...]]
    jobs: Sequence[Job] = ()
    fetches: Sequence[tuple[Step, ...]] = ()
    fetches_at_once: int = 1


@dataclass(frozen=True)
class Machine:
    """One machine: processors, page cache, and tiers by name, with the page cache before each (:func:`cache_of`)."""

    processors: Processors
    page_cache: PageCache
    tiers: dict[str, TierSpeed] = field(default_factory=dict)
