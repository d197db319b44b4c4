"""Statistics of the comparison: spread over repetitions, speed-up, paired differences, and what is sure.

Only valid runs are compared; how many are left out is counted. A run is told apart by its condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neurotier.tables import Row


@dataclass(frozen=True, order=True)
class Condition:
    """What was compared: rows of ``compared_runs.tsv`` that agree in these are repetitions of one another."""

    origin: str
    tool: str
    cache: str
    parallelism: int
    placement: str


@dataclass(frozen=True)
class Spread:
    """Median and range over repetitions."""

    values: tuple[float, ...]

    @property
    def median(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def condition_of(run: Row) -> Condition: ...


def by_condition(runs: Iterable[Row]) -> dict[Condition, list[Row]]:
    """Valid runs by condition, in order."""
    ...


def left_out(runs: Iterable[Row]) -> list[Row]:
    """Runs that are not valid."""
    ...


@dataclass(frozen=True)
class Difference:
    """How much longer participants took in one condition than in another, by participant."""

    slower: Condition
    faster: Condition
    participants: int
    median_s: float
    low_s: float
    high_s: float


def paired_differences(runs: Sequence[Row], phases: Sequence[Row]) -> list[Difference]:
    """Between every two placements of the same origin, tool, cache and parallelism."""
    ...


@dataclass(frozen=True)
class SpeedUp:
    """Makespan at a lower parallelism over makespan at a higher one, same placement; ideal is the ratio of the two."""

    lower: Condition
    higher: Condition
    ratio: Spread


def speed_ups(runs: Sequence[Row]) -> list[SpeedUp]: ...
