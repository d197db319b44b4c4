"""Predictions: the makespan of a placement, with an interval over what is not known for sure.

The prediction is the model's, with the medians of the probe and the calibration as it scales best. Its interval is
from the 5th to the 95th percentile of draws, in each of which these are drawn anew:

- every tier between the least and the most that the probe measured of it;
- how CPU time grows with size: with few records the fit, the same for all, or in proportion;
- CPU time of all jobs together, by the scatter of the records over the root of their number, and by ``REPEATABILITY``;
- CPU time of each job by that scatter, and which streams are slower than others;
- what passes between two jobs, from those that were seen;
- how busy others keep the processors, from not at all to twice as much as during the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neurotier.advice.observed import Seen
from neurotier.advice.scaling import costs_of, scatter, ways_of
from neurotier.advice.workload import READS, WRITES, Launch, Participant, Placed, workload_of
from neurotier.model.machine import Machine, PageCache, Processors
from neurotier.model.paper import least_makespan_s
from neurotier.model.prediction import REPEATABILITY, Simulated, Situation, predict_among
from neurotier.model.this_machine import Probed, between, machine_of
from neurotier.storage.probe.tier_figures import TierFigures

DRAWS = 21


@dataclass(frozen=True)
class Known:
    """What is known beforehand, for all placements.

    Attributes
    ----------
    seen
        Participant jobs that have been run.
    gaps_s
        What passed between jobs.
    participants
        Who is to be analysed, in the order of the index.
    launch
        What comes before a job.
    probes
        Tier to what was measured of it.
    processors, page_cache
        Of this node.
    """

    seen: Sequence[Seen]
    gaps_s: Sequence[float]
    participants: Sequence[Participant]
    launch: Launch
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache

    def single(self, placed: Placed, role: str) -> TierFigures:
        """What was measured of the tier of a role."""
        return self.probes[placed.tiers[role]].usual


def predict(known: Known, placed: Placed, parallelism: int) -> Simulated:
    """Predict one placement, with so many jobs at once; the same numbers for the same knowledge."""
    costs = costs_of(known.seen)
    machines = [
        machine_of(
            {name: getattr(probe, end) for name, probe in known.probes.items()},
            parallelism,
            known.processors,
            known.page_cache,
        )
        for end in ("usual", "low", "high")
    ]
    workload = workload_of(known.participants, costs, placed, known.launch)
    return predict_among((workload, machines[0]), lambda lot: draw(known, placed, machines, lot), parallelism, DRAWS)


def draw(known: Known, placed: Placed, machines: Sequence[Machine], lot: np.random.Generator) -> Situation:
    """Jobs and a machine that are as well possible."""
    usual, low, high = machines
    where = {name: float(lot.uniform(-1, 1)) for name in usual.tiers}
    machine = between(usual, low, high, where)
    others = known.processors.others * float(lot.uniform(0, 2))
    machine = replace(machine, processors=replace(known.processors, others=others))
    ways = ways_of(known.seen)
    costs = costs_of(known.seen, ways[lot.integers(len(ways))])
    spread = scatter(known.seen, costs)
    together = float(lot.normal(0, math.hypot(spread / math.sqrt(len(known.seen)), REPEATABILITY)))
    slowness = np.exp(together + spread * lot.standard_normal(len(known.participants)) - spread**2 / 2)
    participants = [
        replace(one, slowness=float(factor)) for one, factor in zip(known.participants, slowness, strict=True)
    ]
    gap_s = float(lot.choice(known.gaps_s)) if known.gaps_s else None
    workload = workload_of(participants, costs, placed, replace(known.launch, gap_s=gap_s))
    return workload, machine


def paper_s(known: Known, placed: Placed) -> float:
    """Makespan by the paper's Eq. (1), s: all bytes by one stream, tier after tier, from and to the device."""
    total_s = 0.0
    for phase, cost in costs_of(known.seen).items():
        read, written = (
            sum(cost[quantity].of(one.size_bytes) for one in known.participants)
            for quantity in ("read_bytes", "written_bytes")
        )
        if phase in READS:
            total_s += least_makespan_s(read, 0.0, known.single(placed, READS[phase]).single_read_bytes_per_s, 1.0)
        if phase in WRITES:
            total_s += least_makespan_s(0.0, written, 1.0, known.single(placed, WRITES[phase]).single_write_bytes_per_s)
    return total_s
