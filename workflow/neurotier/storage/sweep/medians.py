"""Medians of a sweep over its repetitions, and its sizes, rates and patterns in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neurotier.core.quantities import counted, size, three_digits
from neurotier.core.tables import Rows, grouped
from neurotier.storage.spread import Spread, measured_rows

PATTERNS = {
    "read": "sequential read",
    "randread": "random read",
    "write": "sequential write",
    "randwrite": "random write",
    "mixed": "sequential read and write",
}
READING, WRITING = ("read", "randread"), ("write", "randwrite")


class Spot(NamedTuple):
    """A point of a sweep, in one set and on one tier, regardless of the repetition."""

    queue_depth: int
    pattern: str
    block_bytes: int
    processes: int


class Measured(NamedTuple):
    """The bytes/s and requests/s measured at a spot over the repetitions."""

    bandwidth: Spread
    requests: Spread


def medians(rows: Rows) -> dict[Spot, Measured]:
    """The measurements of one set on one tier, by spot; spots without a measured point are left out."""
    groups = grouped((Spot(*(row[name] for name in Spot._fields)), row) for row in measured_rows(rows))
    return {
        spot: Measured(Spread.of(members, "bandwidth_bytes_per_s"), Spread.of(members, "requests_per_s"))
        for spot, members in sorted(groups.items())
    }


def best(spots: dict[Spot, Measured], patterns: Sequence[str]) -> Spot | None:
    """The spot with the highest median bandwidth among these patterns; ``None`` if there is none."""
    candidates = [spot for spot in spots if spot.pattern in patterns]
    return max(candidates, key=lambda spot: spots[spot].bandwidth.median, default=None)


def setting_text(spot: Spot) -> str:
    """The position of a spot in its grid, in words."""
    depth = f", queue depth {spot.queue_depth}" if spot.queue_depth > 1 else ""
    return f"{PATTERNS[spot.pattern]}, {block_text(spot.block_bytes)}, {counted(spot.processes, 'process')}{depth}"


def block_text(block_bytes: int) -> str:
    """A block size in words.

    >>> block_text(256), block_text(65536)
    ('256 B', '64 KiB')
    """
    return size(block_bytes).removesuffix("ytes").replace("b", "B") if block_bytes < 1024 else size(block_bytes)


def requests_text(per_s: float) -> str:
    """A rate of requests in words.

    >>> requests_text(213456.0), requests_text(87.25)
    ('213,000 requests/s', '87.2 requests/s')
    """
    return f"{three_digits(float(f'{per_s:.3g}') if per_s >= 999.5 else per_s)} requests/s"
