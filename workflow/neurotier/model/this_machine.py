"""The model's machine: this node's processors and page cache as the kernel reports them, and its tiers as probed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from neurotier.core.control_groups import MOUNTED, memory, usable_cores
from neurotier.core.errors import InputError
from neurotier.core.kinds import KINDS, is_in_memory
from neurotier.core.tables import Rows, gathered, read_table
from neurotier.model.machine import Machine, PageCache, Processors, TierSpeed, cache_of

SYSCTL = Path("/proc/sys/vm")
LEAST_PAGE_CACHE = 0.1
"""Part of the available memory that the page cache keeps, however much the jobs take."""

HIDES = 2.0
"""The page cache hides the device from writers if they get at least this many times the device's bandwidth."""

UNEVENNESS = 0.042
"""How unequal streams are that should be alike, which a probe does not show: the median of the published devices (a
test computes it). If they were equal, jobs that begin together would end together, and leave the tier idle in
between."""

MIXED_RANGE = 0.1, 2.0
"""Range of ``mixed``: a full-duplex link has 2."""


Curve = dict[int, float]
"""Bandwidth of all streams together, bytes/s, by the number of streams at once."""


class FileCost(NamedTuple):
    """What a small file takes from its first to its last byte on a tier: it is made, looked at once, and removed.

    Attributes
    ----------
    cpu_s
        CPU time of these calls, s.
    wait_s
        Waiting of these calls for the tier or its locks, but not for a processor, s.
    low, high
        Least and greatest of the probe's repetitions, in units of their median.
    """

    cpu_s: float
    wait_s: float
    low: float = 1.0
    high: float = 1.0


@dataclass(frozen=True)
class TierFigures:
    """One tier as it was measured.

    Attributes
    ----------
    kind
        Of the tier.
    read_bytes_per_s, write_bytes_per_s, mixed_bytes_per_s
        From and to the device, and half and half (both ways added up).
    cached_read_bytes_per_s, buffered_write_bytes_per_s
        From and to the page cache; for memory-backed tiers, which have none, the same as from and to the device.
    single_read_bytes_per_s, single_write_bytes_per_s
        One buffered stream, as ``dd`` and the published Table I have it: read with an empty page cache, and written
        including the flush.
    random_read_s
        Mean time of reading 4 KiB at random, one request at a time, s.
    make_s, look_s
        Mean time of making a small file, and of looking at one, with one stream, s.
    files
        What a small file takes, by the number of streams at once.
    buffered_bytes
        What all streams wrote together to measure ``buffered_write_bytes_per_s``, likewise.
    """

    kind: str
    read_bytes_per_s: Curve
    write_bytes_per_s: Curve
    mixed_bytes_per_s: Curve
    cached_read_bytes_per_s: Curve
    buffered_write_bytes_per_s: Curve
    single_read_bytes_per_s: float
    single_write_bytes_per_s: float
    random_read_s: float
    make_s: float
    look_s: float
    files: Mapping[int, FileCost]
    buffered_bytes: Curve


def figures_of(rows: Rows) -> TierFigures:
    """Figures of one tier from its rows."""
    single = {row["pattern"]: row for row in rows if row["part"] == "one_stream"}
    alone = (row for row in rows if row["part"] in ("small", "files") and row["queue_depth"] == row["streams"] == 1)
    mean_s = {row["pattern"]: row["latency_mean_s"] for row in alone}
    read, write = curve(rows, "read"), curve(rows, "write")
    in_memory = is_in_memory(rows[0]["kind"])
    return TierFigures(
        kind=rows[0]["kind"],
        read_bytes_per_s=read,
        write_bytes_per_s=write,
        mixed_bytes_per_s=curve(rows, "mixed"),
        cached_read_bytes_per_s=read if in_memory else curve(rows, "cached_read"),
        buffered_write_bytes_per_s=write if in_memory else curve(rows, "buffered_write"),
        single_read_bytes_per_s=single["read"]["bandwidth_bytes_per_s"],
        single_write_bytes_per_s=single["write"]["bandwidth_bytes_per_s"],
        random_read_s=mean_s["random_read"],
        make_s=mean_s["make"],
        look_s=mean_s["look"],
        files=file_costs(rows),
        buffered_bytes={
            row["streams"]: row["streams"] * row["file_bytes"] for row in rows if row["pattern"] == "buffered_write"
        },
    )


def file_costs(rows: Rows) -> dict[int, FileCost]:
    """What a small file takes, by streams."""
    named = gathered((row["streams"], row) for row in rows if row["part"] == "files")
    costs = {}
    for streams, each in named.items():
        cpu_s = sum(row["operation_cpu_s"] for row in each)
        # in memory there is nothing to wait for: what is not accounted for there, a virtual machine's host has taken
        wait_s = 0.0 if is_in_memory(rows[0]["kind"]) else sum(row["operation_wait_s"] for row in each)
        low_s, high_s = (sum(row[f"operation_{end}_s"] for row in each) for end in ("low", "high"))
        both_s = sum(row["operation_cpu_s"] + row["operation_wait_s"] for row in each)
        costs[streams] = FileCost(cpu_s, wait_s, min(1.0, low_s / both_s), max(1.0, high_s / both_s))
    return costs


def curve(rows: Rows, pattern: str) -> Curve:
    """Bandwidth by streams of one pattern."""
    bandwidths = {
        row["streams"]: row["bandwidth_bytes_per_s"]
        for row in rows
        if row["part"] == "concurrency" and row["pattern"] == pattern
    }
    if not bandwidths:
        raise KeyError(pattern)
    return bandwidths


class Probed(NamedTuple):
    """A tier's probe: medians, and the least and the greatest of the repetitions."""

    usual: TierFigures
    low: TierFigures
    high: TierFigures


def read_probed(table: Path) -> Probed:
    """Figures of one tier.

    Raises
    ------
    InputError
        If a measurement that a probe makes is not in the table.
    """
    rows, ends = read_table(table, "probe"), ("bandwidth_", "bandwidth_low_", "bandwidth_high_")
    try:
        return Probed(
            *(figures_of([row | {"bandwidth_bytes_per_s": row[f"{end}bytes_per_s"]} for row in rows]) for end in ends)
        )
    except (KeyError, IndexError) as error:
        raise InputError(f"has no {error}", table, "probe again: --forcerun probe_tier") from None


def at(curve: Curve, streams: int) -> float:
    """The value of a curve at a number of streams: linear between points in the logarithm of streams, flat beyond them.

    >>> at({1: 100.0, 4: 300.0}, 2), at({1: 100.0, 4: 300.0}, 96)
    (200.0, 300.0)
    """
    points = sorted(curve)
    return float(np.interp(math.log(streams), np.log(points), [curve[point] for point in points]))


def tier_speed(figures: TierFigures, streams: int) -> TierSpeed:
    """A tier's speeds with ``streams`` streams.

    Where writers get little more than from the device, as where dirty bytes are strictly limited, the page cache holds
    what they wrote beyond what the device took meanwhile; where they get no more, as on a FUSE file system, they wait
    for it. Network file systems flush when a file is closed.

    Small files are made by one stream, and by all together, as fast as they wait for them; as many as one likes without
    waiting. Streams that begin the next file when the last is done are served at their number over what each waits.
    """
    speed = speed_by(figures.read_bytes_per_s, figures.write_bytes_per_s, streams)
    read, write = speed.read_bytes_per_s, speed.write_bytes_per_s
    buffered = at(figures.buffered_write_bytes_per_s, streams)
    cached, held_bytes = KINDS[figures.kind].write_back, math.inf
    if cached and buffered <= HIDES * write:
        held_bytes = max(0.0, 1 - write / buffered) * at(figures.buffered_bytes, streams)
    mixed = at(figures.mixed_bytes_per_s, streams) / (2 / (1 / read + 1 / write))  # over what taking turns gives
    alone_s, each_s = file_cost(figures, 1).wait_s, file_cost(figures, streams).wait_s
    together = streams / each_s if each_s else math.inf
    alone = 1 / alone_s if alone_s and each_s else together
    return replace(
        speed,
        write_bytes_per_s=min(write, buffered),
        mixed=min(max(mixed, MIXED_RANGE[0]), MIXED_RANGE[1]),
        write_back=cached and held_bytes > 0,
        dirty_bytes=held_bytes,
        files_stream_per_s=alone,
        files_per_s=max(together, alone),
    )


def file_cost(figures: TierFigures, streams: int) -> FileCost:
    """What a small file takes on a tier with so many streams; as in :func:`at`."""
    parts = zip(*figures.files.values(), strict=True)
    curves = [dict(zip(figures.files, part, strict=True)) for part in parts]
    return FileCost(*(at(curve, streams) for curve in curves))


def open_s(figures: TierFigures) -> float:
    """What a tier takes before a file's bytes flow, s: looking the file up, and one small request; none in memory."""
    return 0.0 if is_in_memory(figures.kind) else figures.look_s + figures.random_read_s


def speed_by(read: Curve, write: Curve, streams: int) -> TierSpeed:
    """What ``streams`` streams get together, and one at most, from two curves."""
    return TierSpeed(at(read, streams), at(write, streams), at(read, 1), at(write, 1), unevenness=UNEVENNESS)


def machines_of(
    probes: Mapping[str, Probed], streams: int, processors: Processors, page_cache: PageCache
) -> tuple[Machine, Callable[[np.random.Generator], Machine]]:
    """The machine, with so many streams on its tiers; and what draws one between each probe's least and most."""
    usual, low, high = (
        machine_of({name: getattr(probe, end) for name, probe in probes.items()}, streams, processors, page_cache)
        for end in ("usual", "low", "high")
    )

    def drawn(rng: np.random.Generator) -> Machine:
        tiers = {}
        for served, tier in usual.tiers.items():
            where = float(rng.uniform(-1, 1))  # from the least by 0, the median, to the most
            ends = vars((high if where > 0 else low).tiers[served])
            medians = {name: median for name, median in vars(tier).items() if name.endswith("bytes_per_s")}
            speeds = {name: median * (ends[name] / median) ** abs(where) for name, median in medians.items()}
            tiers[served] = replace(tier, **speeds)
        return replace(usual, tiers=tiers)

    return usual, drawn


def machine_of(
    figures: Mapping[str, TierFigures], streams: int, processors: Processors, page_cache: PageCache
) -> Machine:
    """The machine by what was probed; the page cache as each tier's file system lets it be used, which takes bytes as
    fast as it gives them where the probe of writers shows them wait."""
    tiers = {name: tier_speed(tier, streams) for name, tier in figures.items()}
    for name, tier in figures.items():
        waits, given = tiers[name].dirty_bytes < math.inf, tier.cached_read_bytes_per_s
        tiers[cache_of(name)] = speed_by(given, given if waits else tier.buffered_write_bytes_per_s, streams)
    return Machine(processors, page_cache, tiers)


def processors_here(threads_per_job: int, others: float) -> Processors:
    """This node's processors, as many as this process may use; counted in jobs, if a job has several threads.

    Parameters
    ----------
    others
        Busy processes of other users.
    """
    threads = max(1, round(usable_cores()))
    cores = min(psutil.cpu_count(logical=False) or threads, threads)
    cores, threads = (max(1, count // threads_per_job) for count in (cores, threads))
    return Processors(cores, threads, others=others / threads_per_job)


def page_cache_here(taken_bytes: float) -> PageCache:
    """What this node's kernel and this process's control groups allow to be dirty, with memory taken by the jobs."""
    names = ("dirty_background_bytes", "dirty_bytes", "dirty_background_ratio", "dirty_ratio", "dirty_expire_centisecs")
    settings = {name: int((SYSCTL / name).read_text()) for name in names}
    cache = page_cache_of(settings, left_for_cache(psutil.virtual_memory().available, taken_bytes))
    left = min((left_bytes for _, left_bytes in memory()), default=math.inf)
    return in_group(cache, left_for_cache(left, taken_bytes), (MOUNTED / "cgroup.controllers").exists())


def in_group(cache: PageCache, left_bytes: float, is_unified: bool) -> PageCache:
    """The page cache in a control group that has so much memory left for it.

    What may be dirty is limited in the same proportion by control groups of version 2, the unified ones; in those of
    version 1 writers wait when they are full.

    Examples
    --------
    >>> cache = PageCache(1000.0, background_ratio=0.1, ratio=0.2)
    >>> in_group(cache, 1000.0, is_unified=True) == cache
    True
    >>> in_group(cache, 400.0, is_unified=True).background_bytes
    40.0
    >>> group = in_group(cache, 400.0, is_unified=False)
    >>> group.background_bytes, group.throttling_bytes
    (100.0, 150.0)
    """
    if left_bytes >= cache.available_bytes:
        return cache
    scale = 1.0 if is_unified else cache.available_bytes / left_bytes
    return limited(PageCache(left_bytes, scale * cache.background_ratio, scale * cache.ratio, cache.expiry_s))


def left_for_cache(available_bytes: float, taken_bytes: float) -> float:
    """The memory left for the page cache when jobs have taken theirs: at least a tenth, and a byte.

    >>> left_for_cache(1000.0, 700.0), left_for_cache(1000.0, 950.0), left_for_cache(0.0, 1.0)
    (300.0, 100.0, 1.0)
    """
    return max(available_bytes - taken_bytes, LEAST_PAGE_CACHE * available_bytes, 1.0)


def page_cache_of(sysctl: Mapping[str, int], left_bytes: float) -> PageCache:
    """The page cache by the kernel's settings, with memory left for it; those in bytes rule where they are not 0.

    Examples
    --------
    >>> vm = dict(dirty_background_bytes=0, dirty_bytes=4000, dirty_background_ratio=10, dirty_ratio=20)
    >>> page_cache_of(vm | {"dirty_expire_centisecs": 3000}, 10_000)
    PageCache(available_bytes=10000, background_ratio=0.1, ratio=0.4, expiry_s=30.0)
    >>> vm |= dict(dirty_background_bytes=100, dirty_bytes=500, dirty_expire_centisecs=1500)
    >>> page_cache_of(vm, 1000)
    PageCache(available_bytes=1000, background_ratio=0.1, ratio=0.5, expiry_s=15.0)
    """
    background, most = (
        sysctl[f"{name}_bytes"] / left_bytes if sysctl[f"{name}_bytes"] else sysctl[f"{name}_ratio"] / 100
        for name in ("dirty_background", "dirty")
    )
    return limited(PageCache(left_bytes, background, most, sysctl["dirty_expire_centisecs"] / 100))


def limited(cache: PageCache) -> PageCache:
    """No more than all may be dirty; half of the limit is the background's where that is not below it, as in Linux.

    >>> limited(PageCache(100.0, 1.0, 5.0, 30.0))
    PageCache(available_bytes=100.0, background_ratio=0.5, ratio=1.0, expiry_s=30.0)
    """
    most = min(cache.ratio, 1.0)
    background = cache.background_ratio if cache.background_ratio < most else most / 2
    return replace(cache, ratio=most, background_ratio=background)
