"""The prediction that the advice made for a run: the row of ``advice.tsv`` for its placement, tool and parallelism."""

from __future__ import annotations

from collections.abc import Iterable

from neurotier.core.tables import Row

KNOWN_BY = ("dataset_tier", "work_tier", "images_tier", "results_tier", "tool", "parallelism", "participants")
"""Columns in which an advice and a run must agree: a prediction for more participants says nothing about fewer."""


def matching_advice(advice: Iterable[Row], run: Row) -> Row | None:
    """The advice for a run's placement, parallelism and participants, preferably for the page cache as found."""
    found = [row for row in advice if all(row[name] == run[name] for name in KNOWN_BY)]
    return min(found, key=lambda row: row["cache"] != "as found", default=None)
