"""Run benchmark programs such as fio, capture their output, and leave none of their processes behind.

Processes that a program starts may lead sessions of their own. Everything that one call starts carries a mark in its
environment (:mod:`neurotier.core.processes`), by which it can be found even if the program itself was killed. Programs
that obey anyone who connects run in a network namespace of their own.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from neurotier.core.errors import ToolError, one_line
from neurotier.core.libc import LIBC, memory_file
from neurotier.core.processes import PATIENCE_S, kill_all_marked, start_process
from neurotier.meter.tree import check

CALL = "NEUROTIER_CALL"
"""Environment variable that marks the processes of one call."""

LOOK_S = 1.0
"""How often the error output of a running program is checked, s."""


def require_program(program: str, where: str, fix: str) -> None:
    """Raise :class:`ToolError` if a program is not on ``PATH``; ``where`` says what needs it."""
    if shutil.which(program) is None:
        raise ToolError(f"{program} is not on PATH", where, fix)


def run_call(
    command: Sequence[str], folder: Path, timeout_s: float, where: str, lost: str | None = None, **given: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it printed; the caller checks the exit code.

    The program prints into memory files: processes that a killed program leaves behind would hold a pipe open.

    Parameters
    ----------
    command, folder, where, given
        As for :func:`started`.
    timeout_s
        End it after this time, s, so that a device that hangs does not hang this process.
    lost
        Text in its error output that means the run is worthless and may never end.

    Raises
    ------
    ToolError
        If it cannot be started, does not end in time, or was suspended, so that its times say nothing about the tier.
    """
    with open(memory_file(), "wb") as output, open(memory_file(), "wb") as errors, resumptions() as resumed:
        deadline_s = time.monotonic() + timeout_s
        with started(command, folder, where, **given, stdout=output, stderr=errors) as process:
            while process.poll() is None and not (lost and lost in output_so_far(errors)):
                left_s = deadline_s - time.monotonic()
                if left_s < 0:
                    raise ToolError(f"{Path(command[0]).name} did not end within {timeout_s:.0f} s", where)
                due_s = time.time() + 5 * LOOK_S
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(LOOK_S, left_s))
                if time.time() > due_s:  # a control group or the whole machine was frozen, which sends no signal
                    resumed += [0]
        if resumed and not process.returncode:
            raise ToolError(f"{Path(command[0]).name} was suspended and resumed, so that its times mean nothing", where)
        return subprocess.CompletedProcess(command, process.returncode, output_so_far(output), output_so_far(errors))


@contextmanager
def resumptions() -> Iterator[list[int]]:
    """Yield a list that gets an entry each time this process, and so most likely its program, is resumed."""
    resumed: list[int] = []
    before = signal.signal(signal.SIGCONT, lambda number, _: resumed.append(number))
    try:
        yield resumed
    finally:
        signal.signal(signal.SIGCONT, before)


def output_so_far(file: BinaryIO) -> str:
    """What a program has printed into a file so far; the file position stays where the program writes next."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


@contextmanager
def started(
    command: Sequence[str],
    folder: Path,
    where: str,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] = lambda: None,
    **streams: Any,
) -> Iterator[subprocess.Popen[Any]]:
    """Start a program; on exit all its processes are killed, unless it has ended successfully by itself.

    Parameters
    ----------
    command
        The program's command line.
    folder
        Its working folder.
    where
        What it is doing, for error messages.
    environment
        Further environment variables.
    before
        Called in the new process before the program starts.
    streams
        Further arguments of :class:`subprocess.Popen`; by default, standard output is a pipe.

    Raises
    ------
    ToolError
        If it cannot be started.
    """
    call = secrets.token_hex(8)
    process = None
    try:
        try:
            process = start_process(
                command,
                before,
                cwd=folder,
                env={**os.environ, **(environment or {}), CALL: call},
                stdin=subprocess.DEVNULL,
                # SIGPIPE stays ignored: otherwise a terminated fio dies while printing, and its streams keep running
                restore_signals=False,
                **{"stdout": subprocess.PIPE} | streams,
            )
        except OSError as error:
            raise ToolError(f"{Path(command[0]).name} cannot be started: {error.strerror}", where) from None
        yield process
    finally:
        if process is None or process.returncode != 0:
            kill_all_marked(CALL, [call])  # each stream leads its own session, so no process group contains them all
        if process is not None and process.returncode is None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=PATIENCE_S)  # a process waiting for a dead device cannot even be killed


def failure_reason(said: str, exit_code: int) -> str:
    """Why a program failed, in one line: what it printed, unless it was killed.

    >>> failure_reason("", -9), failure_reason("", 3)
    ('it was killed by signal 9', 'it ended with exit code 3 and said nothing')
    """
    if exit_code < 0:
        return f"it was killed by signal {-exit_code}"
    return one_line(said) if said else f"it ended with exit code {exit_code} and said nothing"


CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
"""Arguments of ``unshare``."""

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
"""Source: netdevice(7)."""


def enter_own_network() -> None:
    """Move this process, which must have a single thread, and its future children to a new network namespace.

    It has only a loopback device, and no other user can enter it. It is meant for programs that listen on all
    addresses and obey anyone who connects.

    Raises
    ------
    OSError
        If the system does not allow it; it takes root or user namespaces.
    """
    user, group = os.geteuid(), os.getegid()
    if LIBC.unshare(CLONE_NEWNET) != 0:
        check(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET))
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def require_own_network(what: str, where: str, instead: str) -> None:
    """Raise :class:`ToolError` if ``what`` cannot be kept from other users; ``instead`` names an alternative."""
    try:
        start_process([sys.executable, "-S", "-c", ""], before=enter_own_network).wait()
    except subprocess.SubprocessError:
        problem = f"{what} listens on all addresses and obeys any user, and this system gives it no network of its own"
        raise ToolError(problem, where, f"have user namespaces allowed, or take {instead}") from None
