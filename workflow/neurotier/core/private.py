"""Private folders: ``neurotier-<user>`` on tiers that others can write to, and the work folders below it.

On a tier such as ``/dev/shm`` anybody can make a folder of any name, including the one we are about to use. So
``neurotier-<user>`` is used only if it is a real folder, belongs to this user, and is closed to others. Below it nobody
else can make anything, and containers only within the folders that they are given; still, each folder on the way down
is checked before use, since ``neurotier-<user>`` may once have been open to others.

A work folder holds the intermediates of a participant job, which removes it itself on success, failure and SIGTERM.
After a SIGKILL, the next run in the same results folder removes it, once it has ended the processes left over from
earlier runs; or the next job of this user on that node does, whichever results it is for. A lock that ends with the
owner's processes shows whether the owner is still alive; unlike a process number, this works in containers, too. A
network file system may have no locks, or allow no writes under one: then leftovers stay until the next run in the same
results folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from socket import gethostname

from neurotier.core.errors import BusyError, NeurotierError, TierError
from neurotier.core.files import Record, remove_path
from neurotier.core.foreign import FILE, kind_of, open_file, read_text
from neurotier.core.processes import signals_blocked

PREFIX = "neurotier-"
PRIVATE = 0o700

MOST_LINKS = 40
"""Most links that the kernel follows in one path."""


def user_name() -> str:
    """Name of this process's user, whatever the environment says; the number if there is no name (in containers)."""
    return name_of(os.getuid())


@cache
def name_of(user: int) -> str:
    """A user's name, or the number of a user without a name here.

    It is looked up once: if a directory service stops answering, this process's folders must keep their name; and the
    service should not be asked at each look at a folder.
    """
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def private_folder(tier: Path) -> Path:
    """This user's folder on a tier."""
    return tier / f"{PREFIX}{user_name()}"


def way_to(folder: Path) -> list[Path]:
    """The last ``neurotier-<user>`` in a path, and each folder from there down to the end of the path.

    >>> [path.parent.name for path in way_to(Path("/tier") / f"{PREFIX}{user_name()}" / "work" / "x")][::2]
    ['tier', 'work']
    """
    upwards = [folder, *folder.parents]
    top = [path.name for path in upwards].index(f"{PREFIX}{user_name()}")
    return upwards[top::-1]


def check_private(folder: Path, where: str = "") -> None:
    """Raise :class:`TierError` if ``neurotier-<user>``, or a folder below it, must not be used; change nothing.

    Parameters
    ----------
    folder
        The folder; every folder from ``neurotier-<user>`` down to it is checked.
    where
        What to call the tier in an error.

    Raises
    ------
    FileNotFoundError
        If one of them does not exist.
    """
    for here in way_to(folder):
        refuse_unless_ours(here, where)


def refuse_unless_ours(folder: Path, where: str) -> None:
    """Raise :class:`TierError` unless a folder is real, this user's and, if at the top, not writable by others."""
    facts, remove = folder.lstat(), "remove it, or have it removed, or place the role on another tier"
    owner = name_of(facts.st_uid)
    if not stat.S_ISDIR(facts.st_mode):
        raise TierError(f"{folder} is {kind_of(facts.st_mode)} made by user {owner}, not a folder", where, remove)
    if facts.st_uid != os.getuid():
        raise TierError(
            f"{folder} belongs to user {owner} and not to {user_name()}", where, f"{remove} (a server may squash root)"
        )
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and folder == private_folder(folder.parent):
        mode = stat.S_IMODE(facts.st_mode)
        raise TierError(
            f"{folder} is writable by other users (mode {mode:o})",
            where,
            f"check who has written there, then chmod 700 {folder}",
        )


def refuse_planted(path: Path, where: str, fix: str, own: bool = False) -> None:
    """Raise :class:`TierError` if another user made, or can replace, a part of a path; change nothing.

    The path is walked link by link, as the kernel does. This user, root, and what a group shares are trusted.

    Parameters
    ----------
    path
        A folder; the part of the path that does not exist yet is not checked.
    where, fix
        What the folder is for, and what to do about it.
    own
        Whether the folder itself must be this user's or root's, and not writable by everybody, because its content is
        written and removed.
    """
    trusted = {0, os.getuid(), os.stat("/").st_uid}  # a container may have another number for the host's root
    here, names, links = Path("/"), list(path.absolute().parts[:0:-1]), 0
    while names and links <= MOST_LINKS:
        name = names.pop()
        if name == "..":
            here = here.parent
            continue
        above, here = here, here / name
        try:
            facts, was_open = here.lstat(), above.stat().st_mode & stat.S_IWOTH
            leads_to = Path(os.readlink(here)) if stat.S_ISLNK(facts.st_mode) else None
        except OSError:  # it does not exist, or this user may not see it
            return
        is_own = own and not names and leads_to is None
        is_shared = facts.st_mode & stat.S_IWGRP and facts.st_gid in (os.getegid(), *os.getgroups())
        it, owner, is_theirs = f"{here} is {kind_of(facts.st_mode)}", name_of(facts.st_uid), facts.st_uid not in trusted
        if is_theirs and (is_own or leads_to is not None or (was_open and not is_shared)):
            raise TierError(f"{it} that user {owner} made{' where everybody may write' * bool(was_open)}", where, fix)
        is_open = leads_to is None and facts.st_mode & stat.S_IWOTH
        if is_open and (is_theirs or is_own or not facts.st_mode & stat.S_ISVTX):
            mend = f"check who has written there and chmod o-w {here} (exFAT, NTFS: mount with umask=022), or {fix}"
            raise TierError(f"{it} of user {owner} that everybody may write to", where, mend)
        if leads_to is not None:
            links, here = links + 1, Path("/") if leads_to.is_absolute() else above
            names += [part for part in leads_to.parts[::-1] if part != "/"]


def make_private(folder: Path) -> None:
    """Make a folder at or below ``neurotier-<user>`` with its missing parents, for this user alone.

    It tries several times, since a job that is just ending may remove an empty parent.

    Raises
    ------
    TierError
        If one of them must not be used (:func:`check_private`).
    """
    way = way_to(folder)
    for tries_left in range(10, -1, -1):
        try:
            for here in way:
                with suppress(FileExistsError):
                    here.mkdir(PRIVATE)
                refuse_unless_ours(here, "")
            way[0].chmod(PRIVATE)
            return
        except FileNotFoundError:
            if not tries_left:
                raise


def names_in(folder: Path) -> list[str]:
    """Names in a private folder, sorted; none if it does not exist or cannot be read, which its users will report."""
    try:
        check_private(folder)
        return sorted(os.listdir(folder))
    except OSError:
        return []


def remove_private(path: Path) -> None:
    """Remove anything at a path below ``neurotier-<user>``, as far as possible; links are not followed."""
    with suppress(OSError):
        check_private(path.parent)
        remove_path(path)


def remove_empty(folder: Path) -> None:
    """Remove a private folder and its parents up to ``neurotier-<user>``, as far as they are empty."""
    with suppress(OSError):
        check_private(folder)
    for empty in reversed(way_to(folder)):
        try:
            empty.rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # not empty, or not removable
            return


def clear(folder: Path) -> None:
    """Remove a private folder, and then its parents, as far as they are empty."""
    remove_private(folder)
    remove_empty(folder.parent)


def read_private(file: Path) -> str:
    """Text of a file in a private folder; empty if it is missing, not a file, or must not be read."""
    with suppress(OSError, NeurotierError):
        check_private(file.parent)
        return read_text(file.parent, file.name)
    return ""


# Work folders.

OWNER = "owner.json"

MARK_BYTES = 4096
"""Most bytes read from :data:`OWNER`."""

ABANDONED = ".abandoned-"
"""Prefix of folders that are being removed, or whose removal was interrupted: no process uses them."""

IN, OUT, SCRATCH = "in", "out", "scratch"
"""Folders in a participant's work folder: input staged in, output to stage out, and the tool's own files."""


@contextmanager
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
        If it is in use for other results: those at the same path on another host, or in another container.
    TierError
        If the folder cannot be private (:mod:`neurotier.core.private`).
    """
    try:
        if not remove_leftover(folder, identity):
            raise FileExistsError
        make_private(folder)
        written = (folder / OWNER).open("xb", 0)
    except FileExistsError:  # or another process has just made it
        raise BusyError("is in use for other results", folder, "choose another results folder") from None
    owner = {"host": gethostname(), "pid": os.getpid(), "identity": identity}
    mark = (folder / OWNER).open("rb")  # open for writing, it would prevent remounting the tier read-only
    try:
        with written:
            written.write(json.dumps(owner).encode())
            with suppress(OSError):  # the file system has no locks, or allows no writes under one
                fcntl.flock(mark, fcntl.LOCK_SH)
                os.pwrite(written.fileno(), json.dumps(owner | {"locked": True}).encode(), 0)
        yield folder
    finally:
        with suppress(OSError), signals_blocked():  # the next run removes what cannot be removed now
            with mark:
                for name in sorted(names_in(folder), key=OWNER.__eq__):  # the mark last, in case of a kill
                    remove_private(folder / name)
            remove_private(folder)  # NFS keeps the name of a file while it is open


def remove_leftovers(work: Path, identity: str) -> list[str]:
    """Remove every work folder that an earlier run left below ``work``.

    The caller holds the lock of the results folder and has ended the processes of earlier runs, so no work folder of
    these results is in use. On a shared work tier, that includes folders that other hosts made for these results.

    Returns
    -------
    list of str
        Names of the removed folders.
    """
    removed = [name for name in names_in(work) if remove_leftover(work / name, identity)]
    remove_empty(work)
    return removed


def remove_leftover(folder: Path, identity: str) -> bool:
    """Remove a leftover work folder, unless it may be in use for other results; returns whether it was removed."""
    with owner_of(folder) as (owner, is_alone):
        is_used = owner["host"] != gethostname() or (owner.get("locked") and not is_alone)
    if is_used and owner.get("identity") != identity:
        return False
    with owner_of(folder, fcntl.LOCK_SH):
        remove_private(folder)
    return True


def remove_abandoned(parent: Path) -> None:
    """Remove work folders below ``parent`` whose owner ran on this host and has ended, for any results."""
    for name in names_in(parent):
        folder = parent / name
        if not name.startswith(ABANDONED):
            with owner_of(folder) as (owner, is_alone):
                if not is_alone or not owner.get("locked") or owner["host"] != gethostname():
                    continue
                # so that a job that wants this name need not wait for the removal
                folder = folder.rename(parent / f"{ABANDONED}{secrets.token_hex(8)}")
        remove_private(folder)


@contextmanager
def owner_of(folder: Path, lock: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> Iterator[tuple[Record, bool]]:
    """Yield who made a work folder, and whether this process holds the lock on its mark meanwhile.

    The owner holds a shared lock, and so does a process that makes the folder again. A process that removes another
    owner's folder holds an exclusive lock, for which NFS requires the mark to be open for writing.

    Parameters
    ----------
    folder
        The work folder; if its maker was killed before writing the mark, this host is taken for the owner's.
    lock
        How to lock it (``flock``); by default exclusively and without waiting, or not at all.
    """
    owner: Record = {"host": gethostname()}
    is_locked = False
    with ExitStack() as stack:
        with suppress(OSError, NeurotierError, TypeError, ValueError):
            check_private(folder)
            mark = stack.enter_context(open_file(folder, OWNER, FILE | os.O_RDWR))
            owner |= dict(json.loads(mark.read(MARK_BYTES)))
            fcntl.flock(mark, lock)
            is_locked = os.path.samestat(os.fstat(mark.fileno()), (folder / OWNER).lstat())  # not an earlier one
        yield owner, is_locked
