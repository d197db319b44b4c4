"""How good the members of the model are where they have not looked: validation by leaving out.

``condition``
    Nothing of the condition that is predicted is known: neither its runs nor what was learned from them.
``device``
    Nothing of any run on its device is known; Table I, the data sheet and the other devices are. Optane is one device
    in Memory mode and another in App Direct mode; the SSD and Isilon are the same in both.

The interval of the measured member is as wide as its own errors: of nine conditions of ten that may be known, each
predicted without itself and without what is held out, the factor off is within it. So nothing that is held out has a
part in the interval either.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row
from neurotier.model.fluid import SimulatedRun, simulate
from neurotier.model.prediction import APRIORI, FITTED, MEASURED, PAPER, Simulated
from neurotier.published.bigbrain import Found
from neurotier.published.conditions import device_and_mode, steady
from neurotier.published.evidence import Evidence, Succession
from neurotier.published.fits import FIT, Fits, Speeds, device_of, fit_device, launch_of
from neurotier.published.knowledge import Knowledge, knowledge_for, situation
from neurotier.published.replay import Replay

CONDITION, DEVICE = "condition", "device"
"""What is left out."""

COVERED = 0.9
"""Part of the conditions that an interval is to hold."""

WIDTH_UNKNOWN = 0.7
"""Width of an interval where no other condition tells how good the model is: a factor of 2, assumed."""

CLOSE = 0.2
"""A prediction is close that is off by at most this part of what was measured."""

Held = frozenset[IncrementCondition]


def measured_s(replay: Replay, condition: IncrementCondition) -> float | None:
    """Mean makespan of the repetitions that are no outliers, s; ``None`` of a condition without runs."""
    going = steady(replay.conditions.get(condition, []))
    return statistics.fmean(run.makespan_s for run in going) if going else None


def left_out(condition: IncrementCondition, conditions: Iterable[IncrementCondition], held_out: str) -> Held:
    """The conditions that may not be known when this one is predicted."""
    if held_out == CONDITION:
        return frozenset([condition])
    return frozenset(one for one in conditions if device_of(one) == device_of(condition))


@dataclass
class Oracle:
    """Predictions of the measured member from what may be known, each made once.

    Parameters
    ----------
    replay, evidence
        The runs, and what each condition of them shows.
    """

    replay: Replay
    evidence: Mapping[IncrementCondition, Evidence]

    def __post_init__(self) -> None:
        self.conditions = list(self.evidence)
        self.measured_s = {one: measured_s(self.replay, one) for one in self.conditions}
        self.made: dict[tuple[object, ...], SimulatedRun] = {}

    def knowledge(self, condition: IncrementCondition, held: Held) -> Knowledge:
        """What is known for a condition without those that are held out."""
        kept = {one: seen for one, seen in self.evidence.items() if one not in held}
        return knowledge_for(condition, kept, self.replay)

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
        for one in self.conditions:
            measured = self.measured_s[one]
            if one not in held and measured:
                given = self.knowledge(one, held | left_out(one, self.conditions, held_out))
                found.append(abs(math.log(self.run(one, given).makespan_s / measured)))
        return found

    def predict(self, condition: IncrementCondition, held: Held, held_out: str) -> Simulated:
        """A prediction with its interval."""
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


def without(replay: Replay, held: Held) -> Replay:
    """The replay as if some conditions had never been run."""
    paths = {run.path for one in held for run in replay.conditions.get(one, [])}
    runs = [run for run in replay.bigbrain.runs if run.path not in paths]
    return replace(replay, bigbrain=Found(runs, replay.bigbrain.skipped))


def fitted_without(
    replay: Replay, fits: Fits, condition: IncrementCondition, held: Held
) -> tuple[Speeds | None, Succession]:
    """The fitted member's speeds of a device, and its launches, as if some conditions had never been run."""
    device = device_of(condition)
    kept = without(replay, held)
    launch = launch_of(kept)
    if not any(one.panel == FIT and device_of(one) == device for one in held):
        return fits.speeds.get(device), launch
    return fit_device(kept, device), launch


def validate(
    oracle: Oracle, fits: Fits, members: Callable[[IncrementCondition, Speeds | None, Succession], dict[str, Simulated]]
) -> list[Row]:
    """Rows of ``published_validation.tsv``: every member for every condition, without it and without its device.

    Parameters
    ----------
    fits
        The fitted member's; it is fitted again where what is held out had a part in it.
    members
        What the other fluid members predict, from speeds and launches.
    """
    replay, rows = oracle.replay, []
    refitted: dict[tuple[object, ...], tuple[Speeds | None, Succession]] = {}
    for held_out, condition in itertools.product((CONDITION, DEVICE), oracle.conditions):
        held = left_out(condition, oracle.conditions, held_out)
        key = device_of(condition), frozenset(one for one in held if one.panel == FIT)
        if key not in refitted:
            refitted[key] = fitted_without(replay, fits, condition, held)
        found = members(condition, *refitted[key]) | {MEASURED: oracle.predict(condition, held, held_out)}
        equation_s = replay.equation_one_s(condition)
        rows += [row_of(oracle, condition, held_out, PAPER, equation_s, None)] if equation_s else []
        rows += [
            row_of(oracle, condition, held_out, member, found[member].makespan_s, found[member])
            for member in (APRIORI, FITTED, MEASURED)
        ]
    return rows


def row_of(
    oracle: Oracle, condition: IncrementCondition, held_out: str, member: str, predicted_s: float, one: Simulated | None
) -> Row:
    """One row of ``published_validation.tsv``."""
    device, mode = device_and_mode(condition)
    actual_s = oracle.measured_s[condition]
    ratio = predicted_s / actual_s if actual_s else None
    return {
        "held_out": held_out,
        "member": member,
        "resolution_um": condition.resolution_um,
        "engine": condition.engine,
        "processes": condition.parallelism,
        "device": device,
        "mode": mode,
        "predicted_s": predicted_s,
        "low_s": one.low_s if one else None,
        "high_s": one.high_s if one else None,
        "measured_s": actual_s,
        "ratio": ratio,
        "close": None if ratio is None else abs(ratio - 1) <= CLOSE,
        "in_interval": one.low_s <= actual_s <= one.high_s if one and actual_s else None,
    }


@dataclass(frozen=True)
class Score:
    """How good a member is over the conditions that were held out one after the other.

    Attributes
    ----------
    factor, worst
        Geometric mean and greatest of the factors by which it is off, either way.
    worst_row
        Where it is worst.
    close
        How many are within 20 %.
    covered
        How many are in their interval; ``None`` of a member without intervals.
    conditions
        How many there are.
    """

    held_out: str
    member: str
    factor: float
    worst: float
    worst_row: Row
    close: int
    covered: int | None
    conditions: int


def scores(rows: Sequence[Row]) -> list[Score]:
    """The score of every member, by what was held out; of conditions that were measured."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["ratio"] is not None:
            groups.setdefault((row["held_out"], row["member"]), []).append(row)
    return [score_of(held_out, member, some) for (held_out, member), some in groups.items()]


def score_of(held_out: str, member: str, rows: Sequence[Row]) -> Score:
    """The score of a member over at least one condition."""
    misses = [abs(math.log(row["ratio"])) for row in rows]
    has_interval = all(row["in_interval"] is not None for row in rows)
    return Score(
        held_out,
        member,
        math.exp(statistics.fmean(misses)),
        math.exp(max(misses)),
        rows[misses.index(max(misses))],
        sum(row["close"] for row in rows),
        sum(row["in_interval"] for row in rows) if has_interval else None,
        len(rows),
    )
