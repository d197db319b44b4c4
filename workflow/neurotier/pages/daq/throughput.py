"""The figure ``throughput``: all writers together, by their number. As Figure 8 of the DUNE paper."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import counted, rate
from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.kit.counts import LIMIT, NOTHING, measured, point, published, write_lines
from neurotier.pages.kit.findings import Finding
from neurotier.storage.daq.holding import lines
from neurotier.storage.published import DAQ

NOTE = (
    "Median over repetitions, until all is flushed; logarithmic axes. Dashed: what comes to the writers. Stars: the"
    " paper's DCPMMs, interleaved (4 writers) and each by itself (5 writers), as its text states them."
)


def finding(tables: DaqTables) -> Finding:
    """What every tier takes at most."""
    found = lines(tables.points)
    if not found:
        return Finding(NOTHING, shown=False)
    clauses = []
    for name, line in found.items():
        most = max(line, key=lambda writers: line[writers].throughput.median)
        reached = rate(line[most].throughput.median)
        clauses.append(f"{name} writes {reached} at most (with {counted(most, 'writer')})")
    return Finding("; ".join(clauses))


def draw(tables: DaqTables, stem: Path) -> None:
    """Draw the throughput; write SVG, PNG and TSV."""
    found = lines(tables.points)
    rows = [
        measured("", name, writers, one.throughput) for name, line in found.items() for writers, one in line.items()
    ]
    come = {writers: one.input_bytes_per_s for line in found.values() for writers, one in line.items()}
    rows += [point(LIMIT, "", "what comes", writers, come[writers]) for writers in sorted(come)]
    rows += [published("", number) for number in DAQ if number.quantity == "throughput"]
    write_lines(stem, finding(tables), rows, {"": "Writers at once"}, "Throughput", "bytes/s", NOTE)
