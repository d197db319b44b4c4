"""Records: one small file per point, written as soon as it is measured.

So a walk that is interrupted goes on where it was. A point is known by what it measures and where: on a node of
another class, on another path, with another file size or duration it is another one, and what is there is not measured
again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import astuple
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


class Records:
    """The points of one tier that have been measured, and what is known of that tier.

    Parameters
    ----------
    folder
        The workload's in the results.
    tier
        As it is on this node, and on all of its class.
    declared
        As the configuration has it: a path with variables is another one in each job of a cluster.
    node_class
        Class of this node, whose points are kept together; empty for this host alone.

    Attributes
    ----------
    facts
        Cells of the table that all its points share, but for the host where a point names its own.
    """

    def __init__(self, folder: Path, tier: Tier, declared: Tier, node_class: str) -> None:
        self.folder = folder / "points" / tier.name
        self.facts = facts_of(tier) | {"kernel": os.uname().release}
        self.where = f"{node_class or self.facts['host']} {tier.kind} {declared.path}"

    def file(self, point: Point) -> Path:
        """The file of a point, whose name has all that tells it from others."""
        return self.folder / f"{'_'.join(map(str, astuple(point)))}_{short_hash(self.where)}.json"

    def missing(self, points: Iterable[AnyPoint]) -> list[AnyPoint]:
        """Those of some points that have not been measured."""
        return [point for point in points if not self.file(point).exists()]
