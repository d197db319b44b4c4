"""Processes: which of them belong to a run, and how they are ended.

A process is recognised by the mark that its run put into its environment, and by its user; never by a number in a file,
which anybody may have written, and which the kernel may have given to another process since.
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
"""Environment variable by which jobs know the run they belong to."""

CAMPAIGN = "NEUROTIER_CAMPAIGN"
"""Environment variable that marks everything started by the run of a campaign.

The conditions of a campaign have results folders, and so runs, of their own; those are marked by :data:`RUN`.
"""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Environment variables by which libraries are told how many threads to start; Snakemake sets most to a job's cores."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a process to end."""

PATIENCE_S = 10.0

CLEAR_UP_S = 25.0
"""How long forked processes that were told to end may clean up; Slurm kills 30 s after it has asked."""

forked_s: float | None = None
"""When :func:`fork_process` made this process, s since the machine was booted, which the kernel tells to 10 ms only."""

postponed: list[int] | None = None
"""Signals that came while a process is being started (:func:`start_process`); ``None`` at all other times."""


def current_run() -> str:
    """The run that this job belongs to."""
    return os.environ.get(RUN, "manual")


def verifying_run() -> str:
    """The run that verifies what is placed: for a run of a campaign, which is started twice, one name for both starts.

    The second would read the image again, and so warm the page cache that was emptied in between.
    """
    return os.environ.get(CAMPAIGN) or current_run()


def use_threads(count: int) -> None:
    """Have libraries start so many threads, here if they are not loaded yet, and in the processes that this one starts.

    Otherwise each participant of a job would use the cores of all: on a node of 96, 96 times 96 threads. Threads that
    do nothing cost, too: OpenBLAS starts its own as soon as NumPy is imported, 0.1 s of CPU on two cores.
    """
    os.environ.update(dict.fromkeys(THREADS, str(count)))


def spare_collections() -> None:
    """Have Python look for no garbage among what is imported by now, nor among anything when this process ends.

    Nothing of it is garbage, and to look for it takes 0.4 of the 2.2 s of CPU of a small Snakemake command.
    """
    gc.freeze()
    atexit.register(gc.freeze)


def processes_of(runs: Collection[str]) -> list[psutil.Process]:
    """Processes of this user that belong to some runs, or to their campaigns."""
    return list({*marked(RUN, runs), *marked(CAMPAIGN, runs)})


def marked(variable: str, values: Collection[str]) -> list[psutil.Process]:
    """Processes of this user on this host in whose environment a variable has one of some values.

    Zombies, this process and its ancestors are left out.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    matching = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if (
                process.pid not in own
                and process.uids().real == os.getuid()
                and process.status() != psutil.STATUS_ZOMBIE
                and has_mark(process.pid, variable, values)
            ):
                matching.append(process)
    return matching


def kill_all_marked(variable: str, values: Collection[str]) -> None:
    """Kill the processes that :func:`marked` finds, and wait for them; those that they start meanwhile are found, too.

    What a device that hangs keeps for longer than :data:`PATIENCE_S` is left. Who dies loses its environment before its
    files, so all are waited for.
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


def has_mark(pid: int, variable: str, values: Collection[str]) -> bool:
    """Whether a variable in the environment of a process has one of some values.

    A container engine's processes, among them the first one of the container, have an environment of their own; it
    contains that of the container as a JSON text, which is searched as well.
    """
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    own = b"\0" + environment
    marks = [(f"\0{variable}={value}\0".encode(), f'"{variable}":"{value}"'.encode()) for value in values]
    return any(plain in own or quoted in environment for plain, quoted in marks)


def end(processes: Collection[psutil.Process]) -> None:
    """End processes: SIGTERM, and SIGKILL for those that have not ended after :data:`PATIENCE_S`."""
    left = list(processes)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        left = wait_for(left)


def wait_for(processes: Collection[psutil.Process]) -> list[psutil.Process]:
    """Wait for processes to end; those that have not within :data:`PATIENCE_S`.

    A zombie counts as ended: in a container without an init, nobody may ever reap it.
    """
    deadline = time.monotonic() + PATIENCE_S
    left = list(processes)
    while left and time.monotonic() < deadline:
        left = [process for process in left if lives(process)]
        psutil.wait_procs(left, timeout=0.05)
    return left


def lives(process: psutil.Process) -> bool:
    """Whether a process exists and is no zombie; one of which threads are left still has its files and mappings."""
    try:
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        return process.is_running() and (not is_zombie or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def start_process(
    command: Sequence[str], before: Callable[[], None] = lambda: None, **options: Any
) -> subprocess.Popen[Any]:
    """Start a process that ends with this one, and does ``before`` first; ``options`` are of :class:`subprocess.Popen`.

    Around a fork Python runs hooks of its modules, and drops whatever is raised in them: what a signal's handler raises
    there never arrives, and the signal would be lost. A handler that asks :func:`postpone` hears it once more when the
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
    """Copy this process, which must have a single thread, for some work that gives its exit code; number of the copy.

    The copy ends with this process. Signals that come meanwhile are heard by both, as in :func:`start_process`.
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
    """Write what is buffered, which a copy of this process would write, too."""
    sys.stdout.flush()
    sys.stderr.flush()


def end_forked(pids: Collection[int]) -> None:
    """Tell processes of :func:`fork_process` to end, and wait; who does not is killed when this process ends."""
    forked = [process for process in psutil.Process().children() if process.pid in pids]
    for process in forked:
        process.terminate()
    psutil.wait_procs(forked, timeout=CLEAR_UP_S)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Have signals to end wait until something short is finished: to clear up, which they must not cut off."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def postpone(number: int) -> bool:
    """Whether a signal is sent again later, because a process is being started now."""
    if postponed is not None:
        postponed.append(number)
    return postponed is not None


def end_with_parent() -> None:
    """Have the kernel send this process SIGTERM when its parent dies, however that happens."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
