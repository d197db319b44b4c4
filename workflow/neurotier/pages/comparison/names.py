"""How conditions are named in the comparison, and as cells of its tables."""

from __future__ import annotations

from collections.abc import Iterable

from neurotier.core.quantities import shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.statistics import Difference, inputs_text
from neurotier.pages.kit.contrasts import Contrast
from neurotier.pages.kit.findings import at_once
from neurotier.run.compared import Condition

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

        def apart(*fields: str) -> int:
            return len({tuple(getattr(condition, name) for name in fields) for condition in known})

        self.fields = [name for name in ("parallelism", "origin") if apart(name) > 1]
        for name in ("tool", "cache"):
            alone = ("placement", "parallelism", *self.fields)
            self.fields += [name] * (apart(*alone, name) > apart(*alone))

    def of(self, condition: Condition) -> str:
        """Name of a condition."""
        return ", ".join(filter(None, (shorten(condition.placement, LONGEST_NAME), self.about(condition))))

    def about(self, condition: Condition) -> str:
        """What a condition is besides its placement; empty if all are alike in it."""
        texts = {"parallelism": at_once(condition.parallelism), "cache": inputs_text(condition.cache)}
        return ", ".join(texts.get(name) or shorten(getattr(condition, name), LONGEST_NAME) for name in self.fields)


def condition_cells(condition: Condition) -> Row:
    """A condition as the first cells of a row."""
    return {name: getattr(condition, name) for name in ("origin", "tool", "cache", "parallelism", "placement")}


def difference_cells(difference: Difference, contrast: Contrast) -> Row:
    """Two placements, the difference of the median participant, and the ratio of makespans, as cells of a row."""
    slower, faster = difference.slower, difference.faster
    low, high = contrast.ends or (None, None)
    return {
        **{name: getattr(slower, name) for name in ("origin", "tool", "parallelism")},
        "slower": slower.placement,
        "slower_cache": slower.cache,
        "faster": faster.placement,
        "faster_cache": faster.cache,
        "median_s": difference.median_s,
        "nodes": difference.nodes,
        "repetitions": contrast.repetitions,
        "ratio": contrast.ratio,
        "ratio_low": low,
        "ratio_high": high,
    }
