"""Slurm: several participants side by side in one of its jobs, and what it says of the jobs that it killed.

The executor plugin submits, watches and cancels. In a job that holds a group of participants, however, its job step
starts one Snakemake for each of them, one after another; :func:`run_group_at_once` has one do all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from neurotier.core.files import write_text

PLUGIN_LOGS = Path(".snakemake/slurm_logs")
"""Where the plugin keeps the logs of its jobs, below the working folder; those of jobs that succeed it removes."""

JOB_STEP = "slurm-jobstep"
"""The plugin's executor inside a job."""

NOTE = "Slurm job"

KEEP_GOING = "--keep-going"
"""The plugin does not tell a group's Snakemake that the others go on when one participant fails."""


def job_line() -> str:
    """First line of a participant job's log: the Slurm job it is part of; empty outside Slurm."""
    job = os.environ.get("SLURM_JOB_ID")
    return f"{NOTE} {job} on {os.environ.get('SLURMD_NODENAME', socket.gethostname())}\n" if job else ""


def job_of(log: Path) -> str | None:
    """The Slurm job that a participant job's log names; ``None`` outside Slurm."""
    with log.open(errors="replace") as file:
        found = re.match(rf"{NOTE} (\d+) ", file.readline())
    return found[1] if found else None


def state_of(job: str) -> str:
    """What became of a Slurm job, for example ``TIMEOUT``; empty if the accounting does not say."""
    if shutil.which("sacct") is None:
        return ""
    command = ["sacct", "--jobs", job, "--allocations", "--noheader", "--parsable2", "--format", "State"]
    asked = subprocess.run(command, capture_output=True, text=True)
    return asked.stdout.split("\n")[0].strip() if asked.returncode == 0 else ""


def keep_log(job: str, logs: Path) -> Path | None:
    """Keep a Slurm job's log beside the other logs, where the report finds it; the plugin removes old ones."""
    found = next(PLUGIN_LOGS.rglob(f"{job}.log"), None)
    if found is None:
        return None
    kept = logs / "slurm" / found.name
    write_text(kept, found.read_text(errors="replace"))
    return kept


def run_group_at_once(is_done: Callable[[str], bool]) -> None:
    """In a Slurm job that holds a group, become a Snakemake that runs its jobs side by side.

    Parameters
    ----------
    is_done
        Whether this run has analysed a participant already: Slurm starts a job again when its node has failed, and
        Snakemake would first remove what the first start has made.
    """
    command = group_command(sys.argv[1:], is_done)
    if command is not None:
        os.execv(command[0], command)  # noqa: S606  # this process is the Slurm job, and stays it


def group_command(arguments: Sequence[str], is_done: Callable[[str], bool]) -> list[str] | None:
    """The command that runs a group side by side; ``None`` if the arguments are not those of a group's job step.

    Parameters
    ----------
    arguments
        Command line after ``snakemake``, as the plugin gives it.
    is_done
        See :func:`run_group_at_once`.

    Examples
    --------
    >>> words = "--target-jobs a:participant=S/sub-1 a:participant=S/sub-2 --local-groupid x --cores 2"
    >>> step = "--executor slurm-jobstep --jobs 1 --mode remote"
    >>> " ".join(group_command(f"{words} {step}".split(), lambda name: name == "S/sub-1")[3:])
    '--target-jobs a:participant=S/sub-2 --local-groupid x --cores 2 --mode remote --keep-going'
    """
    words = list(arguments)
    if "--local-groupid" not in words or KEEP_GOING in words:
        return None
    start = words.index("--target-jobs") + 1
    end = next((at for at in range(start, len(words)) if words[at].startswith("--")), len(words))
    left = [job for job in words[start:end] if not is_done(job.partition(":participant=")[2])]
    if not left:
        return [shutil.which("true") or "/bin/true"]
    words[start:end] = left
    if JOB_STEP in words:
        for option in ("--executor", "--jobs"):
            at = words.index(option)
            del words[at : at + 2]
    return [sys.executable, "-m", "snakemake", *words, KEEP_GOING]
