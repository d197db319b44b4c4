"""What one node reached on a tier, by the number of processes, over the repetitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from neurotier.core.quantities import rate
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.storage.workload.records import MEASURED

READ, WRITE = "read", "write"

MORE = 1.05
"""By how many times one number of processes must be faster than the next to be said so."""


@dataclass(frozen=True)
class Reached:
    """So many processes, over the repetitions, by ``write`` and ``read``: bytes/s.

    Attributes
    ----------
    together
        Of all processes.
    slowest, fastest
        Of one, in any repetition; empty if IOR itself measured, which does not tell.
    """

    together: dict[str, Spread]
    slowest: dict[str, float]
    fastest: dict[str, float]


Line = dict[int, Reached]
"""By the number of processes, ascending."""


def lines(rows: Iterable[Row]) -> dict[str, Line]:
    """What was measured of one node, by tier and pinning, in the order of the table."""
    groups: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        if row["status"] == MEASURED and row["nodes"] == 1:
            groups.setdefault(line_name(row), {}).setdefault(row["processes"], []).append(row)
    ways = (WRITE, READ)
    return {
        name: {
            processes: Reached(
                {way: Spread(tuple(row[f"{way}_bytes_per_s"] for row in members)) for way in ways},
                {way: min(row[f"{way}_least_bytes_per_s"] for row in members) for way in ways if told(members)},
                {way: max(row[f"{way}_most_bytes_per_s"] for row in members) for way in ways if told(members)},
            )
            for processes, members in sorted(counts.items())
        }
        for name, counts in groups.items()
    }


def told(rows: Iterable[Row]) -> bool:
    """Whether it is known of all points what each process reached."""
    return all(row["write_least_bytes_per_s"] is not None for row in rows)


def line_name(row: Row) -> str:
    """Tier and pinning of a point."""
    return f"{row['tier']}, pinned" if row["numa_nodes"] else str(row["tier"])


def verdict(name: str, line: Line) -> str:
    """With how many processes a tier writes and reads most, and whether fewer than the most do."""
    parts = []
    for way, verb in ((WRITE, "writes"), (READ, "reads")):
        reached = {processes: one.together[way].median for processes, one in line.items()}
        best = max(reached, key=lambda processes: reached[processes])
        most = max(reached)
        text = f"{verb} {rate(reached[best])} with {processes_text(best)}"
        sure = line[best].together[way].low > line[most].together[way].high  # repetitions do not overlap
        if best < most and sure and reached[best] >= MORE * reached[most]:
            text += f", and {rate(reached[most])} with {most}"
        parts.append(text)
    return f"{name} {' and '.join(parts)}"


def processes_text(count: int) -> str:
    """So many processes.

    >>> processes_text(1), processes_text(24)
    ('1 process', '24 processes')
    """
    return "1 process" if count == 1 else f"{count} processes"
