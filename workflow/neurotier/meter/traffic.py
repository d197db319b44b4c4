"""Traffic: bytes and files read and written on each storage tier, each with its source.

``staging``  counted by the code that copied them: exact
``growth``   what a folder has gained: exact for a private folder, but blind to reads and overwrites
``cgroup``   block-device bytes of the tree's own control group
``device``   block-device bytes of all processes of the machine, without what is still in the page cache
"""

from __future__ import annotations

import os

from neurotier.meter.pressure import own_control_group

SECTOR_BYTES = 512

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Flow = dict[str, "Any"]


def flow(
    tier: str,
    source: str,
    read: tuple[int, int | None] | None = None,
    written: tuple[int, int | None] | None = None,
) -> Flow:
    """One row of traffic: ``read`` and ``written`` are bytes and files, ``None`` where unknown."""
    read_bytes, read_files = read or (None, None)
    written_bytes, written_files = written or (None, None)
    return {
        "tier": tier,
        "read_bytes": read_bytes,
        "read_files": read_files,
        "written_bytes": written_bytes,
        "written_files": written_files,
        "traffic_source": source,
    }


def content(folder: str | os.PathLike[str]) -> tuple[int, int]:
    """Bytes and number of the files below a folder; links are not followed."""
    total = files = 0
    folders = [os.fspath(folder)]  # no recursion, since a tool may nest folders deeper than Python's stack
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:  # removed meanwhile, not ours to read, or a path too long for the kernel
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    try:
                        total += entry.stat(follow_symlinks=False).st_size
                    except OSError:
                        continue
                    files += 1
    return total, files


def growth(tier: str, folder: str | os.PathLike[str], before: tuple[int, int]) -> Flow:
    """What a folder on a tier has gained since ``before``, in bytes and files as :func:`content` counts them."""
    bytes_now, files_now = content(folder)
    return flow(tier, "growth", written=(max(0, bytes_now - before[0]), max(0, files_now - before[1])))


class TierWatch:
    """Watches one tier's folder over a phase.

    Parameters
    ----------
    tier
        Name of the tier.
    folder
        Folder on it.
    """

    def __init__(self, tier: str, folder: str) -> None:
        self.tier, self.folder = tier, folder
        self.content_before = content(folder)
        self.device_source, self.device_before = device_bytes(folder)

    def flows(self) -> list[Flow]:
        """What has moved since the start."""
        rows = [growth(self.tier, self.folder, self.content_before)]
        source, device_after = device_bytes(self.folder)
        if self.device_before and device_after and source == self.device_source:
            read, written = (last - first for first, last in zip(self.device_before, device_after, strict=True))
            rows.append(flow(self.tier, source, read=(read, None), written=(written, None)))
        return rows


def device_bytes(path: str) -> tuple[str, tuple[int, int] | None]:
    """Source, and bytes read from and written to the block device below a path so far; ``None`` without a device."""
    number = os.stat(path).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    group = own_control_group()
    try:
        if group is not None and os.path.exists(f"{group}/io.stat"):
            with open(f"{group}/io.stat") as file:
                counts = next((line.split()[1:] for line in file if line.split()[0] == device), [])
            named = dict(count.split("=") for count in counts)
            return "cgroup", (int(named.get("rbytes", 0)), int(named.get("wbytes", 0)))
        with open(f"/sys/dev/block/{device}/stat") as file:
            sectors = file.read().split()
        return "device", (int(sectors[2]) * SECTOR_BYTES, int(sectors[6]) * SECTOR_BYTES)
    except OSError:  # tmpfs, network and stacked file systems have no block device of their own
        return "device", None
