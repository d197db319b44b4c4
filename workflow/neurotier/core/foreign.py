"""Foreign files: the only module that opens files that come from datasets, containers and other users.

Their maker may have put anything in place of a file: a link to a file of the host, a FIFO that blocks its reader for
ever, a device, or far more bytes than expected. So paths are walked one folder at a time without following links;
nothing is opened in a way that can block; and only regular files are read, never more of them than the caller allows.
Whole folders are checked and copied: regular files and links that stay inside are kept; anything else is an error that
names it, since it could bring in a file of the host, lead out of the copy, or block its readers.

Faults are raised as :class:`ForeignError`; with :func:`blaming`, a caller says what the file or folder is called and
whose fault it is: :class:`InputError` blames a dataset, :class:`ToolError` a tool or an app.
"""

from __future__ import annotations

import errno
import filecmp
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path, PurePath
from typing import NamedTuple, NoReturn

from neurotier.core.errors import InputError, NeurotierError
from neurotier.core.libc import LIBC, SYNC_FILE_RANGE_WRITE

TEXT_BYTES = 1 << 20
"""Most bytes that are read from a file that should hold a few words or lines."""

DEEPEST = 100
"""Deepest nesting of folders that is walked: deeper nesting exhausts descriptors or the stack."""

CHUNK_BYTES = 1 << 20
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
LEASE_S = 60.0
"""Longest time that a file server keeps a file to itself: ``/proc/sys/fs/lease-break-time`` is usually 45 s."""

FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class ForeignError(InputError):
    """A fault of a foreign file, or of an entry of a foreign folder; then ``where`` is its path below that folder."""


@contextmanager
def blaming(where: str | PurePath, blame: type[NeurotierError] = InputError) -> Iterator[None]:
    """Turn a :class:`ForeignError` into an error of class ``blame`` that calls the file or folder ``where``.

    >>> with blaming("sub-01: its output"):
    ...     raise ForeignError("is a FIFO", where="anat/x.nii")
    Traceback (most recent call last):
    ...
    neurotier.core.errors.InputError: sub-01: its output/anat/x.nii: is a FIFO
    """
    try:
        yield
    except ForeignError as error:
        raise blame(error.what, str(PurePath(where, error.where)), error.fix) from None


class Entry(NamedTuple):
    """A file or link below a folder; folders themselves are walked and not listed.

    Attributes
    ----------
    path
        Path below the folder.
    mode
        Type and permissions, as ``lstat`` gives them.
    size_bytes
        Size of a regular file, or length of a link's text.
    """

    path: PurePath
    mode: int
    size_bytes: int

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


def kind_of(mode: int) -> str:
    """The file type in a mode from ``lstat``, in words.

    >>> kind_of(0o010644), kind_of(0o100644)
    ('a FIFO', 'a file')
    """
    return KINDS.get(stat.S_IFMT(mode), "a file")


def open_file(folder: Path, below: str | PurePath, flags: int = FILE) -> BufferedReader:
    """Open a regular file below a trusted folder for reading, without following links and without blocking.

    Raises
    ------
    FileNotFoundError
        If there is nothing of this name.
    ForeignError
        If it is a link, a FIFO or anything else but a regular file, or lies behind a link.
    """
    pure, behind = PurePath(below), ForeignError("lies behind a link, which is not followed")
    if ".." in pure.parts or pure.is_absolute():
        raise behind
    descriptor = os.open(folder, FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in pure.parent.parts:
            above, descriptor = descriptor, os.open(part, FOLDER, dir_fd=descriptor)
            os.close(above)
        mode = os.lstat(pure.name, dir_fd=descriptor).st_mode
        if stat.S_ISREG(mode):
            file = os.fdopen(open_leased(pure.name, flags, descriptor), "rb")
            mode = os.fstat(file.fileno()).st_mode  # something else may have taken its place
            if stat.S_ISREG(mode):
                return file
            file.close()
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise behind from None
        if error.errno == errno.EACCES:
            raise ForeignError(f"cannot be read: {error.strerror}") from None
        error.filename = str(Path(folder, below))  # the failed call knew only the last part
        raise
    finally:
        os.close(descriptor)
    raise ForeignError(f"is {kind_of(mode)}, and only files are read")


def open_leased(name: str, flags: int, folder: int) -> int:
    """Open a file in an open folder without blocking, but wait for the end of another process's lease on it."""
    deadline = time.monotonic() + LEASE_S
    while True:
        try:
            return os.open(name, flags, dir_fd=folder)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def read_text(folder: Path, below: str | PurePath, limit_bytes: int = TEXT_BYTES, from_end: bool = False) -> str:
    """A text file below a trusted folder, or its first or last ``limit_bytes``; errors as :func:`open_file`."""
    with open_file(folder, below) as file:
        if from_end:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit_bytes))
        return file.read(limit_bytes).decode(errors="replace")


def read_named(file: Path, limit_bytes: int, kind: str) -> bytes:
    """The whole content of a file that the user named, links followed, unless it is larger than such a file should be.

    Parameters
    ----------
    file
        Its path; links in it are the user's, so they are followed.
    limit_bytes
        Most bytes that it may hold.
    kind
        What it should be, for an error.

    Raises
    ------
    ForeignError
        If it cannot be read, or is larger.
    """
    try:
        real = Path(os.path.realpath(file))  # stops at links in a circle, and open_file refuses the link
        with open_file(real.parent, real.name) as opened:
            content = opened.read(limit_bytes + 1)
    except OSError as error:
        raise ForeignError(f"cannot be read: {error.strerror}") from None
    if len(content) > limit_bytes:
        raise ForeignError(f"is larger than {kind} ({limit_bytes >> 10:,} KiB)")
    return content


def entries_below(folder: Path) -> Iterator[Entry]:
    """Everything but folders below a trusted folder, sorted; links are not followed. Nothing if there is no folder.

    Raises
    ------
    ForeignError
        If folders are nested more than :data:`DEEPEST` deep, or closed to their owner.
    """
    if not folder.is_dir():
        return

    def refuse(error: OSError) -> NoReturn:
        if error.errno != errno.EACCES:
            raise error
        raise ForeignError("is closed to its owner", error.filename)

    for root, names, files, descriptor in os.fwalk(folder, onerror=refuse):
        here = PurePath(root).relative_to(folder)
        if len(here.parts) > DEEPEST:
            raise ForeignError(f"folders are nested more than {DEEPEST} deep")
        links = [name for name in names if stat.S_ISLNK(os.lstat(name, dir_fd=descriptor).st_mode)]
        names.sort()
        for name in sorted([*files, *links]):
            facts = os.lstat(name, dir_fd=descriptor)
            yield Entry(here / name, facts.st_mode, facts.st_size)


def copy_file(
    source: BufferedReader, target: Path, limit_bytes: int, mode: int = 0o666, write_back: bool = False
) -> int:
    """Copy an open file to a new file of ours; returns bytes copied.

    Parameters
    ----------
    source
        The file as :func:`open_file` returns it.
    target
        Path of the copy, which must not exist.
    limit_bytes
        Most bytes to copy.
    mode
        Permissions of the copy, less the umask.
    write_back
        Have the kernel start writing the copy to its device right away; for copies that will be flushed.

    Raises
    ------
    ForeignError
        If the source holds more than ``limit_bytes``; the copy is removed.
    """
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        copied = 0
        while sent := send(descriptor, source.fileno(), copied):
            if write_back:
                # to shorten the flush at the end: a hint, so its result does not matter
                LIBC.sync_file_range(descriptor, copied, sent, SYNC_FILE_RANGE_WRITE)
            copied += sent
            if copied > limit_bytes:
                raise ForeignError(f"holds more than the {limit_bytes} bytes that it should")
    except BaseException:
        os.unlink(target)
        raise
    finally:
        os.close(descriptor)
    return copied


def send(target: int, source: int, offset: int) -> int:
    """Copy the next part of a file; returns the bytes copied, 0 at the end of the file."""
    try:
        return os.sendfile(target, source, offset, 16 * CHUNK_BYTES)
    except OSError:  # some FUSE file systems cannot; any other error is raised again below
        return os.write(target, os.pread(source, CHUNK_BYTES, offset))


def check_link(link: PurePath, leads_to: str) -> None:
    """Raise :class:`ForeignError` unless the target of a link below a folder is below that folder, too.

    Parameters
    ----------
    link
        Path of the link below the folder; none of the folders in it is a link.
    leads_to
        The target, as written in the link.

    Examples
    --------
    >>> check_link(PurePath("a/b"), "../c")
    >>> check_link(PurePath("a/b"), "../../c")
    Traceback (most recent call last):
    ...
    neurotier.core.foreign.ForeignError: a/b: is a link that leads out of its folder, to '../../c'; have it ...
    """
    parts = PurePath(leads_to).parts
    upwards = parts.count("..")
    # a '..' after a name is refused, too: if that name is a link, '..' is the parent of its target
    if PurePath(leads_to).is_absolute() or upwards > len(link.parent.parts) or ".." in parts[upwards:]:
        raise ForeignError(
            f"is a link that leads out of its folder, to {leads_to!r}",
            link,
            "have it remove the link, or copy what the link leads to",
        )


def file_in_dataset(dataset: Path, path: str, links_to: Sequence[str]) -> tuple[Path, PurePath]:
    """Resolve a file of a dataset to a trusted folder and the path below it, for :func:`open_file`.

    Links may lead anywhere within the dataset except into its git folders; the annex objects there are allowed.

    Parameters
    ----------
    dataset
        The dataset's folder.
    path
        Path of the file below it.
    links_to
        Further folders that links may lead into.

    Raises
    ------
    InputError
        If the file is a link that leads anywhere else or in a circle, or if this user may not follow it.
    """
    try:
        real = Path(os.path.realpath(dataset / path))
        with suppress(FileNotFoundError, NotADirectoryError):
            real.stat()  # fails where realpath stopped: at a circle, or in a folder that is closed to us
    except PermissionError as error:
        fix = "have its folder opened to you, or leave the participant out"
        if error.errno == errno.EPERM:
            fix = "sshfs follows links upwards, as git-annex makes them, if it is mounted with no_contain_symlinks"
        raise InputError(f"cannot be read: {error.strerror}", path, fix) from None
    except (OSError, RecursionError) as error:
        if getattr(error, "errno", errno.ELOOP) != errno.ELOOP:
            raise
        raise InputError("is a link that leads in a circle", path) from None
    for root in (str(dataset), *map(os.path.expanduser, links_to)):
        trusted = Path(os.path.realpath(root))
        if real.is_relative_to(trusted):
            below = real.relative_to(trusted)
            if ".git" not in below.parts or "annex/objects/" in str(below).partition(".git/")[2]:
                return trusted, below
    raise InputError(
        f"is a link that leads out of the dataset, to {str(real)!r}",
        path,
        "if that place is trusted, name its folder in dataset.links_to",
    )


def open_in_dataset(dataset: Path, path: str, links_to: Sequence[str] = ()) -> BufferedReader:
    """Open a file of a dataset, which may be a link into the dataset or its annex.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or its content is not present.
    InputError
        If the file is a link that leads out of the dataset, a FIFO, or anything else but a file.
    """
    with blaming(path):
        return open_file(*file_in_dataset(dataset, path, links_to))


def checked_entries(folder: Path) -> Iterator[Entry]:
    """Entries below a folder, each checked to be a regular file or a link that stays in the folder.

    Parameters
    ----------
    folder
        Path of the folder, which may turn out to be something else; the path above it is trusted.

    Raises
    ------
    ForeignError
        If ``folder`` is not a folder or an entry is anything else; also as :func:`entries_below`.
    """
    mode = folder.lstat().st_mode
    if not stat.S_ISDIR(mode):
        raise ForeignError(f"is {kind_of(mode)}, not a folder")
    for entry in entries_below(folder):
        if entry.is_link:
            check_link(entry.path, os.readlink(folder / entry.path))
        elif not entry.is_file:
            raise ForeignError(f"is {kind_of(entry.mode)}, and only files and links are kept", entry.path)
        yield entry


def copy_tree(
    source: Path,
    target: Path,
    existing: Callable[[Entry], None] | None = None,
    *,
    limit_bytes: float = float("inf"),
    limit_files: float = float("inf"),
    write_back: bool = False,
) -> tuple[int, int]:
    """Copy the files and links below a folder into another; returns bytes and files copied. Empty folders are left out.

    Parameters
    ----------
    source
        As ``folder`` of :func:`checked_entries`.
    target
        A folder of ours, made if missing. Nothing is written through a link in it.
    existing
        Called with each entry that the target already has, which is then not copied; without this function, such an
        entry is an error.
    limit_bytes, limit_files
        Most bytes and files to copy.
    write_back
        As for :func:`copy_file`.

    Raises
    ------
    ForeignError
        If an entry is neither a file nor a link that stays in the folder, exists in the target already, or exceeds a
        limit.
    """
    target.mkdir(parents=True, exist_ok=True)
    real = target.resolve()
    made = set()
    copied = files = 0
    for entry in checked_entries(source):
        path = entry.path
        copy, below = target / path, path.parent
        files += 1
        if copied + entry.size_bytes > limit_bytes or files > limit_files:
            raise ForeignError(f"is more than {limit_bytes:.0f} bytes or {limit_files:.0f} files")
        if below not in made:
            with suppress(FileExistsError, NotADirectoryError):
                copy.parent.mkdir(parents=True, exist_ok=True)
            if copy.parent.resolve() != real / below or not copy.parent.is_dir():
                raise ForeignError(f"lies below {str(below)!r}, which is a link or a file in the target", path)
            made.add(below)
        try:
            if entry.is_link:
                copy.symlink_to(os.readlink(source / path))
            else:
                with blaming(path, ForeignError), open_file(source, path) as file:
                    copy_file(file, copy, entry.size_bytes, write_back=write_back)
        except FileExistsError:
            if existing is None:
                raise ForeignError("is there already", path) from None
            existing(entry)
            continue
        copied += entry.size_bytes
    return copied, files


def same_content(one: Path, other: Path, path: PurePath) -> bool:
    """Whether a path has the same content in two folders: equal files, or links (not followed) with equal targets."""
    types = {stat.S_IFMT((folder / path).lstat().st_mode) for folder in (one, other)}
    if types == {stat.S_IFLNK}:
        return os.readlink(one / path) == os.readlink(other / path)
    return types == {stat.S_IFREG} and filecmp.cmp(one / path, other / path, shallow=False)
