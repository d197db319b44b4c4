"""Predictions: the makespan of a placement, with an interval that covers what is not known exactly.

The prediction is that of the fluid model, with medians of the probe and the best fit to the calibration; of
``CHANCES`` runs that differ by chance alone (which streams of a tier, and which fetches, are slower) the middle one.
The interval is from the 5th to the 95th percentile of draws, each of which varies:

- the speed of every tier, between the least and the most that the probe measured;
- how CPU time grows with size: with few records by the fit, not at all, or in proportion;
- CPU time of all jobs together, by the scatter of the records over the root of their number, and by ``REPEATABILITY``;
- CPU time of each job by that scatter, which streams are slower than others, and which fetches by ``FETCH_SPREAD``;
- the time between two jobs, taken from those observed;
- how much of the CPU time of fetching is taken by each participant, and not by the start of a job: from none to all;
- what cold programs take to load, which was seen once, by ``LOADING_SPREAD``;
- how many processors others keep busy, from none to twice as many as during the calibration;
- what a small file takes, between the least and the most that the probe measured, and by ``FILES_SPREAD``;
- how unevenly a tier serves its streams, up to twice ``UNEVENNESS``;
- how much of what a job has written to a network tier is not cached when it reads it: from none to all;

and around each of them by how much the model is off where it knows all that it asks for, ``MODEL_ERROR``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neurotier.advice.observed import ObservedJob
from neurotier.advice.rehearsal import Rehearsed
from neurotier.advice.scaling import Costs, costs_of, scatter, ways_of
from neurotier.advice.small_files import costs_here, drawn_factors, slower_files, without_files
from neurotier.advice.workload import (
    READS,
    WRITES,
    JobParts,
    JobStart,
    Participant,
    SharedJob,
    Storage,
    workload_of,
)
from neurotier.core.kinds import is_in_memory
from neurotier.model.machine import Machine, PageCache, Processors
from neurotier.model.prediction import MODEL_ERROR, REPEATABILITY, Simulated, Situation, predict_among
from neurotier.model.this_machine import Probed, between, machine_of
from neurotier.model.workload import Workload

DRAWS = 21

CHANCES = 5

LOADING_SPREAD = FETCH_SPREAD = 0.3
"""By how much loading programs from an empty page cache, and fetching a participant's images, differ: standard
deviations of the logarithm, assumed."""

UNEVENNESS = 0.1
"""How unequal the streams of a tier are: standard deviation of the logarithm of their speeds. The published devices
have shown 0.02 to 0.20; streams that are all alike would stay in step, and wait for each other for ever."""


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
    jobs
        Who shares a job, as positions in ``participants``; each has one alone if ``None``.
    computing
        How many participants of a job compute at the same time, while others copy; 0 if each may.
    rehearsed
        What a job of several participants took, if it was tried.
    load_s
        Phase to what it waits for its programs in the first jobs of a cold run, s; ``None`` if no run is to be cold.
    load_unknown_because
        Why that is not known, else empty.
    others_cpu_share
        Share of the processors that others took meanwhile; ``None`` if that is not known.
    """

    observed: Sequence[ObservedJob]
    gaps_s: Sequence[float]
    participants: Sequence[Participant]
    job_start: JobStart
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache
    jobs: Sequence[JobParts] | None = None
    computing: int = 0
    rehearsed: Rehearsed | None = None
    load_s: Mapping[str, float] | None = None
    load_unknown_because: str = ""
    others_cpu_share: float | None = None


def predict(inputs: Inputs, storage: Storage, parallelism: int) -> Simulated:
    """Predict one placement with this many jobs at once. Draws are seeded: equal inputs give equal numbers."""
    machines = [
        machine_of(
            {name: getattr(probe, end) for name, probe in inputs.probes.items()},
            parallelism,
            inputs.processors,
            inputs.page_cache,
        )
        for end in ("usual", "low", "high")
    ]
    machine = uneven(machines[0], inputs.probes, UNEVENNESS)
    usual = [
        (workload(inputs, storage, parallelism, by_chance(inputs, np.random.default_rng(seed))), machine)
        for seed in range(CHANCES)
    ]
    return predict_among(
        usual, lambda rng: draw(inputs, storage, machines, parallelism, rng), parallelism, DRAWS, MODEL_ERROR
    )


def uneven(machine: Machine, probes: Mapping[str, Probed], unevenness: float) -> Machine:
    """A machine whose tiers, but for those in memory, serve their streams unevenly."""
    tiers = {
        name: replace(tier, unevenness=unevenness)
        if name in probes and not is_in_memory(probes[name].usual.kind)
        else tier
        for name, tier in machine.tiers.items()
    }
    return replace(machine, tiers=tiers)


def workload(
    inputs: Inputs,
    storage: Storage,
    parallelism: int,
    participants: Sequence[Participant],
    way: str = "fit",
    file_factors: Mapping[str, float] | None = None,
) -> Workload:
    """The workload of some participants, with costs that scale in some way, and files that take so many times as long
    as by the probe of a tier."""
    storage = replace(
        storage,
        files=costs_here(inputs.observed, inputs.probes, parallelism, file_factors),
        dirty_bytes=inputs.page_cache.throttling_bytes / parallelism,
    )

    def costs_without_files(observed: Sequence[ObservedJob]) -> Costs:
        return costs_of(without_files(observed, inputs.probes, file_factors), way)

    costs, tried, shared = costs_without_files(inputs.observed), inputs.rehearsed, None
    if tried:
        shared = SharedJob(costs_without_files(tried.observed), tried.launch_s, tried.closing_s)
    who = inputs.jobs, shared, inputs.computing
    return workload_of(participants, costs, storage, inputs.job_start, parallelism, *who)


def by_chance(inputs: Inputs, rng: np.random.Generator) -> list[Participant]:
    """The participants, with how much longer than usual the fetching of each takes."""
    factors = np.exp(FETCH_SPREAD * rng.standard_normal(len(inputs.participants)) - FETCH_SPREAD**2 / 2)
    return [
        replace(one, fetch_slowness=float(factor)) for one, factor in zip(inputs.participants, factors, strict=True)
    ]


def draw(
    inputs: Inputs, storage: Storage, machines: Sequence[Machine], parallelism: int, rng: np.random.Generator
) -> Situation:
    """A workload and a machine drawn from what is possible."""
    usual, low, high = machines
    where = {name: float(rng.uniform(-1, 1)) for name in usual.tiers}
    machine = between(usual, low, high, where)
    others = inputs.processors.others * float(rng.uniform(0, 2))
    machine = replace(machine, processors=replace(inputs.processors, others=others))
    machine = uneven(machine, inputs.probes, 2 * UNEVENNESS * float(rng.uniform()))
    ways = ways_of(inputs.observed)
    way = ways[rng.integers(len(ways))]
    spread = scatter(inputs.observed, costs_of(inputs.observed, way))
    together = float(rng.normal(0, math.hypot(spread / math.sqrt(len(inputs.observed)), REPEATABILITY)))
    slowness = np.exp(together + spread * rng.standard_normal(len(inputs.participants)) - spread**2 / 2)
    participants = [
        replace(one, slowness=float(factor)) for one, factor in zip(by_chance(inputs, rng), slowness, strict=True)
    ]
    gap_s = float(rng.choice(inputs.gaps_s)) if inputs.gaps_s else None
    if storage.load_s:
        slower = float(np.exp(rng.normal(0, LOADING_SPREAD)))
        storage = replace(storage, load_s={phase: slower * load_s for phase, load_s in storage.load_s.items()})
    storage = replace(storage, reread=float(rng.uniform(0, 1)))
    get_each = float(rng.uniform(0, 1)) if inputs.job_start.get_each else 0.0
    inputs = replace(inputs, job_start=replace(inputs.job_start, gap_s=gap_s, get_each=get_each))
    factors = drawn_factors(inputs.probes, parallelism, rng)
    return workload(inputs, storage, parallelism, participants, way, factors), slower_files(machine, factors)


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
