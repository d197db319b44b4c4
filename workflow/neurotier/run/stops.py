"""Stops: SIGINT, SIGTERM and SIGHUP end a run and everything that works for it, at once, and each process cleanly.

A terminal sends Ctrl-C to Snakemake and to all of its jobs, which ignore it. A scheduler, ``kill`` and the script of a
campaign signal one process only: Snakemake, which would wait for its jobs. :func:`end_at_signals` has it end them, and
then itself.
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
from neurotier.core.processes import SIGNALS, end, lives, postpone
from neurotier.meter.measure import Interrupted

PATIENCE_S = 25.0
"""How long jobs that were told to end may clean up; Slurm kills 30 s after it has asked."""

LOOK_S = 1.0
"""How often a script checks that the Snakemake that wants it is still alive."""

SHELLS = ("bash", "sh")


class MainStop:
    """What Snakemake's own process knows of a stop.

    Attributes
    ----------
    came
        The first signal that came; ``None`` if none did.
    before
        The previous signal handlers.
    timer
        Kills what has not ended after :data:`PATIENCE_S`: a thread, since this one may wait for a lost server.
    """

    came: int | None = None
    before: Mapping[int, Any] = {}
    timer: threading.Timer | None = None

    def handle(self, number: int, _frame: object) -> None:
        """End all jobs; at the first signal, make Snakemake give up what it is doing, and kill jobs after a while."""
        end_jobs()
        if self.came is None:
            self.came = number
            self.timer = threading.Timer(PATIENCE_S, kill_jobs)
            self.timer.daemon = True
            self.timer.start()
            raise KeyboardInterrupt


main_stop = MainStop()


def heed(handler: Callable[[int, Any], None]) -> dict[int, Any]:
    """Handle the signals to end; returns the previous handlers by signal. Signals that were ignored when this process
    was started (``nohup``) stay ignored."""
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


def end_at_signals() -> None:
    """Have signals end this Snakemake and its jobs, with a handler in place of Snakemake's own.

    To be called in ``onstart``: by then the scheduler has set its handlers (``JobScheduler.__init__``), and there is no
    documented way to change them. At SIGTERM Snakemake would wait for its running jobs, one of which may be a whole
    campaign; at SIGINT, too, since it relies on the terminal to tell them. A handler that raises ``KeyboardInterrupt``
    makes ``JobScheduler.schedule`` give up what it is doing (seen in 9.19 to 9.27).
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever ignores it, as what has started this may, sees no exit code
    main_stop.before = heed(main_stop.handle)


def jobs_have_ended() -> str:
    """From now on let signals end this process as usual; the name of the one that ended the run, or empty."""
    if main_stop.timer is not None:
        main_stop.timer.cancel()
    for number in main_stop.before:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    return "" if main_stop.came is None else signal.Signals(main_stop.came).name


def end_jobs() -> None:
    """Tell each job to end: the command, not the shell around it, which would leave its command running."""
    with suppress(psutil.Error):
        for job in psutil.Process().children():
            with suppress(psutil.Error):
                commands = job.children() if job.name() in SHELLS else []
                for process in commands or [job]:
                    process.terminate()


def kill_jobs() -> None:
    """Kill everything that still runs below this process."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()


@contextmanager
def unwinding() -> Iterator[None]:
    """Let the first signal unwind this process, so that its files and children are cleaned up; later ones are ignored.

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

    before = heed(unwind)
    try:
        yield
    except KeyboardInterrupt:  # PySpark has a handler of its own for Ctrl-C
        came.append(signal.SIGINT)
        raise Interrupted(signal.SIGINT) from None
    except RuntimeError:  # Python 3.11 raises this in place of what is raised while a class is made, as in imports
        if came:
            raise Interrupted(came[0]) from None
        raise
    finally:
        if came:
            end(psutil.Process().children(recursive=True))
        for number, action in before.items():
            signal.signal(number, action)


def runner(facts: Facts) -> psutil.Process | None:
    """The Snakemake process of a run, if it is on this host; ``None`` if it is not, or cannot be seen from here."""
    with suppress(psutil.Error):
        if facts.get("host") == socket.gethostname():
            process = psutil.Process(facts["pid"])
            if process.create_time() <= facts["started_s"] and lives(process):
                return process
    return None


@contextmanager
def ending_with(process: psutil.Process | None) -> Iterator[None]:
    """End this process, as SIGTERM would, once another one is gone: nobody would want its results.

    This uses a timer, not a thread: some callers fork.
    """

    def look(_number: int, _frame: object) -> None:
        if process is not None and not lives(process):
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK_S if process is not None else 0, LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
