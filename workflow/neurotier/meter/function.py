"""Measure a Python function: it runs in a child process, and its value or exception comes back by pickle."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from neurotier.core.errors import KilledError
from neurotier.core.libc import memory_file
from neurotier.core.processes import flush_output
from neurotier.meter.folders import FolderWatch
from neurotier.meter.measure import measure_child
from neurotier.meter.tree import describe_exit, shell_code
from neurotier.meter.usage import Usage

T = TypeVar("T")


def measure_function(
    function: Callable[[], T], watches: Sequence[FolderWatch] = (), where: str = ""
) -> tuple[T, Usage]:
    """Run a function in a child process and measure its tree; returns the function's value and its cost.

    Parameters
    ----------
    function
        What to run. Its value, or the exception it raises, comes back by pickle.
    watches
        Folders whose files are counted meanwhile.
    where
        Names the function in the error if it is killed.

    Raises
    ------
    Exception
        The exception that the function raises.
    KilledError
        If its process is killed.
    Interrupted
        If this process receives a signal to stop; the whole tree is ended first.
    """
    outcome_file = memory_file()

    def child() -> int:
        try:
            outcome: tuple[Any, BaseException | None] = (function(), None)
        except Exception as error:  # the parent raises it again
            import traceback

            error.add_note("in the phase's process: " + "".join(traceback.format_exception(error)))
            outcome = (None, error)
        with os.fdopen(outcome_file, "wb") as file:
            file.write(to_bytes(outcome))
        flush_output()
        return 0 if outcome[1] is None else 1

    flush_output()  # otherwise both processes would write what is in the buffers now
    with os.fdopen(outcome_file, "rb") as file:
        usage, exit_code = measure_child(child, watches=watches)
        file.seek(0)
        sent = file.read()
    if not sent:
        raise KilledError(describe_exit(shell_code(exit_code)), where)
    value, error = pickle.loads(sent)
    if error is not None:
        raise error
    return value, usage


def to_bytes(outcome: tuple[Any, BaseException | None]) -> bytes:
    """Pickle an outcome; if that is impossible, pickle an error that describes the exception."""
    try:
        sent = pickle.dumps(outcome)
        pickle.loads(sent)
        return sent
    except Exception:
        return pickle.dumps((None, RuntimeError(f"{type(outcome[1]).__name__}: {outcome[1]}")))
