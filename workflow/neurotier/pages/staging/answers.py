"""What the points say to the three questions of the published experiment, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurotier.core.quantities import counted, percent
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding, times_text
from neurotier.storage.staging.curves import Curve, curves, hidden, of_each_place, place_text, synchronising
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
    rows, clauses, helped, same = list(rows), list[str](), 0, 0
    for way, verb in VERBS.items():
        for curve in of_each_place(curves(rows, "servers", way)):
            if curve.gain() >= MATTERS:
                times = f"{1 / curve.gain():.2f} of the time with {min(curve.times)}"
                clauses.append(f"{verb} with {curve.best} takes {times} ({curve.name})")
                helped += 1
            elif curve.slower() >= MATTERS:
                times = f"{times_text(curve.slower())} times as long as with {curve.best}"
                clauses.append(f"{verb} with {max(curve.times)} takes {times} ({curve.name})")
            else:
                same += 1
    if not clauses and not same:
        return Finding(NO_SERVERS, shown=False)
    verdict = "help in part" if helped else "do not help"
    if helped == len(clauses) + same:
        verdict = "help"
    rest = [f"{'elsewhere ' if clauses else ''}it takes as long with one as with several"] if same else []
    return Finding(f"More servers {verdict}: {'; '.join([*clauses, *rest])}")


def scaling(rows: Iterable[Row], per: str) -> Finding:
    """With how many readers and writers a step takes least, and what more of them cost."""
    rows, clauses = list(rows), list[str]()
    for way, axis in (("read", "readers"), ("write", "writers")):
        found = of_each_place(curves(rows, axis, way, per))
        if found:
            clauses.append((least_text if per == STEP else growth_text)(found, VERBS[way], axis))
    return Finding("; ".join(clauses)) if clauses else Finding(NO_SCALING, shown=False)


def least_text(found: Sequence[Curve], verb: str, axis: str) -> str:
    """Which number takes least where, and what the greatest costs at most."""
    places: dict[int, list[str]] = {}
    for curve in found:
        places.setdefault(curve.best, []).append(curve.name)
    noun = axis.removesuffix("s")
    parts = [f"{counted(count, noun)} ({', '.join(names)})" for count, names in sorted(places.items())]
    text = f"{verb} takes least with {', with '.join(parts)}"
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
    for one in found:
        is_hidden = one.read_ratio < MATTERS if one.device_share is None else one.device_share < FEW
        device = "" if one.device_share is None else f", {percent(one.device_share)} of the bytes from the device"
        verdict = "is hidden by the page cache" if is_hidden else "is not hidden"
        clauses.append(
            f"{place_text(one.tier, one.engine)}: reading {verdict} ({times_text(one.read_ratio)} times as long as on"
            f" {one.memory}{device}), writing takes {times_text(one.write_ratio)} times as long"
        )
    return "; ".join(clauses)


def waiting(rows: Iterable[Row]) -> str:
    """Where waiting for each other takes the largest part of a step."""
    most = synchronising(rows)
    if most is None:
        return "Nothing was measured"
    row = most.row
    counts = f"{counted(row['writers'], 'writer')}, {counted(row['readers'], 'reader')}"
    servers_text = f", {counted(row['servers'], 'server')}" if row["servers"] else ""
    return (
        f"At most {percent(most.share)} of a round of {most.way}s is waiting for the others or being asked"
        f" ({place_text(row['tier'], row['engine'])}; {counts}{servers_text})"
    )
