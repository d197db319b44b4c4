"""Predict the published conditions of the BigBrain incrementation with each member of the model.

``paper``
    Eq. (1) with Table I.
``fluid measured``
    The fluid model with what the logs of **other** conditions show directly (:mod:`neurotier.published.knowledge`), and
    nothing fitted. Conditions of the paper that have no run in the logs are predicted as well.

The interval of the measured member is as wide as its errors for similar conditions, that is, those that may be known
and have a twin if this condition has one. Each of these is predicted without itself and without what is held out. The
interval should contain nine predictions of ten, by Student's distribution, since a few errors give their spread only
roughly. Nothing that is held out contributes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row, Rows, columns
from neurotier.model.fluid import SimulatedRun, simulate
from neurotier.model.prediction import MEASURED, PAPER, Prediction
from neurotier.published.conditions import expected, key_cells, without_outliers
from neurotier.published.knowledge import WIDTH_UNKNOWN, Knowledge, Learner, evidence_of, situation
from neurotier.published.replay import Replay
from neurotier.published.validation import CLOSE, CONDITION, DEVICE, Held, error_of, has_twin, held_out_conditions

COVERED = 0.9
"""Share of the conditions that an interval should contain."""


class Predictor:
    """All members of the model for one replay."""

    def __init__(self, replay: Replay) -> None:
        self.replay, self.evidence = replay, evidence_of(replay)
        self.measured_s = {
            one: statistics.fmean(run.makespan_s for run in without_outliers(replay.conditions[one]))
            for one in self.evidence.index
        }
        self.conditions = list(dict.fromkeys([*self.measured_s, *expected()]))
        """The conditions that have runs, and those of the paper's figures that have none."""

    def predictions(self) -> Rows:
        """The rows of ``published_predictions.tsv``: each member for each condition on a known device."""
        return self.rows(self.conditions, CONDITION, "published_predictions")

    def validation(self) -> Rows:
        """Rows of ``published_validation.tsv``: each member for each condition, without it and without its device."""
        return [row for one in (CONDITION, DEVICE) for row in self.rows(self.measured_s, one, "published_validation")]

    def parameters(self) -> Rows:
        """The rows of ``published_parameters.tsv``: everything that the measured member is given, by condition."""
        return [
            key_cells(one) | parameter
            for one in self.conditions
            for parameter in self.knowledge(one, frozenset([one])).parameters
        ]

    def rows(self, conditions: Iterable[IncrementCondition], held_out: str, table: str) -> Rows:
        """The members' predictions for some conditions, as rows of a table."""
        return [
            {name: row[name] for name in columns(table)}
            for one in conditions
            for row in self.comparisons(one, held_out)
        ]

    def comparisons(self, condition: IncrementCondition, held_out: str) -> Iterator[Row]:
        """Each member's prediction, compared with the mean of the runs without outliers."""
        runs, measured_s = self.replay.conditions.get(condition, []), self.measured_s.get(condition)
        about = key_cells(condition) | {"held_out": held_out, "measured_s": measured_s}
        about["stalled"] = len(runs) - len(without_outliers(runs))
        simulated = self.predict(condition, held_out_conditions(condition, self.measured_s, held_out), held_out)
        own = {"low_s": simulated.low_s, "high_s": simulated.high_s, "limit": simulated.usual.limit}
        inside = simulated.low_s <= measured_s <= simulated.high_s if measured_s else None
        equation_s = self.replay.equation_one_s(condition)
        for member, predicted_s, further in (
            (PAPER, equation_s, dict.fromkeys([*own, "in_interval"])),
            (MEASURED, simulated.makespan_s, own | {"in_interval": inside}),
        ):
            if predicted_s is not None:
                ratio = predicted_s / measured_s if measured_s else None
                close = 1 / CLOSE <= ratio <= CLOSE if ratio else None
                yield about | further | {"member": member, "predicted_s": predicted_s, "ratio": ratio, "close": close}

    def knowledge(self, condition: IncrementCondition, held: Held) -> Knowledge:
        """What is known about a condition from the conditions that are not held out."""
        return Learner(condition, self.evidence[~self.evidence.index.isin(held)], self.replay).learn()

    def run(self, condition: IncrementCondition, held: Held) -> SimulatedRun:
        """The simulated run of a condition without what is held out."""
        return simulated(condition, self.knowledge(condition, held))

    def predict(self, condition: IncrementCondition, held: Held, held_out: str) -> Prediction:
        """The prediction of the measured member, with its interval."""
        run, twin = self.run(condition, held), has_twin(condition, self.measured_s)
        ratios = [
            self.run(one, held | held_out_conditions(one, self.measured_s, held_out)).makespan_s / measured_s
            for one, measured_s in self.measured_s.items()
            if one not in held and measured_s and (held_out == DEVICE or has_twin(one, self.measured_s) == twin)
        ]
        factor = width(ratios)
        return Prediction(run.makespan_s / factor, run.makespan_s * factor, run)


@cache
def simulated(condition: IncrementCondition, given: Knowledge) -> SimulatedRun:
    """The simulated run of a condition from what is given, simulated once."""
    return simulate(*situation(condition, given), condition.parallelism)


def width(ratios: Sequence[float]) -> float:
    """The factor, either way, within which nine of ten predictions stay, given other predictions over measured values.

    >>> round(width([1.1, 1 / 1.1] * 50), 2), round(width([1.1, 1 / 1.1]), 2)
    (1.17, 1.32)
    """
    if not ratios:
        return WIDTH_UNKNOWN
    from scipy.stats import t

    return math.exp(t.ppf((1 + COVERED) / 2, len(ratios)) * error_of(ratios))
