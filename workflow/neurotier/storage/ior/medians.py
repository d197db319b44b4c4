"""What processes reached on a tier, over the repetitions; for one node, by their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurotier.core.quantities import counted, rate
from neurotier.core.tables import Row, gathered
from neurotier.storage.spread import Spread
from neurotier.storage.workload.records import measured_rows

READ, WRITE = "read", "write"
WAYS = {WRITE: "writes", READ: "reads"}

LEAST = 3
MORE = 1.05
"""How many times faster one number of processes must be than another to be called faster."""


Line = dict[int, dict[str, Spread]]
"""What all processes of all nodes reached together, bytes/s, by their number (of either), ascending, then by way."""


def reached(rows: Sequence[Row]) -> dict[str, Spread]:
    """The repetitions of one point, by way."""
    return {way: Spread.of(rows, f"{way}_bytes_per_s") for way in WAYS}


def by_processes(rows: Iterable[Row]) -> dict[str, dict[int, Line]]:
    """What was measured, by tier and pinning in the order of the table, by the processes of each node, and by nodes."""
    alone = [row for row in measured_rows(rows) if row["concurrent"] == 1]
    found: dict[str, dict[int, Line]] = {line_name(row): {} for row in alone}
    groups = gathered(((line_name(row), row["processes"], row["nodes"]), row) for row in alone)
    for (name, processes, nodes), members in sorted(groups.items()):
        found[name].setdefault(processes, {})[nodes] = reached(members)
    return found


def lines(rows: Iterable[Row]) -> dict[str, Line]:
    """What was measured of one node, by tier and pinning, and by its processes."""
    on_one = by_processes(row for row in rows if row["nodes"] == 1)
    return {name: {processes: curve[1] for processes, curve in each.items()} for name, each in on_one.items()}


def line_name(row: Row) -> str:
    """Tier and pinning of a point."""
    return f"{row['tier']}, pinned" if row["numa_nodes"] else str(row["tier"])


def fastest(line: Line, way: str) -> tuple[int, bool]:
    """The fastest number of processes, and whether it certainly is faster than the largest number.

    With fewer than three repetitions, that none overlap may be chance: one case in six with two each.
    """
    best = max(line, key=lambda processes: line[processes][way].median)
    own, most = line[best][way], line[max(line)][way]
    apart = min(len(own.values), len(most.values)) >= LEAST and own.low > most.high
    return best, best < max(line) and apart and own.median >= MORE * most.median


def verdict(name: str, line: Line) -> str:
    """With how many processes a tier writes and reads fastest, and whether fewer than the largest number do."""
    parts = []
    for way, verb in WAYS.items():
        best, is_sure = fastest(line, way)
        text = f"{verb} {rate(line[best][way].median)} with {counted(best, 'process')}"
        if is_sure:
            text += f", and {rate(line[max(line)][way].median)} with {max(line)}"
        parts.append(text)
    return f"{name} {' and '.join(parts)}"
