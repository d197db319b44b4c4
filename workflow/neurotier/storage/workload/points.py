"""Points: the measurements of a storage workload, the order in which they are made, and the time that they ask for.

The order is random, drawn anew within each repetition (a randomised block design, as in campaigns) from a seed that
stands in the configuration. In the order of the grid, what drifts meanwhile would look like an effect of the block
size: a flash drive's SLC cache that fills up, a cloud disk whose burst credit runs out, a device that warms up.
Tiers are measured one after the other, because the files of one that is memory would take the page cache from another;
so are sets, whose files then need the room of the largest alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from neurotier.core.errors import SettingsError

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
    written_bytes
        Bytes that it writes at most; 0 if its time decides.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def set_name(self) -> str: ...
    @property
    def repetition(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def written_bytes(self) -> int: ...


AnyPoint = TypeVar("AnyPoint", bound=Point)
Plan = Mapping[str, Mapping[str, list[AnyPoint]]]
"""The points of every set on every tier, in the order in which they are measured."""


def in_order(points: list[AnyPoint], seed: int) -> list[AnyPoint]:
    """Points in the order in which they are measured: repetition by repetition, and at random within each."""
    order: list[AnyPoint] = []
    for repetition in sorted({point.repetition for point in points}):
        block = [point for point in points if point.repetition == repetition]
        rng = np.random.default_rng([seed, repetition])
        order += [block[place] for place in rng.permutation(len(block))]
    return order


def minutes(plan_of: Callable[[Any], Plan[Any]], settings: object) -> int:
    """Time that a workload asks a cluster for, min: twice that of its points, and some to lay out files.

    A walk that takes longer goes on where it was when it is started again.
    """
    try:
        tiers = plan_of(settings).values()
    except SettingsError:  # the job itself says why
        return LEAST_MINUTES
    points_s: float = sum(point.seconds for sets in tiers for points in sets.values() for point in points)
    return LEAST_MINUTES + math.ceil(2 * points_s / 60)
