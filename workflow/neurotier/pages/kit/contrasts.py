"""Contrasts: how many times as long as another one condition takes, and whether that is more than chance.

Conditions are run in blocks, with each condition once in every repetition. Whatever slows a block down slows all of it,
so logarithms of makespans are subtracted within blocks, and the mean difference is tested with Student's t. Which pair
is of interest depends on the runs themselves, so Holm's method corrects for all pairs of a family. Runs that were not
done in blocks, such as published ones, are compared with Welch's test. Two repetitions never suffice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from neurotier.core.quantities import counted, percent
from neurotier.core.tables import Row

LEAST = 3
"""With fewer repetitions, no difference counts as certain."""

CHANCE = 0.05
"""The probability with which chance alone may make any two conditions of a family differ."""

POWER = 0.8
"""The probability with which a difference shows with the number of repetitions that it is said to need."""

SHARES = (0.1, 0.05, 0.02, 0.01)
"""Differences for which to state the repetitions that they need: the first one that needs more than there are."""

ROUNDING = 1e-9
"""Error of the mean of values that are all equal."""


class Contrast(NamedTuple):
    """How many times as long as another one condition takes.

    Attributes
    ----------
    mean, error
        Mean logarithm of the ratio of their makespans, and its standard error.
    freedom
        Degrees of freedom of that error.
    repetitions
        Number of blocks that have both; without blocks, number of repetitions of the condition that has fewer.
    paired
        Whether the two were run in blocks.
    level
        The probability with which chance alone may make these two differ, by Holm's method.
    noise
        Standard deviation of a difference within a block, over all conditions of the family.
    """

    mean: float
    error: float
    freedom: float
    repetitions: int
    paired: bool
    level: float = CHANCE
    noise: float = 0.0

    @property
    def ratio(self) -> float:
        """The geometric mean of the ratios."""
        return math.exp(self.mean)

    @property
    def chance(self) -> float:
        """The probability that chance alone makes equal conditions differ this much."""
        from scipy.special import stdtr  # imported here, as it is slow, and few users of this module need it

        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval of the ratio at its level; without 1 if the two surely differ; ``None`` with too few runs."""
        from scipy.special import stdtrit

        if self.repetitions < LEAST:
            return None
        margin = float(stdtrit(self.freedom, 1 - self.level / 2)) * self.error
        return math.exp(self.mean - margin), math.exp(self.mean + margin)

    @property
    def is_longer(self) -> bool:
        """Whether the first condition certainly takes longer than the other."""
        return self.ends is not None and self.ends[0] > 1

    def __str__(self) -> str:
        """The ratio with its interval and number of repetitions, with digits such that no end reads as 1.00.

        >>> str(Contrast(math.log(1.5), 0.01, 4, 5, paired=True))
        '1.50 times as long (1.46 to 1.54, 5 repetitions)'
        >>> str(Contrast(math.log(1.004), 0.0005, 4, 5, paired=True))
        '1.004 times as long (1.003 to 1.005, 5 repetitions)'
        """
        ends = self.ends or ()
        digits = next((digits for digits in (2, 3) if 1 not in [round(end, digits) for end in ends]), 4)
        ratio, *interval = (f"{value:,.{digits}f}" for value in (self.ratio, *ends))
        return f"{ratio} times as long ({' to '.join(interval)}{', ' * bool(ends)}{self.counted})"

    @property
    def counted(self) -> str:
        """The number of repetitions in words, with a remark if they are not in blocks."""
        return counted(self.repetitions, "repetition") + ("" if self.paired else ", not paired")

    @property
    def doubt(self) -> str:
        """That the two are not told apart, and how many repetitions would mostly show a difference (Guenther).

        >>> Contrast(0.04, 0.08, 2, 3, paired=True, noise=0.14).doubt
        'not told apart with 3 repetitions; a difference of 10 % shows with about 19'
        """
        from scipy.special import ndtri

        text, extreme = f"not told apart with {self.counted}", float(ndtri(1 - self.level / 2))
        if self.repetitions < LEAST:
            return f"{text}; at least {LEAST} are needed"
        for share in SHARES:
            blocks = math.ceil(((extreme + ndtri(POWER)) * self.noise / math.log1p(share)) ** 2 + extreme**2 / 2)
            if blocks > self.repetitions:
                return f"{text}; a difference of {percent(share)} shows with about {blocks:,}"
        return text


def contrasts(groups: Mapping[Any, Sequence[Row]], paired: bool) -> dict[tuple[Any, Any], Contrast]:
    """The contrast of every condition of a family with every other, in both directions.

    Parameters
    ----------
    groups
        Valid runs by condition.
    paired
        Whether they were run in blocks.
    """
    lasting = {key: [run for run in runs if run["makespan_s"] > 0] for key, runs in groups.items()}
    found = {(one, other): contrast(lasting[one], lasting[other], paired) for one, other in combinations(groups, 2)}
    tested = sorted((pair for pair in found if found[pair].repetitions >= LEAST), key=lambda pair: found[pair].chance)
    noise = math.sqrt(mean([found[pair].error ** 2 * found[pair].repetitions for pair in tested]))
    level, go_on = CHANCE, True
    for left, pair in zip(range(len(tested), 0, -1), tested, strict=True):
        level = CHANCE / left if go_on else level
        go_on = found[pair].chance < level
        found[pair] = found[pair]._replace(level=level, noise=noise)
    return found | {(other, one): it._replace(mean=-it.mean) for (one, other), it in found.items()}


def blocks(one: Sequence[Row], other: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Pairs of runs of two conditions that were made one after the other, in one repetition and on the same nodes.

    No other run of the two conditions lies between the two of a pair. A run that was made later than the rest of its
    repetition, such as that of a placement that was added, is in no pair; nor is a run without a repetition.
    """
    runs = [(run, True) for run in one] + [(run, False) for run in other]
    runs.sort(key=lambda run: (run[0].get("start_s") or 0.0, run[0]["repetition"] or 0))
    return [
        (first, second) if is_one else (second, first)
        for (first, is_one), (second, is_too) in pairwise(runs)
        if is_one != is_too
        and first["repetition"] is not None
        and all(first.get(name) == second.get(name) for name in ("repetition", "nodes"))
    ]


def contrast(longer: Sequence[Row], shorter: Sequence[Row], paired: bool) -> Contrast:
    """The contrast of two conditions, given their runs.

    It uses the blocks that have both; without blocks, all runs, with degrees of freedom by Welch and Satterthwaite. If
    runs should be in blocks, but no block has both, only the ratio is known.
    """
    pairs = blocks(longer, shorter) if paired else []
    samples = [[math.log(run["makespan_s"]) for run in longer], [-math.log(run["makespan_s"]) for run in shorter]]
    if pairs:
        samples = [[math.log(one["makespan_s"] / other["makespan_s"]) for one, other in pairs]]
    parts = [squared_error(sample) for sample in samples]
    spent = sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, samples, strict=True) if part)
    freedom, count = sum(parts) ** 2 / spent if spent else 1.0, 0 if paired and not pairs else min(map(len, samples))
    return Contrast(sum(map(mean, samples)), math.sqrt(sum(parts)) or ROUNDING, freedom, count, paired)


def squared_error(values: Sequence[float]) -> float:
    """The square of a mean's standard error; 0 for a single value (``statistics.variance`` takes 30 times as long)."""
    middle = mean(values)
    return mean([(value - middle) ** 2 for value in values]) / max(1, len(values) - 1)


def mean(values: Sequence[float]) -> float:
    """The mean; 0 if there are no values."""
    return sum(values) / max(1, len(values))
