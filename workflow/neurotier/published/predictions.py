"""What each member of the model predicts for the published conditions of the BigBrain incrementation.

``paper``
    Eq. (1) with Table I.
``fluid a priori``
    The fluid model with Table I, the number of memory modules and the kernel's settings; it learns nothing from runs.
``fluid measured``
    The fluid model with what the logs of **other** conditions show directly (:mod:`neurotier.published.knowledge`), and
    nothing fitted. A condition of the paper that has no run here is predicted as well.

The interval of the measured member is as wide as its own errors: of nine conditions of ten that may be known, each
predicted without itself and without what is held out, the factor off is within it. So nothing that is held out has a
part in the interval either.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row, columns
from neurotier.model.fluid import SimulatedRun, simulate
from neurotier.model.prediction import APRIORI, MEASURED, PAPER, Simulated, predict_makespan
from neurotier.published.conditions import device_and_mode, expected, steady
from neurotier.published.evidence import Succession, evidence_of
from neurotier.published.knowledge import Knowledge, Learner, situation
from neurotier.published.replay import Replay
from neurotier.published.server import TIER, known_beforehand
from neurotier.published.validation import CLOSE, CONDITION, DEVICE, Held, left_out

TABLE_SPREAD = 0.3
"""How well Table I, one stream at a time, tells speeds under load."""

COVERED = 0.9
"""Part of the conditions that an interval is to hold."""

WIDTH_UNKNOWN = 0.7
"""Width of an interval where no other condition tells how good the model is: a factor of 2, assumed."""


class Predictor:
    """All members of the model for one replay; each simulation is made once."""

    def __init__(self, replay: Replay) -> None:
        self.replay, self.evidence = replay, evidence_of(replay)
        self.measured_s = {
            one: statistics.fmean(run.makespan_s for run in steady(runs))
            for one, runs in replay.conditions.items()
            if one in self.evidence
        }
        self.conditions = list(dict.fromkeys([*self.evidence, *expected()]))
        """Those that have runs, and those of the paper's figures that have none."""
        self.made: dict[tuple[object, ...], SimulatedRun] = {}
        self.apriori = cache(self.predict_apriori)

    def predictions(self) -> list[Row]:
        """Rows of ``published_predictions.tsv``: each member for each of the paper's conditions on a known device."""
        return [row for one in self.conditions for row in self.rows(one, CONDITION, "published_predictions")]

    def validation(self) -> list[Row]:
        """Rows of ``published_validation.tsv``: each member for each condition, without it and without its device."""
        return [
            row
            for held_out in (CONDITION, DEVICE)
            for one in self.evidence
            for row in self.rows(one, held_out, "published_validation")
        ]

    def parameters(self) -> list[Row]:
        """Rows of ``published_parameters.tsv``: all that the measured member is given, by condition."""
        return [
            described(one) | vars(parameter)
            for one in self.conditions
            for parameter in self.knowledge(one, frozenset([one])).parameters
        ]

    def rows(self, condition: IncrementCondition, held_out: str, table: str) -> Iterator[Row]:
        """What each member predicts, held against the mean of the runs that are no outliers, as rows of a table."""
        runs = self.replay.conditions.get(condition, [])
        measured_s = self.measured_s.get(condition)
        for member, predicted_s, simulated in self.members(condition, held_out):
            ratio = predicted_s / measured_s if measured_s else None
            low_s, high_s = (simulated.low_s, simulated.high_s) if simulated else (None, None)
            row = described(condition) | {
                "held_out": held_out,
                "member": member,
                "predicted_s": predicted_s,
                "low_s": low_s,
                "high_s": high_s,
                "measured_s": measured_s,
                "stalled": len(runs) - len(steady(runs)),
                "ratio": ratio,
                "close": None if ratio is None else abs(ratio - 1) <= CLOSE,
                "in_interval": simulated.low_s <= measured_s <= simulated.high_s if simulated and measured_s else None,
                "limit": simulated.usual.limit if simulated else None,
            }
            yield {name: row[name] for name in columns(table)}

    def members(self, condition: IncrementCondition, held_out: str) -> Iterator[tuple[str, float, Simulated | None]]:
        """What each member predicts for a condition, s, and what was simulated for it."""
        equation_s = self.replay.equation_one_s(condition)
        if equation_s is not None:
            yield PAPER, equation_s, None
        if condition in self.replay.conditions:
            apriori = self.apriori(condition)
            yield APRIORI, apriori.makespan_s, apriori
        measured = self.predict(condition, left_out(condition, self.evidence, held_out), held_out)
        yield MEASURED, measured.makespan_s, measured

    def predict_apriori(self, condition: IncrementCondition) -> Simulated:
        """The prediction from what is known before any run."""
        given = Knowledge(*known_beforehand(self.replay, condition), Succession(), None, ())
        return predict_makespan(*situation(condition, given, self.replay), condition.parallelism, {TIER: TABLE_SPREAD})

    def knowledge(self, condition: IncrementCondition, held: Held) -> Knowledge:
        """What is known for a condition without those that are held out."""
        kept = {one: seen for one, seen in self.evidence.items() if one not in held}
        return Learner(condition, kept, self.replay).learn()

    def run(self, condition: IncrementCondition, given: Knowledge, ships: float | None = None) -> SimulatedRun:
        """The simulated run of a condition with what is known, or with another bandwidth of the JVM, bytes/s."""
        if given.jvm and ships:
            given = replace(given, jvm=replace(given.jvm, bytes_per_s=ships))
        key = condition, given.tier, given.memory, given.succession, given.jvm
        if key not in self.made:
            self.made[key] = simulate(*situation(condition, given, self.replay), condition.parallelism)
        return self.made[key]

    def errors(self, held: Held, held_out: str) -> list[float]:
        """How far off conditions that may be known are, each without itself: logarithms of the factor, either way."""
        found = []
        for one, measured_s in self.measured_s.items():
            if one not in held and measured_s:
                given = self.knowledge(one, held | left_out(one, self.evidence, held_out))
                found.append(abs(math.log(self.run(one, given).makespan_s / measured_s)))
        return found

    def predict(self, condition: IncrementCondition, held: Held, held_out: str) -> Simulated:
        """The prediction of the measured member, with its interval."""
        given = self.knowledge(condition, held)
        run = self.run(condition, given)
        bounds = (given.jvm.low_bytes_per_s, given.jvm.high_bytes_per_s) if given.jvm else ()
        ends_s = [run.makespan_s, *(self.run(condition, given, ships).makespan_s for ships in bounds)]
        factor = math.exp(width(self.errors(held, held_out)))
        return Simulated(run.makespan_s, min(ends_s) / factor, max(ends_s) * factor, run)


def width(errors: Sequence[float]) -> float:
    """The error that nine conditions of ten stay within, as a logarithm.

    >>> round(width([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1]), 6)
    1.0
    """
    return float(np.quantile(errors, COVERED)) if errors else WIDTH_UNKNOWN


def described(condition: IncrementCondition) -> Row:
    """The columns that say which condition a row is about."""
    device, mode = device_and_mode(condition)
    about = {"resolution_um": condition.resolution_um, "engine": condition.engine}
    return about | {"processes": condition.parallelism, "device": device, "mode": mode}
