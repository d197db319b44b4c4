"""Rows of points: which were measured, and those of the same kind together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from neurotier.core.tables import Row

MEASURED = "measured"
"""Status of a point that was; else it says why it was not."""

Key = TypeVar("Key")


def measured(rows: Iterable[Row]) -> list[Row]:
    """Rows of points that were measured."""
    return [row for row in rows if row["status"] == MEASURED]


def measured_by(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """The rows of points that were measured, by a key of each, in the order of the table."""
    groups: dict[Key, list[Row]] = {}
    for row in measured(rows):
        groups.setdefault(key(row), []).append(row)
    return groups
