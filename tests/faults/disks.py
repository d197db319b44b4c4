"""What can happen to a file system: full, read-only, gone."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

from support import wait_for

from faults.rooms import Room, command, mount_disk

FILLER = ".filler-of-the-fault-campaign"
EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
PATIENCE_S = 10.0


def fill(place: Path, left_bytes: int) -> bool:
    """Fill a file system up to some bytes."""
    state = os.statvfs(place)
    want = state.f_bavail * state.f_frsize - left_bytes
    descriptor = os.open(place / FILLER, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while want > 0:
            want -= os.write(descriptor, bytes(min(want, 1 << 16)))
    except OSError:  # it is full: that is what we wanted
        pass
    finally:
        os.close(descriptor)
    return True


def free_again(place: Path) -> None:
    (place / FILLER).unlink(missing_ok=True)


def read_only(place: Path) -> bool:
    """Make a file system read-only, unless somebody has a file open for writing just now."""
    return subprocess.run(["mount", "-o", "remount,ro", str(place)], capture_output=True).returncode == 0


def writable(place: Path) -> None:
    command("mount", "-o", "remount,rw", str(place))


def lose_disk(place: Path) -> bool:
    """Have ext4 refuse every call from now on, without writing its journal out."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH.to_bytes(4, "little"))
    finally:
        os.close(descriptor)
    return True


def snapshot(disk: Path, copy: Path) -> None:
    """Copy the file of a mounted disk, without sync: what a power cut would leave.

    The kernel may write meanwhile; a copy that is the same as the file right afterwards is one of a single moment.
    """
    while True:
        command("cp", "--sparse=always", str(disk), str(copy))
        if subprocess.run(["cmp", "--silent", str(disk), str(copy)]).returncode == 0:
            return


def remount_disk(room: Room) -> None:
    """Have the disk back as after a restart."""
    unmount(room.project)
    mount_disk(room.disk, room.project)


def unmount(place: Path) -> None:
    """Unmount, once nobody is there any more."""
    wait_for(lambda: subprocess.run(["umount", place], capture_output=True).returncode == 0, within_s=PATIENCE_S)
