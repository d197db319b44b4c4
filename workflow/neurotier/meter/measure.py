"""Run a function or a command in a child process and measure its tree: the library calls of the meter."""

from __future__ import annotations

import os
import signal
import time
import warnings  # noqa: F401  # os.execvp imports it, since Python 3.12 in the child, whose reads would count
from contextlib import suppress

from neurotier.meter.exits import ExitRecords, delays_accounted, run_queue_accounted
from neurotier.meter.pressure import Pressure
from neurotier.meter.sampling import Sampler
from neurotier.meter.tree import (
    PASSED_SIGNALS,
    SI_KERNEL,
    STOP_SIGNALS,
    Mask,
    Tree,
    bytes_of_children,
    children,
    descendants,
    queued_s,
    send,
)
from neurotier.meter.usage import NOT_ROOT, SWITCHED_OFF, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from neurotier.meter.folders import FolderWatch
    from neurotier.meter.records import Branch

DRAIN_INTERVAL_S = 0.2
"""Longest time between two reads of the exit records, s; their buffer then suffices for 50,000 per second."""


STOPPED = "it was stopped meanwhile"

FROZEN_S = 2.0
"""A process that sleeps for so much longer than it asked for, s, apart from waiting for a core, was frozen without a
signal: by a control group (``docker pause``, Slurm's suspension), or with the whole machine."""


class Interrupted(BaseException):
    """The metering process received SIGTERM, SIGINT, SIGHUP or SIGQUIT; its tree has been ended.

    It is not an ``Exception``, so that no handler in between takes it for an ordinary failure.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.exit_code = 128 + signal_number


def measure_child(
    child: Callable[[], int], grace_s: float = 5.0, forward: bool = False, watches: Sequence[FolderWatch] = ()
) -> tuple[Usage, int]:
    """Fork, run ``child`` in the new process, and measure until the last descendant has ended.

    The caller must have a single thread and start no other children meanwhile: every child that ends counts towards
    this phase.

    Parameters
    ----------
    child
        Run in the new process; its value is the exit code of that process.
    grace_s
        How long processes that outlive the child, or have been asked to stop, may run on before they are killed, s.
    forward
        Whether to pass signals on to the tree, and let it react, instead of ending it.
    watches
        Folders whose files are counted meanwhile.

    Returns
    -------
    tuple
        The cost, and the exit code as ``os.waitstatus_to_exitcode`` gives it: negative for a signal.

    Raises
    ------
    Interrupted
        If this process receives a signal to stop and does not forward it; the whole tree is ended first.
    """
    with Mask(STOP_SIGNALS | PASSED_SIGNALS if forward else STOP_SIGNALS) as mask:
        instruments = Instruments(watches)
        try:
            usage = Usage(start_s=time.time())
            begin = time.monotonic()
            tree = Tree(child, mask, usage, instruments.sampler.look_at_ended)
            try:
                watch(tree, instruments, grace_s, forward)
                usage.wall_s = tree.ended_s - begin
                usage.end_s = usage.start_s + usage.wall_s
                instruments.sampler.finish(tree.ended_s)
                usage.left_behind = len(children(os.getpid()))
                let_finish(tree, instruments, grace_s, forward)
            except BaseException as error:
                tree.end()
                if isinstance(error, Interrupted):
                    # for the caller's own handler, which runs once the signal is unblocked; it may ignore further
                    # signals, so that they do not interrupt the caller's cleaning up
                    number = error.exit_code - 128
                    if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler):
                        signal.raise_signal(number)
                raise
            instruments.fill(usage, tree.was_stopped or (not tree.asked and signal.SIGCONT in signal.sigpending()))
        finally:
            instruments.close()
    assert tree.exit_code is not None  # noqa: S101  # for the type checker: `watch` waited for it
    return usage, tree.exit_code


def measure_command(command: list[str], **how: Any) -> tuple[Usage, int]:
    """Run a command with this process's standard streams and measure its tree; otherwise as :func:`measure_child`."""

    def execute() -> int:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            with suppress(OSError):
                os.write(2, os.fsencode(f"neurotier: {command[0]}: {error.strerror}\n"))
            return 127 if isinstance(error, FileNotFoundError) else 126

    return measure_child(execute, **how)


class Instruments:
    """The sources of figures, apart from ``wait4``, that this process may use.

    Attributes
    ----------
    noticed_late_s
        How long this process waited for a core before it could notice the phase's end, s.
    """

    noticed_late_s = 0.0

    def __init__(self, watches: Sequence[FolderWatch]) -> None:
        self.exits = ExitRecords.listen()
        self.sampler = Sampler(os.getpid(), self.exits, delays_accounted())
        self.observers: tuple[Sampler | FolderWatch, ...] = (self.sampler, *watches)
        self.pressure = Pressure()
        self.bytes_before = bytes_of_children()
        self.next_drain_s = time.monotonic() + DRAIN_INTERVAL_S

    def pause_s(self) -> float:
        """How long the meter may sleep before its next look, s."""
        return max(0.0, min(self.next_drain_s, *(one.due_s for one in self.observers)) - time.monotonic())

    def look(self) -> None:
        """Sample the threads, count files, and read the exit records, whichever is due."""
        now = time.monotonic()
        for one in self.observers:
            if now >= one.due_s:
                one.look()
        if now >= self.next_drain_s:
            if self.exits:
                self.exits.drain()
            self.next_drain_s = now + DRAIN_INTERVAL_S

    def fill(self, usage: Usage, was_stopped: bool) -> None:
        """Fill in the usage once the tree has ended; ``was_stopped`` says that the wall time contains a pause."""
        usage.take_bytes(bytes_of_children(), self.bytes_before)
        branch = self.exits.descendants() if self.exits else None
        run_queue = run_queue_accounted()
        if branch:
            usage.take_exits(branch, self.sampler, run_queue)
        elif not self.exits:
            usage.take_samples(self.sampler, run_queue)
        usage.refuse_bytes(self.sampler.asynchronous.found)
        usage.take_pressure(self.pressure)
        usage.account_reason = STOPPED if was_stopped else self.account_reason(usage, branch)
        if not (usage.left_behind or was_stopped):  # otherwise the account would have seconds that are not the phase's
            usage.divide(branch, self.sampler, self.noticed_late_s)

    def account_reason(self, usage: Usage, branch: Branch | None) -> str | None:
        """Why the account is sampled, or why there is none; ``None`` if it relies on exit records alone."""
        if usage.left_behind:
            return "processes outlived the phase"
        if usage.run_queue_s is None:
            return "exit records were lost" if self.exits and not branch else "the kernel does not account for waits"
        if usage.wait_source != "sampled":
            return None
        if not self.exits:
            return "no exit records in this name space" if os.geteuid() == 0 else NOT_ROOT
        return "the kernel misbooked waits for storage" if self.sampler.delays else SWITCHED_OFF

    def close(self) -> None:
        """Stop listening."""
        if self.exits:
            self.exits.close()


def watch(tree: Tree, instruments: Instruments, grace_s: float, forward: bool) -> None:
    """Wait until the phase's own process has ended, and handle signals meanwhile."""
    kill_at_s = float("inf")
    now_s = queued_s()
    while tree.exit_code is None:
        pause_s = min(instruments.pause_s(), kill_at_s - time.monotonic())
        due_s = time.time() + pause_s
        received = tree.wait(pause_s)
        before_s, now_s = now_s, queued_s()
        instruments.noticed_late_s = now_s - before_s  # during the last look and wait
        tree.was_stopped |= time.time() - due_s - instruments.noticed_late_s > FROZEN_S
        if tree.exit_code is None:
            instruments.look()
        if received is not None:
            if not forward:
                raise Interrupted(received.si_signo)
            if received.si_signo in PASSED_SIGNALS:
                send(received.si_signo, [tree.pid])
            elif received.si_code != SI_KERNEL:
                # not from the terminal, which has sent it to the command, too
                send(received.si_signo, descendants(os.getpid()))
                kill_at_s = min(kill_at_s, time.monotonic() + grace_s)
        if time.monotonic() >= kill_at_s:
            tree.end(patience_s=0.0)


def let_finish(tree: Tree, instruments: Instruments, grace_s: float, forward: bool) -> None:
    """Let processes that outlived the phase finish; end them after the grace time or at a signal to stop."""
    deadline = time.monotonic() + grace_s
    tree.reap()
    while not tree.empty and time.monotonic() < deadline:
        received = tree.wait(min(instruments.pause_s(), deadline - time.monotonic()))
        if received is not None and received.si_signo in STOP_SIGNALS:
            if not forward:
                raise Interrupted(received.si_signo)
            break
        instruments.look()
    if not tree.empty:
        tree.end()
