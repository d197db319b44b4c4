"""What the pages of storage workloads share: where it was measured, what was not, and what papers state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.kit.page import Data, Section
from neurotier.storage.published import PublishedNumber
from neurotier.storage.workload.records import MEASURED


def measured_rows(rows: Sequence[Row], *order: str) -> list[Row]:
    """The points that were measured, sorted by some columns."""
    return sorted((row for row in rows if row["status"] == MEASURED), key=lambda row: [row[name] for name in order])


def measured_of(table: str, program: str) -> Callable[[Data], str]:
    """What stands below the title: how many points were measured, and with what."""

    def under(data: Data) -> str:
        return f"{len(measured_rows(data[table])):,} of {counted(len(data[table]), 'point')} measured{program}"

    return under


def tiers(table: str, program: str = "fio", version: str = "fio_version", note: str = "") -> Callable[[Data], Section]:
    """The section on where it was measured, and what was moved there.

    Parameters
    ----------
    table
        Of the points.
    program, version
        What measured, and the column of its version.
    note
        What else is to be said.
    """

    def section(data: Data) -> Section:
        found = []
        for name in dict.fromkeys(row["tier"] for row in data[table]):
            own = [row for row in data[table] if row["tier"] == name]
            hosts = dict.fromkeys(word for row in measured_rows(own) for word in row["host"].split())
            sums = {column: sum(row[column] or 0 for row in own) for column in ("read_bytes", "write_bytes")}
            about = {
                "name": name,
                "kind": f"{own[0]['kind']} ({own[0]['fs_type']})",
                "host": f"{', '.join(hosts) or own[0]['host']}, Linux {own[0]['kernel']}",
                "version": ", ".join(sorted({row[version] for row in own if row[version]})),
            }
            found.append(about | sums)
        heads = {"name": "Tier", "kind": "Kind", "host": "Machine", "version": program}
        return Section("Tiers", rows=found, columns=heads | {"read_bytes": "Read", "write_bytes": "Written"}, note=note)

    return section


def unmeasured(table: str) -> Callable[[Data], Section | None]:
    """The section on points that were not measured, and why, by tier and set."""

    def section(data: Data) -> Section | None:
        counts = Counter((row["tier"], row["set"], row["status"]) for row in data[table] if row["status"] != MEASURED)
        rows = [{"tier": tier, "set": name, "points": count, "why": why} for (tier, name, why), count in counts.items()]
        if not rows:
            return None
        heads = {"tier": "Tier", "set": "Set", "points": "Points", "why": "Why"}
        folded = f"{counted(counts.total(), 'point')}: why, by tier and set"
        return Section("Not measured", rows=rows, columns=heads, folded=folded)

    return section


def published_numbers(numbers: Sequence[PublishedNumber], text: str) -> Section:
    """The section on what a paper states, where, and what it leaves open."""
    rows: list[dict[str, Any]] = [{"place": one.place, "text": one.text} | vars(one) for one in numbers]
    heads = {"name": "Published", "text": "Number", "place": "Where", "open_points": "What the text leaves open"}
    return Section("Published numbers", text, rows=rows, columns=heads)
