"""The figure ``bandwidth``: all processes together, writing and reading, by their number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.counts import NOTHING, measured, published, write_lines
from neurotier.pages.kit.findings import Finding
from neurotier.storage.ior.medians import READ, WRITE, lines, verdict
from neurotier.storage.published import IOR_NODE

TITLES = {WRITE: "Write, flushed", READ: "Read back by another process"}
NOTE = (
    "Medians over repetitions, whiskers: their range; logarithmic axes. Stars: a node of the NEXTGenIO prototype, that"
    " is, what all of them reached divided by their number (Figure 3: 48 processes, Figure 4: 24)."
)


def finding(rows: Sequence[Row]) -> Finding:
    """With how many processes every tier is fastest."""
    found = lines(rows)
    if not found:
        return Finding(NOTHING, shown=False)
    return Finding("; ".join(verdict(name, line) for name, line in found.items()))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the bandwidths, a panel for writing and one for reading; write SVG, PNG and TSV."""
    table = [
        measured(title, name, processes, one[way])
        for name, line in lines(rows).items()
        for processes, one in line.items()
        for way, title in TITLES.items()
    ]
    table += [published(TITLES[number.quantity], number) for number in IOR_NODE]
    panels = dict.fromkeys(TITLES.values(), "Processes at once")
    write_lines(stem, finding(rows), table, panels, "Bandwidth", "bytes/s", NOTE)
