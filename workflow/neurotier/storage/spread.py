"""Select the points that were measured, and summarise a quantity over repetitions by its median and range."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from neurotier.core.tables import Row, Rows

MEASURED = "measured"
"""Status of a point that was measured; any other status says why it was not."""


def measured_rows(rows: Iterable[Row]) -> Rows:
    """The rows of the points that were measured."""
    return [row for row in rows if row["status"] == MEASURED]


class Spread(NamedTuple):
    """Median and range over repetitions."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, rows: Iterable[Row], column: str) -> Spread:
        """The spread of a column."""
        return cls(tuple(row[column] for row in rows))

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest value."""
        return max(self.values)


def spread(runs: Iterable[Row], column: str) -> Spread | None:
    """The spread of a column over the runs that have a value; ``None`` if none has."""
    known = [run for run in runs if run[column] is not None]
    return Spread.of(known, column) if known else None
