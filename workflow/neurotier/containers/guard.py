"""The guard: a process on the host that ends a container when the process that started it dies, however that happens.

A tool can kill every process inside its container, including a watchdog there, but it cannot see this one. The guard
holds the reading end of a pipe whose writing end only the starting process has. When that is closed, the guard kills
the container's init through a pidfd, which cannot come to mean another process, and the kernel ends all others with it.

The guard is forked, since starting another Python would take longer than starting the container. After the fork it only
makes a few system calls, so it does not matter which locks other threads held at that moment.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from neurotier.meter.tree import descendants

PATIENCE_S = 10.0
"""Longest time to wait for a killed container to end; only a kernel in trouble takes that long."""

MARK = "NEUROTIER_CONTAINER"
"""Environment variable that marks the processes of one container."""

DEAF = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that the guard ignores, since they are meant for the job, and it ends after the job."""


@contextmanager
def guarded(starter: int, token: str) -> Iterator[Callable[[], None]]:
    """Guard a container within this context; what is left of it at the end is killed.

    Parameters
    ----------
    starter
        The engine's process, a child of this one.
    token
        Value of :data:`MARK` in the environment of the container's processes.

    Yields
    ------
    Callable
        To be called when the container has started, so that its init can be found.
    """
    reading, writing = os.pipe()
    guard = os.fork()
    if guard == 0:
        try:
            stand_guard(reading, starter, token)
        finally:
            os._exit(0)
    os.close(reading)

    def started() -> None:
        with suppress(BrokenPipeError):
            os.write(writing, b"s")

    try:
        yield started
    finally:
        os.close(writing)
        with suppress(ChildProcessError):  # reaped already, with other children of this process
            os.waitpid(guard, 0)


def stand_guard(pipe: int, starter: int, token: str) -> None:
    """The guard's side: wait for the start, find the container's init, wait for the end, and kill what is left."""
    os.setsid()  # or a signal to the job's process group would end the guard first
    for number in DEAF:
        signal.signal(number, signal.SIG_IGN)
    kept = os.dup2(pipe, 0)  # all other descriptors are closed: the guard must not hold the pipe of another guard open
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))
    init = None
    if os.read(kept, 1):
        init = init_of(starter)
        os.read(kept, 1)
    if init is None:  # it had not started, or has no process namespace of its own
        kill_marked(token)
    else:
        kill(init)


def init_of(starter: int) -> int | None:
    """A descriptor of the first process in the process namespace below the engine's process; ``None`` without one."""
    for pid in descendants(starter):
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            continue
        if is_init(pid):
            return descriptor
        os.close(descriptor)
    return None


def is_init(pid: int) -> bool:
    """Whether a process is number 1 in a process namespace below ours."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            numbers = next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
    except OSError:
        return False
    return len(numbers) > 1 and numbers[-1] == b"1"


def kill(process: int) -> None:
    """Kill a process through its pidfd, and wait until it has ended."""
    with suppress(OSError):  # it has ended already
        signal.pidfd_send_signal(process, signal.SIGKILL)
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.poll(1000 * PATIENCE_S)


def kill_marked(token: str) -> None:
    """Kill every process with the token in its environment."""
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):  # not a process, or of another user, or ended
            process = os.pidfd_open(int(name))
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = token.encode() in file.read()
            if marked:
                kill(process)
            os.close(process)
