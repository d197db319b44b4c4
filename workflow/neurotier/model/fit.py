"""Speeds of a tier from what streams on it did: the parameters of the model, fitted to the logs of runs.

Each stream that read or wrote is asked how much it should have moved, given how many others were busy at the same
time: that needs no simulation, and every stream is an observation. What the runs do not show (what 96 streams get
together cannot be seen while each of 25 is slow by itself) stays near what is known beforehand, from a probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neurotier.core.kinds import KINDS
from neurotier.model.machine import TierSpeed
from neurotier.model.observed import Observed, Vector

SPREAD = 0.1
"""What one run tells is taken as known to 10 %, however many streams it has: they are not independent."""

ONE_OF_MANY, ALL = 3.3, 0.1
"""How well a probe with one stream tells what many get: to a factor of 27 (e^3.3), or to 10 %."""

MIXED_SPREAD = 1.0
"""The same for ``mixed``, which is hardly below 0.2 or above 2."""

STARTS = 2


def fit_tier(
    runs: Sequence[Observed], prior: TierSpeed, kind: str, memory: TierSpeed | None = None
) -> tuple[TierSpeed, TierSpeed | None]:
    """The speeds of a tier, and of memory if its writes go there, that explain best what streams did.

    Parameters
    ----------
    runs
        The streams of each run on this tier.
    prior
        What is known of the tier beforehand, for example from a probe.
    kind
        The tier's kind.
    memory
        What is known of memory beforehand, for a tier with write-back.
    """
    from scipy.optimize import least_squares

    expected = to_vector(prior, memory)
    spreads = np.full(len(expected), ONE_OF_MANY)
    spreads[:2], spreads[4] = (ALL if KINDS[kind].one_stream_tells else ONE_OF_MANY), MIXED_SPREAD

    def residuals(vector: Vector) -> Vector:
        speeds = from_vector(vector, prior, memory)
        misses = [robust(run.misses(*speeds) / SPREAD) / np.sqrt(len(run.speeds)) for run in runs]
        return np.concatenate([(vector - expected) / spreads, *misses])

    solutions = []
    for seed in range(STARTS):  # where caps and shares meet there are edges to get stuck at: try from elsewhere, too
        away = np.random.default_rng(seed).normal(0.0, 0.5 if seed else 0.0, len(expected))
        solutions.append(least_squares(residuals, expected + away, diff_step=1e-3, max_nfev=60))
    fitted, of_memory = from_vector(min(solutions, key=lambda one: one.cost).x, prior, memory)
    return replace(fitted, unevenness=unevenness(runs)), of_memory


def robust(misses: Vector) -> Vector:
    """Misses whose squares grow no faster than the misses themselves, once they are far off: few cannot rule many.

    >>> robust(np.array([-0.1, 0.0, 10.0])).round(2).tolist()
    [-0.1, 0.0, 4.25]
    """
    result: Vector = np.sign(misses) * np.sqrt(2 * (np.sqrt(1 + misses**2) - 1))
    return result


def unevenness(runs: Sequence[Observed]) -> float:
    """Standard deviation of the logarithm of the speeds of streams that should be alike, robustly.

    Streams that began one after the other had the same company, so that they differ by chance alone.
    """
    ratios = np.concatenate([run.unevenness() for run in runs])
    quartiles = np.quantile(ratios, [0.25, 0.75])
    return float((quartiles[1] - quartiles[0]) / 1.349 / np.sqrt(2))  # a normal distribution's quartiles: +-0.6745


def to_vector(tier: TierSpeed, memory: TierSpeed | None) -> Vector:
    """The parameters, as logarithms: of memory only what writing takes."""
    values = [tier.read_bytes_per_s, tier.write_bytes_per_s]
    values += [tier.read_stream_bytes_per_s, tier.write_stream_bytes_per_s, tier.mixed]
    values += [memory.write_bytes_per_s, memory.write_stream_bytes_per_s] if memory else []
    return np.log(values)


def from_vector(vector: Vector, tier: TierSpeed, memory: TierSpeed | None) -> tuple[TierSpeed, TierSpeed | None]:
    """The inverse of :func:`to_vector`; what is no parameter is that of ``tier`` and ``memory``."""
    read, write, read_stream, write_stream, mixed, *of_memory = (float(value) for value in np.exp(vector))
    if memory:
        memory = replace(memory, write_bytes_per_s=of_memory[0], write_stream_bytes_per_s=of_memory[1])
    return TierSpeed(read, write, read_stream, write_stream, min(mixed, 2.0), 0.0, tier.write_back), memory
