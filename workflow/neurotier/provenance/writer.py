"""One writer at a time, and the locks of git that one who was killed has left.

git keeps others away by files that a kill leaves behind, and which do not say whose they are. git and git-annex outlive
the process that has started them, too, and go on writing. So whoever writes to the datasets of derivatives holds a
lock of the kernel, marks its processes, and notes that mark and this host. The next one finds the note, ends
what has the mark, and takes a lock of git away only when no process is left that could hold it.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from neurotier.core.errors import BusyError, StateError
from neurotier.core.files import holding, read_json, remove_whatever, write_json
from neurotier.core.places import Places
from neurotier.core.processes import end, has_mark, marked

MARK = "NEUROTIER_WRITER"
"""Environment variable that marks the processes of a writer."""

PATIENCE_S = 30.0
"""How long to wait for a lock of git that somebody else holds, such as a user who commits, and for processes to end."""

LOOK_S = 0.2

CLOCKS_NS = 2_000_000_000
"""By how much the clock of a file system may differ from this host's; two nodes of a network share one."""

LOCKED = (".", "refs", "annex", "objects")
"""Folders of a repository in which git and git-annex make locks; those below ``refs`` are looked at, too."""


@dataclass(frozen=True)
class Writer:
    """What a writer notes of itself.

    Attributes
    ----------
    mark
        Value of :data:`MARK` in its processes.
    host
        Where it runs.
    since_ns
        When it began: locks that are older are not its.
    inode
        Of the lock that it holds: a copy of the results folder has another.
    """

    mark: str
    host: str
    since_ns: int = 0
    inode: int = 0

    @classmethod
    def noted(cls, places: Places) -> Writer | None:
        """The writer that was killed, or has failed; ``None`` if the last one came to its end.

        One whose note is damaged is taken for one of this host.
        """
        try:
            return cls(**read_json(places.saving))
        except FileNotFoundError:
            return None
        except (StateError, TypeError):
            return cls("", socket.gethostname())

    def has_left(self, places: Places) -> str:
        """Why its processes may still be there; empty if none is, since they have been ended."""
        if self.host != socket.gethostname():
            return f"a save on {self.host} was killed, and whether git still runs there cannot be seen from here"
        until_s = time.monotonic() + PATIENCE_S
        while self.mark and (left := marked(MARK, {self.mark})):
            if self.inode not in (0, os.stat(lock_of(places)).st_ino):
                return f"process {left[0].pid} saves derivatives in the folder that this one was copied from"
            end(left)  # what they start meanwhile is found the next time
            if time.monotonic() > until_s:
                return f"process {left[0].pid} of a save that was killed does not end"
        return ""


def lock_of(places: Places) -> Path:
    """The file whose kernel lock a writer holds."""
    return places.state / "writer"


@contextmanager
def writing(places: Places) -> Iterator[Writer | None]:
    """Write to the datasets of derivatives, when nobody else does; gives the writer before, if that was killed.

    Raises
    ------
    BusyError
        If that one may still be at work.
    """
    with holding(lock_of(places)):
        inode = os.stat(lock_of(places)).st_ino
        before, this = Writer.noted(places), Writer(secrets.token_hex(8), socket.gethostname(), time.time_ns(), inode)
        why = before.has_left(places) if before else ""
        if before and why and before.host == this.host:
            raise BusyError(why, where=str(places.derivatives), fix="end it, and start the same command again")
        if before:  # what it has left is not settled yet: if this one is killed, too, the next must know of both
            this = replace(this, since_ns=before.since_ns, host=before.host if why else this.host)
        os.environ[MARK] = this.mark
        write_json(places.saving, asdict(this))
        try:
            yield before
        except BusyError:  # git has not been started, or has ended: locks that the next one finds are not ours
            if before is None:
                places.saving.unlink(missing_ok=True)
            else:
                write_json(places.saving, asdict(before))
            raise
        finally:
            del os.environ[MARK]
        places.saving.unlink(missing_ok=True)


def clear_locks(folder: Path, before: Writer | None) -> None:
    """Wait for the locks that git has in a dataset, or remove those that a writer who was killed has left.

    Parameters
    ----------
    folder
        The dataset.
    before
        The writer that was killed, all of whose processes on this host have ended; ``None`` if none was.

    Raises
    ------
    BusyError
        If somebody else holds one, or it cannot be known that nobody does.
    """
    until_s = time.monotonic() + PATIENCE_S
    while locks := locks_in(folder / ".git"):
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


def holder(folder: Path, locks: list[Path], before: Writer | None) -> str:
    """Who may hold locks of a dataset; empty if it is known that nobody does."""
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
    import psutil

    whole = folder.resolve()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            name = process.name()
            is_other = name.startswith("git") and Path(process.cwd()).is_relative_to(whole)
            if is_other and not has_mark(process.pid, MARK, {os.environ.get(MARK, "")}):
                return f"process {process.pid}, {name}"
    return ""


def locks_in(repository: Path) -> list[Path]:
    """Files by which git and git-annex keep others away, and which stay when they are killed."""
    folders = [repository / name for name in LOCKED if (repository / name).is_dir()]
    found = {lock for folder in folders for lock in folder.glob("*.lock")}
    found.update(repository.parent.glob(".gitmodules.lock"))  # git makes that beside the file
    found.update(lock for name in ("refs", "objects/info") for lock in (repository / name).rglob("*.lock"))
    return sorted(found)
