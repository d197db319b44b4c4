"""Work folders: the intermediates of a participant job, private, on the work tier, and removed afterwards.

A job removes its folder itself on success, failure and SIGTERM. After a SIGKILL, the next run in the same results
folder removes it, once it has ended the processes that are left of earlier runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from neurotier.core.errors import BusyError, NeurotierError
from neurotier.core.foreign import read_text
from neurotier.core.private import make_private, names_in, remove_empty, remove_private
from neurotier.core.processes import lives, signals_wait

OWNER = "owner.json"

IN, OUT, SCRATCH = "in", "out", "scratch"
"""Folders in a participant's work folder: staged in, to be staged out, and the tool's own files."""


@contextlib.contextmanager
def work_folder(folder: Path, identity: str) -> Iterator[Path]:
    """An empty private folder for the caller, removed at the end whatever happens.

    Parameters
    ----------
    folder
        Its path, below ``neurotier-<user>`` of a tier.
    identity
        Identity of the results folder that the work is for.

    Raises
    ------
    BusyError
        If another host uses it for other results with the same path.
    TierError
        If the folder cannot be private (:mod:`neurotier.core.private`).
    """
    if not remove_leftover(folder, identity):
        raise BusyError("is in use by another host", where=str(folder), fix="choose another results folder")
    make_private(folder)
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "started_s": psutil.Process().create_time()}
    try:
        (folder / OWNER).write_text(json.dumps(owner | {"identity": identity}))
        yield folder
    finally:
        with contextlib.suppress(OSError), signals_wait():  # the next run removes what cannot be removed now
            remove_private(folder)


def remove_leftovers(work: Path, identity: str) -> list[str]:
    """Remove every work folder that an earlier run left below ``work``.

    The caller holds the lock of the results folder and has ended the processes of earlier runs, so no folder of these
    results is in use. On a shared work tier that includes folders made by other hosts for these results.

    Returns
    -------
    list of str
        Names of the removed folders.
    """
    removed = [name for name in names_in(work) if remove_leftover(work / name, identity)]
    remove_empty(work)
    return removed


def remove_leftover(folder: Path, identity: str) -> bool:
    """Remove a left-over folder, unless another host made it for other results; whether it was removed."""
    owner = read_owner(folder)
    if owner.get("host", socket.gethostname()) != socket.gethostname() and owner.get("identity") != identity:
        return False
    remove_private(folder)
    return True


def remove_abandoned(parent: Path) -> None:
    """Remove the folders below ``parent`` whose owner ran on this host and has ended, whatever results they are for."""
    for name in names_in(parent):
        owner = read_owner(parent / name)
        if owner and not owner_lives(owner):
            remove_leftover(parent / name, identity="")  # those of other hosts stay


def read_owner(folder: Path) -> dict[str, Any]:
    """Who made a work folder; empty if its maker was killed before noting it."""
    try:
        owner = json.loads(read_text(folder, OWNER))
    except (OSError, ValueError, NeurotierError):
        return {}
    return owner if isinstance(owner, dict) else {}


def owner_lives(owner: dict[str, Any]) -> bool:
    """Whether the process that made a folder still runs on this host.

    Good enough for leaving a folder alone, not for ending a process (:mod:`neurotier.core.processes`).
    """
    try:
        process = psutil.Process(owner["pid"])
        same = owner["host"] == socket.gethostname() and abs(process.create_time() - owner["started_s"]) < 0.1
    except (KeyError, TypeError, ValueError, psutil.Error):
        return False
    return same and lives(process)
