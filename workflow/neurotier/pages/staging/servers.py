"""The figure ``servers``: response times against the number of servers, as Figure 6 of the Optane report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding
from neurotier.pages.staging import answers
from neurotier.pages.staging.panels import panel, write_panels

NOTE = (
    "Shaded: the servers of the report (page 5, Figure 6), where more on one node were faster; its response times are"
    " in its picture alone."
)


def finding(rows: Sequence[Row]) -> Finding:
    """Whether more servers help."""
    return answers.servers(rows)


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw writes and reads against servers; write SVG, PNG and TSV."""
    axes = {"write": "servers", "read": "servers"}
    table = [row for way, axis in axes.items() for row in panel(rows, way, axis, stated="servers")]
    write_panels(stem, finding(rows), table, axes, NOTE)
