"""Work folders: a participant job's intermediates, private, below the work tier, and gone afterwards.

A job removes its folder itself on success, failure and SIGTERM. After a SIGKILL nobody can, so the next start of the
same results folder clears up: what still runs for its earlier runs is ended first, then the folders go.
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
from neurotier.core.processes import lives, started_s

OWNER = "owner.json"

IN, OUT, SCRATCH = "in", "out", "scratch"
"""Folders of a participant's work folder: what was staged in, what is staged out, and what is the tool's own."""


@contextlib.contextmanager
def work_folder(folder: Path, identity: str) -> Iterator[Path]:
    """A folder of the caller's own, made empty, removed on the way out whatever happened.

    Parameters
    ----------
    folder
        Where it shall be, below ``neurotier-<user>`` of a tier.
    identity
        Identity of the results folder that the work is for.

    Raises
    ------
    BusyError
        If another host works there for other results that have the same path.
    TierError
        If the folder cannot be private (:mod:`neurotier.core.private`).
    """
    if not remove_leftover(folder, identity):
        raise BusyError("is in use by another host", where=str(folder), fix="choose another results folder")
    make_private(folder)
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "started_s": started_s(os.getpid())}
    try:
        (folder / OWNER).write_text(json.dumps(owner | {"identity": identity}))
        yield folder
    finally:
        with contextlib.suppress(OSError):  # what cannot be removed now is removed later
            remove_private(folder)


def remove_leftovers(work: Path, identity: str) -> list[str]:
    """Remove every work folder that an earlier run left below ``work``.

    The caller holds the lock of the results folder and has ended what earlier runs left running, so nothing here
    belongs to a living run of these results. Folders of other hosts are removed if they were made for these very
    results (a shared work tier).

    Returns
    -------
    list of str
        Names of the folders that were there and are gone.
    """
    removed = [name for name in names_in(work) if remove_leftover(work / name, identity)]
    remove_empty(work)
    return removed


def remove_leftover(folder: Path, identity: str) -> bool:
    """Remove a left-over folder, unless another host made it for other results; whether it is gone."""
    owner = read_owner(folder)
    if owner.get("host", socket.gethostname()) != socket.gethostname() and owner.get("identity") != identity:
        return False
    remove_private(folder)
    return True


def remove_abandoned(parent: Path) -> None:
    """Remove the folders below ``parent``, made for whatever results, whose owner ran on this host and has ended."""
    for name in names_in(parent):
        owner = read_owner(parent / name)
        if owner and not owner_lives(owner):
            remove_leftover(parent / name, identity="")  # those of other hosts stay


def read_owner(folder: Path) -> dict[str, Any]:
    """Who made a work folder; nothing if a kill came before it was noted."""
    try:
        owner = json.loads(read_text(folder, OWNER, where=str(folder / OWNER)))
    except (OSError, ValueError, NeurotierError):
        return {}
    return owner if isinstance(owner, dict) else {}


def owner_lives(owner: dict[str, Any]) -> bool:
    """Whether a folder's owner runs on this host, and its number was not given away since.

    Good enough to leave a folder alone; never to end a process (:mod:`neurotier.core.processes`).
    """
    try:
        process = psutil.Process(owner["pid"])
        same = owner["host"] == socket.gethostname() and abs(process.create_time() - owner["started_s"]) < 0.1
    except (KeyError, TypeError, ValueError, psutil.Error):
        return False
    return same and lives(process)
