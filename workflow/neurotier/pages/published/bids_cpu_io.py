"""CPU time and the paper's I/O of the BIDS App example, as the comparison draws them (Figure 10)."""

from __future__ import annotations

from pathlib import Path

from neurotier.pages.comparison import cpu_io_sums
from neurotier.pages.kit.findings import Finding
from neurotier.pages.published.tables import Replayed


def parts(tables: Replayed) -> dict[str, Replayed]:
    """Itself if there are runs of the example."""
    return {"": tables} if finding(tables).shown else {}


def finding(tables: Replayed) -> Finding:
    """As in the comparison."""
    return cpu_io_sums.finding(tables.replay.bids_app)


def draw(tables: Replayed, stem: Path) -> None:
    """Write SVG, PNG and TSV."""
    cpu_io_sums.draw(tables.replay.bids_app, stem)
