"""The makespans of the BIDS App example, as the comparison draws them (Figure 9)."""

from __future__ import annotations

from pathlib import Path

from neurotier.pages.comparison.makespan import draw_makespan, makespan_finding
from neurotier.pages.kit.findings import Finding
from neurotier.pages.published.tables import Replayed


def parts(tables: Replayed) -> dict[str, Replayed]:
    """Itself if there are runs of the example."""
    return {"": tables} if finding(tables).shown else {}


def finding(tables: Replayed) -> Finding:
    """As in the comparison."""
    return makespan_finding(tables.replay.bids_app.runs)


def draw(tables: Replayed, stem: Path) -> None:
    """Write SVG, PNG and TSV."""
    draw_makespan(tables.replay.bids_app.runs, stem)
