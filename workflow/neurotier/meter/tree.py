"""A process tree: start it in a child, watch it, end it, and reap its last descendant.

The caller becomes the reaper of all processes that its child leaves behind (Linux child subreaper), so that ``wait4``
reports the exact resource usage of every descendant, including daemons that forked twice.
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

    from neurotier.meter.usage import Usage

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that ask a command to end."""

PASSED_SIGNALS = frozenset({signal.SIGUSR1, signal.SIGUSR2})
"""Signals whose meaning is up to the command; batch systems send them before the time limit."""

NOTICES = frozenset({signal.SIGCHLD, signal.SIGCONT})
"""Signals that only inform, and require no action."""

SI_KERNEL = 0x80
"""``si_code`` of signals sent by the terminal, which go to the whole foreground group, including the command."""

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
STOP_PATIENCE_S = 2.0

inherited: set[int] = set()
"""Children that this process had before, which do not belong to the tree: a shell that becomes the meter by ``exec``
leaves it the shell's background jobs and ``>(...)``."""

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Tree:
    """The tree below one child, which is forked here.

    The caller must have a single thread, since every child that ends counts towards this tree.

    Parameters
    ----------
    child
        Run in the new process; its value is the exit code.
    mask
        The signals that are blocked, which :meth:`wait` waits for.
    usage
        The cost of each child that has ended, from ``wait4``, is added here.
    before_reaping
        Called with the process ID of each child that has ended, while ``/proc`` still shows it.

    Attributes
    ----------
    pid
        The phase's own process.
    exit_code
        The exit code of that process as ``os.waitstatus_to_exitcode`` gives it (negative for a signal); ``None`` while
        it runs.
    was_stopped
        Whether this process, and so most likely the tree, was stopped and continued meanwhile (Ctrl-Z, suspended).
    ended_s
        When that process was found to have ended, s, by the monotonic clock: before it was reaped, which may take 0.1 s
        if processes compete for a core (Linux 6.18).
    """

    exit_code: int | None = None
    ended_s = float("inf")
    empty = was_stopped = asked = False

    def __init__(
        self, child: Callable[[], int], mask: Mask, usage: Usage, before_reaping: Callable[[int], None]
    ) -> None:
        self.usage, self.signals, self.before_reaping = usage, mask.blocked, before_reaping
        check(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        parent = os.getpid()
        inherited.clear()
        inherited.update(children(parent))
        self.pid = os.fork()
        if self.pid == 0:
            run_child(child, parent, mask)

    def wait(self, timeout_s: float) -> signal.struct_siginfo | None:
        """Wait for a signal, and reap children that have ended; returns the signal if it requires action, otherwise
        ``None``.

        If the handler of another signal runs when the time is up, ``sigtimedwait`` returns an empty record instead of
        ``None``.
        """
        received = signal.sigtimedwait(self.signals, max(0.0, timeout_s))
        self.reap()
        if received is None:
            return None
        # a request to end may be followed by SIGCONT (`timeout` sends it), though nothing was stopped
        self.asked |= received.si_signo in STOP_SIGNALS
        self.was_stopped |= received.si_signo == signal.SIGCONT and not self.asked
        return received if received.si_signo in self.signals - NOTICES else None

    def reap(self) -> None:
        """Reap every child that has ended, and add its cost to the sums."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.empty = True
                return
            if ended is None:
                self.empty = bool(inherited) and not children(os.getpid())
                return
            if ended.si_pid in inherited:
                os.waitpid(ended.si_pid, 0)
                inherited.discard(ended.si_pid)
                continue
            if ended.si_pid == self.pid:
                self.ended_s = time.monotonic()
            self.before_reaping(ended.si_pid)
            pid, status, usage = os.wait4(ended.si_pid, 0)
            self.usage.add_spent(usage)
            if pid == self.pid:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def end(self, patience_s: float = STOP_PATIENCE_S) -> None:
        """End all descendants: by SIGTERM and, for those that are left after ``patience_s``, by SIGKILL."""
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 10.0)):
            deadline = time.monotonic() + wait_s
            send(number, descendants(os.getpid()))
            self.reap()
            while not self.empty and time.monotonic() < deadline:
                self.wait(0.01)
                if number == signal.SIGKILL:
                    send(number, descendants(os.getpid()))  # including those started meanwhile
            if self.empty:
                return


class Mask:
    """While in use, blocks the signals that the meter waits for, so that none is lost and none interrupts."""

    def __init__(self, waited: frozenset[signal.Signals]) -> None:
        # a signal that was ignored at the start (`nohup`, background jobs of a shell) stays ignored, by the command,
        # too
        handled = {number for number in waited if signal.getsignal(number) is not signal.SIG_IGN}
        self.blocked = frozenset({*handled, *NOTICES})

    def __enter__(self) -> Mask:
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, self.blocked)
        # if a parent's SIG_IGN for SIGCHLD were inherited, ended children would vanish unseen
        self.child_action = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        if self.child_action is not None:
            signal.signal(signal.SIGCHLD, self.child_action)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def run_child(child: Callable[[], int], parent: int, mask: Mask) -> None:
    """Run the child's side of the fork, with the signal settings that the meter was started with; does not return."""
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
    """Have the kernel kill this process when its parent dies, however that happens."""
    check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def send(number: int, pids: list[int]) -> None:
    """Send a signal to processes; those that have ended are skipped."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # ended, or another user's (sudo, setuid programs)
            continue


def children(pid: int) -> list[int]:
    """The children of all threads of a process."""
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            pids += map(int, read_proc(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass
    return [child for child in pids if child not in inherited]


def descendants(pid: int) -> list[int]:
    """All descendants of a process, parents before children."""
    pids = children(pid)
    for each in pids:  # the list grows meanwhile; no recursion, since trees may be deeper than Python's stack
        pids += children(each)
    return pids


def bytes_of_children() -> list[int] | None:
    """Bytes moved by all children that this process has waited for, and by their children; ``None`` if not accounted
    for.

    When a parent waits for a child, the kernel adds the child's I/O to the parent's. So the process's bytes minus those
    of its own threads are those of its children: exact, and readable by every user.

    Returns
    -------
    list
        As from :func:`read_io`, since this process started.
    """
    try:
        totals = read_io("/proc/self/io")
        for thread in os.listdir("/proc/self/task"):
            totals = [a - b for a, b in zip(totals, read_io(f"/proc/self/task/{thread}/io"), strict=True)]
    except OSError:
        return None
    return totals


def read_proc(path: str) -> bytes:
    """The content of a small file of the kernel's. A file object would take twice as long, and thousands of files are
    read."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        text = b""
        while part := os.read(descriptor, 1 << 16):  # the kernel returns at most a page at a time
            text += part
        return text
    finally:
        os.close(descriptor)


def read_io(path: str) -> list[int]:
    """Logical bytes read and written, device bytes read and written, of an ``io`` file of /proc, in the order of
    :data:`neurotier.meter.usage.BYTES`. Further figures follow these: a rehearsal takes the first two."""
    read_logical, written_logical, _, _, read_device, written_device, cancelled = map(
        int, read_proc(path).split()[1::2]
    )
    return [read_logical, written_logical, read_device, written_device - cancelled]


def queued_s() -> float:
    """How long the main thread of this process has waited for a core, s; 0 if the kernel does not account for it."""
    try:
        return int(read_proc("/proc/self/schedstat").split()[1]) / 1e9
    except OSError:
        return 0.0


def stat_fields(path: str) -> list[bytes]:
    """The fields of a ``stat`` file of /proc from field 3 of proc(5) on: those after the command's name."""
    return read_proc(path).rpartition(b")")[2].split()


def status(folder: str) -> dict[bytes, int]:
    """The numbers in the ``status`` file of a folder of /proc, by name; sizes in KiB."""
    lines = (line.split() for line in read_proc(f"{folder}/status").splitlines())
    return {words[0][:-1]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def check(result: int) -> None:
    """Raise the error that a C call left in ``errno``, if it failed."""
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
    ('killed by SIGKILL, out of memory?', 'exit code 3')
    """
    if code > 128:
        try:
            number = signal.Signals(code - 128)
            return f"killed by {number.name}" + ", out of memory?" * (number in (signal.SIGKILL, signal.SIGTERM))
        except ValueError:
            pass
    return f"exit code {code}"
