"""How conditions are named in the comparison, and as cells of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurotier.core.quantities import shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.statistics import Difference
from neurotier.pages.kit.findings import at_once
from neurotier.run.compared import MEMORY
from neurotier.run.conditions import Condition

LONGEST_NAME = 30
PAPER_IO = "I/O as the paper counts it (wall - CPU)"


class Names:
    """Names of conditions that say no more than tells them apart.

    >>> one, other = (Condition("campaign", "bet", "cold", jobs, "tmpfs") for jobs in (25, 96))
    >>> Names([one, other]).of(one), Names([one]).of(one)
    ('tmpfs, 25 at once', 'tmpfs')
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        known = set(conditions)
        self.several = len({condition.parallelism for condition in known}) > 1
        self.fields = ["origin"] if len({condition.origin for condition in known}) > 1 else []
        for name in ("tool", "cache"):
            if len(apart(known, [*self.fields, name])) > len(apart(known, self.fields)):
                self.fields.append(name)

    def of(self, condition: Condition) -> str:
        """Name of a condition."""
        text = shorten(condition.placement, LONGEST_NAME)
        return f"{text}, {self.about(condition)}" if self.about(condition) else text

    def about(self, condition: Condition) -> str:
        """What a condition is besides its placement; empty if all are alike in it."""
        parts = [at_once(condition.parallelism)] if self.several else []
        return ", ".join([*parts, *self.fields_of(condition)])

    def fields_of(self, condition: Condition) -> list[str]:
        """What tells a condition apart besides placement and parallelism."""
        return [field_text(name, str(getattr(condition, name))) for name in self.fields]


def apart(conditions: Iterable[Condition], fields: Sequence[str]) -> set[tuple[object, ...]]:
    """What conditions are told apart by, with some fields beside placement and parallelism."""
    return {tuple(getattr(each, name) for name in ("placement", "parallelism", *fields)) for each in conditions}


def field_text(field: str, value: str) -> str:
    """A field of a condition in words."""
    if field != "cache":
        return shorten(value, LONGEST_NAME)
    return "inputs in memory" if value == MEMORY else f"cache {value}"


def condition_cells(condition: Condition) -> Row:
    """A condition as the first cells of a row."""
    return {name: getattr(condition, name) for name in ("origin", "tool", "cache", "parallelism", "placement")}


def difference_cells(difference: Difference) -> Row:
    """Two placements, and the difference of the median participant, as the first cells of a row."""
    slower, faster = difference.slower, difference.faster
    return {
        **{name: getattr(slower, name) for name in ("origin", "tool", "parallelism")},
        "slower": slower.placement,
        "slower_cache": slower.cache,
        "faster": faster.placement,
        "faster_cache": faster.cache,
        "median_s": difference.median_s,
    }
