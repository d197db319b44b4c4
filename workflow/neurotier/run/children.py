"""Children: copies of this process, each for one participant; what they say, how they end, and whose turn it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

from neurotier.core.processes import end_forked, fork_process
from neurotier.meter.measure import Interrupted
from neurotier.run.stops import unwinding

OOM_SCORE = 300
"""Added to the score by which the kernel chooses whom to kill when memory is short: a child, and not the pool."""


@dataclass(frozen=True, eq=False)
class Child:
    """A process that works for one participant.

    Attributes
    ----------
    stage, name
        What it does, and for whom.
    pid
        Its number.
    said
        What it says; its end is the end of that.
    """

    stage: str
    name: str
    pid: int
    said: Connection


class Children:
    """The children of this process, which must have a single thread; they end with it."""

    def __init__(self) -> None:
        self.running: dict[Connection, Child] = {}

    def start(self, stage: str, name: str, work: Callable[[Connection], int]) -> None:
        """Have a copy of this process do some work, which can talk to this one and gives the exit code."""
        ours, theirs = Pipe()

        def run() -> int:
            ours.close()
            with suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
            try:
                with unwinding():
                    return work(theirs)
            except Interrupted as interrupted:
                return 128 + interrupted.signal_number

        pid = fork_process(run)
        theirs.close()
        self.running[ours] = Child(stage, name, pid, ours)

    def at(self, stage: str) -> list[str]:
        """For whom children are at a stage."""
        return [child.name for child in self.running.values() if child.stage == stage]

    def wait(self) -> Iterator[tuple[Child, Any, int | None]]:
        """Wait until children say something or end: each with what it says and, at the end, its exit code.

        Not by descriptors of processes, which kernels before 5.3 lack: clusters have such.
        """
        for said in wait(list(self.running)):
            child = self.running[said]  # type: ignore[index]  # only connections are waited for
            try:
                yield child, child.said.recv(), None
            except (EOFError, OSError):
                del self.running[child.said]
                child.said.close()
                _, status = os.waitpid(child.pid, 0)
                yield child, None, os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        """Tell all to end, and wait."""
        end_forked({child.pid for child in self.running.values()})


@dataclass
class Turns:
    """Who copies and who computes, where more participants are there than may compute; each has one turn at a time.

    Attributes
    ----------
    limits
        How many may do each at once; empty if nobody need wait.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    having: dict[Child, str] = field(default_factory=dict)
    waiting: list[tuple[Child, str]] = field(default_factory=list)

    def ask(self, child: Child, turn: str) -> None:
        """Take the turn that a child has, and give it another when that is free."""
        self.having.pop(child, None)
        self.waiting.append((child, turn))
        self.give()

    def end(self, child: Child) -> None:
        """Take the turn of a child that has ended."""
        self.having.pop(child, None)
        self.waiting = [one for one in self.waiting if one[0] is not child]
        self.give()

    def give(self) -> None:
        """Give turns that are free to those who wait, in their order."""
        for child, turn in list(self.waiting):
            if list(self.having.values()).count(turn) < self.limits.get(turn, 1):
                self.waiting.remove((child, turn))
                self.having[child] = turn
                with suppress(OSError):  # it has ended, which is heard of next
                    child.said.send(turn)
