"""Predictions: the makespan of a placement, with an interval that covers what is not known exactly.

The prediction is that of the fluid model, with medians of the probe and the best fit to the calibration. The interval
is from the 5th to the 95th percentile of draws, each of which varies:

- the speed of every tier, also for small files, between the least and the most that the probe measured;
- how CPU time grows with size: with few records by the fit, not at all, or in proportion;
- CPU time of each job by the scatter of the records, and of all together by that over the root of their number;
- how many processors others keep busy, from none to twice as many as during the calibration;
- how much of what a job has written to a network tier is not cached when it reads it: from none to all;

and around each of them by how much the model is off where it knows all that it asks for, ``MODEL_ERROR``. What moves no
end by more than 2 % is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neurotier.advice.calibration import ObservedJob, costs_of, scatter, ways_of
from neurotier.advice.small_files import costs_here, drawn_files, without_files
from neurotier.advice.workload import READS, WRITES, Fetching, JobParts, Participant, Storage, workload_of
from neurotier.model.machine import Machine, PageCache, Processors, Workload
from neurotier.model.prediction import Prediction, Situation, predict_among
from neurotier.model.this_machine import Probed, machines_of, tier_speed


@dataclass(frozen=True)
class Inputs:
    """What predictions are computed from, the same for all placements.

    Attributes
    ----------
    observed
        Participant jobs that have been run.
    participants
        Participants to analyse, in the order of the index.
    fetching
        How images are fetched meanwhile.
    probes
        Tier to its probe.
    processors, page_cache
        Of this node.
    jobs
        Who shares a job, as positions in ``participants``; each has one alone if ``None``.
    computing
        How many participants of a job compute at the same time, while others copy; 0 if each may.
    rehearsed
        Participants of a job of several that was tried, if one was.
    load_s
        Phase to what it waits for its programs in the first jobs of a cold run, s; ``None`` if no run is to be cold.
    load_unknown_because
        Why that is not known, else empty.
    others_cpu_share
        Share of the processors that others took meanwhile; ``None`` if that is not known.
    """

    observed: Sequence[ObservedJob]
    participants: Sequence[Participant]
    fetching: Fetching
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache
    jobs: Sequence[JobParts] | None = None
    computing: int = 0
    rehearsed: Sequence[ObservedJob] = ()
    load_s: Mapping[str, float] | None = None
    load_unknown_because: str = ""
    others_cpu_share: float | None = None


def predict(inputs: Inputs, storage: Storage, parallelism: int) -> Prediction:
    """Predict one placement with this many jobs at once. Draws are seeded: equal inputs give equal numbers."""
    usual, drawn = machines_of(inputs.probes, parallelism, inputs.processors, inputs.page_cache)
    best = workload(inputs, storage, parallelism, inputs.participants)
    return predict_among((best, usual), lambda rng: draw(inputs, storage, drawn(rng), parallelism, rng), parallelism)


def workload(
    inputs: Inputs, storage: Storage, parallelism: int, participants: Sequence[Participant], way: str = "fit"
) -> Workload:
    """The workload of some participants, with costs that scale in some way."""
    files, work = costs_here(inputs.observed, inputs.probes, parallelism), inputs.probes[storage.tiers["work"]].usual
    cache = inputs.page_cache.before(tier_speed(work, parallelism))
    storage = replace(storage, files=files, dirty_bytes=cache.throttling_bytes / parallelism)
    tried = inputs.rehearsed or inputs.observed
    costs, copied = (costs_of(without_files(jobs, inputs.probes), way) for jobs in (inputs.observed, tried))
    who = inputs.jobs, copied, inputs.computing
    return workload_of(participants, costs, storage, inputs.fetching, parallelism, *who)


def draw(inputs: Inputs, storage: Storage, machine: Machine, parallelism: int, rng: np.random.Generator) -> Situation:
    """A workload and a machine, whose tiers were drawn, from what is possible."""
    others = inputs.processors.others * float(rng.uniform(0, 2))
    machine = replace(machine, processors=replace(inputs.processors, others=others))
    ways = ways_of(inputs.observed)
    way = ways[rng.integers(len(ways))]
    spread = scatter(inputs.observed, costs_of(inputs.observed, way))
    together = float(rng.normal(0, spread / math.sqrt(len(inputs.observed))))
    slowness = np.exp(together + spread * rng.standard_normal(len(inputs.participants)) - spread**2 / 2)
    participants = [
        replace(one, slowness=float(factor)) for one, factor in zip(inputs.participants, slowness, strict=True)
    ]
    storage = replace(storage, reread=float(rng.uniform(0, 1)))
    machine = drawn_files(machine, inputs.probes, parallelism, rng)
    return workload(inputs, storage, parallelism, participants, way), machine


def paper_s(inputs: Inputs, storage: Storage) -> float:
    """Makespan by the paper's Eq. (1), s: all bytes by one stream, tier after tier, from and to the device."""
    total_s = 0.0
    for phase, cost in costs_of(inputs.observed).items():
        read, written = (
            sum(cost[quantity].of(one.size_bytes) for one in inputs.participants)
            for quantity in ("read_bytes", "written_bytes")
        )
        if phase in READS:
            total_s += read / inputs.probes[storage.tiers[READS[phase]]].usual.single_read_bytes_per_s
        if phase in WRITES:
            total_s += written / inputs.probes[storage.tiers[WRITES[phase]]].usual.single_write_bytes_per_s
    return total_s
