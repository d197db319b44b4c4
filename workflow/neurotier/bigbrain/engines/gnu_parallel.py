"""The engine ``gnu-parallel``: one process per block, as in the published experiment; GNU parallel's log is kept."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from neurotier.bigbrain.engines.numa import node_of, prefix
from neurotier.bigbrain.tasks import EVERY, Task
from neurotier.core.errors import RunError, ToolError
from neurotier.core.files import write_text
from neurotier.core.processes import end, start_process
from neurotier.core.quantities import first_of
from neurotier.storage.calls import require_program

ENGINE = "engine gnu-parallel"
FIX = "have GNU parallel on PATH (Debian: apt-get install parallel), or leave gnu-parallel out of bigbrain.engines"
WORKER = (sys.executable, "-m", "neurotier.bigbrain.engines.worker")
"""The command of a worker. The worker is not imported here, since it loads NumPy, and every start of Snakemake imports
this module."""

NAMED = 10
"""How many blocks a message names at most."""


def run_gnu_parallel(plan: Path, logs: Path) -> Path:
    """Increment all blocks that are not complete.

    Parameters
    ----------
    plan
        ``plan.json`` of the run.
    logs
        Folder of the logs: one per block, and ``joblog.N.tsv`` for the N-th start.

    Returns
    -------
    Path
        GNU parallel's log of its jobs.

    Raises
    ------
    ToolError
        If GNU parallel is missing, or fails itself.
    RunError
        If blocks are left incomplete; the other blocks are done nevertheless.
    """
    task = Task.load(plan)
    logs.mkdir(parents=True, exist_ok=True)
    joblog = logs / f"joblog.{len(list(logs.glob('joblog.*.tsv'))) + 1}.tsv"
    todo = logs / "todo.txt"
    commands = [
        [*prefix(node_of(task, name)), *WORKER, str(plan), name, EVERY, str(logs / f"{name}.log")]
        for name in (block.block for block in task.pending())
    ]
    write_text(todo, "".join(f"{shlex.join(command)}\n" for command in commands), durable=False)
    said = run_parallel(
        ["--will-cite", "--jobs", str(task.parallelism), "--joblog", str(joblog), "--arg-file", str(todo)], joblog
    )
    print(said)
    lines = said.splitlines()
    require_complete(task, [line.removeprefix("neurotier: ") for line in lines if line.startswith("neurotier: ")])
    return joblog


def run_parallel(words: list[str], joblog: Path) -> str:
    """Run GNU parallel to its end, even if jobs fail; return everything that was printed.

    Raises
    ------
    ToolError
        If it is missing, is another program of that name (moreutils has one), or cannot start its jobs.
    """
    require_program("parallel", ENGINE, FIX)
    with start_process(
        ["parallel", *words],
        env={**os.environ, "PARALLEL_SHELL": "/bin/sh"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            said, _ = process.communicate()
        except BaseException:
            with suppress(psutil.NoSuchProcess):
                parallel = psutil.Process(process.pid)
                end([parallel, *parallel.children(recursive=True)])  # by itself, GNU parallel would wait for its jobs
            raise
    if process.returncode and not joblog.exists():
        last = (said.strip().splitlines() or ["no reason given"])[-1]
        raise ToolError(f"parallel ended with {process.returncode} before its first job: {last}", ENGINE, FIX)
    return str(said)


def require_complete(task: Task, reasons: Sequence[str]) -> None:
    """Raise :class:`RunError` if blocks of a run are incomplete, with the first of the reported reasons."""
    if incomplete := task.incomplete():
        first = f"; the first said: {reasons[0]}" if reasons else ""
        raise RunError(
            f"{len(incomplete)} of {len(task.blocks)} blocks are incomplete: {first_of(incomplete, NAMED)}{first}",
            task.run,
            "mend that, and start the same command again: what is complete stays",
        )
