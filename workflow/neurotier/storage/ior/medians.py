"""The bandwidth of a tier over the repetitions: on one node by number of processes, and on several nodes together.

Concurrent benchmarks, each on some of the nodes, may or may not reach as much as a single one on all nodes.
"""

from __future__ import annotations

from neurotier.core.quantities import counted, percent, rate
from neurotier.core.tables import Row, Rows, grouped
from neurotier.storage.spread import Spread, measured_rows

READ, WRITE = "read", "write"
WAYS = {WRITE: "writes", READ: "reads"}

LEAST = 3
MORE = 1.05
"""Repetitions that it takes to call one number of processes faster than another, and the least ratio of the two."""

LATE = 0.2
"""Share of a point's time that may pass between the starts of its processes; above it, the files are too small."""


Line = dict[int, dict[str, Spread]]
"""Bandwidth of all processes on all nodes, bytes/s, by number of processes or nodes, ascending; then by way."""


def bandwidths(rows: Rows) -> dict[str, Spread]:
    """The bandwidth of one point over its repetitions, by way."""
    return {way: Spread.of(rows, f"{way}_bytes_per_s") for way in WAYS}


def by_processes(rows: Rows) -> dict[str, dict[int, Line]]:
    """What was measured by tier and pinning, in the order of the table; then by processes per node; then by nodes."""
    alone = [row for row in measured_rows(rows) if row["concurrent"] == 1]
    found: dict[str, dict[int, Line]] = {line_name(row): {} for row in alone}
    groups = grouped(((line_name(row), row["processes"], row["nodes"]), row) for row in alone)
    for (name, processes, nodes), members in sorted(groups.items()):
        found[name].setdefault(processes, {})[nodes] = bandwidths(members)
    return found


def lines(rows: Rows) -> dict[str, Line]:
    """What was measured on one node, by tier and pinning, and by number of processes."""
    on_one = by_processes([row for row in rows if row["nodes"] == 1])
    return {name: {processes: curve[1] for processes, curve in each.items()} for name, each in on_one.items()}


def line_name(row: Row) -> str:
    """The tier and the pinning of a point in words."""
    return f"{row['tier']}, pinned" if row["numa_nodes"] else str(row["tier"])


def fastest(line: Line, way: str) -> tuple[int, bool]:
    """The fastest number of processes, and whether it certainly is faster than the largest number.

    With fewer than three repetitions, ranges that do not overlap may be chance: with two each, one case in six.
    """
    best = max(line, key=lambda processes: line[processes][way].median)
    own, most = line[best][way], line[max(line)][way]
    apart = min(len(own.values), len(most.values)) >= LEAST and own.low > most.high
    return best, best < max(line) and apart and own.median >= MORE * most.median


def verdict(name: str, line: Line) -> str:
    """A sentence on the numbers of processes with which a tier writes and reads fastest."""
    parts = []
    for way, verb in WAYS.items():
        best, is_sure = fastest(line, way)
        text = f"{verb} {rate(line[best][way].median)} with {counted(best, 'process')}"
        if is_sure:
            text += f", and {rate(line[max(line)][way].median)} with {max(line)}"
        parts.append(text)
    return f"{name} {' and '.join(parts)}"


def curves(rows: Rows) -> dict[str, dict[int, Line]]:
    """What was measured over several nodes, by tier and pinning; then by processes per node; then by nodes."""
    found = by_processes(rows)
    return {name: each for name, each in found.items() if any(max(curve) > 1 for curve in each.values())}


def nodes_verdict(name: str, each: dict[int, Line]) -> str:
    """A sentence on where a tier's nodes write and read fastest, when more nodes stop helping, and if fewer processes
    are faster."""
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
    """The number of nodes from which on more nodes do not help, in words."""
    if len(curve) < 2:
        return ""
    counts = list(curve)
    best = max(one[way].median for one in curve.values())
    last = next(nodes for nodes in counts if best < MORE * curve[nodes][way].median)
    if last == counts[-1]:
        return ", and still grows there"
    return ", and does not grow with nodes" if last == counts[0] else f", and grows as far as {counted(last, 'node')}"


def fewer_text(each: dict[int, Line], way: str) -> str:
    """Whether, on the largest number of nodes, fewer processes each are surely faster than the most, in words."""
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
    """A sentence for each tier that compares the most concurrent benchmarks with a single one on as many nodes."""
    names = ("nodes", "concurrent", "processes")
    groups = grouped(((line_name(row), *(row[name] for name in names)), row) for row in measured_rows(rows))
    last = {}
    for (name, nodes, concurrent, processes), members in sorted(groups.items()):
        one = groups.get((name, nodes, 1, processes))
        if concurrent > 1 and one:
            several, alone = bandwidths(members), bandwidths(one)
            share = {way: several[way].median / alone[way].median for way in WAYS}
            last[name] = (
                f"{name}: {concurrent} benchmarks at once on {nodes // concurrent} of {nodes} nodes each write"
                f" {share[WRITE]:.2f} times as much as one on all, and read {share[READ]:.2f} times as much"
            )
    return list(last.values())


def late_text(rows: Rows) -> list[str]:
    """A sentence if processes began so far apart that the files are too small to show what they reach together."""
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
    fix = "larger files (ior.file_size) would show what all of them reach together"
    return [f"In {count}, processes began apart, or clocks differed, by up to {share} of the time: {fix}"]
