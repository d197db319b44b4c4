"""What the pages of storage workloads share: where it was measured, what was not measured, and what papers state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from neurotier.core.quantities import counted
from neurotier.core.tables import Rows, gathered
from neurotier.pages.kit.page import Page, Part, Section
from neurotier.storage.published import PublishedNumber
from neurotier.storage.spread import MEASURED, measured_rows

MOVED = ("read_bytes", "write_bytes")
VERSIONS = ("fio_version", "ior_version", "engine_version")
"""Columns that name the measuring program's version."""


def workload_page(
    name: str,
    measured: str,
    parts: Sequence[Part],
    method: str,
    tables: Sequence[str] = (),
    note: str = "",
    **about: Any,
) -> Page:
    """The page of a workload, whose table has its name.

    Parameters
    ----------
    measured
        What to say about the measured points, below the title.
    parts
        The workload's own; those that all workloads have follow.
    method
        How it is measured, in a sentence or two.
    tables
        Further tables.
    note
        A note on its tiers.
    about
        Other arguments of :class:`Page`.
    """
    return Page(
        name=name,
        under=lambda data: counts_text(data[name], measured),
        tables=[f"{name}/{table}" for table in (name, *tables)],
        parts=(
            *parts,
            lambda data: tiers(data[name], note),
            lambda data: unmeasured(data[name]),
            Section("How it is measured", method),
        ),
        **about,
    )


def counts_text(points: Rows, what: str) -> str:
    """How many points were measured, and ``what`` else there is to say about them."""
    count = len(measured_rows(points))
    return f"{count:,} of {counted(len(points), 'point')} measured{what if count else ''}"


def tiers(points: Rows, note: str) -> Section:
    """The section on where it was measured, with what, and what was moved there."""
    rows = []
    for own in gathered((row["tier"], row) for row in points).values():
        hosts = dict.fromkeys(word for row in measured_rows(own) for word in row["host"].split())
        programs = {row[name] for row in own for name in VERSIONS if row.get(name)}
        about = {"host": ", ".join(hosts) or own[0]["host"], "measured_by": ", ".join(sorted(programs))}
        rows.append(own[0] | about | {name: sum(row[name] or 0 for row in own) for name in MOVED})
    columns = f"tier kind fs_type host kernel measured_by {' '.join(MOVED)}"
    return Section("Tiers", rows=rows, columns=columns, note=note)


def unmeasured(points: Rows) -> Section:
    """The section on points that were not measured, and why, by tier and set."""
    counts = Counter((row["tier"], row["set"], row["status"]) for row in points if row["status"] != MEASURED)
    rows = [{"tier": tier, "set": name, "points": count, "why": why} for (tier, name, why), count in counts.items()]
    folded = f"{counted(counts.total(), 'point')}: why, by tier and set; what failed, the next start measures again"
    return Section("Not measured", rows=rows, folded=folded)


def published_numbers(numbers: Sequence[PublishedNumber], text: str) -> Section:
    """The section on what a paper states, where, and what it leaves open."""
    rows = [
        {"published": one.name, "number": one.text, "where": one.place, "what_the_text_leaves_open": one.open_points}
        for one in numbers
    ]
    return Section("Published numbers", text, rows)
