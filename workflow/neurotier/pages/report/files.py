"""Files on the work tier: how many were made there, how many lay there at once, and what that cost in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from neurotier.core.tables import Row
from neurotier.pages.report.data import ReportData


@dataclass(frozen=True)
class TierFiles:
    """What the folders of all participant jobs have held on one tier.

    Attributes
    ----------
    made, removed, left
        Sums over the jobs; ``removed`` is ``None`` if no job was walked while its tool ran.
    peak_files, peak_bytes
        Of the job that had most.
    removal_s
        Sum of what counting and removing took that tools had left, s.
    probed_s
        What making and deleting so many files one after the other takes by the probe, s; ``None`` without one.
    """

    tier: str
    kind: str
    made: int
    removed: int | None
    left: int
    peak_files: int
    peak_bytes: int
    removal_s: float | None
    probed_s: float | None


def tier_files(data: ReportData) -> list[TierFiles]:
    """A row for each tier on which files were made, if they were counted: earlier versions did not."""
    found = []
    for tier in sorted({row["tier"] for row in data.traffic if row["made_files"]}):
        rows = [row for row in data.traffic if row["tier"] == tier and row["made_files"] is not None]
        made, left = total(rows, "made_files") or 0, total(rows, "left_files") or 0
        create_s, delete_s = (probed_s(data.probe, tier, pattern) for pattern in ("create", "delete"))
        known = create_s is not None and delete_s is not None
        found.append(
            TierFiles(
                tier=tier,
                kind=data.tier_kinds.get(tier, ""),
                made=int(made),
                removed=None if (removed := total(rows, "removed_files")) is None else int(removed),
                left=int(left),
                peak_files=max(row["peak_files"] for row in rows),
                peak_bytes=max(row["peak_bytes"] for row in rows),
                removal_s=total(rows, "removal_s"),
                probed_s=made * ((create_s or 0.0) + (delete_s or 0.0)) if known else None,
            )
        )
    return found


def total(rows: Sequence[Row], column: str) -> float | None:
    """Sum of the values that are known; ``None`` if none is.

    >>> total([{"n": 1}, {"n": None}, {"n": 2}], "n"), total([{"n": None}], "n")
    (3, None)
    """
    known: list[float] = [row[column] for row in rows if row[column] is not None]
    return sum(known) if known else None


def probed_s(probe: Sequence[Row], tier: str, pattern: str) -> float | None:
    """What an operation on a file took when a tier was probed, s; the median of several nodes."""
    known = [
        row["latency_mean_s"]
        for row in probe
        if (row["tier"], row["part"], row["pattern"]) == (tier, "metadata", pattern)
        and row["latency_mean_s"] is not None
    ]
    return statistics.median(known) if known else None
