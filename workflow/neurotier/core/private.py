"""Private folders: ``neurotier-<user>`` on tiers that others can write to, and everything below it.

On a tier such as ``/dev/shm`` anybody can make a folder of any name, including the one we are about to use. So
``neurotier-<user>`` is used only if it is a real folder, belongs to this user, and is closed to others. Below it nobody
else can make anything; it is walked one folder at a time without following links, since a container may have left some.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from neurotier.core.errors import TierError
from neurotier.core.foreign import FOLDER, kind_of

PREFIX = "neurotier-"
PRIVATE = 0o700

MOST_LINKS = 40
"""Links in a path that the kernel follows."""


@cache
def user_name() -> str:
    """The owner of this process, whatever the environment says; the number of a user without a name (containers).

    It is looked up once: a directory service that stops answering must not give a process's folders another name.
    """
    return name_of(os.getuid())


def name_of(user: int) -> str:
    """A user's name, or the number of one who has none here."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def private_folder(tier: Path) -> Path:
    """This user's folder on a tier."""
    return tier / f"{PREFIX}{user_name()}"


def divide(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Divide a path into its tier and the names from the last ``neurotier-<user>`` on.

    >>> divide(Path("/tier") / f"{PREFIX}{user_name()}" / "work")[1][1:]
    ('work',)
    """
    name = f"{PREFIX}{user_name()}"
    at = len(path.parts) - 1 - path.parts[::-1].index(name)
    return Path(*path.parts[:at]), path.parts[at:]


def check_private(tier: Path, where: str = "") -> None:
    """Raise :class:`TierError` if ``neurotier-<user>`` on a tier exists and must not be used; change nothing."""
    folder = private_folder(tier)
    with suppress(FileNotFoundError):
        refuse_unless_ours(folder, folder.lstat(), where)


def refuse_unless_ours(folder: Path, facts: os.stat_result, where: str = "") -> None:
    """Raise :class:`TierError` unless a folder is real, this user's, and not writable by others."""
    remove = "remove it, or have it removed, or place the role on another tier"
    if not stat.S_ISDIR(facts.st_mode):
        owner = name_of(facts.st_uid)
        raise TierError(f"{folder} is {kind_of(facts.st_mode)} made by user {owner}, not a folder", where, remove)
    if facts.st_uid != os.getuid():
        owner = name_of(facts.st_uid)
        raise TierError(f"{folder} belongs to user {owner} and not to {user_name()}", where, remove)
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(facts.st_mode)
        fix = f"check who has written there, then chmod 700 {folder}"
        raise TierError(f"{folder} is writable by other users (mode {mode:o})", where, fix)


def refuse_planted(path: Path, where: str, fix: str, own: bool = False) -> None:
    """Raise :class:`TierError` if another user has made, or can exchange, what a path leads through; change nothing.

    It is walked as the kernel does, link by link. What this user and root own is trusted, and what a group shares.

    Parameters
    ----------
    path
        A folder; what does not exist yet, nobody has made.
    where, fix
        What the folder is for, and what to do about it.
    own
        The folder itself must be this user's or root's, and nothing for everybody to write to: what it holds is
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
        except OSError:  # nothing is there, or this user does not get there
            return
        is_own = own and not names and leads_to is None
        is_shared = facts.st_mode & stat.S_IWGRP and facts.st_gid in (os.getegid(), *os.getgroups())
        it, owner, is_theirs = f"{here} is {kind_of(facts.st_mode)}", name_of(facts.st_uid), facts.st_uid not in trusted
        if is_theirs and (is_own or leads_to is not None or (was_open and not is_shared)):
            raise TierError(f"{it} that user {owner} made{' where everybody may write' * bool(was_open)}", where, fix)
        is_open = leads_to is None and facts.st_mode & stat.S_IWOTH
        if is_open and (is_theirs or is_own or not facts.st_mode & stat.S_ISVTX):
            mend = f"check who has written there and chmod o-w {here}, or {fix}"
            raise TierError(f"{it} of user {owner} that everybody may write to", where, mend)
        if leads_to is not None:
            links, here = links + 1, Path("/") if leads_to.is_absolute() else above
            names += [part for part in leads_to.parts[::-1] if part != "/"]


def open_private(path: Path, make: bool = False) -> int:
    """Open ``neurotier-<user>`` on a tier, or a folder below it.

    Parameters
    ----------
    path
        The folder.
    make
        Make the folder and its missing parents, for this user alone.

    Returns
    -------
    int
        A descriptor, which the caller closes.

    Raises
    ------
    FileNotFoundError
        If it does not exist, and ``make`` is not set.
    TierError
        If ``neurotier-<user>`` must not be used, or a component below it is a link or no folder.
    """
    tier, names = divide(path)
    descriptor = os.open(tier, FOLDER & ~os.O_NOFOLLOW)
    try:
        for count, name in enumerate(names):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, PRIVATE, dir_fd=descriptor)
            inner = open_inner(descriptor, name, Path(tier, *names[: count + 1]))
            os.close(descriptor)
            descriptor = inner
            if count == 0:
                facts = os.fstat(descriptor)
                refuse_unless_ours(Path(tier, name), facts)
                if stat.S_IMODE(facts.st_mode) != PRIVATE:
                    os.fchmod(descriptor, PRIVATE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_inner(descriptor: int, name: str, path: Path) -> int:
    """Open a folder in an open one, unless it is a link or no folder; errors name ``path``."""
    try:
        return os.open(name, FOLDER, dir_fd=descriptor)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
    facts = os.lstat(name, dir_fd=descriptor)
    raise TierError(
        f"{path} is {kind_of(facts.st_mode)} made by user {name_of(facts.st_uid)}, not a folder",
        fix="remove it, or have it removed, or place the role on another tier",
    )


def make_private(path: Path) -> None:
    """Make a folder at or below ``neurotier-<user>`` with its missing parents; as :func:`open_private`.

    It is tried several times, since a job that ends meanwhile may remove an empty parent.
    """
    for _ in range(10):
        with suppress(FileNotFoundError):
            os.close(open_private(path, make=True))
            return
    os.close(open_private(path, make=True))


def names_in(path: Path) -> list[str]:
    """Names in a private folder, sorted; none if it does not exist."""
    try:
        descriptor = open_private(path)
    except FileNotFoundError:
        return []
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def remove_private(path: Path) -> None:
    """Remove whatever lies at a path below ``neurotier-<user>``; links are not followed.

    Folders that a tool has closed even to their owner are opened first.
    """
    try:
        descriptor = open_private(path.parent)
    except FileNotFoundError:
        return
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(path.name, dir_fd=descriptor).st_mode):
                os.unlink(path.name, dir_fd=descriptor)
                return
            try:
                shutil.rmtree(path.name, dir_fd=descriptor, ignore_errors=True)
                if path.name in os.listdir(descriptor):
                    open_to_owner(path.name, descriptor)
                    shutil.rmtree(path.name, dir_fd=descriptor, ignore_errors=True)
            except RecursionError:  # a container can nest thousands of folders
                import subprocess

                subprocess.run(["rm", "-rf", "--", path.name], cwd=f"/proc/self/fd/{descriptor}", check=False)
    finally:
        os.close(descriptor)


def open_to_owner(name: str, descriptor: int) -> None:
    """Give the owner access to a folder and all folders below it; links are not followed."""
    try:
        inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=descriptor)
    except OSError:
        return
    try:
        os.chmod(f"/proc/self/fd/{inner}", PRIVATE)
        for below in os.listdir(f"/proc/self/fd/{inner}"):
            if stat.S_ISDIR(os.lstat(below, dir_fd=inner).st_mode):
                open_to_owner(below, inner)
    except OSError:  # another user's: it stays
        return
    finally:
        os.close(inner)


def remove_empty(path: Path) -> None:
    """Remove a private folder and its parents up to ``neurotier-<user>``, as far as they are empty."""
    tier, names = divide(path)
    for count in range(len(names), 0, -1):
        above = Path(tier, *names[: count - 1])
        try:
            descriptor = open_private(above) if count > 1 else os.open(tier, FOLDER & ~os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            os.rmdir(names[count - 1], dir_fd=descriptor)
        except OSError as error:
            if error.errno != errno.ENOENT:  # it is not empty, or must stay
                return
        finally:
            os.close(descriptor)


def read_own(file: Path) -> str:
    """Text of a regular file of this user that nobody else may write; empty for anything else."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        os.close(descriptor)
        return ""
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read().decode(errors="replace")
