"""The page of storage sweeps: lines of every set on every tier."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from neurotier.core.quantities import percent, rate
from neurotier.core.tables import Rows, grouped
from neurotier.pages.kit.chart import NOTHING, Chart
from neurotier.pages.kit.findings import at_once, workload_page
from neurotier.pages.kit.lines import Lines, measured
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Data, Figure, Verdict
from neurotier.storage.fio import access_text
from neurotier.storage.spread import measured_rows
from neurotier.storage.sweep.medians import (
    PATTERNS,
    READING,
    WRITING,
    Measured,
    Spot,
    best,
    block_text,
    medians,
    requests_text,
    setting_text,
)

NEAR = 0.9
"""A block size is called large enough if it reaches this share of the highest bandwidth."""

KINDS = (
    (READING, "reading", "to read"),
    (WRITING, "writing", "to write"),
    (("mixed",), "reading and writing", "to do both"),
)


def parts(settings: Any) -> dict[str, str]:
    """The parts of the figure: every set on every tier."""
    sets = itertools.product(settings.sweep.tiers, settings.sweep.sets)
    return {f"{tier}_{name}": f"{tier}, set {name}" for tier, name in sets}


def sets_of(data: Data) -> dict[str, Rows]:
    """The points of every set on every tier, by the names of :func:`parts`."""
    return grouped((f"{row['tier']}_{row['set']}", row) for row in data["sweep"])


def fastest(rows: Rows) -> Verdict:
    """The verdict on where the bandwidths of one tier and set are highest."""
    spots, clauses, title = medians(rows), [], f"Set {rows[0]['set']}"
    if not spots:
        return Verdict(f"{NOTHING} on {rows[0]['tier']}", BAD, title)
    for patterns, verb, _ in KINDS:
        if spot := best(spots, patterns):
            reached = rate(spots[spot].bandwidth.median)
            clauses.append(f"{verb} is fastest at {reached} ({setting_text(spot)})")
    is_once = any(len(one.bandwidth.values) == 1 for one in spots.values())
    clauses += ["measured once, so that it may be chance"] * is_once
    return Verdict(f"{rows[0]['tier']}: {'; '.join(clauses)}", OPEN if is_once else GOOD, title)


def verdicts(data: Data) -> list[Verdict]:
    """The verdicts: where each tier is fastest in each set."""
    return [fastest(rows) for rows in sets_of(data).values()]


def lines(data: Data, part: str) -> Chart:
    """A panel per pattern and queue depth, a line per number of processes. As Figures 2 and 5 of the DUNE paper, and
    the numbers of Figures 2 to 5 of the Optane report.
    """
    rows = sets_of(data).get(part, [])
    spots = medians(rows)
    if not spots:
        return Chart(NOTHING)
    most = max(spots, key=lambda spot: spots[spot].requests.median)
    says = f"{rows[0]['tier']}: at most {requests_text(spots[most].requests.median)} ({setting_text(most)})"
    needed = [f"{block_text(block)} {verb}" for patterns, _, verb in KINDS if (block := large_enough(spots, patterns))]
    if len({spot.block_bytes for spot in spots}) > 1:
        says += f"; {percent(NEAR)} of the highest bandwidth takes blocks of {' and '.join(needed)}"
    table = [
        measured(
            f"{PATTERNS[spot.pattern].capitalize()}, queue depth {spot.queue_depth}",
            at_once(spot.processes),
            spot.block_bytes,
            one.bandwidth,
        )
        for spot, one in spots.items()
    ]
    ways = sorted({access_text(row["engine"], row["direct"]) for row in measured_rows(rows)})
    return Lines(
        says,
        table,
        "Median over repetitions, whiskers from least to greatest; all processes together. Both axes are logarithmic."
        f" By fio: {' or '.join(ways)}.",
        panels={row["panel"]: "Block size" for row in table},
        place_text=lambda value: block_text(int(value)),
    )


def large_enough(spots: dict[Spot, Measured], patterns: Sequence[str]) -> int | None:
    """The smallest block, bytes, with which some point comes close to the highest bandwidth."""
    known = [(spot.block_bytes, one.bandwidth.median) for spot, one in spots.items() if spot.pattern in patterns]
    most = max((reached for _, reached in known), default=0.0)
    return min((block for block, reached in known if reached >= NEAR * most), default=None)


PAGE = workload_page(
    "sweep",
    " with fio",
    title="Storage sweep",
    caption="The sweep on one page: where each tier is fastest, bandwidth by block size and processes, what was"
    " not measured and why. The page shows which requests suit a tier.",
    verdicts=verdicts,
    parts=(Figure("Bandwidth by block size", lines, parts),),
    method="Each process works on a file of its own; bandwidths are those of all processes together. Direct: past the"
    " page cache; buffered: through it, and writes until they are on the device.",
)
