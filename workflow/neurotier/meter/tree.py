"""A process tree: started in a child, watched, told to stop, and reaped to its last descendant.

The caller becomes the reaper of everything its child leaves behind (Linux child subreaper), so that ``wait4``
hands over the exact resource usage of every descendant, also of those that forked twice to get away.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

from neurotier.core.libc import LIBC, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` alone would cost a tenth of the start-up
    from collections.abc import Callable
    from resource import struct_rusage

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that ask a command to end."""

PASSED_SIGNALS = frozenset({signal.SIGUSR1, signal.SIGUSR2})
"""Signals with a meaning of the command's own; batch systems warn by them before the time is up."""

SI_KERNEL = 0x80
"""``si_code`` of signals that the terminal sends; it sends them to the whole foreground group, command included."""

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
STOP_PATIENCE_S = 2.0


class Reaped:
    """What was heard from the children that ended, in sums.

    Attributes
    ----------
    user_s, system_s
        CPU time, s, of all who were waited for: also by a parent that was itself waited for, and so on.
    max_rss_bytes
        Largest resident set of any one process; one that has not replaced the image it was forked with counts
        with that.
    minor_faults, major_faults, voluntary_switches, involuntary_switches
        Page faults without and with I/O; context switches.
    """

    def __init__(self) -> None:
        self.user_s = self.system_s = 0.0
        self.max_rss_bytes = 0
        self.minor_faults = self.major_faults = self.voluntary_switches = self.involuntary_switches = 0

    def add(self, usage: struct_rusage) -> None:
        """Add what ``wait4`` said of one child; it includes the children that one waited for."""
        self.user_s += usage.ru_utime
        self.system_s += usage.ru_stime
        self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)
        self.minor_faults += usage.ru_minflt
        self.major_faults += usage.ru_majflt
        self.voluntary_switches += usage.ru_nvcsw
        self.involuntary_switches += usage.ru_nivcsw


class Tree:
    """The tree below one child; make it with :meth:`start`.

    The caller must have no other children and one thread: every child that ends is booked on this tree.

    Attributes
    ----------
    pid
        The phase's own process.
    exit_code
        Its code as ``os.waitstatus_to_exitcode`` gives it (a signal is negative); ``None`` while it lives.
    reaped
        What was heard from all who ended.
    signals
        Signals that :meth:`wait` may return.
    """

    def __init__(self, pid: int, signals: frozenset[signal.Signals], before_reaping: Callable[[int], None]) -> None:
        self.pid = pid
        self.exit_code: int | None = None
        self.empty = False
        self.reaped = Reaped()
        self.signals = signals
        self.before_reaping = before_reaping

    @classmethod
    def start(
        cls,
        child: Callable[[], int],
        mask: Mask,
        before_reaping: Callable[[int], None],
    ) -> Tree:
        """Fork and run ``child`` there.

        Parameters
        ----------
        child
            Run in the new process, whose exit code it returns, if it returns.
        mask
            The blocked signals, in force.
        before_reaping
            Called with each ended child's process number, while ``/proc`` still shows it.
        """
        check(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            run_child(child, parent, mask)
        return cls(pid, mask.blocked, before_reaping)

    def wait(self, timeout_s: float) -> signal.struct_siginfo | None:
        """Wait for a signal, reap if children ended; a signal other than SIGCHLD is returned.

        Where a handler of another signal runs as the time is up, Python gives an empty answer instead of none.
        """
        heard = signal.sigtimedwait(self.signals, max(0.0, timeout_s))
        self.reap()
        return heard if heard is not None and heard.si_signo in self.signals - {signal.SIGCHLD} else None

    def reap(self) -> None:
        """Book every child that has ended."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.empty = True
                return
            if ended is None:
                return
            self.before_reaping(ended.si_pid)
            pid, status, usage = os.wait4(ended.si_pid, 0)
            self.reaped.add(usage)
            if pid == self.pid:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def end(self, patience_s: float = STOP_PATIENCE_S) -> None:
        """End all descendants: SIGTERM, and SIGKILL for what is left after the patience."""
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 10.0)):
            deadline = time.monotonic() + wait_s
            send(number, descendants(os.getpid()))
            self.reap()
            while not self.empty and time.monotonic() < deadline:
                self.wait(0.01)
                if number == signal.SIGKILL:
                    send(number, descendants(os.getpid()))  # those born meanwhile
            if self.empty:
                return


class Mask:
    """Blocks the signals that the meter waits for, so that none is lost and none interrupts; undone at the end."""

    def __init__(self, waited: frozenset[signal.Signals]) -> None:
        # what was ignored when we started (`nohup`, background jobs of a shell) stays ignored, for the command too
        heeded = {number for number in waited if signal.getsignal(number) is not signal.SIG_IGN}
        self.blocked = frozenset({*heeded, signal.SIGCHLD})

    def __enter__(self) -> Mask:
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, self.blocked)
        # a parent that ignores SIGCHLD hands that down; ended children would then vanish unheard
        self.child_action = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        if self.child_action is not None:
            signal.signal(signal.SIGCHLD, self.child_action)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def run_child(child: Callable[[], int], parent: int, mask: Mask) -> None:
    """The child's side of the fork, with signals as the meter itself was given them; does not return."""
    code = 70
    try:
        for number in (*(STOP_SIGNALS | PASSED_SIGNALS), *IGNORED_BY_PYTHON):
            if number in IGNORED_BY_PYTHON or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        die_with_parent()
        mask.__exit__()
        if os.getppid() == parent:  # else the meter was killed before the line above took effect
            code = child()
    finally:
        os._exit(code)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, even by SIGKILL."""
    check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def send(number: int, pids: list[int]) -> None:
    """Send a signal to processes; those that are gone meanwhile are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # gone, or of another user (sudo, setuid programs)
            continue


def children(pid: int) -> list[int]:
    """Direct children of a process, of all its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def descendants(pid: int) -> list[int]:
    """All descendants of a process, parents before children."""
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def bytes_of_children() -> tuple[int, int, int, int] | None:
    """Bytes moved by all children this process has waited for, theirs included; ``None`` if not accounted.

    The kernel adds a child's I/O to its parent's when the parent waits for it, down the whole tree, so what the
    process has beyond its own threads is its children's: exact, and open to every user.

    Returns
    -------
    tuple
        Logical bytes read and written, device bytes read and written, in all since this process started.
    """
    try:
        totals = read_io("/proc/self/io")
        for thread in os.listdir("/proc/self/task"):
            totals = [a - b for a, b in zip(totals, read_io(f"/proc/self/task/{thread}/io"), strict=True)]
    except OSError:
        return None
    return totals[0], totals[1], totals[2], totals[3] - totals[4]


def read_io(path: str) -> list[int]:
    """``rchar``, ``wchar``, ``read_bytes``, ``write_bytes`` and ``cancelled_write_bytes`` of a file of /proc."""
    with open(path, "rb") as file:
        words = file.read().split()
    return [int(words[place]) for place in (1, 3, 9, 11, 13)]


def check(result: int) -> None:
    """Raise what a C call left in ``errno``."""
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def shell_code(exit_code: int) -> int:
    """An exit code as a shell gives it.

    >>> shell_code(-9), shell_code(3)
    (137, 3)
    """
    return exit_code if exit_code >= 0 else 128 - exit_code


def describe_exit(code: int) -> str:
    """A shell's exit code in words.

    >>> describe_exit(137), describe_exit(3)
    ('killed by SIGKILL', 'exit code 3')
    """
    if code > 128:
        try:
            return f"killed by {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    return f"exit code {code}"
