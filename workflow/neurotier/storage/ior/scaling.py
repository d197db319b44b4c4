"""What nodes reached together, by their number, and whether benchmarks at once reach as much as one on all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurotier.core.quantities import counted, percent, rate
from neurotier.core.tables import Row, gathered
from neurotier.storage.ior.medians import MORE, READ, WAYS, WRITE, Line, by_processes, fastest, line_name, reached
from neurotier.storage.workload.records import measured_rows

LATE = 0.2
"""Share of a point's time that may pass between the starts of its processes; beyond it, files are too small."""


def curves(rows: Iterable[Row]) -> dict[str, dict[int, Line]]:
    """What was measured over nodes, by tier and pinning, by the processes of each node, and by the nodes."""
    found = by_processes(rows)
    return {name: each for name, each in found.items() if any(max(curve) > 1 for curve in each.values())}


def verdict(name: str, each: dict[int, Line]) -> str:
    """Where a tier's nodes write and read fastest, where more gain nothing, and whether fewer processes would."""
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
    """From where on more nodes gain nothing."""
    if len(curve) < 2:
        return ""
    counts = list(curve)
    best = max(one[way].median for one in curve.values())
    last = next(nodes for nodes in counts if best < MORE * curve[nodes][way].median)
    if last == counts[-1]:
        return ", and still grows there"
    return ", and does not grow with nodes" if last == counts[0] else f", and grows as far as {counted(last, 'node')}"


def fewer_text(each: dict[int, Line], way: str) -> str:
    """Whether fewer processes on each of the most nodes are faster than the most; ranges must not overlap."""
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


def at_once_text(rows: Sequence[Row]) -> list[str]:
    """For each tier, a sentence that compares the most benchmarks at once on the most nodes with one on all of
    these."""
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


def late_text(rows: Sequence[Row]) -> list[str]:
    """Whether processes of several nodes began so far apart that the files are too small to show what nodes reach."""
    shares = [
        max(row[f"{way}_start_spread_s"], row.get("clock_spread_s") or 0.0) / row[f"{way}_span_s"]
        for row in measured_rows(rows)
        if row["nodes"] > 1
        for way in WAYS
        if row[f"{way}_span_s"]
    ]
    late = [share for share in shares if share > LATE]
    if not late:
        return []
    share, count = percent(max(late)), f"{len(late)} of {len(shares)} measurements over nodes"
    fix = "larger files (ior.file_size) would tell what nodes reach"
    return [f"In {count}, processes began, or clocks differed, by up to {share} of the time: {fix}"]
