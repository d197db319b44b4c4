"""What nodes reached together, by their number, and whether benchmarks at once reach as much as one on all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neurotier.core.quantities import counted, percent, rate
from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.storage.ior.medians import MORE, READ, WRITE, line_name, processes_text
from neurotier.storage.workload.records import MEASURED

WAYS = {WRITE: "writes", READ: "reads"}


LATE = 0.2
"""Share of the time of a point that may pass between the starts of its processes; above it files are too small."""


@dataclass(frozen=True)
class Scaled:
    """So many nodes, over the repetitions, by ``write`` and ``read``: bytes/s.

    Attributes
    ----------
    together
        Of all processes of all nodes, over their common time.
    own
        Median of the sum of the nodes' own bandwidths; ``None`` if it is not known.
    """

    together: dict[str, Spread]
    own: dict[str, float | None]


Curve = dict[int, Scaled]
"""By the number of nodes, ascending."""


def curves(rows: Iterable[Row]) -> dict[str, dict[int, Curve]]:
    """What was measured over nodes, by tier and pinning, and by the processes of each node; not of one node alone."""
    groups: dict[str, dict[int, dict[int, list[Row]]]] = {}
    for row in rows:
        if row["status"] == MEASURED and row["concurrent"] == 1:
            by_processes = groups.setdefault(line_name(row), {})
            by_processes.setdefault(row["processes"], {}).setdefault(row["nodes"], []).append(row)
    return {
        name: {
            processes: {nodes: scaled(members) for nodes, members in sorted(counts.items())}
            for processes, counts in sorted(each.items())
        }
        for name, each in groups.items()
        if any(max(counts) > 1 for counts in each.values())
    }


def scaled(rows: Sequence[Row]) -> Scaled:
    """The repetitions of one point."""
    own = {way: spread(rows, f"{way}_nodes_bytes_per_s") for way in WAYS}
    return Scaled(
        {way: Spread(tuple(row[f"{way}_bytes_per_s"] for row in rows)) for way in WAYS},
        {way: known.median if known else None for way, known in own.items()},
    )


def verdict(name: str, each: dict[int, Curve]) -> str:
    """Where a tier's nodes write and read most, from where on more bring nothing, and whether fewer processes would."""
    return f"{name} {'; it '.join(way_text(each, way) for way in WAYS)}"


def way_text(each: dict[int, Curve], way: str) -> str:
    """The same of one way."""
    reached = {
        (processes, nodes): one.together[way].median
        for processes, curve in each.items()
        for nodes, one in curve.items()
    }
    processes, nodes = max(reached, key=lambda place: reached[place])
    text = f"{WAYS[way]} {rate(reached[processes, nodes])} with {counted(nodes, 'node')} of {processes_text(processes)}"
    text += growth_text(each[processes], way)
    return text + fewer_text(each, way)


def growth_text(curve: Curve, way: str) -> str:
    """From where on more nodes bring nothing.

    >>> def at(value): return Scaled({"read": Spread((value,))}, {})
    >>> growth_text({1: at(5e8), 2: at(1e9), 4: at(1.02e9)}, "read"), growth_text({1: at(5e8), 2: at(1e9)}, "read")
    (', and grows as far as 2 nodes', ', and still grows there')
    """
    if len(curve) < 2:
        return ""
    counts = list(curve)
    best = max(one.together[way].median for one in curve.values())
    last = next(nodes for nodes in counts if best < MORE * curve[nodes].together[way].median)
    if last == counts[-1]:
        return ", and still grows there"
    return ", and does not grow with nodes" if last == counts[0] else f", and grows as far as {counted(last, 'node')}"


def fewer_text(each: dict[int, Curve], way: str) -> str:
    """Whether fewer processes on each of the most nodes are faster than the most; repetitions must not overlap."""
    nodes = max(nodes for curve in each.values() for nodes in curve)
    on_most = {processes: curve[nodes].together[way] for processes, curve in each.items() if nodes in curve}
    most, best = max(on_most), max(on_most, key=lambda processes: on_most[processes].median)
    if best == most or on_most[best].low <= on_most[most].high:
        return ""
    if on_most[best].median < MORE * on_most[most].median:
        return ""
    faster, slower = rate(on_most[best].median), rate(on_most[most].median)
    verb = "is" if best == 1 else "are"
    return f"; on {counted(nodes, 'node')} {processes_text(best)} each {verb} faster ({faster}) than {most} ({slower})"


@dataclass(frozen=True)
class Together:
    """So many benchmarks at once, against one on the same nodes.

    Attributes
    ----------
    name, nodes, processes, concurrent
        The point: tier and pinning, and how many.
    share
        Sum of their bandwidths, in multiples of that of the one, by way.
    """

    name: str
    nodes: int
    processes: int
    concurrent: int
    share: dict[str, float]


def at_once(rows: Sequence[Row]) -> list[Together]:
    """Benchmarks at once, each with the one on all nodes beside it, as far as both were measured."""
    groups: dict[tuple[str, int, int], dict[int, list[Row]]] = {}
    for row in rows:
        if row["status"] == MEASURED and row["nodes"] > 1:
            place = (line_name(row), row["nodes"], row["processes"])
            groups.setdefault(place, {}).setdefault(row["concurrent"], []).append(row)
    found = []
    for place, by_count in sorted(groups.items()):
        if 1 not in by_count:
            continue
        one = scaled(by_count[1])
        for count in sorted(by_count.keys() - {1}):
            several = scaled(by_count[count])
            share = {way: several.together[way].median / one.together[way].median for way in WAYS}
            found.append(Together(*place, count, share))
    return found


def at_once_text(found: Sequence[Together]) -> list[str]:
    """A sentence on the most benchmarks on the most nodes of each tier."""
    last = {one.name: one for one in sorted(found, key=lambda one: (one.nodes, one.concurrent, one.processes))}
    return [
        f"{one.name}: {one.concurrent} benchmarks at once on {one.nodes // one.concurrent} of {one.nodes} nodes each"
        f" write {one.share[WRITE]:.2f} times as much as one on all, and read {one.share[READ]:.2f} times as much"
        for one in last.values()
    ]


def late_text(rows: Sequence[Row]) -> list[str]:
    """Whether processes of several nodes began so far apart that the files are too small to tell what nodes reach."""
    shares = [
        max(row[f"{way}_start_spread_s"], row.get("clock_spread_s") or 0.0) / row[f"{way}_span_s"]
        for row in rows
        if row["status"] == MEASURED and row["nodes"] > 1
        for way in WAYS
        if row[f"{way}_span_s"]
    ]
    late = [share for share in shares if share > LATE]
    if not late:
        return []
    share, count = percent(max(late)), f"{len(late)} of {len(shares)} measurements over nodes"
    fix = "larger files (ior.file_size) would tell what nodes reach"
    return [f"In {count}, processes began, or clocks differed, by up to {share} of the time: {fix}"]
