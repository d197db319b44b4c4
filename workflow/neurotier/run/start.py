"""A run: one start of the workflow on a results folder.

A run locks the results folder, removes what a killed run left, checks its tiers before anything is run, and notes the
facts about machine, tiers and versions. Snakemake's own lock survives a ``kill -9`` and then requires
``--unlock``; this one is a kernel lock on an open file and ends with the process, so the Snakemake profiles set
``nolock``.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import platform
import re
import secrets
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from neurotier import __version__
from neurotier.analysis.app import app_name
from neurotier.core.errors import BusyError, NeurotierError, StateError, TierError, without_credentials
from neurotier.core.files import open_lock, read_json, remove_partials, remove_whatever, write_json, write_text
from neurotier.core.places import Places
from neurotier.core.private import refuse_planted, remove_leftovers
from neurotier.core.processes import RUN, end, processes_of
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier, tiers_of
from neurotier.run.healing import restore_state
from neurotier.run.jobs import add_facts, noted, results_folder, run_facts, save_settings
from neurotier.run.journal import heard
from neurotier.run.snakemake_internals import Slots

DAMAGED = (NeurotierError, OSError, AttributeError, LookupError, TypeError, ValueError)
"""What reading damaged state raises."""

VERSIONED = ("snakemake", "datalad", "git-annex", "pybids", "nibabel", "numpy", "brainextractor")

held: dict[Path, int] = {}
"""Locks held by this process until it ends, with their descriptors."""


def start_run(
    settings: Settings,
    slots: Slots,
    command_line: list[str],
    wishes: Mapping[str, Any],
    roles: Collection[str],
) -> str:
    """Begin a run: check the tiers, lock, and note the facts.

    Parameters
    ----------
    settings
        The configuration.
    slots
        How many jobs run at once.
    command_line
        As the user gave it.
    wishes
        What is to be known of it later: ``keep_going`` after failures, ``anew`` who is done already, ``elsewhere``, on
        the nodes of a cluster, jobs run, and what results are ``made_with``.
    roles
        Roles whose tiers are needed; others need not be there.

    Returns
    -------
    str
        The run's identifier, which is also put into the environment, for the jobs.

    Raises
    ------
    TierError
        If a tier is missing, not writable, or not of the declared kind.
    BusyError
        If another run holds the results folder.
    """
    places, tiers = Places.from_settings(settings), tiers_of(settings, elsewhere=wishes.get("elsewhere", False))
    needed = {tiers[role].name for role in roles}
    tiers = {role: tier if tier.name in needed else replace(tier, node=True) for role, tier in tiers.items()}
    for tier in {tier.name: tier for tier in tiers.values()}.values():
        tier.claim()
    try:
        return lock_and_note(settings, places, tiers, slots, command_line, wishes)
    except OSError as error:
        raise unwritable(places, error) from None


def refuse_planted_places(results: Path, tiers: Iterable[Tier] = ()) -> None:
    """Raise :class:`TierError` if another user may have planted the results folder or a tier, or what leads there."""
    refuse_planted(results, "results folder", "choose another folder with --config results=NAME", own=True)
    for tier in tiers:
        tier.refuse_planted()


def unwritable(places: Places, error: OSError) -> TierError:
    """The error for a results folder that cannot be written."""
    return TierError(
        f"results folder cannot be written: {error.strerror}",
        where=str(places.results),
        fix="free some space, or correct its permissions",
    )


def lock_and_note(
    settings: Settings,
    places: Places,
    tiers: dict[str, Tier],
    slots: Slots,
    command_line: list[str],
    wishes: Mapping[str, Any],
) -> str:
    """Lock the results folder, and note the facts of this run; its identifier."""
    places.state.mkdir(parents=True, exist_ok=True)
    run = identifier()
    acquire(places)
    restore_state(places)
    remove_whatever(places.journal(""))  # before jobs that are taken over tell there what they are at
    write_text(places.latest_run, run + "\n")
    save_settings(settings, places, wishes.get("elsewhere", False))
    cpus = len(os.sched_getaffinity(0))
    write_json(
        places.runs / f"{run}.json",
        {
            "run": run,
            "started_s": time.time(),
            "pid": os.getpid(),
            "command_line": command_line,
            "cores": slots.cores,
            "parallelism": slots.parallelism,
            "limits": slots.limits,
            **wishes,
            "analysis": app_name(settings),
            "image": settings.image,
            # On a cluster the nodes' CPUs count, which its jobs tell (neurotier.run.cluster_jobs).
            "oversubscribed": bool(slots.cores and slots.cores > cpus and not wishes.get("elsewhere")),
            "settings": noted(settings),
            "tiers": {role: tier.facts() for role, tier in tiers.items()},
            "versions": versions(),
            **machine(cpus),
        },
    )
    os.environ[RUN] = run
    return run


def end_run(settings: Settings, run: str, stopped_by: str | None = None, succeeded: bool = True) -> None:
    """End a run: end its processes, clear the work tier, and note swapping, time, and what became of it."""
    places = Places.from_settings(settings)
    end(processes_of([run]))
    remove_leftovers(places.work, places.identity)
    note_swapping(places, run)
    again, succeeded = bool(heard(places, run, "again")), succeeded and stopped_by is None
    add_facts(places, run, ended_s=time.time(), succeeded=succeeded, stopped_by=stopped_by, again=again)


def note_swapping(places: Places, run: str) -> None:
    """Note how many bytes the machine has swapped out since the run began, which makes timings invalid."""
    facts = run_facts(places, run)
    if facts.get("host") == socket.gethostname():
        add_facts(places, run, swap_out_bytes=psutil.swap_memory().sout - facts["swap_out_before_bytes"])


def acquire(places: Places) -> None:
    """Lock the results folder until this process ends, however that happens; further calls do nothing.

    Raises
    ------
    BusyError
        If another run holds it.
    """
    lock = places.lock.absolute()
    if lock in held:
        return
    descriptor = open_lock(lock)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a FIFO cannot be written anew
        os.close(descriptor)
        raise StateError(lock)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 1000).decode(errors="replace").strip()
        os.close(descriptor)
        raise BusyError(
            f"another run is using this results folder ({holder})",
            where=str(lock.parent.parent),
            fix="wait for it, or choose another folder with --config results=NAME",
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    held[lock] = descriptor


@cache
def identifier() -> str:
    """The identifier of what this process runs: of several modules, too, since jobs inherit one environment."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(2)


def forget_runs_of_another(places: Places) -> None:
    """Forget runs without an end, and jobs of clusters, if this folder is a copy: they may go on in the other."""
    try:
        made = results_folder(Settings.from_json(read_json(places.settings_file)))
        is_copy = made.exists() and not made.samefile(places.results)
    except DAMAGED:
        return
    if is_copy:
        for file in places.runs.glob("*.json"):
            with suppress(*DAMAGED):
                if "ended_s" not in read_json(file):
                    remove_whatever(file)


def clear_up(places: Places, work: Tier) -> None:
    """End what earlier runs left running, and remove their intermediates and unfinished files.

    The caller holds the folder's lock, and its own run has not begun. A work tier of the nodes is left to their jobs.
    """
    end(processes_of({file.stem for file in places.runs.glob("*.json")}))
    if not work.node:
        with suppress(OSError):  # whoever needs the tier says so, and results are healed without
            remove_leftovers(places.work, places.identity)
    remove_unfinished(places)


def remove_unfinished(places: Places) -> None:
    """Remove unfinished files of earlier runs, which have hidden names; folders of participants are not entered."""
    participants = re.compile(r"(?!sub-).*")
    for folder in (places.derivatives, places.results / "app"):
        remove_partials(folder, participants)
    others = [folder for folder in places.results.glob("*") if folder.name not in ("derivatives", "app")]
    for folder in others:
        remove_partials(folder)
    for file in places.results.glob(".*.partial"):
        remove_whatever(file)


def machine(cpus: int) -> dict[str, Any]:
    """Facts about the node that Snakemake runs on."""
    return {
        "host": socket.gethostname(),
        "kernel": f"{platform.system()} {platform.release()}",
        "cpus": cpus,
        "memory_bytes": psutil.virtual_memory().total,
        "swap_bytes": psutil.swap_memory().total,
        "swap_out_before_bytes": psutil.swap_memory().sout,
    }


def versions() -> dict[str, str]:
    """Versions of the software that results and timings depend on."""
    installed = {"neurotier": __version__, "python": platform.python_version()}
    for name in VERSIONED:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return installed | ({"commit": commit.stdout.strip()} if commit.returncode == 0 else {})


def command_line() -> list[str]:
    """The command as the user gave it, but for what no record may hold."""
    return [Path(sys.argv[0]).name, *map(without_credentials, sys.argv[1:])]
