"""What a tier gives under load, read from a run's log: from when only reads, only writes, or both were in flight.

Nothing is fitted: every figure is bytes over seconds of some part of the run, or a quantile of what single streams did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from neurotier.model.observed import Observed, Vector

BUSIER = 0.5
"""What a tier gives at most is the mean over the busier half of the time: the other half has starts and ends."""

FASTEST = 0.9
"""The fastest tenth of the streams shows what one can do when others are not in its way."""


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


def loaded(run: Observed) -> Loaded:
    """What a run with at least one reading and one writing stream shows of its tier.

    A stream is taken to move its bytes evenly from its start to its end.
    """
    reading = run.busy(np.where(run.is_write, 0.0, run.speeds))
    writing = run.written_bytes_per_s
    readers, writers = run.readers.round() > 0, run.writers.round() > 0
    only_reads, only_writes = readers & ~writers, writers & ~readers
    begin = run.edges_s[run.begin[run.is_write].min()]
    end = run.edges_s[run.end[~run.is_write].max()]
    both = (run.edges_s[:-1] >= begin) & (run.edges_s[:-1] < end)
    read, write = mean(reading, run.lengths_s, only_reads), mean(writing, run.lengths_s, only_writes)
    mixed_read, mixed_write = mean(reading, run.lengths_s, both), mean(writing, run.lengths_s, both)
    reads, writes = run.speeds[~run.is_write], run.speeds[run.is_write]
    return Loaded(
        read_bytes_per_s=read,
        write_bytes_per_s=write,
        read_only_s=float(run.lengths_s[only_reads].sum()),
        write_only_s=float(run.lengths_s[only_writes].sum()),
        mixed_read_bytes_per_s=mixed_read,
        mixed=mixed_read / read + mixed_write / write,
        most_bytes_per_s=busier_mean(reading + writing, run.lengths_s),
        read_stream_bytes_per_s=float(np.median(reads)),
        write_stream_bytes_per_s=float(np.median(writes)),
        fastest_read_bytes_per_s=float(np.quantile(reads, FASTEST)),
        fastest_write_bytes_per_s=float(np.quantile(writes, FASTEST)),
    )


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
    weight = np.ones(len(runs)) if weights is None else np.array(weights, float)
    values = {}
    for field in fields(Loaded):
        column = np.array([getattr(run, field.name) for run in runs])
        if field.name.endswith("_only_s"):
            values[field.name] = float(column.sum())
            continue
        known = np.isfinite(column) & (column > 0)
        logarithms = np.log(column[known])
        some = known.any()
        values[field.name] = float(np.exp(np.average(logarithms, weights=weight[known]))) if some else float("nan")
    return Loaded(**values)
