"""Tier figures: what a model of a tier needs of its probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neurotier.core.kinds import is_in_memory
from neurotier.core.tables import Row, gathered

Curve = dict[int, float]
"""Bandwidth of all streams together, bytes/s, by the number of streams at once."""


@dataclass(frozen=True)
class FileCost:
    """What a small file takes from its first to its last byte on a tier: it is made, looked at once, and removed.

    Attributes
    ----------
    cpu_s
        CPU time of these calls, s.
    wait_s
        What they wait for the tier or its locks, s, and not for a processor.
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
    files: Mapping[int, FileCost] = field(default_factory=dict)


def figures_of(rows: list[Row]) -> TierFigures:
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
    )


def file_costs(rows: list[Row]) -> dict[int, FileCost]:
    """What a small file takes, by streams."""
    named = gathered((row["streams"], row) for row in rows if row["part"] == "files")
    costs = {}
    for streams, each in sorted(named.items()):
        cpu_s = sum(row["operation_cpu_s"] for row in each)
        # in memory there is nothing to wait for: what is not accounted for there, a virtual machine's host has taken
        wait_s = 0.0 if is_in_memory(rows[0]["kind"]) else sum(row["operation_wait_s"] for row in each)
        low_s, high_s = (sum(row[f"operation_{end}_s"] for row in each) for end in ("low", "high"))
        both_s = sum(row["operation_cpu_s"] + row["operation_wait_s"] for row in each)
        costs[streams] = FileCost(cpu_s, wait_s, min(1.0, low_s / both_s), max(1.0, high_s / both_s))
    return costs


def curve(rows: list[Row], pattern: str) -> Curve:
    """Bandwidth by streams of one pattern."""
    bandwidths = {
        row["streams"]: row["bandwidth_bytes_per_s"]
        for row in rows
        if row["part"] == "concurrency" and row["pattern"] == pattern
    }
    if not bandwidths:
        raise KeyError(pattern)
    return dict(sorted(bandwidths.items()))
