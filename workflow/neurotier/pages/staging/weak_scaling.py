"""The figure ``weak_scaling``: readers and writers that each have as many bytes, as Figure 8 of the report."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import size
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import write_figure
from neurotier.pages.staging import answers
from neurotier.pages.staging.figures import StagingTables
from neurotier.pages.staging.panels import Panel, panels_figure, table
from neurotier.storage.published import staging_values
from neurotier.storage.staging.curves import curves, of_each_place

CLIENT = "client"
EACH = staging_values("client_bytes")
NOTE = (
    f"The report (page 6, Figure 8) has 8 MB ({size(min(EACH))}) for each of 1 to 64, and response"
    " times that grow with their number; the times themselves are in its picture alone. Both axes are logarithmic."
)


def finding(tables: StagingTables) -> Finding:
    """How response times grow with the number of readers and writers, and so with the bytes."""
    return answers.scaling(tables.points, CLIENT)


def draw(tables: StagingTables, stem: Path) -> None:
    """Draw reads against readers and writes against writers; write SVG, PNG and TSV."""
    panels = [
        Panel("Reading", "readers", of_each_place(curves(tables.points, "readers", "read", CLIENT))),
        Panel("Writing", "writers", of_each_place(curves(tables.points, "writers", "write", CLIENT))),
    ]
    write_figure(stem, finding(tables), table(panels), lambda: panels_figure(panels), NOTE)
