"""What each member of the model predicts for the published conditions of the BigBrain incrementation.

``paper``
    Eq. (1) with Table I.
``fluid a priori``
    The fluid model with Table I, the number of memory modules and the kernel's settings; nothing is fitted.
``fluid fitted``
    The fluid model with speeds fitted to the runs with 25 processes on the 40 um image, for each device and, where
    the mode makes another device of it, mode.
``fluid measured``
    The fluid model with what the logs of **other** conditions show directly (:mod:`neurotier.published.knowledge`), and
    nothing fitted. A condition of the paper that has no run here is predicted as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row
from neurotier.model.prediction import APRIORI, FITTED, MEASURED, PAPER, Simulated, predict_makespan
from neurotier.model.workload import Step, Workload
from neurotier.published.bigbrain import INCREMENT, WRITE
from neurotier.published.conditions import device_and_mode, expected, steady
from neurotier.published.evidence import Succession, evidence_of
from neurotier.published.fits import FIT, Fits, Speeds, device_of, known
from neurotier.published.knowledge import TIER, Knowledge
from neurotier.published.replay import Replay
from neurotier.published.server import page_cache, server
from neurotier.published.validation import CONDITION, Oracle, validate


@dataclass
class Predictor:
    """All members of the model for one replay; each simulation is made once."""

    replay: Replay
    fits: Fits
    oracle: Oracle = field(init=False)
    made: dict[tuple[IncrementCondition, Speeds, Succession], Simulated] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.oracle = Oracle(self.replay, evidence_of(self.replay))

    @property
    def conditions(self) -> list[IncrementCondition]:
        """Those that have runs, and those of the paper's figures that have none."""
        return list(dict.fromkeys([*self.oracle.conditions, *expected()]))

    def predictions(self) -> list[Row]:
        """Rows of ``published_predictions.tsv``: each member for each of the paper's conditions on a known device."""
        rows = []
        for condition in self.conditions:
            equation_s = self.replay.equation_one_s(condition)
            if equation_s is not None:
                rows.append(self.row_of(condition, PAPER, equation_s))
            speeds = self.fits.speeds.get(device_of(condition))
            found = self.others(condition, speeds, self.fits.launch) if condition in self.replay.conditions else {}
            if speeds is None:
                found.pop(FITTED, None)
            found[MEASURED] = self.oracle.predict(condition, frozenset([condition]), CONDITION)
            rows += [self.row_of(condition, member, one.makespan_s, one) for member, one in found.items()]
        return rows

    def others(self, condition: IncrementCondition, speeds: Speeds | None, launch: Succession) -> dict[str, Simulated]:
        """What the other fluid members predict; the fitted one from Table I where nothing was fitted."""
        printed = known(self.replay, condition)
        return {
            APRIORI: self.simulated(condition, printed, Succession()),
            FITTED: self.simulated(condition, speeds or printed, launch),
        }

    def simulated(self, condition: IncrementCondition, speeds: Speeds, launch: Succession) -> Simulated:
        """What the fluid model predicts from speeds and launches."""
        key = condition, speeds, launch
        if key not in self.made:
            size = condition.block_bytes / condition.blocks
            task = (Step(INCREMENT, "read", size, TIER), Step(WRITE, "write", size, TIER))
            workload = Workload([task] * condition.blocks, launch.spawn_s, launch.launch_s, launch_counts=False)
            cache = page_cache(self.replay.root, device_and_mode(condition)[1])
            machine = server(TIER, speeds.tier, speeds.memory, cache)
            self.made[key] = predict_makespan(workload, machine, condition.parallelism, {TIER: speeds.spread})
        return self.made[key]

    def row_of(
        self, condition: IncrementCondition, member: str, predicted_s: float, simulated: Simulated | None = None
    ) -> Row:
        """The row of a prediction, held against the mean of the runs that are no outliers."""
        runs = self.replay.conditions.get(condition, [])
        (device, mode), measured_s = device_and_mode(condition), self.oracle.measured_s.get(condition)
        return {
            "resolution_um": condition.resolution_um,
            "engine": condition.engine,
            "processes": condition.parallelism,
            "device": device,
            "mode": mode,
            "member": member,
            "fitted_on": member == FITTED and condition.panel == FIT,
            "predicted_s": predicted_s,
            "low_s": simulated.low_s if simulated else None,
            "high_s": simulated.high_s if simulated else None,
            "measured_s": measured_s,
            "stalled": len(runs) - len(steady(runs)),
            "ratio": predicted_s / measured_s if measured_s else None,
            "limit": simulated.usual.limit if simulated else None,
        }

    def validation(self) -> list[Row]:
        """Rows of ``published_validation.tsv``."""
        return validate(self.oracle, self.fits, self.others)

    def parameters(self) -> list[Row]:
        """Rows of ``published_parameters.tsv``: all that the measured member is given, by condition."""
        rows = []
        for condition in self.conditions:
            given: Knowledge = self.oracle.knowledge(condition, frozenset([condition]))
            device, mode = device_and_mode(condition)
            about = {"resolution_um": condition.resolution_um, "engine": condition.engine}
            about |= {"processes": condition.parallelism, "device": device, "mode": mode}
            rows += [about | vars(one) for one in given.parameters]
        return rows
