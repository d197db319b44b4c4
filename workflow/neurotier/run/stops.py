"""Stops: SIGINT, SIGTERM and SIGHUP end a run and all its processes at once, and each process cleans up.

A terminal sends Ctrl-C to Snakemake and to all of its jobs, which ignore it. A scheduler, ``kill`` and a campaign's
script signal one process only: Snakemake, which by itself would wait for its jobs. :func:`end_at_signals` makes it end
them, and then itself.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from neurotier.core.files import Facts
from neurotier.core.processes import SIGNALS, end, is_alive, postpone
from neurotier.meter.measure import Interrupted

PATIENCE_S = 25.0
"""How long jobs may clean up after SIGTERM, s; Slurm kills 30 s after it has sent SIGTERM."""

LOOK_S = 1.0
"""How often a script checks that the Snakemake that started it is still alive, s."""

SHELLS = ("bash", "sh")


class MainStop:
    """The state of a stop in Snakemake's own process.

    Attributes
    ----------
    came
        The first signal received; ``None`` if there was none.
    before
        The previous signal handlers.
    timer
        Kills the jobs that have not ended after :data:`PATIENCE_S`, in a thread of its own, since this one may hang on
        a lost file server.
    """

    came: int | None = None
    before: Mapping[int, Any] = {}
    timer: threading.Timer | None = None

    def handle(self, number: int, _frame: object) -> None:
        """End all jobs; at the first signal, also make Snakemake abandon what it is doing, and kill remaining jobs
        later."""
        end_jobs()
        if self.came is None:
            self.came = number
            self.timer = threading.Timer(PATIENCE_S, kill_jobs)
            self.timer.daemon = True
            self.timer.start()
            raise KeyboardInterrupt


main_stop = MainStop()


def handle_stop_signals(handler: Callable[[int, Any], None]) -> dict[int, Any]:
    """Install a handler for the signals that end a process; returns the previous handlers by signal. Signals that were
    ignored when this process was started (``nohup``) stay ignored."""
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


def end_at_signals() -> None:
    """Make signals end this Snakemake and its jobs, by a handler that replaces Snakemake's own.

    To be called in ``onstart``: by then the scheduler has installed its handlers (``JobScheduler.__init__``), and there
    is no documented way to change them. At SIGTERM, Snakemake would wait for its running jobs, one of which may be a
    whole campaign; at SIGINT, too, since it relies on the terminal to signal them. A handler that raises
    ``KeyboardInterrupt`` makes ``JobScheduler.schedule`` abandon what it is doing (seen in 9.19 to 9.27).
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if a parent's SIG_IGN were inherited, exit codes would be lost
    main_stop.before = handle_stop_signals(main_stop.handle)


def jobs_have_ended() -> str:
    """Let signals end this process as usual from now on; returns the name of the signal that ended the run, or an empty
    string."""
    if main_stop.timer:
        main_stop.timer.cancel()
    for number in main_stop.before:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    return "" if main_stop.came is None else signal.Signals(main_stop.came).name


def end_jobs() -> None:
    """Send SIGTERM to each job: to its command, not to the shell around it, which would end without the command."""
    with suppress(psutil.Error):
        for job in psutil.Process().children():
            with suppress(psutil.Error):
                for process in (job.children() if job.name() in SHELLS else []) or [job]:
                    process.terminate()


def kill_jobs() -> None:
    """Kill everything that still runs below this process."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()


@contextmanager
def raising_interrupted() -> Iterator[None]:
    """Turn the first signal into an exception, so that files and children are cleaned up on the way out; ignore later
    ones.

    Raises
    ------
    Interrupted
        At that signal.
    """
    came: list[int] = []

    def unwind(number: int, _frame: object) -> None:
        if not came and not postpone(number):
            came.append(number)
            raise Interrupted(number)

    before = handle_stop_signals(unwind)
    try:
        yield
    except KeyboardInterrupt:  # PySpark has a handler of its own for Ctrl-C
        came.append(signal.SIGINT)
        raise Interrupted(signal.SIGINT) from None
    except RuntimeError:  # Python 3.11 raises this in place of an exception while a class is created, as during imports
        if came:
            raise Interrupted(came[0]) from None
        raise
    finally:
        if came:
            end(psutil.Process().children(recursive=True))
        for number, action in before.items():
            signal.signal(number, action)


def runner(facts: Facts) -> psutil.Process | None:
    """The Snakemake process of a run; ``None`` if it has ended, is on another host, or cannot be seen by this
    process."""
    with suppress(psutil.Error):
        if facts.get("host") == socket.gethostname():
            process = psutil.Process(facts["pid"])
            if process.create_time() <= facts["started_s"] and is_alive(process):
                return process
    return None


@contextmanager
def ending_with(process: psutil.Process | None) -> Iterator[None]:
    """End this process by SIGTERM once another one is gone, since its results would not be used any more.

    This uses a timer, not a thread, because some callers fork.
    """

    def look(_number: int, _frame: object) -> None:
        if process and not is_alive(process):
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK_S if process else 0, LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
