"""How good the members of the model are where they have not looked: validation by leaving out.

``condition``
    Nothing of the condition that is predicted is known: neither its runs nor what was learned from them.
``device``
    Nothing of any run on its device is known; Table I, the data sheet and the other devices are. Optane is one device
    in Memory mode and another in App Direct mode; the SSD and Isilon are the same in both.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row
from neurotier.published.conditions import device_of

CONDITION, DEVICE = "condition", "device"
"""What is left out."""

CLOSE = 0.2
"""A prediction is close that is off by at most this part of what was measured."""

Held = frozenset[IncrementCondition]


def left_out(condition: IncrementCondition, conditions: Iterable[IncrementCondition], held_out: str) -> Held:
    """The conditions that may not be known when this one is predicted."""
    if held_out == CONDITION:
        return frozenset([condition])
    return frozenset(one for one in conditions if device_of(one) == device_of(condition))


@dataclass(frozen=True)
class Score:
    """How good a member is over the conditions that were held out one after the other.

    Attributes
    ----------
    factor, worst
        Geometric mean and greatest of the factors by which it is off, either way.
    worst_row
        Where it is worst.
    close
        How many are within 20 %.
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
    """The score of every member, by what was held out; of conditions that were measured."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["ratio"] is not None:
            groups.setdefault((row["held_out"], row["member"]), []).append(row)
    found = []
    for (held_out, member), some in groups.items():
        misses = [abs(math.log(row["ratio"])) for row in some]
        worst, mean = max(misses), statistics.fmean(misses)
        covered = None if any(row["in_interval"] is None for row in some) else sum(row["in_interval"] for row in some)
        close = sum(row["close"] for row in some)
        at_worst = some[misses.index(worst)]
        found.append(Score(held_out, member, math.exp(mean), math.exp(worst), at_worst, close, covered, len(some)))
    return found
