"""The spread of a measure over repetitions: its median and its range."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from neurotier.core.tables import Row


@dataclass(frozen=True)
class Spread:
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
    values = tuple(float(run[column]) for run in runs if run[column] is not None)
    return Spread(values) if values else None
