"""A forecast: what the model predicts, with an interval for what it knows only roughly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neurotier.model.fluid import Predicted, simulate
from neurotier.model.machine import Machine, TierSpeed
from neurotier.model.workload import Workload

DRAWS = 12
LOW, HIGH = 0.05, 0.95
"""The interval's ends: nine draws of ten are within."""


@dataclass(frozen=True)
class Forecast:
    """Predicted makespan, s.

    Attributes
    ----------
    makespan_s
        With the speeds as they are known.
    low_s, high_s
        The interval, from draws of the speeds and of which streams are slower than others.
    predicted
        The simulation behind ``makespan_s``.
    """

    makespan_s: float
    low_s: float
    high_s: float
    predicted: Predicted


def forecast(
    workload: Workload, machine: Machine, parallelism: int, spreads: Mapping[str, float], draws: int = DRAWS
) -> Forecast:
    """Predict the makespan of a workload.

    Parameters
    ----------
    spreads
        How well each tier's speeds are known: standard deviation of their logarithm; not named means exactly.
    draws
        How many simulations the interval is taken from.
    """
    predicted = simulate(workload, machine, parallelism)
    makespans_s = [predicted.makespan_s]
    for seed in range(1, draws):
        lot = np.random.default_rng(seed)
        tiers = {name: drawn(tier, spreads.get(name, 0.0), lot) for name, tier in machine.tiers.items()}
        makespans_s.append(simulate(workload, replace(machine, tiers=tiers), parallelism, seed).makespan_s)
    low_s, high_s = np.quantile(makespans_s, [LOW, HIGH])
    return Forecast(predicted.makespan_s, float(low_s), float(high_s), predicted)


def drawn(tier: TierSpeed, spread: float, lot: np.random.Generator) -> TierSpeed:
    """A tier whose reading and writing are by chance faster or slower than known, each as a whole."""
    reading, writing = np.exp(spread * lot.standard_normal(2))
    return replace(
        tier,
        read_bytes_per_s=tier.read_bytes_per_s * reading,
        read_stream_bytes_per_s=tier.read_stream_bytes_per_s * reading,
        write_bytes_per_s=tier.write_bytes_per_s * writing,
        write_stream_bytes_per_s=tier.write_stream_bytes_per_s * writing,
    )
