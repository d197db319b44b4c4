"""Slurm: list this user's jobs, and end them. A run's jobs are submitted and watched by Snakemake's executor plugin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from neurotier.core.errors import BusyError, one_line
from neurotier.core.quantities import seconds

NOT_SET_UP = "Could not establish a configuration source"
"""Message of Slurm's commands where they are installed but there is no cluster."""

PATIENCE_S = 30.0
"""How long a command of Slurm may take by default, s."""

CANCEL_S = 90.0
"""How long Slurm may take to end a job, s: by default it kills the job after ``KillWait``, 30 s."""

LOOK_S = 1.0

OVER = (
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
)
"""States of a job that has ended."""


USUAL = {"None", "Priority", "Resources", "BeginTime", "Dependency", "JobArrayTaskLimit"}
"""Reasons why a job waits that will run without further action when it is its turn."""


def run_command(*command: str, patience_s: float = PATIENCE_S, **variables: str) -> tuple[str, str]:
    """Run a command of Slurm; returns what it printed, and a line that says why it failed. One of the two is empty.

    ``variables`` are set in its environment.
    """
    name = command[0]
    # a user's own defaults for these commands could hide jobs
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SQUEUE_", "SINFO_"))}
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment | variables, timeout=patience_s
        )
    except FileNotFoundError:
        return "", f"there is no {name}"
    except OSError as error:
        return "", f"{name}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return "", f"{name} did not answer within {seconds(patience_s)}"
    if asked.returncode:
        said = one_line(asked.stderr.strip().rpartition("\n")[2])
        return "", f"{name} ended with exit code {asked.returncode}" + (f": {said}" if said else "")
    return asked.stdout, ""


def number(text: str) -> int | None:
    """A whole number, with or without a final ``+`` (for "some nodes have more"); ``None`` for other text, such as
    ``Unknown``."""
    text = text.removesuffix("+")
    return int(text) if re.fullmatch("[0-9]+", text) else None


def duration_s(text: str) -> float | None:
    """A time, ``[DAYS-][HOURS:]MINUTES:SECONDS``, in s; ``None`` for other text, such as ``UNLIMITED``.

    >>> [duration_s(text) for text in ("1-02:03:04", "01:02.500", "00:00:00", "UNLIMITED", "")]
    [93784.0, 62.5, 0.0, None, None]
    """
    days, _, clock = text.rpartition("-")
    with suppress(ValueError):
        parts = [float(part) * 60.0**place for place, part in enumerate(reversed(clock.split(":")))]
        return int(days or 0) * 86_400 + sum(parts)
    return None


class Queued(NamedTuple):
    """A job as squeue lists it: its state, such as ``RUNNING``, its name, the reason if it waits, its nodes, if any,
    and its working folder."""

    state: str
    name: str
    reason: str
    nodes: str
    folder: str

    @property
    def description(self) -> str:
        """Its state, with the reason if it waits, for people."""
        return f"{self.state} ({self.reason})" if self.state == "PENDING" else self.state


def is_set_up() -> bool:
    """Whether this machine belongs to a Slurm cluster."""
    return shutil.which("squeue") is not None and NOT_SET_UP not in run_command("squeue", "--me")[1]


def queue(*options: str) -> dict[str, Queued]:
    """This user's waiting and running jobs by number, in order of number; empty if there is no Slurm.

    ``options`` of squeue may select other jobs; with ``--states=all``, ended jobs are included.

    Raises
    ------
    BusyError
        If Slurm does not answer.
    """
    if shutil.which("squeue") is None:
        return {}
    # Job numbers are not passed to squeue: if Slurm has forgotten one of them, some versions print nothing. Without
    # --all squeue leaves out jobs in partitions that are hidden, or closed to the user by now.
    said, reason = run_command(
        "squeue", "--me", "--all", "--noheader", "--array", "--sort=i", "--format=%i|%T|%j|%r|%N|%Z", *options
    )
    if reason and (NOT_SET_UP not in reason or options):  # a caller that passes options has jobs in Slurm
        raise BusyError(reason, "Slurm", "start the same command again when squeue answers")
    # Numbers are like 100, 100_0 in an array, or 100+0. The name of a user's own job may have line breaks.
    jobs = re.findall(r"^(\d\S*?)\|(.*?)\|(.*?)\|(.*?)\|(.*?)\|(.*)$", said, re.MULTILINE)
    every = "--states=all" in options
    return {number: Queued(state, *about) for number, state, *about in jobs if every or state not in OVER}


def cancel(numbers: Collection[str], *options: str, patience_s: float = CANCEL_S) -> dict[str, str]:
    """End jobs, and wait until they are gone; returns the states of those that remain, by number. ``options`` name
    clusters."""
    if not numbers:
        return {}
    run_command("scancel", *options, *numbers)
    deadline_s = time.monotonic() + patience_s
    while still := {number: job.state for number, job in queue(*options).items() if number in numbers}:
        if time.monotonic() > deadline_s:
            break
        time.sleep(LOOK_S)
    return still
