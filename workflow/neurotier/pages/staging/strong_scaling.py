"""The figure ``strong_scaling``: a step of the same size with more readers or writers, as Figure 7 of the report."""

from __future__ import annotations

from pathlib import Path

from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.style import write_figure
from neurotier.pages.staging import answers
from neurotier.pages.staging.figures import StagingTables
from neurotier.pages.staging.panels import Panel, panels_figure, table
from neurotier.storage.published import staging_values
from neurotier.storage.staging.curves import curves, of_each_place
from neurotier.storage.staging.grid import STEP

NOTE = (
    "Shaded: the numbers that suited best in the report (page 6, Figure 7), of 1 to 64 with 64 of the others and 4"
    " servers. Both axes are logarithmic."
)


def finding(tables: StagingTables) -> Finding:
    """With how many readers and writers a step takes least."""
    return answers.scaling(tables.points, STEP)


def draw(tables: StagingTables, stem: Path) -> None:
    """Draw reads against readers and writes against writers; write SVG, PNG and TSV."""
    panels = [
        Panel(
            "Reading",
            "readers",
            of_each_place(curves(tables.points, "readers", "read", STEP)),
            (
                min(staging_values("best_readers")),
                max(staging_values("best_readers")),
                "published: least at 8 to 16 readers",
            ),
        ),
        Panel(
            "Writing",
            "writers",
            of_each_place(curves(tables.points, "writers", "write", STEP)),
            (
                min(staging_values("best_writers")),
                max(staging_values("best_writers")),
                "published: best balance at 16 writers",
            ),
        ),
    ]
    write_figure(stem, finding(tables), table(panels), lambda: panels_figure(panels), NOTE)
