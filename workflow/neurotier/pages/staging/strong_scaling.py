"""The figure ``strong_scaling``: a step of the same size with more readers or writers, as Figure 7 of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding
from neurotier.pages.staging import answers
from neurotier.pages.staging.panels import SCALED, panel, write_panels
from neurotier.storage.staging.grid import STEP

NOTE = (
    "Shaded: the numbers that suited best in the report (page 6, Figure 7), of 1 to 64 with 64 of the others and 4"
    " servers."
)


def finding(rows: Sequence[Row]) -> Finding:
    """With how many readers and writers a step takes least."""
    return answers.scaling(rows, STEP)


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw reads against readers and writes against writers; write SVG, PNG and TSV."""
    table = panel(rows, "read", "readers", STEP, "best_readers") + panel(rows, "write", "writers", STEP, "best_writers")
    write_panels(stem, finding(rows), table, SCALED, NOTE)
