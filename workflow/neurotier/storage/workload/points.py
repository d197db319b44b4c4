"""Points: the measurements of a storage workload, the order in which they are made, and the time that they ask for.

The order is random, drawn anew within each repetition (a randomised block design, as in campaigns) from a seed that
stands in the configuration. In the order of the grid, what drifts meanwhile would look like an effect of the block
size: a flash drive's SLC cache that fills up, a cloud disk whose burst credit runs out, a device that warms up.
Tiers are measured one after the other, because the files of one that is memory would take the page cache from another;
so are sets, whose files then need the room of the largest alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from neurotier.core.places import short_hash

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LEAST_MINUTES = 30


class Point(Protocol):
    """One measurement: a frozen dataclass, all of whose fields tell it from others.

    Attributes
    ----------
    set_name
        Points of one set are measured together, on files that they may share.
    repetition
        Which repetition, from 1.
    seconds
        Time that it takes at least, s.
    """

    @property
    def set_name(self) -> str: ...
    @property
    def repetition(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    def name(self, where: str) -> str:
        """A file's name that tells measurements apart (:func:`point_name`); ``where`` is host and place of the tier."""
        ...


AnyPoint = TypeVar("AnyPoint", bound=Point)


def point_name(point: DataclassInstance, where: str, *shown: object) -> str:
    """A file's name that tells measurements apart.

    Parameters
    ----------
    point
        The point; all its fields count, but for those that have their default: a field that came later has one, and
        what was measured before is known by its old name.
    where
        What else tells them apart: host and place of the tier.
    shown
        What people read in the name.
    """
    told = {each.name: getattr(point, each.name) for each in fields(point)}
    told = {each.name: told[each.name] for each in fields(point) if told[each.name] != each.default}
    return "_".join([*map(str, shown), short_hash(json.dumps([where, told]))])


def in_order(points: list[AnyPoint], seed: int) -> list[AnyPoint]:
    """Points in the order in which they are measured: repetition by repetition, and at random within each."""
    order: list[AnyPoint] = []
    for repetition in sorted({point.repetition for point in points}):
        block = [point for point in points if point.repetition == repetition]
        rng = np.random.default_rng([seed, repetition])
        order += [block[place] for place in rng.permutation(len(block))]
    return order


def minutes(plan: Mapping[str, Mapping[str, Iterable[Any]]]) -> int:
    """Time that points ask a cluster for, min: twice theirs, and some to lay out files.

    A walk that takes longer goes on where it was when it is started again. ``plan`` is as in
    :func:`neurotier.storage.workload.walk.walk`.
    """
    points_s: float = sum(point.seconds for sets in plan.values() for points in sets.values() for point in points)
    return LEAST_MINUTES + math.ceil(2 * points_s / 60)
