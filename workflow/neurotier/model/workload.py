"""What there is to do: tasks, each a sequence of steps that compute, read or write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

LAUNCH = "launch"
"""Phase before the first step of a task, of which no log tells: it is no part of a makespan, nor of its phases."""


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
    """Tasks that one process begins, all of them at the same time.

    It is begun once there is room for all of its tasks, and gives that back when the last of them is over.

    Parameters
    ----------
    tasks
        Positions of its tasks.
    launch
        What the process does before it begins them.
    slots
        Phase to how many of its tasks may be between its ``take`` and its ``give`` at the same time.
    counts_for
        How many tasks it takes the room of; 0 for all that it has.
    """

    tasks: Sequence[int]
    launch: Sequence[Step] = ()
    slots: Mapping[str, int] = field(default_factory=dict)
    counts_for: int = 0


@dataclass(frozen=True)
class Workload:
    """Tasks in the order in which they are started.

    Parameters
    ----------
    tasks
        The steps of every task.
    jobs
        In order of start; each task is a job if ``None``.
    fetches
        The steps of what is fetched beside the tasks, in this order, from the beginning on.
    fetches_at_once
        How many of them at once.
    """

    tasks: Sequence[tuple[Step, ...]]
    jobs: Sequence[Job] | None = None
    fetches: Sequence[tuple[Step, ...]] = ()
    fetches_at_once: int = 1
