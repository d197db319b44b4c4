"""The figure ``weak_scaling``: readers and writers that each have as many bytes, as Figure 8 of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding
from neurotier.pages.staging import answers
from neurotier.pages.staging.panels import SCALED, panel, write_panels
from neurotier.storage.published import staging_values

CLIENT = "client"
NOTE = (
    f"The report (page 6, Figure 8) has 8 MB ({size(min(staging_values('client_bytes')))}) for each of 1 to 64, and"
    " response times that grow with their number; the times themselves are in its picture alone."
)


def finding(rows: Sequence[Row]) -> Finding:
    """How response times grow with the number of readers and writers, and so with the bytes."""
    return answers.scaling(rows, CLIENT)


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw reads against readers and writes against writers; write SVG, PNG and TSV."""
    table = [row for way, axis in SCALED.items() for row in panel(rows, way, axis, CLIENT)]
    write_panels(stem, finding(rows), table, SCALED, NOTE)
