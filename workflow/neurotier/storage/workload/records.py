"""Records: one small file per point, written as soon as it is measured.

So a walk that is interrupted goes on where it was. A point is known by what it measures and where: on a node of
another class, on another path, with another file size or duration it is another one, and what is there is not measured
again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeVar

from neurotier.core.places import short_hash
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.workload.points import AnyPoint, Point
from neurotier.storage.workspace import facts_of

MEASURED = "measured"
"""Status of a point that was; else it says why it was not."""

Key = TypeVar("Key")


def measured(rows: Iterable[Row]) -> list[Row]:
    """Rows of points that were measured."""
    return [row for row in rows if row["status"] == MEASURED]


def measured_by(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """The rows of points that were measured, by a key of each, in the order of the table."""
    groups: dict[Key, list[Row]] = {}
    for row in measured(rows):
        groups.setdefault(key(row), []).append(row)
    return groups


@dataclass(frozen=True)
class Records:
    """The points of one tier that have been measured, and what is known of that tier.

    Attributes
    ----------
    folder
        Of their files.
    facts
        Cells of the table that all its points share, but for the host where a point names its own.
    where
        What tells its points from those of other nodes and places.
    """

    folder: Path
    facts: Row
    where: str

    @classmethod
    def of(cls, folder: Path, tier: Tier, declared: Tier, node_class: str) -> Records:
        """Those of a tier that is on this node, and on all of its class.

        ``folder`` is the workload's in the results. ``declared`` is the tier as the configuration has it: a path with
        variables is another one in each job of a cluster.
        """
        facts = facts_of(tier) | {"kernel": os.uname().release}
        where = f"{node_class or facts['host']} {tier.kind} {declared.path}"
        return cls(folder / "points" / tier.name, facts, where)

    def file(self, point: Point) -> Path:
        """The file of a point, whose name has all that tells it from others."""
        return self.folder / f"{'_'.join(map(str, astuple(point)))}_{short_hash(self.where)}.json"

    def missing(self, points: Iterable[AnyPoint]) -> list[AnyPoint]:
        """Those of some points that have not been measured."""
        return [point for point in points if not self.file(point).exists()]
