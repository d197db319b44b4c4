"""The figure ``servers``: response times against the number of servers, as Figure 6 of the Optane report."""

from __future__ import annotations

from pathlib import Path

from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import write_figure
from neurotier.pages.staging import answers
from neurotier.pages.staging.figures import StagingTables
from neurotier.pages.staging.panels import Panel, panels_figure, table
from neurotier.storage.published import staging_values
from neurotier.storage.staging.curves import curves, of_each_place

NOTE = (
    "Shaded: the servers of the report (page 5, Figure 6), where more on one node were faster; its response times are"
    " in its picture alone. Both axes are logarithmic."
)


def finding(tables: StagingTables) -> Finding:
    """Whether more servers help."""
    return answers.servers(tables.points)


def draw(tables: StagingTables, stem: Path) -> None:
    """Draw writes and reads against servers; write SVG, PNG and TSV."""
    stated = (min(staging_values("servers")), max(staging_values("servers")), "published: 1 to 16, more were faster")
    panels = [
        Panel(title, "servers", of_each_place(curves(tables.points, "servers", way)), stated)
        for title, way in (("Writing", "write"), ("Reading", "read"))
    ]
    write_figure(stem, finding(tables), table(panels), lambda: panels_figure(panels), NOTE)
