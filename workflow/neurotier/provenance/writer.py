"""One writer at a time, and the locks of git that one that was killed has left.

git keeps others away by files that a kill leaves behind, and which do not say whose they are. So whoever writes to the
datasets of derivatives holds a lock of the kernel, and notes this host and the time. git and git-annex outlive the
process that has started them, too: the start of the next run ends what has the mark of the dead one. A writer that
finds a note takes a lock of git away only if no git works in the dataset that could hold it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from neurotier.core.errors import BusyError, StateError
from neurotier.core.files import holding, read_json, remove_whatever, write_json
from neurotier.core.places import Places

PATIENCE_S = 30.0
"""How long to wait for a lock of git that somebody else holds, such as a user who commits."""

LOOK_S = 0.2

CLOCKS_NS = 2_000_000_000
"""By how much the clock of a file system may differ from this host's; two nodes of a network share one."""

LOCKS = (
    *(".gitmodules.lock", ".git/*.lock", ".git/annex/*.lock", ".git/objects/*.lock"),
    *(".git/objects/info/**/*.lock", ".git/refs/**/*.lock"),
)
"""Files by which git and git-annex keep others away, and which stay when they are killed."""


class Writer(NamedTuple):
    """What a writer notes of itself: where it runs, and when it began; locks that are older are not its."""

    host: str
    since_ns: int = 0


@contextmanager
def writing(places: Places) -> Iterator[Writer | None]:
    """Write to the datasets of derivatives, when nobody else does; gives the writer that was killed, or has failed, if
    the last one did not come to its end. One whose note is damaged is taken for one of this host."""
    with holding(places.state / "writer"):
        before: Writer | None = None
        with suppress(FileNotFoundError):
            try:
                before = Writer(**read_json(places.saving))
            except (StateError, TypeError):
                before = Writer(socket.gethostname())
        # What it has left is not settled yet: if this one is killed, too, the next must know of both.
        write_json(places.saving, (before or Writer(socket.gethostname(), time.time_ns()))._asdict())
        try:
            yield before
        except BusyError:  # git has not been started, or has ended: locks that the next one finds are not ours
            if before is None:
                places.saving.unlink(missing_ok=True)
            raise
        places.saving.unlink(missing_ok=True)


def clear_locks(folder: Path, before: Writer | None) -> None:
    """Wait for the locks that git has in a dataset, or remove those that a writer that was killed has left.

    Parameters
    ----------
    folder
        The dataset.
    before
        The writer that was killed; ``None`` if none was.

    Raises
    ------
    BusyError
        If somebody else holds one, or it cannot be known that nobody does.
    """
    until_s = time.monotonic() + PATIENCE_S
    while locks := locks_in(folder):
        held = holder(folder, locks, before)
        if not held:
            for lock in locks:
                remove_whatever(lock)
        elif time.monotonic() > until_s:
            raise BusyError(
                f"another program is writing to this dataset ({held})",
                where=str(locks[0]),
                fix="wait for it; if there is none, remove this file, and start the same command again",
            )
        else:
            time.sleep(LOOK_S)


def holder(folder: Path, locks: Sequence[Path], before: Writer | None) -> str:
    """What may hold locks of a dataset; empty if it is known that nothing does."""
    if found := at_work_in(folder):
        return found
    if before is None:
        return "no save of neurotier was killed that could have left it"
    if before.host != socket.gethostname():
        return f"a save on {before.host} was killed, and whether git still runs there cannot be seen from here"
    for lock in locks:
        try:
            facts = lock.lstat()
        except FileNotFoundError:
            return "one of its locks was let go of just now"
        if facts.st_uid != os.getuid():
            return f"user {facts.st_uid} made its lock"
        if facts.st_mtime_ns < before.since_ns - CLOCKS_NS:
            return "its lock is older than the save that was killed"
    return ""


def at_work_in(folder: Path) -> str:
    """A git or git-annex that works in a folder on this host, besides this process's own; empty if none is seen.

    git changes to the top of a repository before it writes to it. Processes of other users cannot be seen.
    """
    whole, own = folder.resolve(), psutil.Process().children(recursive=True)
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            name = process.name()
            if name.startswith("git") and Path(process.cwd()).is_relative_to(whole) and process not in own:
                return f"process {process.pid}, {name}"
    return ""


def locks_in(folder: Path) -> list[Path]:
    """The locks that git and git-annex have in a dataset."""
    return sorted({lock for pattern in LOCKS for lock in folder.glob(pattern)})
