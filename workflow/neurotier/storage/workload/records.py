"""Rows of points: which ones were measured."""

from __future__ import annotations

from collections.abc import Iterable

from neurotier.core.tables import Row, Rows

MEASURED = "measured"
"""Status of a measured point; any other status says why it was not measured."""


def measured_rows(rows: Iterable[Row]) -> Rows:
    """Rows of points that were measured."""
    return [row for row in rows if row["status"] == MEASURED]
