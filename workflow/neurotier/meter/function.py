"""Measure a Python function: it runs in a child process; its value, or what it raised, comes back by pickle."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from neurotier.meter.measure import measure_child
from neurotier.meter.tree import describe_exit, die_with_parent, shell_code
from neurotier.meter.usage import Usage

T = TypeVar("T")


@dataclass(frozen=True)
class Measured(Generic[T]):
    """A phase's outcome beside its cost; ``error`` is what the function raised, if it raised."""

    usage: Usage
    exit_code: int
    value: T | None = None
    error: BaseException | None = None


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
        flush()
        return 0 if outcome[1] is None else 1

    flush()  # what is buffered now would be written by both processes
    with os.fdopen(outcome_file, "rb") as file:
        usage, exit_code = measure_child(child, grace_s)
        file.seek(0)
        sent = file.read()
    code = shell_code(exit_code)
    if not sent:
        return Measured(usage, code, error=ChildProcessError(describe_exit(code)))
    value, error = pickle.loads(sent)
    return Measured(usage, code, value, error)


def flush() -> None:
    """Write out what was printed."""
    sys.stdout.flush()
    sys.stderr.flush()


def to_bytes(outcome: tuple[Any, BaseException | None]) -> bytes:
    """Pickle an outcome; an exception that cannot be pickled is sent as its description."""
    try:
        sent = pickle.dumps(outcome)
        pickle.loads(sent)
        return sent
    except Exception:
        return pickle.dumps((None, RuntimeError(f"{type(outcome[1]).__name__}: {outcome[1]}")))


def run_in_phase(command: list[str], log: Any = None, cwd: str | None = None) -> int:
    """Run a tool inside a metered function: it dies with it, and its exit code comes back as a shell gives it.

    Parameters
    ----------
    command
        Words, never read by a shell.
    log
        File that takes both output streams.
    cwd
        Working folder; the clean-up after a kill finds a tool's processes by it.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd, preexec_fn=die_with_parent, check=False
    )
    return shell_code(done.returncode)
