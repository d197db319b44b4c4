"""The figure ``lines``: bandwidth against block size, a line per number of processes.

As Figures 2 and 5 of the DUNE paper and Figure 1 of the Optane report.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent
from neurotier.core.tables import Row
from neurotier.pages.kit.counts import NOTHING, measured, write_lines
from neurotier.pages.kit.findings import Finding, at_once
from neurotier.pages.sweep.figures import by_set
from neurotier.storage.sweep.medians import (
    PATTERNS,
    READING,
    WRITING,
    Measured,
    Spot,
    block_text,
    medians,
    requests_text,
    setting_text,
)

NOTE = "Median over repetitions, whiskers from least to greatest; all processes together. Both axes are logarithmic."
NEAR = 0.9
"""Share of the highest bandwidth at which a block size is called large enough."""

parts = by_set


def finding(rows: Sequence[Row]) -> Finding:
    """How large blocks must be on one tier and in one set, and how many requests there are at most."""
    spots = medians(rows)
    if not spots:
        return Finding(NOTHING, shown=False)
    most = max(spots, key=lambda spot: spots[spot].requests.median)
    text = f"{most.tier}: at most {requests_text(spots[most].requests.median)} ({setting_text(most)})"
    needed = [
        f"{block_text(block)} {verb}"
        for patterns, verb in ((READING, "to read"), (WRITING, "to write"), (("mixed",), "to do both"))
        if (block := large_enough(spots, patterns)) is not None
    ]
    if len({spot.block_bytes for spot in spots}) > 1:
        text += f"; {percent(NEAR)} of the highest bandwidth takes blocks of {' and '.join(needed)}"
    return Finding(text)


def large_enough(spots: dict[Spot, Measured], patterns: Sequence[str]) -> int | None:
    """The smallest block, bytes, with which some point comes near the highest bandwidth."""
    known = [(spot.block_bytes, one.bandwidth.median) for spot, one in spots.items() if spot.pattern in patterns]
    most = max((reached for _, reached in known), default=0.0)
    return min((block for block, reached in known if reached >= NEAR * most), default=None)


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the lines of one tier and set; write SVG, PNG and TSV."""
    spots = medians(rows)
    table = [
        measured(
            f"{PATTERNS[spot.pattern].capitalize()}, queue depth {spot.queue_depth}",
            at_once(spot.processes),
            spot.block_bytes,
            one.bandwidth,
        )
        for spot, one in spots.items()
    ]
    panels = {row["panel"]: "Block size" for row in table}
    write_lines(stem, finding(rows), table, panels, "Bandwidth", "bytes/s", NOTE, place_text=block_text)
