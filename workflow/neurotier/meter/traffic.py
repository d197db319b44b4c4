"""Traffic: bytes and files read and written on each storage tier, each with its source.

``staging``  counted by the code that copied them: exact
``growth``   what a folder has gained: exact for a private folder, but without reads and overwrites
``cgroup``   block-device bytes of the tree's own control group
``device``   block-device bytes of all processes of the machine; bytes that are still in the page cache are missing
"""

from __future__ import annotations

import os

from neurotier.meter.folders import FolderWatch, Held, Removal
from neurotier.meter.pressure import own_control_group
from neurotier.meter.tree import read_proc

SECTOR_BYTES = 512

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Flow = dict[str, "Any"]


FILE_KEYS = (
    *("made_files", "removed_files", "left_files", "left_folders", "peak_files", "peak_bytes", "file_walks"),
    *("removal_s", "removal_cpu_s"),
)
"""Keys of a flow about the files of a watched folder; ``None`` in any other flow."""

FILE_SIZES = "file_sizes"
"""Key of the sizes of the files that were left (:meth:`neurotier.meter.folders.Held.histogram`). It is in records only,
since a list does not fit into a table's cell."""


def flow(
    tier: str,
    source: str,
    read: tuple[int, int | None] | None = None,
    written: tuple[int, int | None] | None = None,
    files: dict[str, Any] | None = None,
) -> Flow:
    """One row of traffic: ``read`` and ``written`` are bytes and files, ``None`` where unknown.

    ``files`` has values for :data:`FILE_KEYS` and :data:`FILE_SIZES`, if the folder was watched.
    """
    read_bytes, read_files = read or (None, None)
    written_bytes, written_files = written or (None, None)
    return {
        "tier": tier,
        "read_bytes": read_bytes,
        "read_files": read_files,
        "written_bytes": written_bytes,
        "written_files": written_files,
        "traffic_source": source,
        **dict.fromkeys(FILE_KEYS),
        **(files or {}),
    }


def growth(tier: str, watch: FolderWatch, removal: Removal | None = None) -> Flow:
    """The flow of what a folder on a tier gained and contained during a phase.

    Parameters
    ----------
    tier
        Name of the tier.
    watch
        The watch of the folder, which this call finishes.
    removal
        What the job itself removed there after the tool had ended; that counts as gained, too.
    """
    after = watch.finish()
    gained, ours = Held(), removal or Removal()
    for held, sign in ((after, 1), (watch.before, -1), (ours, 1)):
        gained.add(held, sign)
    removed = max(0, watch.gone_files - ours.files) if watch.walks else None
    return flow(
        tier,
        "growth",
        written=(gained.bytes, gained.files),
        files={
            "made_files": max(gained.files, after.files + ours.files - watch.before.files + (removed or 0)),
            "removed_files": removed,
            "left_files": gained.files,
            "left_folders": gained.folders,
            "peak_files": max(watch.peak_files, watch.before.files + ours.most_files),
            "peak_bytes": max(watch.peak_bytes, watch.before.bytes + ours.most_bytes),
            "file_walks": watch.walks,
            "removal_s": removal.removal_s if removal else None,
            "removal_cpu_s": removal.removal_cpu_s if removal else None,
            FILE_SIZES: gained.histogram(),
        },
    )


class TierWatch:
    """Watches one tier's folder over a phase.

    Parameters
    ----------
    tier
        Name of the tier.
    folder
        Folder on it.

    Attributes
    ----------
    watch
        Counts its files; the meter calls it while the phase runs.
    """

    def __init__(self, tier: str, folder: str) -> None:
        self.tier, self.folder = tier, folder
        self.device_source, self.device_before = device_bytes(folder)
        self.watch = FolderWatch(folder)

    def flows(self) -> list[Flow]:
        """The flows since the start."""
        rows = [growth(self.tier, self.watch)]
        source, device_after = device_bytes(self.folder)
        if self.device_before and device_after and source == self.device_source:
            read, written = (last - first for first, last in zip(self.device_before, device_after, strict=True))
            rows.append(flow(self.tier, source, read=(read, None), written=(written, None)))
        return rows


def disk_of(device: str) -> str:
    """Number, as ``MAJOR:MINOR``, of a block device or, if it is a partition, of its disk.

    Raises
    ------
    OSError
        If there is no such block device: the numbers of tmpfs, network and stacked file systems belong to none.
    """
    block = os.path.realpath(f"/sys/dev/block/{device}", strict=True)
    if os.path.exists(f"{block}/partition"):
        return read_proc(f"{os.path.dirname(block)}/dev").decode().strip()
    return device


def device_bytes(path: str) -> tuple[str, tuple[int, int] | None]:
    """Source of the figures, and the bytes read from and written to the block device that holds a path so far; ``None``
    without a device.

    A control group counts by disk, not by partition.
    """
    number = os.stat(path).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    group = own_control_group()
    try:
        disk = disk_of(device)
        if group is not None and os.path.exists(f"{group}/io.stat"):
            with open(f"{group}/io.stat") as file:
                counts = next((line.split()[1:] for line in file if line.split()[0] == disk), [])
            named = dict(count.split("=") for count in counts)
            return "cgroup", (int(named.get("rbytes", 0)), int(named.get("wbytes", 0)))
        sectors = read_proc(f"/sys/dev/block/{device}/stat").split()
        return "device", (int(sectors[2]) * SECTOR_BYTES, int(sectors[6]) * SECTOR_BYTES)
    except OSError:  # tmpfs, network and stacked file systems have no block device of their own
        return "device", None
