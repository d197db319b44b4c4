"""Work folders: a participant job's intermediates, private, below the work tier, and gone afterwards.

A job removes its folder itself on success, failure and SIGTERM. After a SIGKILL nobody can, so each folder says
who owns it, and the next start of the same results folder sweeps: owners that still live (jobs of a Snakemake
that was killed) are ended first, since their run is over, then processes that still work there, then the folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from neurotier.errors import BusyError
from neurotier.files import read_json, write_json
from neurotier.meter.tree import LIBC, PR_SET_PDEATHSIG

OWNER = "owner.json"
PATIENCE_S = 10.0

IN, OUT, SCRATCH = "in", "out", "scratch"
"""Folders of a participant's work folder: what was staged in, what is staged out, and what is the tool's own."""


@contextlib.contextmanager
def work_folder(folder: Path, identity: str) -> Iterator[Path]:
    """A folder of the caller's own, made empty, removed on the way out whatever happened.

    Parameters
    ----------
    folder
        Where it shall be.
    identity
        Identity of the results folder that the work is for.

    Raises
    ------
    BusyError
        If another host works there for other results that have the same path.
    """
    if not sweep_folder(folder, identity):
        raise BusyError("is in use by another host", where=str(folder), fix="choose another results folder")
    make_folder(folder)
    write_json(
        folder / OWNER,
        {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started_s": started_s(os.getpid()),
            "identity": identity,
        },
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, though a job that has just ended may remove a parent again while it is empty."""
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            folder.mkdir(parents=True)
            return
    folder.mkdir(parents=True)


def sweep(work: Path, identity: str) -> list[str]:
    """Remove every work folder that an earlier run left below ``work``.

    The caller holds the lock of the results folder, so nothing here belongs to a living run of these results.
    Folders of other hosts are removed if they were made for these very results (a shared work tier); processes
    there cannot be reached from here.

    Returns
    -------
    list of str
        Names of the folders that were there and are gone.
    """
    left = sorted(path for path in work.iterdir() if path.is_dir()) if work.is_dir() else []
    swept = [folder.name for folder in left if sweep_folder(folder, identity)]
    remove_empty(work)
    return swept


def sweep_folder(folder: Path, identity: str) -> bool:
    """End whoever still works in a left-over folder, and remove it; whether it is gone."""
    if not folder.exists():
        return True
    owner = read_owner(folder)
    if owner.get("host", socket.gethostname()) != socket.gethostname() and owner.get("identity") != identity:
        return False
    process = living_owner(owner)
    if process is not None:
        end([process])  # a participant job ends its own tree
    end(working_in(folder))
    shutil.rmtree(folder, ignore_errors=True)
    return True


def read_owner(folder: Path) -> dict[str, Any]:
    """Who made a work folder; nothing if a kill came before it was noted."""
    try:
        owner: dict[str, Any] = read_json(folder / OWNER)
    except (OSError, ValueError):
        return {}
    return owner


def living_owner(owner: dict[str, Any]) -> psutil.Process | None:
    """The owner's process, if it runs on this host and its number was not given away since."""
    try:
        process = psutil.Process(owner["pid"])
        same = owner["host"] == socket.gethostname() and abs(process.create_time() - owner["started_s"]) < 0.1
    except (KeyError, psutil.Error):
        return None
    return process if same and process.pid != os.getpid() else None


def working_in(folder: Path) -> list[psutil.Process]:
    """Processes of this user whose working folder lies in ``folder``: tools that outlived their job."""
    inside, folder = [], folder.resolve()
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder) and process.pid != os.getpid():
                inside.append(process)
        except (psutil.Error, OSError):
            continue
    return inside


def end(processes: list[psutil.Process]) -> None:
    """SIGTERM, and SIGKILL for those that do not follow it."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=PATIENCE_S)


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it is gone, however that went."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def started_s(pid: int) -> float:
    """When a process started, s since 1970: with its number, it names a process for good."""
    return float(psutil.Process(pid).create_time())


def remove_empty(folder: Path) -> None:
    """Remove a work folder and its empty parents up to ``neurotier-<user>``, so that nothing stays on the tier."""
    while True:
        try:
            folder.rmdir()
        except OSError:
            return
        if folder.name.startswith("neurotier-"):
            return
        folder = folder.parent
