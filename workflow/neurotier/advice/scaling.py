"""Scaling: how the cost of a job grows with the size of its images, and how well that is known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neurotier.advice.calibration import BETWEEN, QUANTITIES, ObservedJob
from neurotier.core.parallelism import PHASES

FEW = 4
"""With fewer records than this, base and slope are mostly chance, and predictions try the two extremes as well."""

Costs = dict[str, dict[str, "Scaling"]]
"""Phase to quantity to its scaling."""


@dataclass(frozen=True)
class Scaling:
    """A base and an amount per byte of a participant's images, neither of them negative."""

    base: float
    per_byte: float

    def of(self, size_bytes: float) -> float:
        """The amount for a participant with images of this size."""
        return self.base + self.per_byte * size_bytes


def fit(sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """Base and slope by least squares, neither negative.

    Examples
    --------
    >>> growing, falling = fit([100, 300], [2.0, 4.0]), fit([100, 300], [4.0, 2.0])
    >>> round(growing.base, 6), round(growing.per_byte, 6), round(falling.base, 6), falling.per_byte
    (1.0, 0.01, 3.0, 0.0)
    """
    from scipy.optimize import nnls  # it takes a moment to load, and the page needs other things of this room

    scale = max(sizes, default=0) or 1.0  # both columns of one magnitude, or the solver calls the matrix singular
    (base, slope), _ = nnls(np.array([[1.0, size / scale] for size in sizes]), np.array(amounts, dtype=float))
    return Scaling(float(base), float(slope / scale))


def constant(_sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """The mean, whatever the size."""
    return Scaling(statistics.fmean(amounts), 0.0)


def proportional(sizes: Sequence[float], amounts: Sequence[float]) -> Scaling:
    """In proportion to size, without a base."""
    return Scaling(0.0, sum(amounts) / sum(sizes)) if sum(sizes) else constant(sizes, amounts)


def costs_of(observed: Sequence[ObservedJob], way: str = "fit") -> Costs:
    """The scaling of every quantity of every phase.

    Parameters
    ----------
    way
        ``fit``, or one of the extremes ``constant`` and ``proportional``, which then apply to CPU time and time asleep
        of the compute phase; bytes are always fitted.
    """
    ways = {"fit": fit, "constant": constant, "proportional": proportional}
    sizes = [job.size_bytes for job in observed]
    costs: Costs = {}
    for phase in (*PHASES, BETWEEN):
        if not any(phase in job.phases for job in observed):
            continue
        costs[phase] = {}
        for quantity in QUANTITIES:
            amounts = [job.phases.get(phase, {}).get(quantity, 0.0) for job in observed]
            chosen = ways[way] if quantity.endswith("_s") and phase == "compute" else fit
            costs[phase][quantity] = chosen(sizes, amounts)
    return costs


def ways_of(observed: Sequence[ObservedJob]) -> tuple[str, ...]:
    """Ways to scale that the records do not rule out."""
    return ("fit",) if len({job.size_bytes for job in observed}) >= FEW else ("fit", "constant", "proportional")


def scatter(observed: Sequence[ObservedJob], costs: Mapping[str, Mapping[str, Scaling]]) -> float:
    """Standard deviation of the logarithm of a job's CPU time around what the scaling gives for its size.

    A fit to two or three records leaves almost no residual; then the better of the two extremes is taken instead.
    """
    if len(observed) < 2:
        return 0.0
    totals = [job.cpu_s for job in observed]
    sizes = [job.size_bytes for job in observed]
    if len(observed) >= FEW:
        expected = [sum(phase["cpu_s"].of(size) for phase in costs.values()) for size in sizes]
        return deviation(totals, expected, len(observed) - 2)
    extremes = [constant(sizes, totals), proportional(sizes, totals)]
    return min(deviation(totals, [one.of(size) for size in sizes], len(observed) - 1) for one in extremes)


def deviation(measured: Sequence[float], expected: Sequence[float], freedom: int) -> float:
    """Root mean square of the logarithm of the ratios, with ``freedom`` degrees of freedom."""
    misses = [math.log(one / other) for one, other in zip(measured, expected, strict=True) if one > 0 and other > 0]
    return math.sqrt(sum(miss**2 for miss in misses) / freedom)
