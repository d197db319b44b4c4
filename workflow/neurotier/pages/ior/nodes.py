"""The figure ``nodes``: what nodes write and read together, by their number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.kit.counts import NOTHING, measured, published, write_lines
from neurotier.pages.kit.findings import Finding
from neurotier.storage.ior.medians import READ, WRITE
from neurotier.storage.ior.scaling import curves, verdict
from neurotier.storage.published import IOR_LIST, IOR_NODES

TITLES = {WRITE: "Write, flushed", READ: "Read back"}
NOTE = (
    "Medians over repetitions, whiskers: their range; logarithmic axes. Stars: the NEXTGenIO prototype with 48"
    " (Figure 3) and 24 processes per node (Figure 4). Dotted: the first of the IO-500 list of then, 512 nodes."
)


def finding(rows: Sequence[Row]) -> Finding:
    """From where on more nodes bring nothing, and whether fewer processes on each are faster."""
    found = curves(rows)
    if not found:
        return Finding(f"{NOTHING} on several nodes", shown=False)
    return Finding("; ".join(verdict(name, each) for name, each in found.items()))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the bandwidths, a panel for writing and one for reading; write SVG, PNG and TSV."""
    table = [
        measured(title, f"{name}, {counted(processes, 'process')} each", nodes, one[way])
        for name, each in curves(rows).items()
        for processes, curve in each.items()
        for nodes, one in curve.items()
        for way, title in TITLES.items()
    ]
    table += [published(TITLES[number.quantity], number) for number in (*IOR_NODES, *IOR_LIST)]
    panels = dict.fromkeys(TITLES.values(), "Nodes at once")
    write_lines(stem, finding(rows), table, panels, "Bandwidth of all nodes", "bytes/s", NOTE)
