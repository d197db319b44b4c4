"""A prediction of the model, with an interval for what is known only roughly."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from neurotier.model.fluid import SimulatedRun, simulate
from neurotier.model.machine import Machine, Workload

PAPER, FLUID, MEASURED = "paper", "fluid", "fluid measured"
"""The members of the model: Eq. (1); the fluid model with probed figures; and the fluid model with figures that the
published server's logs show directly."""

DRAWS = 21
"""The number of simulations from which an interval is computed."""

LOW, HIGH = 0.05, 0.95
"""Quantiles at the interval's ends: nine of ten draws lie between them."""

MODEL_ERROR = 0.128
"""The error of the model if all its inputs are known: standard deviation of the logarithm. This was its error for those
conditions of the published server whose runs it had not been given and that have no twin in the other memory mode
(0.116), widened like Student's distribution because it comes from only ten errors; a test computes it from the
validation."""

EVENLY = np.array([NormalDist().inv_cdf((part + 0.5) / 200) for part in range(200)])
"""Evenly spaced quantiles of a normal distribution: model errors that are added to each draw, without more
simulations."""

Situation = tuple[Workload, Machine]
"""A workload, and the machine that it runs on."""


def least_makespan_s(read: float, written: float, read_per_s: float, write_per_s: float) -> float:
    """Eq. (1) of Hayot-Sasson, Brown and Glatard (2020), M >= D / R + D / W: the least makespan, s, in which one stream
    at a time can read and write so much; sizes in bytes, or in any unit that the speeds share.

    Examples
    --------
    125 blocks of 40 um on the local SSD:

    >>> size = 125 * 643_625_668
    >>> round(least_makespan_s(size, size, 518.6e6, 240.4e6), 1)
    489.8
    """
    return read / read_per_s + written / write_per_s


class Prediction(NamedTuple):
    """What the fluid model predicts, with an interval.

    Attributes
    ----------
    low_s, high_s
        The interval, s.
    usual
        The simulated run with the best known inputs.
    """

    low_s: float
    high_s: float
    usual: SimulatedRun

    @property
    def makespan_s(self) -> float:
        """Makespan of the usual run, s."""
        return self.usual.makespan_s


def predict_among(
    usual: Situation,
    draw: Callable[[np.random.Generator], Situation],
    parallelism: int,
) -> Prediction:
    """Predict a makespan from inputs that are only roughly known; equal inputs give equal results.

    The interval includes the model's own error, :data:`MODEL_ERROR`, around each draw.

    Parameters
    ----------
    usual
        The best known situation. The interval contains its makespan.
    draw
        Draws another possible situation at random.
    """
    run = simulate(*usual, parallelism)
    makespan_s = run.makespan_s
    drawn_s = [simulate(*draw(np.random.default_rng(seed)), parallelism, seed).makespan_s for seed in range(1, DRAWS)]
    around_s = np.outer([makespan_s, *drawn_s], np.exp(MODEL_ERROR * EVENLY))
    low_s, high_s = (float(end) for end in np.quantile(around_s, [LOW, HIGH]))
    return Prediction(min(low_s, makespan_s), max(high_s, makespan_s), run)
