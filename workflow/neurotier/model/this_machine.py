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
from neurotier.core.tables import Rows, grouped, read_table
from neurotier.model.machine import Machine, PageCache, Processors, TierSpeed, cache_of

SYSCTL = Path("/proc/sys/vm")
LEAST_PAGE_CACHE = 0.1
"""Share of the available memory that the page cache keeps, however much memory the jobs take."""

HIDES = 2.0
"""The page cache hides the device from writers if these get more than this many times the device's bandwidth."""

UNEVENNESS = 0.042
"""How much the speeds of equal streams differ, which a probe does not show: the median of the published devices (a test
computes it). If all speeds were equal, jobs that begin together would end together, and leave the tier idle in
between."""

MIXED_RANGE = 0.1, 2.0
"""Permitted range of ``mixed``: a full-duplex link has 2."""


Curve = dict[int, float]
"""Bandwidth of all streams together, bytes/s, by the number of concurrent streams."""


class FileCost(NamedTuple):
    """What a small file costs on a tier while it exists: it is made, looked at once, and removed.

    Attributes
    ----------
    cpu_s
        CPU time of these calls, s.
    wait_s
        Time in which these calls wait for the tier or its locks, without waiting for a processor, s.
    low, high
        The lowest and the highest of the probe's repetitions, relative to their median.
    """

    cpu_s: float
    wait_s: float
    low: float = 1.0
    high: float = 1.0


@dataclass(frozen=True)
class TierFigures:
    """The measured figures of one tier.

    Attributes
    ----------
    kind
        Of the tier.
    read_bytes_per_s, write_bytes_per_s, mixed_bytes_per_s
        Reading from and writing to the device, and half of each at the same time (both directions added).
    cached_read_bytes_per_s, buffered_write_bytes_per_s
        Reading from and writing to the page cache; for tiers in memory, which have none, the same as for the device.
    single_read_bytes_per_s, single_write_bytes_per_s
        One buffered stream, as with ``dd`` and in the published Table I: reading with an empty page cache, and writing
        including the flush.
    random_read_s
        Mean time of reading 4 KiB at random, one request at a time, s.
    make_s, look_s
        Mean time of making a small file, and of looking at one, with one stream, s.
    files
        What a small file costs, by the number of concurrent streams.
    buffered_bytes
        Bytes that all streams together wrote to measure ``buffered_write_bytes_per_s``, by the number of streams.
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
    """Figures of one tier from the rows of its probe table."""
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
    """What a small file costs a participant, who does these three operations, by the number of concurrent streams."""
    named = grouped((row["streams"], row) for row in rows if row["pattern"] in ("make", "look", "remove"))
    costs = {}
    for streams, each in named.items():
        cpu_s, wait_s, low_s, high_s = (
            sum(row[f"operation_{figure}_s"] for row in each) for figure in ("cpu", "wait", "low", "high")
        )
        spread = min(1.0, low_s / (cpu_s + wait_s)), max(1.0, high_s / (cpu_s + wait_s))
        # memory has nothing to wait for: time that is not accounted for was taken by a virtual machine's host
        costs[streams] = FileCost(cpu_s, 0.0 if is_in_memory(rows[0]["kind"]) else wait_s, *spread)
    return costs


def curve(rows: Rows, pattern: str) -> Curve:
    """Bandwidth of one access pattern by the number of concurrent streams."""
    bandwidths = {
        row["streams"]: row["bandwidth_bytes_per_s"]
        for row in rows
        if row["part"] == "concurrency" and row["pattern"] == pattern
    }
    if not bandwidths:
        raise KeyError(pattern)
    return bandwidths


class Probed(NamedTuple):
    """A tier's probe: the medians, and the lowest and highest bandwidths of its repetitions."""

    usual: TierFigures
    low: TierFigures
    high: TierFigures


def read_probed(table: Path) -> Probed:
    """Read the figures of one tier.

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

    If writers get little more than the device's bandwidth, as where dirty bytes are strictly limited, the page cache
    holds what they wrote in excess of what the device took meanwhile. If they get no more, as on a FUSE file system,
    they wait for the device. Network file systems flush when a file is closed.

    The rate of small files, by one stream and by all together, follows from how long each file waits; without waiting
    it is unlimited. Streams that begin a file when their previous one is done have, together, the rate of their number
    over the wait of each.
    """
    speed = speed_by(figures.read_bytes_per_s, figures.write_bytes_per_s, streams)
    read, write = speed.read_bytes_per_s, speed.write_bytes_per_s
    buffered = at(figures.buffered_write_bytes_per_s, streams)
    cached, held_bytes = KINDS[figures.kind].write_back, math.inf
    if cached and buffered <= HIDES * write:
        held_bytes = max(0.0, 1 - write / buffered) * at(figures.buffered_bytes, streams)
    mixed = at(figures.mixed_bytes_per_s, streams) / (2 / (1 / read + 1 / write))  # relative to taking turns
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
    """What a small file costs on a tier with ``streams`` streams, interpolated as by :func:`at`."""
    parts = zip(*figures.files.values(), strict=True)
    curves = [dict(zip(figures.files, part, strict=True)) for part in parts]
    return FileCost(*(at(curve, streams) for curve in curves))


def open_s(figures: TierFigures) -> float:
    """How long a tier takes before the first bytes of a file arrive, s: a lookup and one small request; 0 in memory."""
    return 0.0 if is_in_memory(figures.kind) else figures.look_s + figures.random_read_s


def speed_by(read: Curve, write: Curve, streams: int) -> TierSpeed:
    """The bandwidth of ``streams`` streams together, and the most that one can get, from two curves."""
    return TierSpeed(at(read, streams), at(write, streams), at(read, 1), at(write, 1), unevenness=UNEVENNESS)


def machines_of(
    probes: Mapping[str, Probed], streams: int, processors: Processors, page_cache: PageCache
) -> tuple[Machine, Callable[[np.random.Generator], Machine]]:
    """The machine with ``streams`` streams on its tiers; and a function that draws one whose tiers lie between the
    lowest and the highest figures of their probes."""
    usual, low, high = (
        machine_of({name: getattr(probe, end) for name, probe in probes.items()}, streams, processors, page_cache)
        for end in ("usual", "low", "high")
    )

    def drawn(rng: np.random.Generator) -> Machine:
        tiers = {}
        for served, tier in usual.tiers.items():
            where = float(rng.uniform(-1, 1))  # -1 is the lowest, 0 the median, 1 the highest
            ends = vars((high if where > 0 else low).tiers[served])
            medians = {name: median for name, median in vars(tier).items() if name.endswith("bytes_per_s")}
            speeds = {name: median * (ends[name] / median) ** abs(where) for name, median in medians.items()}
            tiers[served] = replace(tier, **speeds)
        return replace(usual, tiers=tiers)

    return usual, drawn


def machine_of(
    figures: Mapping[str, TierFigures], streams: int, processors: Processors, page_cache: PageCache
) -> Machine:
    """The machine with the probed figures of its tiers, and with a page cache for each, as the tier's file system uses
    it. If the tier limits dirty bytes, the probe of writers shows their waiting, so the cache is taken to be written as
    fast as it is read."""
    tiers = {name: tier_speed(tier, streams) for name, tier in figures.items()}
    for name, tier in figures.items():
        waits, given = tiers[name].dirty_bytes < math.inf, tier.cached_read_bytes_per_s
        tiers[cache_of(name)] = speed_by(given, given if waits else tier.buffered_write_bytes_per_s, streams)
    return Machine(processors, page_cache, tiers)


def processors_here(threads_per_job: int, others: float) -> Processors:
    """This node's processors that this process may use; if a job has several threads, they are counted in jobs.

    Parameters
    ----------
    others
        Number of busy processes outside the run.
    """
    threads = max(1, round(usable_cores()))
    cores = min(psutil.cpu_count(logical=False) or threads, threads)
    cores, threads = (max(1, count // threads_per_job) for count in (cores, threads))
    return Processors(cores, threads, others=others / threads_per_job)


def page_cache_here(taken_bytes: float) -> PageCache:
    """The page cache by the limits of this node's kernel and of this process's control groups, if the jobs take so much
    memory."""
    names = ("dirty_background_bytes", "dirty_bytes", "dirty_background_ratio", "dirty_ratio", "dirty_expire_centisecs")
    settings = {name: int((SYSCTL / name).read_text()) for name in names}
    cache = page_cache_of(settings, left_for_cache(psutil.virtual_memory().available, taken_bytes))
    left = min((left_bytes for _, left_bytes in memory()), default=math.inf)
    return in_group(cache, left_for_cache(left, taken_bytes), (MOUNTED / "cgroup.controllers").exists())


def in_group(cache: PageCache, left_bytes: float, is_unified: bool) -> PageCache:
    """The page cache in a control group that has ``left_bytes`` of memory left for it.

    Control groups of version 2, the unified ones, limit dirty bytes in proportion to their memory; in those of version
    1, writers wait when the group is full.

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
    """The memory left for the page cache when jobs have taken theirs: at least a tenth of what is available, and one
    byte.

    >>> left_for_cache(1000.0, 700.0), left_for_cache(1000.0, 950.0), left_for_cache(0.0, 1.0)
    (300.0, 100.0, 1.0)
    """
    return max(available_bytes - taken_bytes, LEAST_PAGE_CACHE * available_bytes, 1.0)


def page_cache_of(sysctl: Mapping[str, int], left_bytes: float) -> PageCache:
    """The page cache by the kernel's settings, with ``left_bytes`` of memory; settings in bytes take precedence if they
    are not 0.

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
    """Limit the ratios as Linux does: at most all may be dirty, and a background ratio that is not below the other is
    half of it.

    >>> limited(PageCache(100.0, 1.0, 5.0, 30.0))
    PageCache(available_bytes=100.0, background_ratio=0.5, ratio=1.0, expiry_s=30.0)
    """
    most = min(cache.ratio, 1.0)
    background = cache.background_ratio if cache.background_ratio < most else most / 2
    return replace(cache, ratio=most, background_ratio=background)
