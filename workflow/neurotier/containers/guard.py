"""The guard: a process on the host that ends a container when the process that started it dies, however that happens.

A tool can kill every process inside its container, including a watchdog there, but it cannot see this one. The guard
holds the reading end of a pipe whose writing end only the starting process has. When that is closed without a word, the
guard kills all processes that have the container's mark, the container's init among them, with which the kernel ends
all others.

The guard is forked, since starting another Python would take longer than starting the container.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from neurotier.core.processes import kill_all_marked

MARK = "NEUROTIER_CONTAINER"
"""Environment variable that marks the processes of one container."""

DEAF = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that the guard ignores, since they are meant for the job, and it ends after the job."""


@contextmanager
def guarded(token: str) -> Iterator[Callable[[], None]]:
    """Guard a container within this context.

    Parameters
    ----------
    token
        Value of :data:`MARK` in the environment of the container's processes.

    Yields
    ------
    Callable
        To be called when the container has ended; otherwise it is killed at the end of the context.
    """
    reading, writing = os.pipe()
    guard = os.fork()
    if guard == 0:
        try:
            stand_guard(reading, token)
        finally:
            os._exit(0)
    os.close(reading)

    def ended() -> None:
        with suppress(BrokenPipeError):
            os.write(writing, b"e")

    try:
        yield ended
    finally:
        os.close(writing)
        with suppress(ChildProcessError):  # reaped already, with other children of this process
            os.waitpid(guard, 0)


def stand_guard(pipe: int, token: str) -> None:
    """The guard's side: wait for the end, and kill what is left, unless the container has ended by itself."""
    os.setsid()  # or a signal to the job's process group would end the guard first
    for number in DEAF:
        signal.signal(number, signal.SIG_IGN)
    os.dup2(pipe, 0)  # all other descriptors are closed: the guard must not hold the pipe of another guard open
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))
    if not os.read(0, 1):
        kill_all_marked(MARK, [token])
