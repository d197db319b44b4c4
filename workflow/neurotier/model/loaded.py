"""What a tier achieves under load, from a run's log: while only reads, only writes, or both were in flight.

Nothing is fitted: every figure is bytes over seconds of some part of the run, or a quantile of the speeds of single
streams.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

Vector = NDArray[np.float64]
Chosen = NDArray[np.bool_]

BUSIER = 0.5
"""A tier's highest bandwidth is the mean over the busier half of the time, since the other half contains starts and
ends."""

FASTEST = 0.9
"""The fastest tenth of the streams shows what one stream can achieve if others do not interfere."""


class Stream(NamedTuple):
    """One step that read from the tier or wrote to it; times in s."""

    is_write: bool
    moved_bytes: float
    start_s: float
    end_s: float


class Loaded(NamedTuple):
    """What one run shows about its tier; bandwidths in bytes/s, of all streams together unless stated otherwise.

    Attributes
    ----------
    read_bytes_per_s, write_bytes_per_s
        While only reads, or only writes, were in flight; ``nan`` if there was no such time.
    read_only_s, write_only_s
        Duration of that time, s.
    mixed_read_bytes_per_s
        Reads between the first write and the last read, that is, while both went on.
    mixed
        What the tier achieved in that time, relative to what it achieves when only reading or only writing.
    most_bytes_per_s
        Reads and writes together, in the busier half of the time.
    read_stream_bytes_per_s, write_stream_bytes_per_s
        Median bandwidth of one stream.
    fastest_read_bytes_per_s, fastest_write_bytes_per_s
        Lowest bandwidth among the fastest tenth of the streams.
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
    """What a run with at least one reading and one writing stream shows about its tier.

    A stream is assumed to move its bytes evenly from its start to its end.
    """
    is_write, _, start_s, end_s = np.array(streams, dtype=float).T
    edges_s, speeds, writes = np.unique([start_s, end_s]), speeds_of(streams), is_write > 0
    lengths_s, from_s = np.diff(edges_s), edges_s[:-1]

    def in_flight(way: Chosen, weights: Vector) -> Vector:
        """Sum of the weights of the streams of one direction that are busy, for each interval between two edges."""
        changes = np.zeros(len(edges_s))
        np.add.at(changes, np.searchsorted(edges_s, start_s), weights * way)
        np.add.at(changes, np.searchsorted(edges_s, end_s), -weights * way)
        sums: Vector = np.cumsum(changes)[:-1]
        return sums

    reading, writing = (in_flight(way, speeds) for way in (~writes, writes))
    reads_now, writes_now = (in_flight(way, np.ones(len(streams))) > 0.5 for way in (~writes, writes))
    only_reads, only_writes = reads_now & ~writes_now, writes_now & ~reads_now
    both = (from_s >= start_s[writes].min()) & (from_s < end_s[~writes].max())
    read, write = mean(reading, lengths_s, only_reads), mean(writing, lengths_s, only_writes)
    mixed_read = mean(reading, lengths_s, both)
    return Loaded(
        read_bytes_per_s=read,
        write_bytes_per_s=write,
        read_only_s=float(lengths_s[only_reads].sum()),
        write_only_s=float(lengths_s[only_writes].sum()),
        mixed_read_bytes_per_s=mixed_read,
        mixed=mixed_read / read + mean(writing, lengths_s, both) / write,
        most_bytes_per_s=busier_mean(reading + writing, lengths_s),
        read_stream_bytes_per_s=float(np.median(speeds[~writes])),
        write_stream_bytes_per_s=float(np.median(speeds[writes])),
        fastest_read_bytes_per_s=float(np.quantile(speeds[~writes], FASTEST)),
        fastest_write_bytes_per_s=float(np.quantile(speeds[writes], FASTEST)),
    )


def speeds_of(streams: Sequence[Stream]) -> Vector:
    """The bandwidth of each stream, bytes/s."""
    _, moved_bytes, start_s, end_s = np.array(streams, dtype=float).T
    return np.asarray(moved_bytes / np.maximum(end_s - start_s, 1e-9))


def unevenness(runs: Sequence[Sequence[Stream]]) -> float:
    """Robust standard deviation of the logarithm of the speeds of streams that should be equally fast.

    Two streams of one direction that began one after the other had the same competition, so that they differ only by
    chance.
    """
    ratios = []
    for streams in runs:
        in_order, logs = np.argsort([stream.start_s for stream in streams]), np.log(speeds_of(streams))
        ratios += [
            np.diff([logs[at] for at in in_order if streams[at].is_write == is_write]) for is_write in (False, True)
        ]
    quartiles = np.quantile(np.concatenate(ratios), [0.25, 0.75])
    return float((quartiles[1] - quartiles[0]) / 1.349 / np.sqrt(2))  # a normal distribution's quartiles: +-0.6745


def mean(rates: Vector, lengths_s: Vector, chosen: Chosen) -> float:
    """Bytes over seconds in the chosen intervals; ``nan`` if there are none."""
    return float((rates * lengths_s)[chosen].sum() / lengths_s[chosen].sum()) if chosen.any() else math.nan


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


def pooled(runs: Iterable[Loaded] | DataFrame, weights: Sequence[float] | None = None) -> Any:
    """The geometric mean of what runs show, of each figure over the runs that show it; seconds are summed.

    Parameters
    ----------
    runs
        A row or a tuple for each run.
    weights
        The weight of each run; equal if ``None``.
    """
    from pandas import DataFrame

    shown = DataFrame(runs)
    logs, weight = np.log(shown.where(shown > 0)), np.array([weights or np.ones(len(shown))]).T
    means = np.exp((logs * weight).sum() / (logs.notna() * weight).sum())
    return means.where(~means.index.str.endswith("_only_s"), shown.sum())
