"""Processes: which of them belong to a run, and how they are ended.

A process is recognised by the mark that its run put into its environment, and by its user; never by a process number in
a file, which anybody may have written, and which the kernel may since have given to another process.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from neurotier.core.libc import LIBC, PR_SET_PDEATHSIG

RUN = "NEUROTIER_RUN"
"""Environment variable that tells a job which run it belongs to."""

CAMPAIGN = "NEUROTIER_CAMPAIGN"
"""Environment variable that marks everything started by the run of a campaign.

The conditions of a campaign have results folders, and so runs, of their own; those are marked by :data:`RUN`.
"""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Environment variables that tell libraries how many threads to start; Snakemake sets most of them to a job's cores."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""

PATIENCE_S = 10.0

CLEAR_UP_S = 25.0
"""How long forked processes may clean up after SIGTERM; Slurm sends SIGKILL 30 s after SIGTERM."""

forked_s: float | None = None
"""When :func:`fork_process` made this process, s since boot: the kernel itself reports this only to 10 ms."""

postponed: list[int] | None = None
"""Signals that came while a process was being started (:func:`start_process`); ``None`` at all other times."""


def current_run() -> str:
    """The run that this job belongs to."""
    return os.environ.get(RUN, "manual")


def use_threads(count: int) -> None:
    """Have libraries start ``count`` threads, in this process if they are not loaded yet, and in its children.

    Otherwise each participant would start a thread for each core of its job: on a node of 96 cores, 96 times 96
    threads. Idle threads cost time, too: OpenBLAS starts its own when NumPy is imported, 0.1 s of CPU on two cores.
    """
    os.environ.update(dict.fromkeys(THREADS, str(count)))


def freeze_garbage_collector() -> None:
    """Keep Python's garbage collector away from what has been imported so far, and from everything at exit.

    None of it is garbage, and searching it takes 0.4 of the 2.2 s of CPU of a small Snakemake command.
    """
    gc.freeze()
    atexit.register(gc.freeze)


def processes_of(runs: Collection[str]) -> list[psutil.Process]:
    """This user's processes that belong to any of these runs, or that any of them started as the run of a campaign."""
    return list({*marked(RUN, runs), *marked(CAMPAIGN, runs)})


def marked(variable: str, values: Collection[str]) -> list[psutil.Process]:
    """This user's processes on this host whose environment gives a variable one of these values.

    Zombies, this process and its ancestors are left out. A container engine's processes, among them the container's
    first one, have an environment of their own; it contains the container's environment as JSON text, which is searched
    as well.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    marks = [(f"\0{variable}={value}\0".encode(), f'"{variable}":"{value}"'.encode()) for value in values]
    matching = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if (
                process.pid not in own
                and process.uids().real == os.getuid()
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                environment = b"\0" + Path(f"/proc/{process.pid}/environ").read_bytes()
                if any(plain in environment or quoted in environment for plain, quoted in marks):
                    matching.append(process)
    return matching


def kill_all_marked(variable: str, values: Collection[str]) -> None:
    """Kill the processes that :func:`marked` finds and wait for them, including those started meanwhile.

    A process that a hanging device holds for longer than :data:`PATIENCE_S` is left. A dying process loses its
    environment before its files, so all that were killed are waited for.
    """
    deadline = time.monotonic() + PATIENCE_S
    killed = set()
    while (left := marked(variable, values)) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        killed.update(left)
        psutil.wait_procs(left, timeout=0.1)
    wait_for(killed)


def end(processes: Collection[psutil.Process]) -> None:
    """End processes: SIGTERM, and SIGKILL for those that have not ended after :data:`PATIENCE_S`."""
    left = list(processes)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        left = wait_for(left)


def wait_for(processes: Collection[psutil.Process]) -> list[psutil.Process]:
    """Wait for processes to end; returns those that have not ended within :data:`PATIENCE_S`.

    A zombie counts as ended: in a container without an init, it may never be reaped.
    """
    deadline = time.monotonic() + PATIENCE_S
    left = list(processes)
    while left and time.monotonic() < deadline:
        left = [process for process in left if is_alive(process)]
        psutil.wait_procs(left, timeout=0.05)
    return left


def is_alive(process: psutil.Process) -> bool:
    """Whether a process exists and is not a zombie; a zombie with threads left is alive, since it still has files and
    mappings."""
    try:
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        return process.is_running() and (not is_zombie or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def start_process(
    command: Sequence[str], before: Callable[[], None] = lambda: None, **options: Any
) -> subprocess.Popen[Any]:
    """Start a process that ends with this one and calls ``before`` first; ``options`` go to :class:`subprocess.Popen`.

    Around a fork, Python runs hooks of modules and discards any exception in them: one that a signal handler raises
    there would be lost, and the signal with it. A handler that calls :func:`postpone` gets the signal again once the
    process has been started.
    """

    def prepare() -> None:
        before()
        end_with_parent()

    global postponed
    postponed = []
    try:
        return subprocess.Popen(command, preexec_fn=prepare, **options)
    finally:
        came, postponed = postponed, None
        for number in came:
            signal.raise_signal(number)


def fork_process(work: Callable[[], int]) -> int:
    """Fork this process, which must have a single thread; the child exits with the code that ``work`` returns.

    The child ends with this process. Signals that come meanwhile reach both, as in :func:`start_process`. Returns the
    child's pid.
    """
    global forked_s, postponed
    flush_output()
    parent, postponed, now_s = os.getpid(), [], time.clock_gettime(time.CLOCK_BOOTTIME)
    try:
        pid = os.fork()
    finally:
        came, postponed = postponed, None
    if pid:
        for number in came:
            signal.raise_signal(number)
        return pid
    code, forked_s = 70, now_s
    try:
        end_with_parent()
        for number in [*came, *([signal.SIGTERM] if os.getppid() != parent else [])]:
            signal.raise_signal(number)
        code = work()
    except BaseException as error:
        print(f"neurotier: {type(error).__name__} in a copy of a process: {error}", file=sys.stderr)
    finally:
        with suppress(OSError, ValueError):
            flush_output()
        os._exit(code)


def flush_output() -> None:
    """Flush buffered output, which a forked child would otherwise write, too; a closed stream may be ``None``."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()


def terminate_forked(pids: Collection[int]) -> None:
    """Send SIGTERM to processes of :func:`fork_process`, and wait; the rest get another when this process ends."""
    forked = [process for process in psutil.Process().children() if process.pid in pids]
    for process in forked:
        process.terminate()
    psutil.wait_procs(forked, timeout=CLEAR_UP_S)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Hold back :data:`SIGNALS` while something short is done that they must not interrupt, such as a clean-up."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def postpone(number: int) -> bool:
    """Note a signal, to be sent again later, if a process is just being started; returns whether it was noted."""
    if postponed is not None:
        postponed.append(number)
    return postponed is not None


def end_with_parent() -> None:
    """Have the kernel send this process SIGTERM when its parent dies, however that happens."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
