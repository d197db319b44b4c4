"""Panels of response times against a number of processes, with the numbers that the report states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.counts import PUBLISHED, measured, point, write_lines
from neurotier.pages.kit.findings import Finding
from neurotier.storage.published import STAGING
from neurotier.storage.staging.curves import curves, of_each_place

TITLES = {"read": "Reading", "write": "Writing"}
SCALED = {"read": "readers", "write": "writers"}
"""What is counted along the panels of both ways of scaling."""


def panel(rows: Iterable[Row], way: str, axis: str, per: str | None = None, stated: str = "") -> list[Row]:
    """The lines of one panel, and what the report states of the processes along it.

    Parameters
    ----------
    rows
        Rows of ``staging.tsv``.
    way, axis, per
        As for :func:`neurotier.storage.staging.curves.curves`.
    stated
        Quantity that the report states; its response times are in a picture alone.
    """
    found = [
        measured(TITLES[way], curve.name, count, times) | {"others": curve.others_text}
        for curve in of_each_place(curves(rows, axis, way, per))
        for count, times in curve.times.items()
    ]
    return found + [
        point(PUBLISHED, TITLES[way], f"{number.source}, {number.place}", number.value, None) | {"others": None}
        for number in STAGING
        if number.quantity == stated
    ]


def write_panels(stem: Path, said: Finding, rows: Sequence[Row], axes: dict[str, str], note: str) -> None:
    """Save the figure of some panels; ``axes`` has what is counted along each, by way."""
    panels = {TITLES[way]: axis.capitalize() for way, axis in axes.items()}
    write_lines(stem, said, rows, panels, "Response time of a step", "s", f"{note} Both axes are logarithmic.")
