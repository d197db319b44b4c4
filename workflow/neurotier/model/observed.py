"""What streams on a tier did in a run, and what they should have done, had the tier these speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neurotier.model.machine import PageCache, TierSpeed
from neurotier.model.sharing import Demand, share_out, split, wanted
from neurotier.model.write_back import Dirty

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """One step that read from the tier in question, or wrote to it; times in s."""

    is_write: bool
    moved_bytes: float
    start_s: float
    end_s: float


class Observed:
    """The streams of one run, and how many were busy when."""

    def __init__(self, streams: Sequence[Stream], cache: PageCache) -> None:
        self.cache = cache
        start_s: Vector = np.array([stream.start_s for stream in streams])
        end_s: Vector = np.array([stream.end_s for stream in streams])
        self.moved_bytes: Vector = np.array([stream.moved_bytes for stream in streams])
        self.is_write = np.array([stream.is_write for stream in streams])
        self.edges_s: Vector = np.unique(np.concatenate([start_s, end_s]))
        self.lengths_s: Vector = np.diff(self.edges_s)
        self.begin, self.end = np.searchsorted(self.edges_s, start_s), np.searchsorted(self.edges_s, end_s)
        self.speeds: Vector = self.moved_bytes / np.maximum(end_s - start_s, 1e-9)
        self.readers = self.busy(~self.is_write)
        self.writers = self.busy(self.is_write)
        self.written_bytes_per_s = self.busy(np.where(self.is_write, self.speeds, 0.0))
        self.order = np.argsort(start_s)
        columns = (self.edges_s[:-1], self.lengths_s, self.readers, self.written_bytes_per_s)
        self.intervals = list(zip(*(column.tolist() for column in columns), strict=True))
        """Begin, length, readers, and what flows into the cache, as Python's numbers, with which loops are quicker."""

    def busy(self, weights: NDArray[np.generic]) -> Vector:
        """Sum of the weights of the streams that are busy, for each interval between two edges."""
        changes = np.zeros(len(self.edges_s))
        np.add.at(changes, self.begin, weights)
        np.add.at(changes, self.end, -weights.astype(float))
        sums: Vector = np.cumsum(changes)[:-1]
        return sums

    def misses(self, tier: TierSpeed, memory: TierSpeed | None) -> Vector:
        """Logarithm of the bytes that each stream should have moved, over those that it did.

        Parameters
        ----------
        tier
            Speeds to try.
        memory
            Speeds of memory, if writes go there first.
        """
        due = self.due(tier) if memory else np.zeros(len(self.lengths_s))
        states, which = np.unique(
            np.stack([self.readers.round(), self.writers.round(), due]), axis=1, return_inverse=True
        )
        rates = np.array([stream_rates(tier, memory, *state) for state in states.T.tolist()])[which.ravel()]
        moved = np.cumsum(np.vstack([[0.0, 0.0], rates * self.lengths_s[:, None]]), axis=0)
        direction = self.is_write.astype(int)
        should = moved[self.end, direction] - moved[self.begin, direction]
        result: Vector = np.log(np.maximum(should, 1.0) / self.moved_bytes)
        return result

    def due(self, tier: TierSpeed) -> Vector:
        """For each interval, 1 if something had to be written back, else 0."""
        dirty, due = Dirty(self.cache), np.zeros(len(self.lengths_s))
        for interval, (now_s, length_s, readers, inflow_bytes_per_s) in enumerate(self.intervals):
            is_due = dirty.is_due(now_s)
            reading = readers * tier.read_stream_bytes_per_s / tier.read_bytes_per_s
            writing = split(reading, 1.0, tier.mixed)[1] if is_due else 0.0
            dirty.rate_bytes_per_s = writing * tier.write_bytes_per_s
            dirty.advance(now_s, length_s, inflow_bytes_per_s)
            due[interval] = is_due
        return due

    def unevenness(self) -> list[float]:
        """Logarithms of the ratio of speeds of streams that began one after the other, by direction."""
        ratios: list[float] = []
        for direction in (False, True):
            speeds = self.speeds[self.order[self.is_write[self.order] == direction]]
            ratios += list(np.diff(np.log(speeds)))
        return ratios


def stream_rates(
    tier: TierSpeed, memory: TierSpeed | None, readers: float, writers: float, due: float
) -> tuple[float, float]:
    """What each of so many readers and writers gets, bytes/s."""
    written_to = memory or tier
    reads = [Demand(int(readers), tier.read_stream_bytes_per_s, tier.read_bytes_per_s)]
    writes = [Demand(int(writers), written_to.write_stream_bytes_per_s, written_to.write_bytes_per_s)]
    reading, writing = split(wanted(reads), due if memory else wanted(writes), tier.mixed)
    if readers:
        share_out(reads, reading)
    if writers:
        share_out(writes, 1.0 if memory else writing)
    return reads[0].rate_bytes_per_s, writes[0].rate_bytes_per_s
