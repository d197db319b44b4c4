"""An allocation: whole nodes for one point, a program on each, and the talk with them through ``srun``.

``srun`` hands the standard input to the program of every node, and brings back the lines that each prints. So nodes
wait for each other without files and without a network of their own, and when whoever asked is gone, they end.
"""

from __future__ import annotations

import json
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from neurotier.core.errors import NeurotierError, TierError, ToolError, one_line
from neurotier.core.processes import start_process
from neurotier.core.quantities import counted, seconds
from neurotier.storage.workload.walk import LeftOutError

START_S = 120.0
"""How long programs may take to start once the nodes are there."""

LOOK_S = 20.0
"""How often Slurm is asked what it does with an allocation that is not there yet."""

DOWN_S = 60.0
"""How long it is waited for nodes that are down."""

END_S = 20.0
"""How long programs may take to clear up; Slurm kills 30 s after it has asked."""

NEVER = (
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "BadConstraints",
    "AssocMaxNodePerJobLimit",
    "QOSMaxNodePerUserLimit",
)
"""Slurm's reasons for which an allocation would be waited for in vain; limits of a group pass when others' jobs end."""

DOWN = re.compile(r"ReqNodeNotAvail|\bDOWN\b(?!.*higher priority)|PartitionDown", re.IGNORECASE)
"""Reasons of nodes that are down; nodes that are down *or* kept for others' jobs are had when these have ended."""

LINE = re.compile(r"\s*(\d+): (.*)")
"""What srun brings: the number of the node, and what its program printed."""


class Cluster(Protocol):
    """How nodes are had (:mod:`neurotier.run.allocations`)."""

    minutes: int

    def command(self, nodes: int, program: Sequence[str]) -> list[str]:
        """The command that starts a program on so many whole nodes."""
        ...

    def environment(self) -> dict[str, str]:
        """Its environment."""
        ...

    def state(self) -> tuple[str, str]:
        """State of the allocation, such as ``PENDING``, and the reason; empty if there is none."""
        ...

    def end(self) -> None:
        """End the allocation if it is there still, and wait until it is gone."""
        ...


class Allocation:
    """Nodes that have a program each; see :func:`allocated`.

    Attributes
    ----------
    names
        Host of each node, once it has told.
    """

    def __init__(self, cluster: Cluster, nodes: int, process: subprocess.Popen[bytes]) -> None:
        self.cluster, self.nodes, self.process = cluster, nodes, process
        self.names: dict[int, str] = {}
        self.answers: dict[int, deque[dict[str, Any]]] = {node: deque() for node in range(nodes)}
        self.failure: NeurotierError | None = None
        self.said: list[str] = []
        self.selector = selectors.DefaultSelector()
        self.rests: dict[int, bytes] = {}
        for stream, take in ((process.stdout, self.take_answer), (process.stderr, self.take_word)):
            if stream is not None:
                self.rests[stream.fileno()] = b""
                self.selector.register(stream, selectors.EVENT_READ, take)

    def hear(self, patience_s: float) -> bool:
        """Take in what comes within some time; whether anything can come any more."""
        if not self.selector.get_map():
            return False
        for key, _ in self.selector.select(max(0.0, patience_s)):
            came = key.fileobj.read1(1 << 16)  # type: ignore[union-attr]
            *whole, self.rests[key.fd] = (self.rests[key.fd] + came).split(b"\n")
            take: Callable[[str], None] = key.data
            for line in whole:
                take(line.decode(errors="replace"))
            if not came:
                self.selector.unregister(key.fileobj)
        return bool(self.selector.get_map())

    def take_answer(self, line: str) -> None:
        """A line of the program of a node."""
        found = LINE.fullmatch(line)
        try:
            node, answer = int(found[1]) if found else -1, dict(json.loads(found[2])) if found else {}
        except (ValueError, TypeError):
            node, answer = -1, {}
        if "error" in answer:
            self.failure = self.failure or told(answer, self.name(node))
        elif answer and node in self.answers:
            self.answers[node].append(answer)
        else:
            self.take_word(line)

    def take_word(self, line: str) -> None:
        """A line of srun, or one that a program did not mean for us: it goes to the log."""
        print(line, file=sys.stderr, flush=True)
        self.said.append(line)

    def begin(self) -> list[dict[str, Any]]:
        """Wait for the nodes, and for what each says first.

        Raises
        ------
        LeftOutError
            If Slurm will never have such nodes.
        ToolError
            If it has none now, or they do not start.
        """
        down_s = None
        while not (self.failure or any(self.answers.values())):
            if not self.hear(LOOK_S):
                raise self.reason("starting")
            state, why = self.cluster.state()
            if state == "RUNNING":
                break
            if why in NEVER:
                raise LeftOutError(f"Slurm has no {counted(self.nodes, 'node')} for one job: {why}")
            down_s = (down_s or time.monotonic()) if state == "PENDING" and DOWN.search(why) else None
            if down_s is not None and time.monotonic() - down_s > DOWN_S:
                what = f"Slurm has no {counted(self.nodes, 'node')} now: {why}"
                raise ToolError(what, fix="start the same command again when they are back")
        found = self.wait(START_S, "starting")
        self.names = {node: str(answer.get("host", node)) for node, answer in enumerate(found)}
        return found

    def ask(self, patience_s: float, **order: Any) -> list[dict[str, Any]]:
        """Tell all nodes what to do; the answer of each, in order, as :meth:`wait` has it."""
        self.send(**order)
        return self.wait(patience_s, str(order["do"]))

    def wait(self, patience_s: float, doing: str) -> list[dict[str, Any]]:
        """The answer of each node, in order.

        Raises
        ------
        TierError, ToolError
            Why a node could not do it, a node failed, or there is no answer within some time.
        """
        deadline_s = time.monotonic() + patience_s
        while not (self.failure or all(self.answers.values())):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                silent = ", ".join(self.name(node) for node, answers in self.answers.items() if not answers)
                raise ToolError(f"{silent} did not answer within {seconds(patience_s)}", where=f"while {ing(doing)}")
            if not self.hear(min(left_s, 60.0)):
                raise self.reason(doing)
        if self.failure:
            raise self.failure
        return [self.answers[node].popleft() for node in range(self.nodes)]

    def send(self, **order: Any) -> None:
        """Tell all nodes what to do."""
        if (stdin := self.process.stdin) is not None:
            with suppress(BrokenPipeError):  # srun has ended, and says why
                stdin.write(json.dumps(order).encode() + b"\n")
                stdin.flush()

    def name(self, node: int) -> str:
        """A node's host, as far as it is known."""
        return self.names.get(node, f"node {node + 1}")

    def reason(self, doing: str) -> NeurotierError:
        """Why srun has ended, in its own words if they are not known here."""
        while self.hear(END_S):
            pass
        return self.failure or reason_of(self.said, doing, self.cluster.minutes)

    def close(self) -> None:
        """Have all programs end, and the allocation."""
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        deadline_s = time.monotonic() + END_S
        while self.hear(0.5) and time.monotonic() < deadline_s:
            pass
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            self.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S / 4)
                break
        self.selector.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        if self.process.returncode != 0:
            self.cluster.end()


@contextmanager
def allocated(cluster: Cluster, nodes: int, program: Sequence[str]) -> Iterator[Allocation]:
    """Whole nodes with a program on each; afterwards both are gone.

    Raises
    ------
    ToolError
        If there is no ``srun``.
    """
    try:
        process = start_process(
            cluster.command(nodes, program),
            env=cluster.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: it would have srun ask whether it is meant
        )
    except OSError as error:
        raise ToolError(f"srun cannot be started: {error.strerror}", where="target ior") from None
    allocation = Allocation(cluster, nodes, process)
    try:
        yield allocation
    finally:
        allocation.close()


def told(answer: dict[str, Any], name: str) -> NeurotierError:
    """The error that a node has told of."""
    kind = TierError if answer.get("exit_code") == TierError.exit_code else ToolError
    return kind(f"{answer['error']} (on {name})", where=answer.get("where", ""), fix=answer.get("fix", ""))


def ing(doing: str) -> str:
    """An order, as what is being done.

    >>> ing("write"), ing("look"), ing("starting")
    ('writing', 'looking', 'starting')
    """
    return {"write": "writing", "read": "reading", "look": "looking", "end": "ending"}.get(doing, doing)


def reason_of(said: Sequence[str], doing: str, minutes: int) -> ToolError:
    """Why an allocation ended, from what srun has said (22.05 to 24.11).

    >>> str(reason_of(["srun: error: Node failure on n3", "srun: Job step aborted"], "write", 30))
    'while writing: node n3 failed or was set down; start the same command again when it is back'
    """
    text, where = "\n".join(said), f"while {ing(doing)}"
    if found := re.search(r"Node failure on (\S+)", text):
        fix = "start the same command again when it is back"
        return ToolError(f"node {found[1]} failed or was set down", where=where, fix=fix)
    if "DUE TO NODE FAILURE" in text:
        return ToolError("a node failed or was set down", where=where, fix="start the same command again")
    if "TIME LIMIT" in text:
        fix = "give rule run_ior a longer runtime (--set-resources run_ior:runtime=MINUTES)"
        return ToolError(f"took longer than the {minutes} min of its allocation", where=where, fix=fix)
    if found := re.search(r"Unable to allocate resources: (.*)", text):
        what = "; ".join(line.removeprefix("srun: error: ") for line in said if line.startswith("srun: error: "))
        never = "node configuration is not available" in found[1]  # a partition that is drained comes back
        return (LeftOutError if never else ToolError)(f"Slurm has no such nodes: {one_line(what)}")
    if re.search(r"CANCELLED|cancelled|revoked", text):
        return ToolError("its allocation was cancelled", where=where, fix="start the same command again")
    words = [line for line in said if line.startswith("srun:")] or list(said)
    return ToolError(f"srun: {one_line(words[0].removeprefix('srun: ')) if words else 'it said nothing'}", where=where)
