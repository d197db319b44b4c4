"""Records: one small file per point, written as soon as it is measured, and the row that it becomes.

So a sweep that is interrupted goes on where it was. A point is known by what it measures and where: on a node of
another class, on another path, with another file size or duration it is another one, and what is there is not measured
again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.places import Places
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.fio import FioResult
from neurotier.storage.runner import facts_of
from neurotier.storage.sweep.grid import Point

MEASURED = "measured"
ASKED = ("pattern", "block_bytes", "processes", "queue_depth", "repetition", "file_bytes")
RESULTS = (
    *("engine", "direct", "bandwidth_bytes_per_s", "read_bytes_per_s", "write_bytes_per_s", "requests_per_s"),
    *("latency_mean_s", "latency_p99_s", "runtime_s", "read_bytes", "write_bytes", "cpu_s", "started_s", "fio_version"),
)


@dataclass(frozen=True)
class Records:
    """The points of one tier that have been measured, and what is known of that tier.

    Attributes
    ----------
    folder
        Of their files.
    tier
        The tier.
    facts
        Cells of the table that all its points share, but for the host where a point names its own.
    where
        What tells its points from those of other nodes and places.
    """

    folder: Path
    tier: Tier
    facts: Row
    where: str

    @classmethod
    def of(cls, places: Places, tier: Tier, declared: Tier | None = None, node_class: str = "") -> Records:
        """Those of a tier that is on this node, and on all of its class.

        ``declared`` is it as the configuration has it: a path with variables is another one in each job of a cluster.
        """
        facts = facts_of(tier) | {"kernel": os.uname().release}
        where = f"{node_class or facts['host']} {tier.kind} {(declared or tier).path}"
        return cls(places.sweep / "points" / tier.name, tier, facts, where)

    def file(self, point: Point) -> Path:
        """The file of a point: measured elsewhere or in another way, it is another one."""
        return self.folder / f"{point.name(self.where)}.json"

    def missing(self, points: Iterable[Point]) -> list[Point]:
        """Those of some points that have not been measured."""
        return [point for point in points if not self.file(point).exists()]

    def row(self, point: Point, position: int, status: str, cells: Mapping[str, object]) -> Row:
        """The row of a point."""
        asked = {name: getattr(point, name) for name in ASKED}
        named = {"set": point.set_name, "position": position, "status": status}
        return {**dict.fromkeys(RESULTS), **named, **asked, **self.facts, **cells}


def cells(result: FioResult) -> Row:
    """What fio measured, as cells of the table."""
    return {
        "bandwidth_bytes_per_s": result.bandwidth_bytes_per_s,
        "read_bytes_per_s": result.read.bandwidth_bytes_per_s,
        "write_bytes_per_s": result.write.bandwidth_bytes_per_s,
        "requests_per_s": result.operations_per_s,
        "latency_mean_s": result.latency_mean_s,
        "latency_p99_s": result.latency_p99_s,
        "runtime_s": result.runtime_s,
        "read_bytes": result.read.bytes,
        "write_bytes": result.write.bytes,
        "cpu_s": result.cpu_user_s + result.cpu_system_s,
        "fio_version": result.fio_version,
    }
