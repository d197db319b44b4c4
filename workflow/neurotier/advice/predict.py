"""Predictions: the makespan of a placement, with an interval that covers what is not known exactly.

The prediction is that of the fluid model, with medians of the probe and the best fit to the calibration. The interval
is from the 5th to the 95th percentile of draws, each of which varies:

- the speed of every tier, between the least and the most that the probe measured;
- how CPU time grows with size: with few records by the fit, not at all, or in proportion;
- CPU time of all jobs together, by the scatter of the records over the root of their number, and by ``REPEATABILITY``;
- CPU time of each job by that scatter, and which streams are slower than others;
- the time between two jobs, taken from those observed;
- what cold programs take to load, which was seen once, by ``LOADING_SPREAD``;
- how many processors others keep busy, from none to twice as many as during the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neurotier.advice.observed import ObservedJob
from neurotier.advice.scaling import costs_of, scatter, ways_of
from neurotier.advice.workload import READS, WRITES, JobStart, Participant, Storage, workload_of
from neurotier.model.machine import Machine, PageCache, Processors
from neurotier.model.paper import least_makespan_s
from neurotier.model.prediction import REPEATABILITY, Simulated, Situation, predict_among
from neurotier.model.this_machine import Probed, between, machine_of
from neurotier.storage.probe.tier_figures import TierFigures

DRAWS = 21

LOADING_SPREAD = 0.3
"""By how much loading programs from an empty page cache differs: standard deviation of the logarithm, assumed."""


@dataclass(frozen=True)
class Inputs:
    """What predictions are computed from, the same for all placements.

    Attributes
    ----------
    observed
        Participant jobs that have been run.
    gaps_s
        Times between two jobs of a slot, s.
    participants
        Participants to analyse, in the order of the index.
    job_start
        What precedes each job.
    probes
        Tier to its probe.
    processors, page_cache
        Of this node.
    tasks
        Who is analysed one after the other by one process, as positions in ``participants``; each alone if ``None``.
    load_s
        Phase to what it waits for its programs in the first jobs of a cold run, s; ``None`` if no run is to be cold.
    load_unknown_because
        Why that is not known, else empty.
    """

    observed: Sequence[ObservedJob]
    gaps_s: Sequence[float]
    participants: Sequence[Participant]
    job_start: JobStart
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache
    tasks: Sequence[Sequence[int]] | None = None
    load_s: Mapping[str, float] | None = None
    load_unknown_because: str = ""

    def single(self, storage: Storage, role: str) -> TierFigures:
        """Figures of the tier that holds a role."""
        return self.probes[storage.tiers[role]].usual


def predict(inputs: Inputs, storage: Storage, parallelism: int) -> Simulated:
    """Predict one placement with this many jobs at once. Draws are seeded: equal inputs give equal numbers."""
    costs = costs_of(inputs.observed)
    machines = [
        machine_of(
            {name: getattr(probe, end) for name, probe in inputs.probes.items()},
            parallelism,
            inputs.processors,
            inputs.page_cache,
        )
        for end in ("usual", "low", "high")
    ]
    workload = workload_of(inputs.participants, costs, storage, inputs.job_start, parallelism, inputs.tasks)
    return predict_among(
        (workload, machines[0]), lambda rng: draw(inputs, storage, machines, parallelism, rng), parallelism, DRAWS
    )


def draw(
    inputs: Inputs, storage: Storage, machines: Sequence[Machine], parallelism: int, rng: np.random.Generator
) -> Situation:
    """A workload and a machine drawn from what is possible."""
    usual, low, high = machines
    where = {name: float(rng.uniform(-1, 1)) for name in usual.tiers}
    machine = between(usual, low, high, where)
    others = inputs.processors.others * float(rng.uniform(0, 2))
    machine = replace(machine, processors=replace(inputs.processors, others=others))
    ways = ways_of(inputs.observed)
    costs = costs_of(inputs.observed, ways[rng.integers(len(ways))])
    spread = scatter(inputs.observed, costs)
    together = float(rng.normal(0, math.hypot(spread / math.sqrt(len(inputs.observed)), REPEATABILITY)))
    slowness = np.exp(together + spread * rng.standard_normal(len(inputs.participants)) - spread**2 / 2)
    participants = [
        replace(one, slowness=float(factor)) for one, factor in zip(inputs.participants, slowness, strict=True)
    ]
    gap_s = float(rng.choice(inputs.gaps_s)) if inputs.gaps_s else None
    if storage.load_s:
        slower = float(np.exp(rng.normal(0, LOADING_SPREAD)))
        storage = replace(storage, load_s={phase: slower * load_s for phase, load_s in storage.load_s.items()})
    job_start = replace(inputs.job_start, gap_s=gap_s)
    workload = workload_of(participants, costs, storage, job_start, parallelism, inputs.tasks)
    return workload, machine


def paper_s(inputs: Inputs, storage: Storage) -> float:
    """Makespan by the paper's Eq. (1), s: all bytes by one stream, tier after tier, from and to the device."""
    total_s = 0.0
    for phase, cost in costs_of(inputs.observed).items():
        read, written = (
            sum(cost[quantity].of(one.size_bytes) for one in inputs.participants)
            for quantity in ("read_bytes", "written_bytes")
        )
        if phase in READS:
            total_s += least_makespan_s(read, 0.0, inputs.single(storage, READS[phase]).single_read_bytes_per_s, 1.0)
        if phase in WRITES:
            total_s += least_makespan_s(
                0.0, written, 1.0, inputs.single(storage, WRITES[phase]).single_write_bytes_per_s
            )
    return total_s
