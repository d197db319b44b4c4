"""Processes: which belong to some runs, and how they are ended.

A process is told by what its run put into its environment when it was started, and by its user; never by a number in a
file, which anybody may have written, and which the kernel may have given to another process since.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import psutil

from neurotier.meter.tree import LIBC, PR_SET_PDEATHSIG

RUN = "NEUROTIER_RUN"
"""Environment variable by which jobs know the run they belong to."""

CAMPAIGN = "NEUROTIER_CAMPAIGN"
"""Environment variable by which all that a run of a campaign starts is known to belong to that run.

What a campaign runs has results, and so runs, of its own; :data:`RUN` names those.
"""

PATIENCE_S = 10.0

postponed: list[int] | None = None
"""Signals that came while a process is being started (:func:`start_process`); ``None`` at all other times."""


def processes_of(runs: Collection[str]) -> list[psutil.Process]:
    """Processes of this user that were started for some runs, or for the campaigns that these are."""
    return list({*marked(RUN, runs), *marked(CAMPAIGN, runs)})


def marked(variable: str, values: Collection[str]) -> list[psutil.Process]:
    """Processes of this user on this host that were started with a variable of some value.

    This process and those above it are none of them, nor is a zombie, which has ended.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if (
                process.pid not in own
                and process.uids().real == os.getuid()
                and process.status() != psutil.STATUS_ZOMBIE
                and has_mark(process.pid, variable, values)
            ):
                found.append(process)
    return found


def has_mark(pid: int, variable: str, values: Collection[str]) -> bool:
    """Whether a process was started with a variable of some value.

    Processes of a container engine have an environment of their own, in which a JSON text holds the one that they give
    on; the container's first process, which all others in it end with, is one of them.
    """
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    own = b"\0" + environment
    marks = [(f"\0{variable}={value}\0".encode(), f'"{variable}":"{value}"'.encode()) for value in values]
    return any(plain in own or given_on in environment for plain, given_on in marks)


def end(processes: Collection[psutil.Process]) -> None:
    """SIGTERM, and SIGKILL for those that do not follow it."""
    left = list(processes)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        left = wait_for(left)


def wait_for(processes: Collection[psutil.Process]) -> list[psutil.Process]:
    """Wait until processes have ended; those that have not within the patience.

    One that nobody reaps (in containers without an init) stays a zombie for good, and has ended all the same.
    """
    deadline = time.monotonic() + PATIENCE_S
    left = list(processes)
    while left and time.monotonic() < deadline:
        left = [process for process in left if lives(process)]
        if left:
            psutil.wait_procs(left, timeout=0.05)
    return left


def lives(process: psutil.Process) -> bool:
    """Whether a process still runs: it is there, and no zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_tree(process: psutil.Process) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        end([process, *process.children(recursive=True)])


def start_process(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process that ends with this one; ``options`` are those of :class:`subprocess.Popen`.

    Around a fork Python runs hooks of its modules, and drops whatever is raised in them: what a signal's handler raises
    there never arrives, and the signal would be lost. A handler that asks :func:`postpone` hears it once more when the
    process has been started.
    """
    global postponed
    postponed = []
    try:
        return subprocess.Popen(command, preexec_fn=end_with_parent, **options)
    finally:
        came, postponed = postponed, None
        for number in came:
            os.kill(os.getpid(), number)


def postpone(number: int) -> bool:
    """Whether a signal is sent again later, because a process is being started now."""
    if postponed is not None:
        postponed.append(number)
    return postponed is not None


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it is gone, however that went."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def started_s(pid: int) -> float:
    """When a process started, s since 1970: with its number, it names a process for good."""
    return float(psutil.Process(pid).create_time())
