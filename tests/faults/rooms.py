"""Rooms: where a trial happens. Each has the same path in a mount name space of its own, so prepared folders fit.

Whatever a trial mounts goes with its name space, however the trial ends; loop devices are let go by the last unmount.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x00020000
DISK_BYTES = 48 << 20
"""Size of a small disk: room for a project and what three participants leave."""

ANNEX_DISK_BYTES = 320 << 20
"""Size of one that holds a clone, too: git-annex keeps 100 MB free, and xfs is 300 MB at least."""

TEMPORARY = Path("/media")
"""TMPDIR of whatever runs in a room: a folder of every system with a short path, as sockets need it."""

MAKE_DISK = {
    "ext4": ("-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=0", "-J", "size=4", "-N", "8192"),
    "xfs": ("-q", "-f"),
    "btrfs": ("-q", "-f"),
}
"""Options of ``mkfs`` for each file system of small disks."""

MOUNT_DISK = {"ext4": "loop,commit=5", "xfs": "loop,nouuid", "btrfs": "loop,commit=5"}
"""Options of their mounts: journals are written every 5 s; copies of one disk are mounted side by side."""


@dataclass(frozen=True)
class Room:
    """A campaign's or trial's folders.

    Attributes
    ----------
    base
        The campaign's own folder.
    """

    base: Path

    @property
    def at(self) -> Path:
        """Where every trial finds its own folder."""
        return self.base / "at"

    @property
    def project(self) -> Path:
        return self.at / "project"

    @property
    def results(self) -> Path:
        return self.project / "results"

    @property
    def source(self) -> Path:
        """The dataset that the project reads or clones."""
        return self.at / "source"

    @property
    def scratch(self) -> Path:
        """A small tier of its own, where a project uses one for its work."""
        return self.at / "scratch"

    @property
    def disk(self) -> Path:
        """The file behind the project's own small disk, if it has one."""
        return self.at / "disk.img"

    @property
    def temporary(self) -> Path:
        """What is TMPDIR of whatever runs in a trial."""
        return self.at / "tmp"


def may_have_disks(folder: Path) -> bool:
    """Whether this user may make a mount name space, and make and mount a small disk in it."""

    def make_and_mount() -> None:
        unshare()
        make_disk(folder / "try.img")
        (folder / "try").mkdir()
        mount_disk(folder / "try.img", folder / "try")

    return is_possible(make_and_mount)


def is_possible(act: Callable[[], None]) -> bool:
    """Whether something can be done; tried in a child process."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def unshare() -> None:
    """Give this process a mount name space of its own."""
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    command("mount", "--make-rprivate", "/")


def enter(room: Room, folder: Path) -> None:
    """Put this process into a mount name space where ``folder`` is the room's; mount what a project there needs."""
    unshare()
    room.at.mkdir(exist_ok=True)
    command("mount", "--bind", str(folder), str(room.at))
    room.temporary.mkdir(exist_ok=True)
    command("mount", "--bind", str(room.temporary), str(TEMPORARY))
    if room.disk.exists():
        mount_disk(room.disk, room.project)
    if room.scratch.is_dir():
        command("mount", "-t", "tmpfs", "-o", "size=6m,mode=1777", "scratch", str(room.scratch))


def make_disk(file: Path, size_bytes: int = DISK_BYTES, file_system: str = "ext4") -> None:
    """A small file system in a file, which takes little space until it is written to."""
    with file.open("wb") as disk:
        disk.truncate(size_bytes)
    command(f"mkfs.{file_system}", *MAKE_DISK[file_system], str(file))


def mount_disk(file: Path, folder: Path) -> None:
    """Mount a small disk; its loop device is let go by the unmount."""
    file_system = command("blkid", "--probe", "-o", "value", "-s", "TYPE", str(file)).strip()
    command("mount", "-t", file_system, "-o", MOUNT_DISK[file_system], str(file), str(folder))


def copy_folder(source: Path, target: Path) -> None:
    """A copy with times, links and holes as they are."""
    command("cp", "-a", "--sparse=always", str(source), str(target))


def command(*words: str) -> str:
    """Run a command of the system; what it printed. An error has what it said."""
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
