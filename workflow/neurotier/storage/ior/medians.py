"""What processes reached on a tier, over the repetitions: on one node by their number, and together on several nodes.

Benchmarks at once, each on some of the nodes, may or may not reach as much as one on all of them.
"""

from __future__ import annotations

from neurotier.core.quantities import counted, percent, rate
from neurotier.core.tables import Row, Rows, gathered
from neurotier.storage.spread import Spread, measured_rows

READ, WRITE = "read", "write"
WAYS = {WRITE: "writes", READ: "reads"}

LEAST = 3
MORE = 1.05
"""How many times faster one number of processes must be than another to be called faster."""

LATE = 0.2
"""Share of the time of a point that may pass between the starts of its processes; above it files are too small."""


Line = dict[int, dict[str, Spread]]
"""What all processes of all nodes reached together, bytes/s, by their number (of either), ascending, then by way."""


def reached(rows: Rows) -> dict[str, Spread]:
    """The repetitions of one point, by way."""
    return {way: Spread.of(rows, f"{way}_bytes_per_s") for way in WAYS}


def by_processes(rows: Rows) -> dict[str, dict[int, Line]]:
    """What was measured, by tier and pinning in the order of the table, by the processes of each node, and by nodes."""
    alone = [row for row in measured_rows(rows) if row["concurrent"] == 1]
    found: dict[str, dict[int, Line]] = {line_name(row): {} for row in alone}
    groups = gathered(((line_name(row), row["processes"], row["nodes"]), row) for row in alone)
    for (name, processes, nodes), members in sorted(groups.items()):
        found[name].setdefault(processes, {})[nodes] = reached(members)
    return found


def lines(rows: Rows) -> dict[str, Line]:
    """What was measured of one node, by tier and pinning, and by its processes."""
    on_one = by_processes([row for row in rows if row["nodes"] == 1])
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


def curves(rows: Rows) -> dict[str, dict[int, Line]]:
    """What was measured over nodes, by tier and pinning, by the processes of each node, and by the nodes."""
    found = by_processes(rows)
    return {name: each for name, each in found.items() if any(max(curve) > 1 for curve in each.values())}


def nodes_verdict(name: str, each: dict[int, Line]) -> str:
    """Where a tier's nodes write and read most, from where on more bring nothing, and whether fewer processes would."""
    parts = []
    for way, verb in WAYS.items():
        medians = {
            (processes, nodes): one[way].median for processes, curve in each.items() for nodes, one in curve.items()
        }
        processes, nodes = max(medians, key=lambda place: medians[place])
        most = f"{rate(medians[processes, nodes])} with {counted(nodes, 'node')} of {counted(processes, 'process')}"
        parts.append(f"{verb} {most}{growth_text(each[processes], way)}{fewer_text(each, way)}")
    return f"{name} {'; it '.join(parts)}"


def growth_text(curve: Line, way: str) -> str:
    """From where on more nodes bring nothing."""
    if len(curve) < 2:
        return ""
    counts = list(curve)
    best = max(one[way].median for one in curve.values())
    last = next(nodes for nodes in counts if best < MORE * curve[nodes][way].median)
    if last == counts[-1]:
        return ", and still grows there"
    return ", and does not grow with nodes" if last == counts[0] else f", and grows as far as {counted(last, 'node')}"


def fewer_text(each: dict[int, Line], way: str) -> str:
    """Whether fewer processes on each of the most nodes are faster than the most; repetitions must not overlap."""
    nodes = max(nodes for curve in each.values() for nodes in curve)
    on_most = {processes: curve[nodes] for processes, curve in each.items() if nodes in curve}
    best, is_sure = fastest(on_most, way)
    if not is_sure:
        return ""
    faster, slower = (rate(on_most[processes][way].median) for processes in (best, max(on_most)))
    verb, most = "is" if best == 1 else "are", max(on_most)
    return (
        f"; on {counted(nodes, 'node')} {counted(best, 'process')} each {verb} faster ({faster}) than {most} ({slower})"
    )


def at_once_text(rows: Rows) -> list[str]:
    """A sentence on the most benchmarks on the most nodes of each tier, beside the one on all of these nodes."""
    names = ("nodes", "concurrent", "processes")
    groups = gathered(((line_name(row), *(row[name] for name in names)), row) for row in measured_rows(rows))
    last = {}
    for (name, nodes, concurrent, processes), members in sorted(groups.items()):
        one = groups.get((name, nodes, 1, processes))
        if concurrent > 1 and one:
            several, alone = reached(members), reached(one)
            share = {way: several[way].median / alone[way].median for way in WAYS}
            last[name] = (
                f"{name}: {concurrent} benchmarks at once on {nodes // concurrent} of {nodes} nodes each write"
                f" {share[WRITE]:.2f} times as much as one on all, and read {share[READ]:.2f} times as much"
            )
    return list(last.values())


def late_text(rows: Rows) -> list[str]:
    """Whether processes began so far apart that the files are too small to tell what they reach together."""
    shares = [
        max(row.get(name) or 0.0 for name in (f"{way}_start_spread_s", "clock_spread_s")) / row[f"{way}_span_s"]
        for row in measured_rows(rows)
        for way in WAYS
        if row[f"{way}_span_s"]
    ]
    late = [share for share in shares if share > LATE]
    if not late:
        return []
    share, count = percent(max(late)), f"{len(late)} of {len(shares)} measurements"
    fix = "larger files (ior.file_size) would tell what all of them reach together"
    return [f"In {count}, processes began apart, or clocks differed, by up to {share} of the time: {fix}"]
