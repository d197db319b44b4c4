"""What the page cache still has to write to a tier, and when it does."""

from __future__ import annotations

import math
from collections import deque

from neurotier.model.machine import PageCache

MERGE_S = 0.5
"""Bytes that became dirty within so many seconds grow old together."""

RELATIVE = 1e-9

ENOUGH = 0.9
"""Part of the background limit that is left when write-back for size ends: were it all of it, write-back would begin
again at once, and the simulation would advance in steps without length."""


class Dirty:
    """The dirty bytes of one tier, oldest first.

    Attributes
    ----------
    dirty_bytes
        What waits.
    rate_bytes_per_s
        How fast it is written back now.
    """

    def __init__(self, cache: PageCache) -> None:
        self.cache = cache
        self.dirty_bytes = 0.0
        self.rate_bytes_per_s = 0.0
        self.too_much = False
        self.chunks: deque[list[float]] = deque()

    def is_due(self, now_s: float) -> bool:
        """Whether something has to be written back: it is too old, or there is too much."""
        if not self.chunks:
            return False
        limit_bytes = self.cache.background_bytes * (ENOUGH if self.too_much else 1.0)
        self.too_much = self.dirty_bytes > limit_bytes * (1 + RELATIVE)
        return self.too_much or now_s - self.chunks[0][0] >= self.cache.expiry_s * (1 - RELATIVE)

    @property
    def throttles(self) -> bool:
        """Whether writers have to wait for the device."""
        return 0 < self.dirty_bytes >= self.cache.throttling_bytes * (1 - RELATIVE)

    def until_change_s(self, now_s: float, inflow_bytes_per_s: float) -> float:
        """Seconds until it begins or ends to be due, or to throttle."""
        moments = [math.inf]
        if self.chunks and self.rate_bytes_per_s:
            moments += [] if self.too_much else [self.chunks[0][1] / self.rate_bytes_per_s]
        elif self.chunks:
            moments.append(max(self.chunks[0][0] + self.cache.expiry_s - now_s, 0.0))
        net = inflow_bytes_per_s - self.rate_bytes_per_s
        background_bytes = self.cache.background_bytes
        for level in (background_bytes, ENOUGH * background_bytes, self.cache.throttling_bytes):
            missing = level - self.dirty_bytes
            if missing * net > 0 and abs(missing) > RELATIVE * level:
                moments.append(missing / net * (1 + RELATIVE))
        return min(moments)

    def advance(self, now_s: float, elapsed_s: float, inflow_bytes_per_s: float) -> None:
        """Let bytes come in, and be written back, for some seconds from now on."""
        gone = self.rate_bytes_per_s * elapsed_s
        if inflow_bytes_per_s:
            if not self.chunks or now_s - self.chunks[-1][0] > MERGE_S:
                self.chunks.append([now_s, 0.0])
            self.chunks[-1][1] += inflow_bytes_per_s * elapsed_s
        while self.chunks and gone:
            oldest = self.chunks[0]
            taken = min(gone, oldest[1])
            oldest[1] -= taken
            gone -= taken
            if oldest[1] < 1:
                self.chunks.popleft()
        self.dirty_bytes = sum([chunk[1] for chunk in self.chunks])
