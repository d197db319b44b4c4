"""The published server as the model sees it: processors, page cache, and what is known of its devices beforehand."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.kinds import KINDS
from neurotier.model.machine import Machine, PageCache, Processors, TierSpeed, cache_of
from neurotier.published.bigbrain import APP_DIRECT, MEMORY_MODE
from neurotier.published.conditions import device_and_mode
from neurotier.published.replay import Replay
from neurotier.published.table_one import device_bandwidths
from neurotier.run.compared import is_compared
from neurotier.storage.table_one import bytes_per_s

TIER = "device"
"""The model's name of the device."""

CORES, THREADS = 48, 96
"""Two Xeon Platinum 8260M."""

DEVICE_KINDS = {
    ("DRAM", APP_DIRECT): "tmpfs",
    ("Optane", MEMORY_MODE): "tmpfs",
    ("Optane", APP_DIRECT): "fsdax",
    ("local SSD", MEMORY_MODE): "block",
    ("local SSD", APP_DIRECT): "block",
    ("Isilon", MEMORY_MODE): "network",
    ("Isilon", APP_DIRECT): "network",
}
"""What kind of tier a device is in a mode; only a block device has write-back (the paper, section II-A)."""

MEMORY_DEVICES = 12
"""Memory modules that a tmpfs is spread over, DRAM or, in Memory mode, Optane (the paper, sections II-A and IV-C)."""

DRAM_BYTES = 12 * 64 * 2**30
"""What Memory mode caches Optane in (the paper, section II-A)."""

MODULE_BYTES_PER_S = (1.75e9, 0.58e9)
"""Read and write bandwidth of a module of 256 GiB, 64 bytes at a time (Intel's product brief of the module, 2019)."""

MODE_FILES = {APP_DIRECT: "adm", MEMORY_MODE: "memm"}
"""How ``system_conf`` names the modes."""

AVAILABLE_BYTES = {APP_DIRECT: 781_305_872 * 1024, MEMORY_MODE: 3_095_667_592 * 1024}
"""``MemAvailable`` in ``system_conf``, for checkouts without that folder."""

DIRTY = {"dirty_background_ratio": 10, "dirty_ratio": 40, "dirty_expire_centisecs": 3000}
"""The same of the kernel's settings; they are alike in both modes."""


def page_cache(root: Path, mode: str) -> PageCache:
    """Memory and kernel settings in a mode, from ``system_conf`` below a path if it has them."""
    name = MODE_FILES[mode]
    available = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(root, f"{name}_meminfo"), re.MULTILINE)
    settings = dict(re.findall(r"^/proc/sys/vm/(\w+):(\d+)$", text_of(root, "adm_vm"), re.MULTILINE))
    background, ratio, expiry = (int(settings.get(key, value)) for key, value in DIRTY.items())
    return PageCache(
        available_bytes=int(available[1]) * 1024 if available else AVAILABLE_BYTES[mode],
        background_ratio=background / 100,
        ratio=ratio / 100,
        expiry_s=expiry / 100,
    )


def text_of(root: Path, name: str) -> str:
    """A file of ``system_conf``; empty if it is not there."""
    file = next(iter(sorted(root.rglob(f"system_conf/{name}"))), None)
    return file.read_text(errors="replace") if file else ""


def by_table(kind: str, read_mb_s: float, write_mb_s: float) -> TierSpeed:
    """A tier of which only Table I is known, one stream of ``dd``; a tmpfs is spread over all memory modules."""
    devices = MEMORY_DEVICES if kind == "tmpfs" else 1
    read, write = bytes_per_s(read_mb_s), bytes_per_s(write_mb_s)
    return TierSpeed(read * devices, write * devices, read, write, write_back=KINDS[kind].write_back)


def known_beforehand(replay: Replay, condition: IncrementCondition) -> tuple[TierSpeed, TierSpeed]:
    """What Table I tells of a condition's device, and of the memory that its writes go to first.

    In Memory mode the benchmark of tmpfs, which is not in the printed table, tells of Optane as memory.
    """
    printed = device_bandwidths(replay.bandwidths)
    own = {(one.device, one.mode): one.of(statistics.fmean) for one in replay.bandwidths}
    place = device_and_mode(condition)
    return by_table(DEVICE_KINDS[place], *own.get(place, printed[place[0]])), by_table("tmpfs", *printed["DRAM"])


def processors(replay: Replay) -> Processors:
    """The processors; what two threads on a core achieve, by how CPU time of the BIDS App example grows with processes.

    With 25 processes each has a core, with 96 each has half of one.
    """
    sums: dict[tuple[str, int], list[float]] = {}
    for row in filter(is_compared, replay.bids_app.runs):
        sums.setdefault((row["placement"], row["parallelism"]), []).append(row["cpu_sum_s"])
    grew = [
        statistics.fmean(some) / statistics.fmean(sums[where, 25])
        for (where, processes), some in sums.items()
        if processes == THREADS and (where, 25) in sums
    ]
    known = {"smt_factor": 2 / statistics.fmean(grew)} if grew else {}
    return Processors(CORES, THREADS, **known)


def server(replay: Replay, condition: IncrementCondition, speed: TierSpeed, memory: TierSpeed) -> Machine:
    """The server as a condition finds it, with the speeds of its device and of its memory."""
    cache = page_cache(replay.root, device_and_mode(condition)[1])
    return Machine(processors(replay), cache, {TIER: speed, cache_of(TIER): memory})
