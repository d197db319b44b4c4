"""What a tier gives under load, read from a run's log: from when only reads, only writes, or both were in flight.

Nothing is fitted: every figure is bytes over seconds of some part of the run, or a quantile of what single streams did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BUSIER = 0.5
"""What a tier gives at most is the mean over the busier half of the time: the other half has starts and ends."""

FASTEST = 0.9
"""The fastest tenth of the streams shows what one can do when others are not in its way."""


@dataclass(frozen=True)
class Stream:
    """One step that read from the tier in question, or wrote to it; times in s."""

    is_write: bool
    moved_bytes: float
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Loaded:
    """What one run shows of its tier; bandwidths in bytes/s, all streams together unless it says otherwise.

    Attributes
    ----------
    read_bytes_per_s, write_bytes_per_s
        While only reads, or only writes, were in flight; ``nan`` if there was no such time.
    read_only_s, write_only_s
        How long that was, s.
    mixed_read_bytes_per_s
        Reads from the first write to the last read: while both went on.
    mixed
        What the tier achieved in that time, in units of what it achieves when it does one of them.
    most_bytes_per_s
        What was in flight together, reads and writes, in the busier half of the time.
    read_stream_bytes_per_s, write_stream_bytes_per_s
        Median of what one stream got.
    fastest_read_bytes_per_s, fastest_write_bytes_per_s
        What the fastest tenth of the streams got at least.
    """

    read_bytes_per_s: float
    write_bytes_per_s: float
    read_only_s: float
    write_only_s: float
    mixed_read_bytes_per_s: float
    mixed: float
    most_bytes_per_s: float
    read_stream_bytes_per_s: float
    write_stream_bytes_per_s: float
    fastest_read_bytes_per_s: float
    fastest_write_bytes_per_s: float


def loaded(streams: Sequence[Stream]) -> Loaded:
    """What a run with at least one reading and one writing stream shows of its tier.

    A stream is taken to move its bytes evenly from its start to its end.
    """
    start_s, end_s = (np.array([getattr(stream, name) for stream in streams]) for name in ("start_s", "end_s"))
    is_write, speeds = np.array([stream.is_write for stream in streams]), speeds_of(streams)
    edges_s = np.unique(np.concatenate([start_s, end_s]))
    lengths_s, begin, end = np.diff(edges_s), np.searchsorted(edges_s, start_s), np.searchsorted(edges_s, end_s)

    def in_flight(chosen: NDArray[np.bool_], weights: Vector) -> Vector:
        """Sum of the weights of the chosen streams that are busy, for each interval between two edges."""
        changes = np.zeros(len(edges_s))
        np.add.at(changes, begin, weights * chosen)
        np.add.at(changes, end, -weights * chosen)
        sums: Vector = np.cumsum(changes)[:-1]
        return sums

    reading, writing = in_flight(~is_write, speeds), in_flight(is_write, speeds)
    one = np.ones(len(streams))
    reads_now, writes_now = in_flight(~is_write, one).round() > 0, in_flight(is_write, one).round() > 0
    only_reads, only_writes = reads_now & ~writes_now, writes_now & ~reads_now
    both = (edges_s[:-1] >= start_s[is_write].min()) & (edges_s[:-1] < end_s[~is_write].max())
    read, write = mean(reading, lengths_s, only_reads), mean(writing, lengths_s, only_writes)
    mixed_read, mixed_write = mean(reading, lengths_s, both), mean(writing, lengths_s, both)
    reads, writes = speeds[~is_write], speeds[is_write]
    return Loaded(
        read_bytes_per_s=read,
        write_bytes_per_s=write,
        read_only_s=float(lengths_s[only_reads].sum()),
        write_only_s=float(lengths_s[only_writes].sum()),
        mixed_read_bytes_per_s=mixed_read,
        mixed=mixed_read / read + mixed_write / write,
        most_bytes_per_s=busier_mean(reading + writing, lengths_s),
        read_stream_bytes_per_s=float(np.median(reads)),
        write_stream_bytes_per_s=float(np.median(writes)),
        fastest_read_bytes_per_s=float(np.quantile(reads, FASTEST)),
        fastest_write_bytes_per_s=float(np.quantile(writes, FASTEST)),
    )


def speeds_of(streams: Sequence[Stream]) -> Vector:
    """What each stream got, bytes/s."""
    return np.array([stream.moved_bytes / max(stream.end_s - stream.start_s, 1e-9) for stream in streams])


def unevenness(runs: Sequence[Sequence[Stream]]) -> float:
    """Standard deviation of the logarithm of the speeds of streams that should be alike, robustly.

    Streams of one direction that began one after the other had the same company, so that they differ by chance alone.
    """
    ratios = []
    for streams in runs:
        in_order = [streams[at] for at in np.argsort([stream.start_s for stream in streams])]
        by_direction = ([one for one in in_order if one.is_write == is_write] for is_write in (False, True))
        ratios += [np.diff(np.log(speeds_of(some))) for some in by_direction]
    quartiles = np.quantile(np.concatenate(ratios), [0.25, 0.75])
    return float((quartiles[1] - quartiles[0]) / 1.349 / np.sqrt(2))  # a normal distribution's quartiles: +-0.6745


def mean(rates: Vector, lengths_s: Vector, chosen: NDArray[np.bool_]) -> float:
    """Bytes over seconds in the chosen intervals; ``nan`` of none."""
    seconds = lengths_s[chosen].sum()
    return float((rates * lengths_s)[chosen].sum() / seconds) if seconds > 0 else float("nan")


def busier_mean(rates: Vector, lengths_s: Vector) -> float:
    """Mean rate of the busier half of the time.

    >>> busier_mean(np.array([5.0, 1.0, 9.0]), np.array([2.0, 5.0, 3.0]))
    7.4
    """
    order = np.argsort(rates)[::-1]
    passed_s = np.cumsum(lengths_s[order])
    half_s = BUSIER * lengths_s.sum()
    counted_s = np.clip(half_s - (passed_s - lengths_s[order]), 0.0, lengths_s[order])
    return float((rates[order] * counted_s).sum() / half_s)


def pooled(runs: Sequence[Loaded], weights: Sequence[float] | None = None) -> Loaded:
    """The geometric mean of what runs show, each figure over the runs that show it; seconds are sums.

    Parameters
    ----------
    weights
        How much each run counts; alike if ``None``.
    """
    weight, values = np.array(weights or [1.0] * len(runs)), {}
    for field in fields(Loaded):
        column = np.array([getattr(run, field.name) for run in runs])
        known = np.isfinite(column) & (column > 0)
        if field.name.endswith("_only_s"):
            values[field.name] = float(column.sum())
        elif known.any():
            values[field.name] = float(np.exp(np.average(np.log(column[known]), weights=weight[known])))
        else:
            values[field.name] = float("nan")
    return Loaded(**values)
