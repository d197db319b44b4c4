"""What the points say to the three questions of the published experiment, a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from neurotier.core.quantities import counted, percent
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding, between, times_text
from neurotier.storage.staging.curves import Curve, Hidden, curves, hidden, of_each_place, place_text, synchronising
from neurotier.storage.staging.grid import STEP

MATTERS = 1.1
"""Times that differ by less are called the same."""

FEW = 0.05
"""Share of what is read that may come from the device where the page cache is said to hide reading."""

NO_SERVERS = "No two numbers of servers were measured with all else the same"
NO_SCALING = "No two numbers of readers or writers were measured with all else the same"
VERBS = {"write": "writing", "read": "reading"}


def servers(rows: Iterable[Row]) -> Finding:
    """Whether more servers help."""
    rows = list(rows)
    found = [(verb, curve) for way, verb in VERBS.items() for curve in of_each_place(curves(rows, "servers", way))]
    if not found:
        return Finding(NO_SERVERS, shown=False)
    faster = [(verb, curve) for verb, curve in found if curve.gain() >= MATTERS]
    slower = [(verb, curve) for verb, curve in found if curve.gain() < MATTERS <= curve.slower()]
    parts = [f"More servers are faster in {len(faster) or 'none'} of {counted(len(found), 'case')}"]
    if faster:
        verb, curve = max(faster, key=lambda one: one[1].gain())
        times = f"{1 / curve.gain():.2f} of the time with {curve.best} instead of {min(curve.times)}"
        parts.append(f"most when {verb}: {times} ({curve.name})")
    if slower:
        verb, curve = max(slower, key=lambda one: one[1].slower())
        times = f"{times_text(curve.slower())} times the time with {max(curve.times)} instead of {curve.best}"
        parts.append(f"slower in {len(slower)}, most when {verb}: {times} ({curve.name})")
    return Finding("; ".join([*parts, *once(curve for _, curve in found)]))


def once(found: Iterable[Curve]) -> list[str]:
    """What is to be said of points that were measured once."""
    single = any(len(times.values) == 1 for curve in found for times in curve.times.values())
    return ["measured once, so that it may be chance"] if single else []


def scaling(rows: Iterable[Row], per: str) -> Finding:
    """With how many readers and writers a step takes least, and what more of them cost."""
    rows, clauses, every = list(rows), list[str](), list[Curve]()
    for way, axis in (("read", "readers"), ("write", "writers")):
        found = of_each_place(curves(rows, axis, way, per))
        if found:
            clauses.append((least_text if per == STEP else growth_text)(found, VERBS[way], axis))
            every += found
    text = "; ".join([*clauses, *once(every)])
    return Finding(text[0].upper() + text[1:]) if clauses else Finding(NO_SCALING, shown=False)


def least_text(found: Sequence[Curve], verb: str, axis: str) -> str:
    """With which number most take least, and what the greatest costs at most."""
    ((best, count),) = Counter(curve.best for curve in found).most_common(1)
    text = (
        f"{verb} takes least with {counted(best, axis.removesuffix('s'))} in {count} of {counted(len(found), 'case')}"
    )
    worst = max(found, key=lambda curve: curve.slower())
    if worst.slower() < MATTERS:
        return text
    return f"{text}, and with {max(worst.times)} up to {times_text(worst.slower())} times as long ({worst.name})"


def growth_text(found: Sequence[Curve], verb: str, axis: str) -> str:
    """How many times as long the greatest number takes as the smallest, where it grows least and most."""
    low, high = min(found, key=Curve.growth), max(found, key=Curve.growth)
    grown = f"{max(high.times) / min(high.times):.3g}"
    text = f"{verb} with {grown} times as many {axis} and bytes takes {times_text(low.growth())}"
    if high.growth() >= MATTERS * low.growth():
        text += f" ({low.name}) to {times_text(high.growth())}"
    return f"{text} times as long ({high.name})"


def page_cache(rows: Iterable[Row]) -> str:
    """Whether reading is hidden by the page cache."""
    found = hidden(rows)
    if not found:
        return (
            "Whether the page cache hides reading needs the same points on a tier of memory (tmpfs) and on another one"
        )
    clauses = []
    for verdict, some in (
        ("is hidden by the page cache", [one for one in found if is_hidden(one)]),
        ("is not hidden by the page cache", [one for one in found if not is_hidden(one)]),
    ):
        if some:
            known = [one.device_share for one in some if one.device_share is not None]
            device = f"{between(known, percent)} of the bytes came from the device, and " if known else ""
            reads = between([one.read_ratio for one in some], times_text)
            writes = between([one.write_ratio for one in some], times_text)
            clauses.append(
                f"reading {verdict} for {', '.join(place_text(one.tier, one.engine) for one in some)}: {device}it takes"
                f" {reads} times as long as in memory, while writing takes {writes} times as long"
            )
    text = "; ".join(clauses)
    return text[0].upper() + text[1:]


def is_hidden(one: Hidden) -> bool:
    """Whether the page cache hides reading: next to nothing of it came from the device."""
    return one.read_ratio < MATTERS if one.device_share is None else one.device_share < FEW


def waiting(rows: Iterable[Row]) -> str:
    """Where waiting for each other takes the largest part of a step."""
    most = synchronising(rows)
    if most is None:
        return "Nothing was measured"
    share, row, way = most
    counts = f"{counted(row['writers'], 'writer')}, {counted(row['readers'], 'reader')}"
    servers_text = f", {counted(row['servers'], 'server')}" if row["servers"] else ""
    return (
        f"At most {percent(share)} of a round of {way}s is waiting for the others or being asked"
        f" ({place_text(row['tier'], row['engine'])}; {counts}{servers_text})"
    )
