"""The makespans of the BIDS App example, as the comparison draws them (Figure 9)."""

from __future__ import annotations

from pathlib import Path

from neurotier.pages.comparison.figures import makespan
from neurotier.pages.kit.findings import Finding
from neurotier.pages.published.tables import Replayed
from neurotier.run.compared import Compared


def finding(runs: Compared) -> Finding:
    """What it says."""
    return Finding(makespan(runs).says)


def draw(runs: Compared, stem: Path) -> None:
    """Draw it; write SVG, PNG and TSV."""
    makespan(runs).save(stem)


def parts(tables: Replayed) -> dict[str, Compared]:
    """The runs of the example, if there are any."""
    runs = tables.replay.bids_app
    return {"": runs} if makespan(runs).table else {}
