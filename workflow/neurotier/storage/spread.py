"""Which points were measured, and the spread of a measure over repetitions: its median and its range."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from neurotier.core.tables import Row, Rows

MEASURED = "measured"
"""Status of a point that was; else it says why it was not."""


def measured_rows(rows: Iterable[Row]) -> Rows:
    """Rows of points that were measured."""
    return [row for row in rows if row["status"] == MEASURED]


class Spread(NamedTuple):
    """Median and range over repetitions."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, rows: Iterable[Row], column: str) -> Spread:
        """That of a column."""
        return cls(tuple(row[column] for row in rows))

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """Least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """Greatest value."""
        return max(self.values)


def spread(runs: Iterable[Row], column: str) -> Spread | None:
    """Spread of a column over the runs in which it is known; ``None`` if there are none."""
    known = [run for run in runs if run[column] is not None]
    return Spread.of(known, column) if known else None
