"""What one node of several does: ``python -m neurotier.storage.ior.node PLAN``, a task of Slurm's, one on each node.

It is told what to do by lines of JSON (:mod:`neurotier.storage.ior.allocation` sends them), and answers each with one.
It ends by itself, with fio and its files, as soon as nobody is left who could tell it anything, or when Slurm ends it.
"""

from __future__ import annotations

import json
import os
import platform
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neurotier.core.errors import NeurotierError, TierError, ToolError, one_line
from neurotier.core.files import remove_whatever
from neurotier.core.numa import own_nodes
from neurotier.core.private import make_private, names_in, remove_empty, remove_private
from neurotier.core.processes import postpone, signals_wait
from neurotier.core.tiers import Tier
from neurotier.meter.measure import Interrupted
from neurotier.storage.access import BUFFERED, find_access
from neurotier.storage.fio import require_fio
from neurotier.storage.ior.jobs import FILES, job_of, node_file, writer_for
from neurotier.storage.ior.points import Point
from neurotier.storage.ior.spans import run_logged
from neurotier.storage.workspace import Workspace, facts_of

MARK = "node"
"""First part of the names of the files by which nodes see each other's folder."""

LOOK_S = 1.0
"""How often it is looked, while fio runs, whether anybody is left to answer to."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Orders:
    """What this node is told, a line at a time, by a pipe that closes when nobody is left."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.rest = descriptor, b""

    def next(self) -> dict[str, Any]:
        """The next order."""
        while b"\n" not in self.rest:
            self.take()
        line, _, self.rest = self.rest.partition(b"\n")
        return dict(json.loads(line))

    def take(self) -> None:
        """Take in what has come, or wait for it."""
        came = os.read(self.descriptor, 1 << 16)
        if not came:
            os.kill(os.getpid(), signal.SIGTERM)
        self.rest += came

    def look(self, _number: int, _frame: object) -> None:
        """The same, if there is anything."""
        if select.select([self.descriptor], [], [], 0)[0]:
            self.take()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look now and then while something else is done; a timer and not a thread, since processes are started."""
        before = signal.signal(signal.SIGALRM, self.look)
        signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


class Node:
    """This node's part of a point.

    Parameters
    ----------
    plan
        ``point``, ``tier`` (as it is declared), ``below`` (path of the folder below that of the tier's role),
        ``limit_s``.
    place
        Which node it is, from 0.
    """

    def __init__(self, plan: dict[str, Any], place: int) -> None:
        self.point, self.place, self.limit_s = Point(**plan["point"]), place, float(plan["limit_s"])
        declared = plan["tier"]
        self.tier = Tier(**{**declared, "path": Path(declared["path"])}).here()
        self.folder = self.tier.folder(FILES) / str(plan["below"])
        self.way, self.numa = BUFFERED, tuple[int, ...]()

    def begin(self) -> dict[str, Any]:
        """Claim the tier, make room, find the way to its files; what the node is like.

        Raises
        ------
        TierError
            If the tier is not as it was declared.
        ToolError
            If there is no fio.
        """
        require_fio("target ior")
        self.tier.claim()
        for name in names_in(self.folder.parent):
            if name != self.folder.name:  # of a point that was cut short: these results have one at a time
                remove_private(self.folder.parent / name)
        make_private(self.folder)
        self.mark(self.place).touch()
        if self.point.wants_direct:
            trial = self.folder / f"trial.{self.place}"
            make_private(trial)
            self.way = find_access(trial, self.tier.kind)
            remove_private(trial)
        if self.point.set_name == "pin":
            self.numa = own_nodes()
        facts = {**facts_of(self.tier), "kernel": platform.release(), "host": socket.gethostname()}
        return facts | asdict(self.way) | {"numa_nodes": len(self.numa), "usable_bytes": self.tier.usable_bytes()}

    def mark(self, place: int) -> Path:
        """The file by which a node is seen."""
        return self.folder / f"{MARK}.{place}"

    def sees(self) -> dict[str, Any]:
        """Which nodes have the same folder, and what time it is here."""
        seen = [place for place in range(self.point.nodes) if os.path.lexists(self.mark(place))]
        return {"seen": seen, "clock_s": time.time()}

    def run(self, pattern: str, at_s: float, shared: bool, orders: Orders) -> dict[str, Any]:
        """Write, or read, from an instant on; when each process began and ended.

        Raises
        ------
        TierError
            If the tier fills up.
        ToolError
            If fio fails, or what is to be read is not there.
        """
        whose = self.place
        if pattern == "read" and shared:
            whose = writer_for(self.place, self.point.nodes, self.point.concurrent)
        job = job_of(self.point, pattern, self.way, self.numa, whose, self.place)
        if pattern == "read":
            self.require_files(whose)
            job = replace(job, options=(("allow_file_create", "0"),))  # else fio lays out what it misses
        time.sleep(max(0.0, at_s - time.time()))
        with orders.watched():
            done, spans = run_logged(Workspace(FILES, self.tier, self.folder), job, self.limit_s, self.place)
        return {"spans": spans, "cpu_s": done.cpu_s, "fio_version": done.fio_version}

    def require_files(self, whose: int) -> None:
        """Raise :class:`ToolError` unless the files of a node are there, and whole."""
        for process in range(self.point.processes):
            file = self.folder / node_file(whose, process)
            try:
                found = file.lstat().st_size
            except FileNotFoundError:
                raise ToolError("another node has written it, and it is not seen here", where=str(file)) from None
            if found != self.point.file_bytes:
                what = f"has {found} bytes here, and {self.point.file_bytes} were written"
                raise ToolError(what, where=str(file), fix="see how the file system keeps nodes in step")

    def end(self, is_whole: bool) -> None:
        """Remove this node's files, and the folder with the last; if the point is cut short, whatever is there."""
        with signals_wait():
            if not is_whole:
                remove_private(self.folder)
            elif self.folder.is_dir():
                for file in [self.mark(self.place), *self.folder.glob(f"{FILES}.{self.place}.*")]:
                    remove_whatever(file)
            remove_empty(self.folder)


def serve(node: Node, orders: Orders) -> None:
    """Do what is told, until the end."""
    say(node.begin() | {"job": os.environ.get("SLURM_JOB_ID", "")})
    while True:
        order = orders.next()
        if order["do"] == "end":
            return
        say(node.sees() if order["do"] == "look" else node.run(order["do"], order["at_s"], order["shared"], orders))


def say(answer: dict[str, Any]) -> None:
    """Answer in a line."""
    print(json.dumps(answer), flush=True)


def unwind(number: int, _frame: object) -> None:
    """Unwind this process at a signal, so that fio and the files go with it; later ones are passed over."""
    if not postpone(number):
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)


def main() -> int:
    """Do this node's part; the exit code."""
    for number in SIGNALS:
        signal.signal(number, unwind)
    node, is_whole = None, False
    try:
        try:
            node = Node(json.loads(sys.argv[1]), int(os.environ["SLURM_PROCID"]))
            serve(node, Orders(sys.stdin.fileno()))
            is_whole = True
        finally:
            if node is not None:
                node.end(is_whole)
    except NeurotierError as error:
        say({"error": error.what, "where": error.where, "fix": error.fix, "exit_code": error.exit_code})
        return error.exit_code
    except Interrupted as stop:
        return 128 + stop.signal_number
    except OSError as error:
        say({"error": one_line(f"{error.filename or FILES}: {error.strerror}"), "exit_code": TierError.exit_code})
        return TierError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
