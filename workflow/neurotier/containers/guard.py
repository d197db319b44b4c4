"""The guard: a process on the host that ends a container when whoever started it is gone, however that went.

What a container runs sees everything inside, and can kill what watches there; it cannot see this process. The guard
holds the reading end of a pipe, whose writing end nobody but the starting process has. When that is closed, it kills
the container's init, by a descriptor that names this very process for good, and the kernel ends all others with it.

It is forked and not started anew, since a new Python costs more than a container's start may; in the fork only a few
calls of the operating system are made, whatever other threads held at that moment.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from neurotier.meter.tree import descendants

PATIENCE_S = 10.0
"""How long a killed container may take to be gone; the kernel has seen to it, so this is for a kernel in trouble."""

MARK = "NEUROTIER_CONTAINER"
"""Variable that tells the processes of one container from all others, in the environment of every one of them."""

DEAF = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that are meant for the job: the guard ends after it."""


class Guard:
    """The starting process's side.

    Attributes
    ----------
    pid
        The guard.
    """

    def __init__(self, starter: int, token: str) -> None:
        reading, self.writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                stand_guard(reading, starter, token)
            finally:
                os._exit(0)
        os.close(reading)

    def started(self) -> None:
        """Say that the container is up, so that its init can be found."""
        with suppress(BrokenPipeError):
            os.write(self.writing, b"s")

    def end(self) -> None:
        """Have whatever is left of the container killed, and wait until it is gone."""
        os.close(self.writing)
        with suppress(ChildProcessError):  # whoever reaps all children of this process was quicker
            os.waitpid(self.pid, 0)


@contextmanager
def guarded(starter: int, token: str) -> Iterator[Guard]:
    """Guard a container as long as this process is in here.

    Parameters
    ----------
    starter
        The engine's process, a child of this one.
    token
        Value of :data:`MARK` in the environment of the container's processes.
    """
    guard = Guard(starter, token)
    try:
        yield guard
    finally:
        guard.end()


def stand_guard(pipe: int, starter: int, token: str) -> None:
    """The guard's side: wait, find the container's init, wait until it is over, and kill what is left."""
    os.setsid()  # or what ends the job's group ends the guard first
    for number in DEAF:
        signal.signal(number, signal.SIG_IGN)
    kept = os.dup2(pipe, 0)  # and no other descriptor: a pipe of another guard's must not stay open here
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))
    init = None
    if os.read(kept, 1):
        init = init_of(starter)
        os.read(kept, 1)
    if init is None:  # it had not started, or the engine gives it no processes of its own
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
    """Whether a process is number 1 of a namespace below ours."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            numbers = next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
    except OSError:
        return False
    return len(numbers) > 1 and numbers[-1] == b"1"


def kill(process: int) -> None:
    """Kill a process by its descriptor, and wait until it is gone."""
    with suppress(OSError):  # it has ended already
        signal.pidfd_send_signal(process, signal.SIGKILL)
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.poll(1000 * PATIENCE_S)


def kill_marked(token: str) -> None:
    """Kill every process whose environment has the token."""
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):  # no process, another user's, or gone
            process = os.pidfd_open(int(name))
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = token.encode() in file.read()
            if marked:
                kill(process)
            os.close(process)
