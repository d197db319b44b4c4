"""How good the members of the model are for what they have not seen: validation by leaving out.

``condition``
    Nothing of the condition that is predicted is known: neither its runs nor what was learned from them. Where its
    device is the same in both memory modes, and the other mode is known, that is a twin; copying it would do as well.
``device``
    Nothing of any run on its device is known; Table I, the data sheet and the other devices are. Optane is one device
    in Memory mode and another in App Direct mode; the SSD and Isilon are the same in both.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row, gathered
from neurotier.published.conditions import condition_of, device_of

CONDITION, DEVICE = "condition", "device"
"""What is left out."""

TWIN, ALONE = "condition with a twin", "condition without a twin"
"""Parts of what is predicted without its condition."""

SPLITS = {
    CONDITION: "Without the condition's own runs",
    TWIN: "of these, the other memory mode known (SSD, Isilon)",
    ALONE: "of these, no such twin (DRAM, Optane)",
    DEVICE: "Without any run on the device",
}
"""What was not known, in words."""

CLOSE = 1.2
"""A prediction is close if it is off by at most this factor, either way."""

Held = frozenset[IncrementCondition]


def left_out(condition: IncrementCondition, conditions: Iterable[IncrementCondition], held_out: str) -> Held:
    """The conditions that must not be known when this one is predicted."""
    if held_out == CONDITION:
        return frozenset([condition])
    return frozenset(one for one in conditions if device_of(one) == device_of(condition))


def has_twin(condition: IncrementCondition, conditions: Iterable[IncrementCondition]) -> bool:
    """Whether the same device, if it does not change with the memory mode, is known in the other mode."""
    about = device_of(condition), condition.panel
    return any((device_of(one), one.panel) == about and one.tier != condition.tier for one in conditions)


class Score(NamedTuple):
    """How good a member is over the conditions that were held out one after the other.

    Attributes
    ----------
    factor, worst
        Geometric mean and greatest of the factors by which it is off, either way.
    worst_row
        Where it is worst.
    close
        How many are within a factor of 1.2.
    covered
        How many are in their interval; ``None`` of a member without intervals.
    conditions
        How many there are.
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
    """The score of every member, by what was held out, in the order of :data:`SPLITS`, by what was measured."""
    conditions = {condition_of(row) for row in rows}
    splits = [((row["held_out"], row["member"]), row) for row in rows]
    splits += [
        ((TWIN if has_twin(condition_of(row), conditions) else ALONE, row["member"]), row)
        for row in rows
        if row["held_out"] == CONDITION
    ]
    found = []
    for (held_out, member), some in sorted(gathered(splits).items(), key=lambda item: list(SPLITS).index(item[0][0])):
        misses = [abs(math.log(row["ratio"])) for row in some]
        worst, inside = max(misses), [row["in_interval"] for row in some]
        covered = None if None in inside else sum(inside)
        at_worst, close = some[misses.index(worst)], sum(row["close"] for row in some)
        mean = math.exp(statistics.fmean(misses))
        found.append(Score(held_out, member, mean, math.exp(worst), at_worst, close, covered, len(some)))
    return found


def error_of(ratios: Iterable[float]) -> float:
    """How far predictions are off: standard deviation of the logarithms around none.

    >>> round(error_of([1.1, 1 / 1.1]), 3)
    0.095
    """
    return math.sqrt(statistics.fmean(math.log(ratio) ** 2 for ratio in ratios))
