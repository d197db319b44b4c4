"""What the pages of storage workloads share: where it was measured, what was not measured, and what papers state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from neurotier.core.quantities import counted
from neurotier.core.tables import gathered
from neurotier.pages.kit.page import Data, Section
from neurotier.storage.published import PublishedNumber
from neurotier.storage.workload.records import MEASURED, measured_rows

MOVED = ("read_bytes", "write_bytes")
VERSIONS = ("fio_version", "ior_version", "engine_version")
"""Columns that name the measuring program's version."""


def measured_of(table: str, what: str = "") -> Callable[[Data], str]:
    """The line below the title: how many points were measured, and ``what`` else there is to say."""

    def text(data: Data) -> str:
        count = len(measured_rows(data[table]))
        return f"{count:,} of {counted(len(data[table]), 'point')} measured{what if count else ''}"

    return text


def tiers(table: str, note: str = "") -> Callable[[Data], Section]:
    """The section on where it was measured, with what, and what was moved there."""

    def section(data: Data) -> Section:
        rows = []
        for own in gathered((row["tier"], row) for row in data[table]).values():
            hosts = dict.fromkeys(word for row in measured_rows(own) for word in row["host"].split())
            programs = {row[name] for row in own for name in VERSIONS if row.get(name)}
            about = {"host": ", ".join(hosts) or own[0]["host"], "measured_by": ", ".join(sorted(programs))}
            rows.append(own[0] | about | {name: sum(row[name] or 0 for row in own) for name in MOVED})
        columns = ("tier", "kind", "fs_type", "host", "kernel", "measured_by", *MOVED)
        return Section("Tiers", rows=rows, columns=columns, note=note)

    return section


def unmeasured(table: str) -> Callable[[Data], Section]:
    """The section on points that were not measured, and why, by tier and set."""

    def section(data: Data) -> Section:
        counts = Counter((row["tier"], row["set"], row["status"]) for row in data[table] if row["status"] != MEASURED)
        rows = [{"tier": tier, "set": name, "points": count, "why": why} for (tier, name, why), count in counts.items()]
        folded = f"{counted(counts.total(), 'point')}: why, by tier and set; what failed, the next start measures again"
        return Section("Not measured", rows=rows, folded=folded)

    return section


def method(text: str) -> Section:
    """The section on how it is measured, in a sentence or two."""
    return Section("How it is measured", text)


def published_numbers(numbers: Sequence[PublishedNumber], text: str) -> Section:
    """The section on what a paper states, where, and what it leaves open."""
    rows = [
        {"published": one.name, "number": one.text, "where": one.place, "what_the_text_leaves_open": one.open_points}
        for one in numbers
    ]
    return Section("Published numbers", text, rows)
