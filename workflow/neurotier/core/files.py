"""Files and folders: written whole or not at all, flushed before they get their final name, locked while being made.

A rename can reach the device before the content of the file does: after a power cut the file is there and empty (seen
on ext4). So content is flushed first, then renamed to its final name, and then the folder is flushed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from neurotier.core.errors import StateError, one_line, without_credentials
from neurotier.core.libc import LIBC

Content = TypeVar("Content")

Record = dict[str, Any]
"""A JSON object, as Python reads it."""

Facts = Mapping[str, Any]
"""A read-only :data:`Record`."""

FULL, DENIED = (errno.ENOSPC, errno.EDQUOT), (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a full file system or an exhausted quota; and errors of missing permission to write."""

PARTIAL = re.compile(r"\..+\.partial")
"""Names of unfinished files and folders."""

LOCK_MODE = 0o600
"""Permissions of a lock file: any user who can open it, even for reading only, can hold the lock."""


def without(facts: Facts, *names: str) -> Record:
    """A record without some of its keys."""
    return {key: value for key, value in facts.items() if key not in names}


def absolute_path(text: str) -> Path:
    """A user's path made absolute; ``~NAME`` of an unknown user stays as it is, where ``Path.expanduser`` raises."""
    return Path(os.path.expanduser(text)).absolute()


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Write text, whole or not at all; as :func:`write_bytes`."""
    write_bytes(path, text.encode(), durable)


def write_secret(path: Path, text: str) -> None:
    """Write text that this user alone can read; as :func:`write_bytes`."""
    with atomic_writer(path, mode=0o600) as file:
        file.write(text.encode())


def write_bytes(path: Path, content: bytes, durable: bool = True) -> None:
    """Write a finished file under a hidden name, then rename it; its folder is made if missing.

    If not ``durable``, readers still see the whole file or none, but a power cut may lose it: enough for logs, markers
    and intermediates.
    """
    with atomic_writer(path, durable) as file:
        file.write(content)


@contextmanager
def atomic_writer(path: Path, durable: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file to be written piece by piece; it gets its name once everything is written, as :func:`write_bytes`.

    Its permissions are ``mode``, less the umask.
    """
    make_folders(path.parent, durable)
    temporary = partial_of(path.with_name(f"{path.name}.{os.urandom(4).hex()}"))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if path.is_dir():  # a folder would block the rename; a link is just replaced
            remove_tree(path)
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError):  # errors of calls on a descriptor name no file
            error.filename = error.filename or str(path)
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        flush_folder(path.parent)


def make_folders(folder: Path, durable: bool = True) -> None:
    """Make a folder and its missing parents; if ``durable``, they survive a power cut."""
    missing = list(itertools.takewhile(lambda path: not path.is_dir(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing if durable else ():
        flush_folder(path.parent)


def partial_of(path: Path) -> Path:
    """The hidden name of an unfinished file or folder, next to its final name.

    >>> partial_of(Path("a/b.tsv")).name
    '.b.tsv.partial'
    """
    return path.with_name(f".{path.name}.partial")


def write_json(path: Path, data: Any, durable: bool = True) -> None:
    """Write JSON, whole or not at all; as :func:`write_bytes`."""
    write_text(path, json.dumps(data, indent=2) + "\n", durable)


@contextmanager
def opened(path: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    """Yield a descriptor, as from :func:`os.open`; ``folder`` is that of the folder to which ``path`` is relative."""
    descriptor = os.open(path, flags, 0o666, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def append_line(path: Path, line: str) -> None:
    """Append a line to a file in one write, since other processes may append, too. A link is not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW) as descriptor:
        os.write(descriptor, f"{line}\n".encode())


def require_file(path: Path) -> None:
    """Raise :class:`StateError` if a path is anything but a file: a FIFO would block its reader for ever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise StateError(path)


def read_json(path: Path) -> Any:
    """Read JSON that neurotier wrote.

    Raises
    ------
    StateError
        If it is damaged, or not a file.
    """
    require_file(path)
    try:
        return json.loads(path.read_text())
    except ValueError:  # not JSON, or not even text
        raise StateError(path) from None


def read_or_empty(file: Path) -> bytes:
    """Content of a regular file; empty if it cannot be read, or is anything else, such as a FIFO, which would block."""
    with suppress(OSError):
        return file.read_bytes() if stat.S_ISREG(file.lstat().st_mode) else b""
    return b""


def read_intact_json(path: Path) -> Record:
    """The object in one of our JSON files; empty if the file is missing or damaged. Errors of a disk are raised."""
    with suppress(FileNotFoundError, StateError, TypeError, ValueError):
        return dict(read_json(path))
    return {}


def read_json_or_empty(file: Path) -> Record:
    """The JSON object in a file; empty if the file is missing, damaged or unreadable for any reason."""
    with suppress(TypeError, ValueError):
        return dict(json.loads(read_or_empty(file)))
    return {}


def once_per_version(read: Callable[[Path], Content]) -> Callable[[Path], Content]:
    """Have this process read each version of a file only once: a rewritten file is another version."""
    known: dict[Path, tuple[tuple[int, ...], Content]] = {}

    def reading(file: Path) -> Content:
        facts, file = os.stat(file), file.absolute()
        version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if file not in known or known[file][0] != version:
            known[file] = version, read(file)
        return known[file][1]

    return wraps(read)(reading)


def flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to its device."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor, suppress_unsupported():
        os.fsync(descriptor)


def flush_tree(folder: Path) -> None:
    """Flush all regular files and folders below a folder to their device; the folder itself last."""
    for _, _, files, descriptor in os.fwalk(folder, topdown=False):
        for name in files:
            if stat.S_ISREG(os.lstat(name, dir_fd=descriptor).st_mode):
                with opened(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, folder=descriptor) as file:
                    os.fsync(file)
        with suppress_unsupported():
            os.fsync(descriptor)


def flush_file_system(path: Path) -> None:
    """Flush the whole file system that holds a path, including what others wrote."""
    with opened(path, os.O_RDONLY) as descriptor:
        if LIBC.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))


@contextmanager
def suppress_unsupported() -> Iterator[None]:
    """Ignore errors of file systems that cannot flush folders (some FUSE and network ones) and need not."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise


def rename_durably(partial: Path, final: Path) -> None:
    """Give a finished, flushed file or folder its final name, and flush its parent folder."""
    partial.rename(final)
    flush_folder(final.parent)


@contextmanager
def atomic_path(final: Path) -> Iterator[Path]:
    """Yield a hidden name under which to make a file or folder; it is flushed and renamed if the context ends well.

    Otherwise it is removed. Leftovers of a killed process, and anything under the final name, are replaced.
    """
    partial = partial_of(final)
    remove_path(partial)
    try:
        yield partial
        flush_file_system(partial)
        remove_path(final)
        rename_durably(partial, final)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno:  # shutil.Error has none, and would lose its text
            error.filename = error.filename or str(final)
        remove_path(partial)
        raise


def remove_tree(folder: Path) -> None:
    """Remove a folder if it exists, whatever it holds. Links are not followed.

    Raises
    ------
    OSError
        If something remains, such as another user's files.
    """
    if folder.is_symlink() or not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError) as error:  # read-only folders, as git-annex makes them; or thousands nested
        # chmod folders only: a file may have hard links elsewhere, whose permissions a dataset relies on.
        script = 'find "$0" -type d ! -perm -700 -exec chmod u+rwx {} ";"; rm -rf "$0"'
        subprocess.run(["sh", "-c", script, folder.absolute()], stderr=subprocess.DEVNULL)
        if os.path.lexists(folder):
            number = getattr(error, "errno", None) or errno.EACCES
            raise OSError(number, os.strerror(number), str(folder)) from None


def remove_path(path: Path) -> None:
    """Remove a path, whatever it is: a folder with its content, a file, a link, a FIFO, or nothing."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def note(log: Path, line: str) -> None:
    """Add a line to a job's log, if there is room: a full disk must not make the job fail."""
    with suppress(OSError), log.open("a") as file:
        file.write(without_credentials(line.rstrip()) + "\n")


def remove_partials(folder: Path) -> None:
    """Remove unfinished files and folders that killed writers left below a folder to which no process is writing.

    Folders of participants are not entered.
    """
    for root, names, files in os.walk(folder):
        for name in [name for name in (*names, *files) if PARTIAL.fullmatch(name)]:
            remove_path(Path(root, name))
        names[:] = [name for name in names if not name.startswith((".", "sub-"))]


def open_lock(lock: Path) -> int:
    """Open a lock file, which is made if missing and which only this user can open; returns its descriptor."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    if lock.is_dir() and not lock.is_symlink():  # no process could ever take the lock
        print(f"neurotier: {lock} is a folder in place of a lock; it is made again", file=sys.stderr)
        remove_tree(lock)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, LOCK_MODE)
    require_file(lock)  # the holder's name cannot be replaced in a FIFO
    os.fchmod(descriptor, LOCK_MODE)  # after a chmod of the whole folder, others could hold it
    return descriptor


def try_lock(descriptor: int) -> str:
    """Lock a file of :func:`open_lock` and name this process in it; returns the holder's name if it is another one."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return one_line(os.fsdecode(os.read(descriptor, 100))) or "another process"
    with suppress(OSError):  # the tier may be full
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return ""


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold a lock while a folder is made; other processes wait, then find it. The lock ends with this process.

    After 5 s, a waiting process prints who holds the lock: a file server may keep the lock of a host that is down.
    """
    lock, tries = folder.with_name(f".{folder.name}.lock"), 0
    while holder := try_lock(descriptor := open_lock(lock)):  # opened each time, since it may have been removed
        os.close(descriptor)
        tries += 1
        if tries == 100:
            # not to the job's log, which would show it only when the wait is over
            print(
                f"neurotier: {folder}: waiting for {holder}; if that host is down, remove {lock}", file=sys.__stderr__
            )
        time.sleep(0.05 if tries < 100 else 1)
    with os.fdopen(descriptor):
        yield
