"""Statistics of campaigns: how often equal tiers are said to differ, and how often a true 10 % is found.

Campaigns are drawn, and judged by the function that the page of a comparison uses; no workflow is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bench import print_table
from neurotier.core.tables import Row
from neurotier.pages.kit.contrasts import contrasts
from neurotier.run.campaign import run_order

CAMPAIGNS = 2000
TIERS, REPETITIONS = (2, 3, 4, 5, 6), (3, 5, 10)
NOISE, OUTLIER, DRIFT, EFFECT = 0.06, 3.0, 1.0, 0.1

KINDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda source, count: NOISE * source.standard_normal(count),
    "heavy-tailed (t, 2 df)": lambda source, count: NOISE * source.standard_t(2, count),
    f"every tenth x {OUTLIER:g}": lambda source, count: (
        NOISE * source.standard_normal(count) + np.log(OUTLIER) * (source.random(count) < 0.1)
    ),
    f"drift to x {1 + DRIFT:g}": lambda source, count: (
        NOISE * source.standard_normal(count) + np.linspace(0, np.log1p(DRIFT), count)
    ),
}
"""Logarithms of makespans in the order of the runs, by the kind of their noise."""


def campaign(seed: int, tiers: int, repetitions: int, kind: str, effect: float) -> list[list[Row]]:
    """Runs of every tier, of which the last takes longer by a share."""
    source = np.random.default_rng(seed)
    order = run_order(tiers, repetitions, seed)
    times = np.exp(KINDS[kind](source, len(order)))
    runs: list[list[Row]] = [[] for _ in range(tiers)]
    for position, ((repetition, tier), time_s) in enumerate(zip(order, times.tolist(), strict=True)):
        makespan_s = time_s * (1 + effect * (tier == tiers - 1))
        runs[tier].append({"repetition": repetition, "start_s": float(position), "makespan_s": makespan_s})
    return runs


def sure(runs: list[list[Row]]) -> bool:
    """Whether any two are said to differ."""
    return any(found.is_longer for found in contrasts(dict(enumerate(runs)), paired=True).values())


def shares(tiers: int, kind: str, effect: float) -> list[str]:
    """In how many campaigns of a hundred any two are said to differ, by the number of repetitions."""
    said = [
        [sure(campaign(seed, tiers, repetitions, kind, effect)) for seed in range(CAMPAIGNS)]
        for repetitions in REPETITIONS
    ]
    return [f"{100 * np.mean(each):.1f}" for each in said]


def main() -> None:
    repetitions = [f"{count} repetitions" for count in REPETITIONS]
    rows = [[kind, f"{tiers}", *shares(tiers, kind, 0.0)] for kind in KINDS for tiers in TIERS]
    print_table("equal tiers said to differ, % of campaigns", ["noise", "tiers", *repetitions], rows)
    rows = [[kind, *shares(2, kind, EFFECT)] for kind in KINDS]
    print_table(f"a true {EFFECT:.0%} of two tiers found, % of campaigns", ["noise", *repetitions], rows)
