"""The figure ``held``: the rate that each writer reached, by the number of writers. As Figure 7 of the DUNE paper."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import counted, percent, rate
from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.kit.counts import LIMIT, NOTHING, measured, point, published, write_lines
from neurotier.pages.kit.findings import Finding
from neurotier.storage.daq.holding import lines, most_held
from neurotier.storage.published import DAQ


def finding(tables: DaqTables) -> Finding:
    """How many writers every tier holds, and what the others need."""
    found = lines(tables.points)
    if not found:
        return Finding(NOTHING, shown=False)
    parts = []
    for name, line in found.items():
        held, most = most_held(line), max(line)
        parts.append(f"{name}: {'all' if held == most else held or 'none'} of {counted(most, 'writer')}")
    return Finding(f"Writers that hold {rate(tables.points[0]['rate_bytes_per_s'])} each: {'; '.join(parts)}")


def draw(tables: DaqTables, stem: Path) -> None:
    """Draw what a writer reached; write SVG, PNG and TSV."""
    least = 1 - tables.settings.tolerance
    rows = [
        measured("", name, writers, one.share)
        for name, line in lines(tables.points).items()
        for writers, one in line.items()
    ]
    rows += [point(LIMIT, "", "held", writers, least) for writers in sorted({row["at"] for row in rows})]
    rows += [published("", number) | {"median": 1.0} for number in DAQ if number.quantity == "held"]
    note = (
        f"Mean over writers, median over repetitions. Dashed: the least that counts as held, {percent(least)}."
        " Star: the most writers at 1 GB/s that the paper's six DCPMMs held, with PMDK."
    )
    panels, label = {"": "Writers at once"}, "Rate of a writer, of what comes to it"
    write_lines(stem, finding(tables), rows, panels, label, "share", note, logarithmic=False)
