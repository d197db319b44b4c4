"""The meter: what a phase of work cost, for its whole process tree.

A phase is a command or a Python function. Either runs in a child process of its own, and the caller becomes the
reaper of everything that child leaves behind (Linux child subreaper), so that ``wait4`` hands over the exact
resource usage of every descendant, also of those that forked twice to get away. Sampling tools miss short
children; this cannot.

The interface (:class:`Usage` with its ``source``) is made for further sources of finer figures.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

BLOCK_BYTES = 512
"""Unit of ``ru_inblock`` and ``ru_oublock`` on Linux (``getrusage(2)``)."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Usage:
    """What a phase cost.

    Attributes
    ----------
    start_s, end_s
        Seconds since 1970-01-01 UTC; ``end_s`` is ``start_s + wall_s``, so that a clock that is set meanwhile
        does no harm.
    wall_s
        Wall-clock time until the phase's own process ended, by the monotonic clock, s.
    user_s, system_s
        CPU time of the whole tree, s.
    max_rss_bytes
        Largest resident set of any one process of the tree; a child that has not yet replaced the meter's own
        image counts with that.
    block_in_bytes, block_out_bytes
        Bytes moved from and to block devices on behalf of the tree; the page cache, tmpfs and network file
        systems do not count.
    left_behind
        Processes that were still there when the phase's own process had ended.
    source
        Where the figures come from.
    """

    start_s: float
    end_s: float = 0.0
    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_bytes: int = 0
    block_in_bytes: int = 0
    block_out_bytes: int = 0
    left_behind: int = 0
    source: str = "wait4"

    def add(self, usage: resource.struct_rusage) -> None:
        """Add what ``wait4`` said of one ended child (it includes the children that one waited for)."""
        self.user_s += usage.ru_utime
        self.system_s += usage.ru_stime
        self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)
        self.block_in_bytes += usage.ru_inblock * BLOCK_BYTES
        self.block_out_bytes += usage.ru_oublock * BLOCK_BYTES


@dataclass(frozen=True)
class Measured(Generic[T]):
    """A phase's outcome beside its cost; ``error`` is what the function raised, if it raised."""

    usage: Usage
    exit_code: int
    value: T | None = None
    error: BaseException | None = None


class Interrupted(BaseException):
    """The metering process was told to stop (SIGTERM, SIGINT, SIGHUP); its tree has been ended.

    Not an ``Exception``: nothing on the way may take it for an ordinary failure.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number


def measure_function(function: Callable[[], T], grace_s: float = 5.0) -> Measured[T]:
    """Run a function in a child process and measure its tree.

    Parameters
    ----------
    function
        What to run. Its value, or the exception it raises, comes back by pickle.
    grace_s
        How long processes that outlive the function may go on before they are ended, s.

    Raises
    ------
    Interrupted
        If this process is told to stop meanwhile; the whole tree is ended first.
    """
    outcome_file = os.memfd_create("outcome")

    def child() -> int:
        try:
            outcome: tuple[Any, BaseException | None] = (function(), None)
        except Exception as error:  # it is raised again in the parent
            error.add_note("in the phase's process: " + "".join(traceback.format_exception(error)))
            outcome = (None, error)
        with os.fdopen(outcome_file, "wb") as file:
            file.write(to_bytes(outcome))
        return 0 if outcome[1] is None else 1

    with os.fdopen(outcome_file, "rb") as file:
        usage, exit_code = measure_child(child, grace_s)
        file.seek(0)
        sent = file.read()
    if not sent:
        return Measured(usage, exit_code, error=ChildProcessError(describe_exit(exit_code)))
    value, error = pickle.loads(sent)
    return Measured(usage, exit_code, value, error)


def measure_command(command: list[str], grace_s: float = 5.0) -> Measured[None]:
    """Run a command with this process's standard streams and measure its tree.

    Raises
    ------
    Interrupted
        As :func:`measure_function`.
    """

    def child() -> int:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"neurotier: {command[0]}: {error.strerror}\n".encode())
            return 127 if isinstance(error, FileNotFoundError) else 126

    usage, exit_code = measure_child(child, grace_s)
    return Measured(usage, exit_code)


def measure_child(child: Callable[[], int], grace_s: float) -> tuple[Usage, int]:
    """Fork, run ``child`` there, and account for everything until the last descendant is gone.

    The caller must have no other children and one thread: every child that ends is booked on this phase.
    """
    check(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    parent = os.getpid()
    with stop_signals_raise():
        usage = Usage(start_s=time.time())
        begin = time.monotonic()
        pid = os.fork()
        if pid == 0:
            run_child(child, parent)
        try:
            exit_code = reap(pid, usage)
            usage.wall_s = time.monotonic() - begin
            usage.end_s = usage.start_s + usage.wall_s
            usage.left_behind = len(children(parent))
            end_left_behind(usage, grace_s)
        except BaseException:
            end_tree(parent, usage)
            raise
    return usage, exit_code


def run_child(child: Callable[[], int], parent: int) -> None:
    """The child's side of the fork; does not return."""
    code = 70
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        die_with_parent()
        if os.getppid() == parent:  # else the meter was killed before the line above took effect
            code = child()
    finally:
        os._exit(code)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, even by SIGKILL."""
    check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def reap(pid: int, usage: Usage) -> int:
    """Wait until ``pid`` ends, booking every child that ends meanwhile; its exit code as a shell gives it."""
    while True:
        ended, status, resources = os.wait4(-1, 0)
        usage.add(resources)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_left_behind(usage: Usage, grace_s: float) -> None:
    """Let processes that outlived the phase finish; after the grace time, end them."""
    deadline = time.monotonic() + grace_s
    pause_s = 0.001
    while True:
        try:
            ended, _, resources = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            usage.add(resources)
        elif time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.05)
        else:
            end_tree(os.getpid(), usage)
            return


def end_tree(root: int, usage: Usage, grace_s: float = 2.0) -> None:
    """End all descendants of ``root``: SIGTERM, and SIGKILL for what is left after the grace time."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + patience_s
        send(number, descendants(root))
        while time.monotonic() < deadline:
            try:
                ended, _, resources = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended:
                usage.add(resources)
            else:
                send(number if number == signal.SIGKILL else 0, descendants(root))  # those born meanwhile
                time.sleep(0.01)


def send(number: int, pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def children(pid: int) -> list[int]:
    """Direct children of a process, of all its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += [int(word) for word in file.read().split()]
    except FileNotFoundError:
        pass
    return found


def descendants(pid: int) -> list[int]:
    """All descendants of a process, parents before children."""
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


@contextmanager
def stop_signals_raise() -> Iterator[None]:
    """Turn the signals that ask a process to stop into :class:`Interrupted`, here and nowhere longer."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def to_bytes(outcome: tuple[Any, BaseException | None]) -> bytes:
    """Pickle an outcome; an exception that cannot be pickled is sent as its description."""
    try:
        sent = pickle.dumps(outcome)
        pickle.loads(sent)
        return sent
    except Exception:
        return pickle.dumps((None, RuntimeError(f"{type(outcome[1]).__name__}: {outcome[1]}")))


def describe_exit(code: int) -> str:
    """An exit code in words.

    >>> describe_exit(137), describe_exit(3)
    ('killed by SIGKILL', 'exit code 3')
    """
    if code > 128:
        try:
            return f"killed by {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    return f"exit code {code}"


def run_in_phase(command: list[str], log: Any = None, cwd: str | None = None) -> int:
    """Run a tool inside a metered function: it dies with it, and its exit code comes back as a shell gives it.

    Parameters
    ----------
    command
        Words, never read by a shell.
    log
        File that takes both output streams.
    cwd
        Working folder; the sweep after a kill finds a tool's processes by it.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd, preexec_fn=die_with_parent, check=False
    )
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
