"""The model's description of a machine, that is, its processors, page cache and tiers, and of the work to be done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal


def cache_of(tier: str) -> str:
    """Name of the page cache in front of a tier, which is treated as a tier; no user's tier can have such a name."""
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
        What all hardware threads achieve together, relative to what the cores achieve with one thread each. In the
        published CoRR runs CPU time grew 1.28 to 1.45 times from 25 to 96 processes on 48 cores with two threads each;
        two threads on a core, each 1.36 times slower, achieve 2 / 1.36 = 1.47.
    others
        Number of busy processes that are not those of the tasks.
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
        ``vm.dirty_background_ratio`` and ``vm.dirty_ratio`` as fractions: above the first, the kernel writes back; from
        half-way between the two, it slows writers down to what the device takes.
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
        """The page cache in front of a tier, reduced if the tier allows fewer dirty bytes."""
        return replace(self, available_bytes=min(1.0, tier.dirty_bytes / self.throttling_bytes) * self.available_bytes)


@dataclass(frozen=True)
class TierSpeed:
    """The speeds of a tier, in bytes/s.

    Parameters
    ----------
    read_bytes_per_s, write_bytes_per_s
        Loaded bandwidth: what many streams get together.
    read_stream_bytes_per_s, write_stream_bytes_per_s
        What one stream gets at most, its own processing included.
    mixed
        What it achieves when reading and writing at the same time, relative to doing one of them: 1 if one takes from
        the other, up to 2 on a full-duplex link, less than 1 if the two interfere, as on persistent memory.
    unevenness
        How much the speeds of streams differ that should be equal: standard deviation of the logarithm.
    write_back
        Whether writes go to the page cache first (disks) or not (memory, persistent memory with DAX, write-through).
    files_per_s, files_stream_per_s
        How many small files are made, looked up and removed per second, by many streams together and by one stream at
        most; without the CPU time of these calls.
    dirty_bytes
        How many of its bytes may be dirty in the page cache before its writers wait, if the kernel does not allow
        fewer.
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
"""Phase before the first step of a task. Logs do not show it, so it is not part of the makespan and its phases."""


@dataclass(frozen=True)
class Step:
    """One step of a task.

    Parameters
    ----------
    phase
        What its seconds are summed under.
    kind
        The amounts of ``wait`` and ``compute`` are in s (of the clock, and of one core), those of ``read`` and
        ``write`` in bytes, and that of ``files`` is a number of small files whose calls wait for the tier. An
        ``arrival`` ends when a fetch has ended (:attr:`Workload.fetches`); its amount is the number of the fetch, from
        1 on. ``take`` ends when the task has got so many slots of its job (:attr:`Job.slots`), and ``give`` returns
        them.
    amount
        Seconds, bytes, files or slots.
    tier
        Where bytes are read or written, or files are made.
    cached
        Whether the bytes read are in the page cache, or the bytes written are removed before they would be written
        back.
    """

    phase: str
    kind: Literal["wait", "compute", "read", "write", "files", "arrival", "take", "give"]
    amount: float
    tier: str = ""
    cached: bool = False


@dataclass(frozen=True)
class Job:
    """Tasks that one process begins, in order.

    A job begins once there is room for all tasks that it runs at the same time, and returns that room when the last of
    its tasks has ended.

    Parameters
    ----------
    tasks
        Positions of its tasks.
    launch
        What the process does before it begins them.
    slots
        How many slots tasks may hold at the same time, by the ``phase`` of their steps ``take`` and ``give``.
    at_once
        How many of its tasks run at the same time; the next one begins when one has ended.
    """

    tasks: Sequence[int]
    launch: Sequence[Step] = ()
    slots: Mapping[str, float] = field(default_factory=dict)
    at_once: int = 1


@dataclass(frozen=True)
class Workload:
    """Tasks in the order in which they are started.

    Parameters
    ----------
    tasks
        The steps of every task.
    jobs
        The jobs in order of start; if there are none, each task is a job.
    fetches
        The steps of fetches, which run concurrently with the tasks, in this order, from the beginning on.
    fetches_at_once
        How many fetches run at once.
    """

    tasks: Sequence[tuple[Step, ...]]
    jobs: Sequence[Job] = ()
    fetches: Sequence[tuple[Step, ...]] = ()
    fetches_at_once: int = 1


@dataclass(frozen=True)
class Machine:
    """One machine: processors, page cache, and tiers by name, including the page cache in front of each
    (:func:`cache_of`)."""

    processors: Processors
    page_cache: PageCache
    tiers: dict[str, TierSpeed] = field(default_factory=dict)
