"""Scaling: how what a job takes grows with the size of its images, and how sure that is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from neurotier.advice.observed import QUANTITIES, Seen
from neurotier.core.parallelism import PHASES

FEW = 4
"""Below so many records, base and slope cannot be told apart from chance: predictions try the extremes as well."""

Costs = dict[str, dict[str, "Scaling"]]
"""Phase to quantity to how it grows."""


@dataclass(frozen=True)
class Scaling:
    """A base, and so much per byte of a participant's images; both are not negative."""

    base: float
    per_byte: float

    def of(self, size_bytes: float) -> float:
        """The amount for a participant of that size."""
        return self.base + self.per_byte * size_bytes


def fit(sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """Base and slope by least squares, neither negative.

    Examples
    --------
    >>> growing, falling = fit([100, 300], [2.0, 4.0]), fit([100, 300], [4.0, 2.0])
    >>> round(growing.base, 6), round(growing.per_byte, 6), round(falling.base, 6), falling.per_byte
    (1.0, 0.01, 3.0, 0.0)
    """
    scale = max(sizes, default=0) or 1.0  # of one size with the base, or the solver finds it singular
    (base, slope), _ = nnls(np.array([[1.0, size / scale] for size in sizes]), np.array(amounts, dtype=float))
    return Scaling(float(base), float(slope / scale))


def constant(_sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """The same for everyone."""
    return Scaling(statistics.fmean(amounts), 0.0)


def proportional(sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """By size alone."""
    return Scaling(0.0, sum(amounts) / sum(sizes)) if sum(sizes) else constant(sizes, amounts)


def costs_of(seen: Sequence[Seen], way: str = "fit") -> Costs:
    """How every quantity of every phase grows.

    Parameters
    ----------
    way
        ``fit``; ``constant`` or ``proportional`` for CPU time and time asleep, which are the extremes. Bytes are
        known too well for that.
    """
    ways = {"fit": fit, "constant": constant, "proportional": proportional}
    sizes = [job.size_bytes for job in seen]
    costs: Costs = {}
    for phase in PHASES:
        if not any(phase in job.phases for job in seen):
            continue
        costs[phase] = {}
        for quantity in QUANTITIES:
            amounts = [job.phases.get(phase, {}).get(quantity, 0.0) for job in seen]
            chosen = ways[way] if quantity.endswith("_s") and phase == "compute" else fit
            costs[phase][quantity] = chosen(sizes, amounts)
    return costs


def ways_of(seen: Sequence[Seen]) -> tuple[str, ...]:
    """Ways to scale that so many records leave open."""
    return ("fit",) if len({job.size_bytes for job in seen}) >= FEW else ("fit", "constant", "proportional")


def scatter(seen: Sequence[Seen], costs: Mapping[str, Mapping[str, Scaling]]) -> float:
    """Standard deviation of the logarithm of a job's CPU time about what its size says.

    Of two or three records the fit leaves next to nothing; then it is that about the better of the two extremes.
    """
    if len(seen) < 2:
        return 0.0
    totals = [job.cpu_s for job in seen]
    sizes = [job.size_bytes for job in seen]
    if len(seen) >= FEW:
        expected = [sum(phase["cpu_s"].of(size) for phase in costs.values()) for size in sizes]
        return deviation(totals, expected, len(seen) - 2)
    extremes = [constant(sizes, totals), proportional(sizes, totals)]
    return min(deviation(totals, [one.of(size) for size in sizes], len(seen) - 1) for one in extremes)


def deviation(found: Sequence[float], expected: Sequence[float], freedom: int) -> float:
    """Deviation of the logarithm."""
    misses = [math.log(one / other) for one, other in zip(found, expected, strict=True) if one > 0 and other > 0]
    return math.sqrt(sum(miss**2 for miss in misses) / freedom)
