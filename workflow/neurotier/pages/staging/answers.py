"""What the points say to the three questions of the published experiment, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurotier.core.quantities import counted, percent
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import Finding, times_text
from neurotier.storage.staging.curves import Curve, curves, hidden, longest, place_text, synchronising

MATTERS = 1.1
"""Times that differ by less are called the same."""

NO_SERVERS = "No two numbers of servers were measured with all else the same"
NO_SCALING = "No two numbers of readers or writers were measured with all else the same"
VERBS = {"write": "writing", "read": "reading"}


def of_each_place(found: Sequence[Curve]) -> list[Curve]:
    """For every tier and engine the curve that tells most."""
    places = dict.fromkeys(one.name for one in found)
    return [best for name in places if (best := longest([one for one in found if one.name == name])) is not None]


def servers(rows: Iterable[Row]) -> Finding:
    """Whether more servers help."""
    rows = list(rows)
    clauses = []
    for way, verb in VERBS.items():
        for curve in of_each_place(curves(rows, "servers", way)):
            fewest = min(curve.times)
            if curve.gain() >= MATTERS:
                said = f"{verb} with {curve.best} takes 1/{times_text(curve.gain())} of the time with {fewest}"
            elif curve.slower() >= MATTERS:
                most = max(curve.times)
                said = f"{verb} with {most} takes {times_text(curve.slower())} times as long as with {curve.best}"
            else:
                said = f"{verb} takes as long with {max(curve.times)} as with {fewest}"
            clauses.append((curve.name, curve.gain() >= MATTERS, said))
    if not clauses:
        return Finding(NO_SERVERS, shown=False)
    helped = sum(helps for _, helps, _ in clauses)
    verdict = "help" if helped == len(clauses) else "do not help" if not helped else "help in part"
    details = "; ".join(f"{name}: {said}" for name, _, said in clauses)
    return Finding(f"More servers {verdict}: {details}")


def scaling(rows: Iterable[Row], per: str) -> Finding:
    """With how many readers and writers a step takes least; beyond, synchronising costs more than it brings."""
    rows = list(rows)
    clauses = []
    for way, axis in (("read", "readers"), ("write", "writers")):
        for curve in of_each_place(curves(rows, axis, way, per)):
            most = max(curve.times)
            if per == "step":
                said = f"{VERBS[way]} takes least with {counted(curve.best, axis.removesuffix('s'))}"
                if curve.slower() >= MATTERS:
                    said += f", and {times_text(curve.slower())} times as long with {most}"
            else:
                first, last = curve.times[min(curve.times)].median, curve.times[most].median
                grown = times_text(most / min(curve.times))
                said = f"{grown} times as many {axis} and bytes take {times_text(last / first)} times as long"
            clauses.append(f"{curve.name}: {said}")
    return Finding("; ".join(clauses)) if clauses else Finding(NO_SCALING, shown=False)


def page_cache(rows: Iterable[Row]) -> str:
    """Whether reading is hidden by the page cache."""
    found = hidden(rows)
    if not found:
        return (
            "Whether the page cache hides reading needs the same points on a tier of memory (tmpfs) and on another one"
        )
    clauses = []
    for one in found:
        same = one.read_ratio < MATTERS * MATTERS
        device = "" if one.device_share is None else f", {percent(one.device_share)} of the bytes from the device"
        verdict = "is hidden by the page cache" if same and not one.device_share else "is not hidden"
        clauses.append(
            f"{one.tier}, {one.engine}: reading {verdict} ({times_text(one.read_ratio)} times as long as on"
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
