"""File systems that are slow, and memory that is short: real ones, made for a test or benchmark; they need root."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loads import MIB
from support import system

THROTTLE = Path("/sys/fs/cgroup/blkio")
"""Control groups of version 1: their root group throttles a device for everybody, write-back included."""


@contextmanager
def loop_device(
    mib: int, bytes_per_s: int | None = None, below: str = "/var/tmp", strict_limit: bool = False
) -> Iterator[Path]:
    """A folder, writable by all, on an ext4 of its own whose device nobody else uses; needs root.

    Parameters
    ----------
    mib
        Size, MiB.
    bytes_per_s
        How fast it may be read and written, each way, where the kernel can limit that.
    below
        Folder where its bytes lie; in memory, nobody who keeps a disk busy is in its way.
    strict_limit
        Whether no more than 4 MiB may be dirty, so that writers wait for the device.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If this machine does not let us.
    """
    with tempfile.TemporaryDirectory(prefix="neurotier-loop-", dir=below) as name:
        folder, image = Path(name, "mount"), Path(name, "image")
        Path(name).chmod(0o755)
        folder.mkdir()
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, mib * MIB)
        device = system("losetup", "--show", "--find", "--direct-io=on", str(image)).strip()
        try:
            # all tables are written now, not by the kernel meanwhile
            system("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
            system("mount", device, str(folder))
            try:
                folder.chmod(0o1777)
                with throttled(device, bytes_per_s), strictly_limited(device, strict_limit):
                    yield folder
            finally:
                system("umount", str(folder))
        finally:
            system("losetup", "--detach", device)


@contextmanager
def throttled(device: str, bytes_per_s: int | None) -> Iterator[None]:
    """Limit how fast a device may be read and written, each way."""
    number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
    files = [THROTTLE / f"blkio.throttle.{way}_bps_device" for way in ("read", "write")] if bytes_per_s else []
    for file in files:
        file.write_text(f"{number} {bytes_per_s}")
    try:
        yield
    finally:
        for file in files:
            file.write_text(f"{number} 0")


@contextmanager
def strictly_limited(device: str, wanted: bool) -> Iterator[None]:
    """Limit what may be dirty of a device."""
    limits = Path("/sys/class/bdi", Path("/sys/block", Path(device).name, "dev").read_text().strip())

    def free() -> None:
        (limits / "max_ratio").write_text("100")
        (limits / "strict_limit").write_text("0")

    if wanted or (limits / "strict_limit").exists():  # older kernels have none
        free()  # who had it before may have been killed
    if wanted:
        (limits / "strict_limit").write_text("1")
        (limits / "max_bytes").write_text(str(4 * MIB))
    try:
        yield
    finally:
        if wanted:  # the device stays, for whoever has it next
            free()


@contextmanager
def fuse_folder(bytes_per_s: int) -> Iterator[Path]:
    """A folder of a FUSE file system, over one in memory, that is written no faster; needs bindfs."""
    with tempfile.TemporaryDirectory(prefix="neurotier-fuse-", dir="/dev/shm") as name:
        below, folder = Path(name, "below"), Path(name, "mount")
        below.mkdir()
        folder.mkdir()
        system("bindfs", "-o", "big_writes", f"--write-rate={bytes_per_s}", str(below), str(folder))
        try:
            yield folder
        finally:
            system("umount", str(folder))
