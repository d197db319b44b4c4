"""Validate the members of the model by leaving out: how well they predict what they have not seen.

``condition``
    Nothing about the predicted condition is known: neither its runs nor what was learned from them. If its device is
    the same in both memory modes, and the condition in the other mode is known, that is its twin; copying the twin's
    makespan would predict as well.
``device``
    Nothing about any run on its device is known, but Table I, the data sheet and the other devices are. Optane in
    Memory mode and in App Direct mode are different devices; the SSD and Isilon are the same in both.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row, grouped
from neurotier.published.conditions import condition_of, device_of

CONDITION, DEVICE = "condition", "device"
"""What is left out."""

TWIN, ALONE = "condition with a twin", "condition without a twin"
"""The two parts of the predictions with the condition left out."""

SPLITS = {
    CONDITION: "Without the condition's own runs",
    TWIN: "of these, the other memory mode known (SSD, Isilon)",
    ALONE: "of these, no such twin (DRAM, Optane)",
    DEVICE: "Without any run on the device",
}
"""What was left out, in words."""

CLOSE = 1.2
"""A prediction is close if it is off by at most this factor, either way."""

Held = frozenset[IncrementCondition]


def held_out_conditions(condition: IncrementCondition, conditions: Iterable[IncrementCondition], held_out: str) -> Held:
    """The conditions that are left out when this one is predicted."""
    if held_out == CONDITION:
        return frozenset([condition])
    return frozenset(one for one in conditions if device_of(one) == device_of(condition))


def has_twin(condition: IncrementCondition, conditions: Iterable[IncrementCondition]) -> bool:
    """Whether a condition's device is the same in both memory modes, and the condition in the other mode is known."""
    about = device_of(condition), condition.panel
    return any((device_of(one), one.panel) == about and one.tier != condition.tier for one in conditions)


class Score(NamedTuple):
    """How well a member predicts the conditions that are held out one after the other.

    Attributes
    ----------
    factor, worst
        Geometric mean and greatest of the factors by which it is off, either way.
    worst_row
        The row of the worst prediction.
    close
        Number of predictions within a factor of 1.2.
    covered
        Number of measured makespans in their interval; ``None`` for a member without intervals.
    conditions
        Number of predictions.
    """

    held_out: str
    member: str
    factor: float
    worst: float
    worst_row: Row
    close: int
    covered: int | None
    conditions: int


def scores(rows: Sequence[Row]) -> list[Score]:
    """The score of every member by what was held out, in the order of :data:`SPLITS`."""
    conditions = {condition_of(row) for row in rows}
    splits = [((row["held_out"], row["member"]), row) for row in rows]
    splits += [
        ((TWIN if has_twin(condition_of(row), conditions) else ALONE, row["member"]), row)
        for row in rows
        if row["held_out"] == CONDITION
    ]
    found = []
    for (held_out, member), some in sorted(grouped(splits).items(), key=lambda item: list(SPLITS).index(item[0][0])):
        misses = [abs(math.log(row["ratio"])) for row in some]
        worst, inside = max(misses), [row["in_interval"] for row in some]
        covered = None if None in inside else sum(inside)
        at_worst, close = some[misses.index(worst)], sum(row["close"] for row in some)
        mean = math.exp(statistics.fmean(misses))
        found.append(Score(held_out, member, mean, math.exp(worst), at_worst, close, covered, len(some)))
    return found


def error_of(ratios: Iterable[float]) -> float:
    """How far predictions are off: the root mean square of the logarithms of predicted over measured.

    >>> round(error_of([1.1, 1 / 1.1]), 3)
    0.095
    """
    return math.sqrt(statistics.fmean(math.log(ratio) ** 2 for ratio in ratios))
