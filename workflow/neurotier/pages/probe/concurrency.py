"""The figure ``concurrency``: bandwidth of each tier by the number of streams at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import rate
from neurotier.core.tables import Row
from neurotier.pages.kit.counts import MEASURED, point, write_lines
from neurotier.pages.kit.findings import Finding

PATTERNS = {
    "read": "Read",
    "write": "Write",
    "mixed": "Half and half",
    "cached_read": "Read from the page cache",
    "buffered_write": "Write to the page cache",
}
FULL_SHARE = 0.9
"""Share of the greatest bandwidth from which further streams are said to gain nothing."""

NOTE = (
    "Bandwidth of all streams together; a file for each, 1 MiB a request, one at a time; half and half counts both"
    " ways. Medians of the repetitions; whiskers: their range. Writes include the flush to the device."
)


def curves(rows: Sequence[Row]) -> list[Row]:
    """Rows of the curves in order of their patterns and streams."""
    known = [row for row in rows if row["part"] == "concurrency"]
    return sorted(known, key=lambda row: (list(PATTERNS).index(row["pattern"]), row["streams"]))


def most(curve: Sequence[Row]) -> float:
    """Greatest bandwidth of a curve, bytes/s."""
    return max(float(row["bandwidth_bytes_per_s"]) for row in curve)


def full_at(curve: Sequence[Row]) -> int:
    """Streams from which further ones gain nothing that the repetitions agree on."""
    enough = FULL_SHARE * most(curve)
    return next(int(row["streams"]) for row in curve if row["bandwidth_high_bytes_per_s"] >= enough)


def finding(rows: Sequence[Row]) -> Finding:
    """Which tier reads fastest, and where each stops scaling."""
    reads: dict[str, list[Row]] = {}
    for row in curves(rows):
        if row["pattern"] == "read":
            reads.setdefault(row["tier"], []).append(row)
    if not reads:
        return Finding("No tier has been measured", shown=False)
    ordered = sorted(reads, key=lambda tier: most(reads[tier]), reverse=True)
    fast, slow = ordered[0], ordered[-1]
    sentence = f"{fast} reads {rate(most(reads[fast]))}"
    if len(ordered) > 1:
        ratio = most(reads[fast]) / most(reads[slow])
        sentence += f", {ratio:,.{1 if ratio < 10 else 0}f} times as much as {slow}"
    clauses, gaining = [], []
    for tier in ordered:
        last, full = reads[tier][-1]["streams"], full_at(reads[tier])
        if full < last:
            end = f"stops scaling at {full} streams" if full > 1 else "gains nothing from a second stream"
            clauses.append(f"{tier} {end}")
        elif last > 1:
            gaining.append(tier)
    if gaining:
        last = max(reads[tier][-1]["streams"] for tier in gaining)
        clauses.append(f"{' and '.join(gaining)} {'gains' if len(gaining) == 1 else 'gain'} up to {last} streams")
    return Finding("; ".join([sentence, *clauses]))


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw the curves, a panel for each tier, all on the same scale; write SVG, PNG and TSV."""
    titles = {row["tier"]: f"{row['tier']} ({row['kind']}, {row['fs_type']})" for row in rows}
    ends = ("bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s")
    table = [
        point(MEASURED, titles[row["tier"]], PATTERNS[row["pattern"]], row["streams"], *(row[end] for end in ends))
        for row in curves(rows)
    ]
    panels = dict.fromkeys(titles.values(), "Streams at once")
    write_lines(stem, finding(rows), table, panels, "Bandwidth", "bytes/s", NOTE)
