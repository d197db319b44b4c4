"""The engine ``gnu-parallel``: one command per block, with GNU parallel's own log of them kept.

The command is small: it has a process forked for its block that has everything loaded, and ends as that one does
(:mod:`neurotier.bigbrain.engines.fork_server`). The server is started together with GNU parallel, and the first blocks
wait for it: that is in their ``start_up``, and so in the makespan.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from neurotier.bigbrain.engines.numa import node_of, prefix
from neurotier.bigbrain.tasks import Task
from neurotier.core.errors import RunError, ToolError
from neurotier.core.files import write_text
from neurotier.core.processes import end_tree, start_process
from neurotier.core.quantities import first_of

ENGINE = "engine gnu-parallel"
FIX = "have GNU parallel on PATH (Debian: apt-get install parallel), or leave gnu-parallel out of bigbrain.engines"
SERVER = "neurotier.bigbrain.engines.fork_server"
"""Not imported here, as it loads NumPy: this module is read at every start."""

CLIENT_COMMAND = (sys.executable, "-I", "-S", str(Path(__file__).with_name("fork_client.py")))
"""What is started for a block, with the server's address and the block's name."""

SERVER_LOG = "fork_server.log"
"""Takes what servers and their processes print: nothing, unless one of them has a fault."""

NAMED = 10
"""How many blocks a message names."""


def run_gnu_parallel(plan: Path, logs: Path) -> Path:
    """Increment all blocks that are not complete.

    Parameters
    ----------
    plan
        ``plan.json`` of the run.
    logs
        Where logs go: one per block, and ``joblog.N.tsv`` of the N-th start.

    Returns
    -------
    Path
        The log of jobs.

    Raises
    ------
    ToolError
        If there is no GNU parallel, or it fails by itself.
    RunError
        If blocks are left incomplete; the others are done nevertheless.
    """
    task = Task.load(plan)
    logs.mkdir(parents=True, exist_ok=True)
    joblog = logs / f"joblog.{len(list(logs.glob('joblog.*.tsv'))) + 1}.tsv"
    todo = logs / "todo.txt"
    own = ["--will-cite", "--jobs", str(task.parallelism), "--joblog", str(joblog), "--arg-file", str(todo)]
    with ExitStack() as stack:
        addresses = {node: stack.enter_context(serving(plan, logs, node)) for node in task.nodes or [None]}
        names = [block.block for block in task.pending()]
        lines = [f"{addresses[node_of(task, name)]}\t{name}\n" for name in names]
        write_text(todo, "".join(lines), durable=False)
        done = start([*own, "--colsep", "\t", f"{shlex.join(CLIENT_COMMAND)} {{1}} {{2}}"], joblog)
    print(done.stdout)
    lines = done.stdout.splitlines()
    require_complete(task, [line.removeprefix("neurotier: ") for line in lines if line.startswith("neurotier: ")])
    return joblog


@contextmanager
def serving(plan: Path, logs: Path, node: int | None) -> Iterator[str]:
    """Have a fork server, which ends with this process at the latest; its address.

    Clients may connect at once, and wait until it has loaded what it needs.

    Parameters
    ----------
    plan
        ``plan.json`` of the run.
    logs
        Where logs go.
    node
        The NUMA node that it, and so what it forks, is pinned to; ``None`` if it is not.
    """
    with socket.socket(socket.AF_UNIX) as listener, (logs / SERVER_LOG).open("ab") as log:
        listener.bind("")  # the kernel finds a name that lies in no folder, and so is never left behind
        listener.listen()
        address, descriptor = listener.getsockname()[1:].decode(), listener.fileno()
        process = start_process(
            [*prefix(node), sys.executable, "-m", SERVER, str(plan), str(logs), str(descriptor)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[descriptor],
        )
    with process:
        try:
            yield address
        finally:
            end_tree(psutil.Process(process.pid))


def start(words: list[str], joblog: Path) -> subprocess.CompletedProcess[str]:
    """Run GNU parallel to its end, whatever becomes of its jobs; what all of them printed.

    Raises
    ------
    ToolError
        If it is not there, is another program of that name (moreutils has one), or could not start its jobs.
    """
    try:
        process = start_process(
            ["parallel", *words],
            env={**os.environ, "PARALLEL_SHELL": "/bin/sh"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except FileNotFoundError:
        raise ToolError("parallel is not on PATH", ENGINE, FIX) from None
    with process:
        try:
            output, _ = process.communicate()
        except BaseException:
            end_tree(psutil.Process(process.pid))  # told to end alone, it waits for its jobs
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, output)
    if done.returncode and not joblog.exists():
        last = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
        raise ToolError(f"parallel ended with {done.returncode} before its first job: {last}", ENGINE, FIX)
    return done


def require_complete(task: Task, reasons: Sequence[str]) -> None:
    """Raise :class:`RunError` if blocks of a run are incomplete, with the first of the reasons that were said."""
    if incomplete := task.incomplete():
        first = f"; the first said: {reasons[0]}" if reasons else ""
        names = first_of(incomplete, NAMED)
        raise RunError(
            f"{len(incomplete)} of {len(task.blocks)} blocks are incomplete: {names}{first}",
            where=task.run,
            fix="mend that, and start the same command again: what is complete stays",
        )
