"""Predictions: the makespan of a placement, with an interval that covers what is not known exactly.

The participants become tasks of the model's machine (:func:`workload_of`). The prediction is that of the fluid model,
with the medians of the probe and the best fit to the calibration. The interval is from the 5th to the 95th percentile
of random draws, each of which varies:

- the speed of every tier, also for small files, between the lowest and the highest that the probe measured;
- how CPU time grows with size, if there are few records, or images of nearly one size: as fitted, not at all, or in
  proportion;
- the CPU time of each job by the scatter of the records, and that of all jobs together by this scatter over the square
  root of the number of records;
- how many processors other processes keep busy, from none to twice as many as during the calibration;
- how many images can be fetched at once at the speed seen in the calibration: from as many as were then, to as many as
  requested;
- how much of what a job has written to a network tier is no longer cached when it is read: from none to all;

and around each of these the error that the model has if all its inputs are known, ``MODEL_ERROR``. What moves neither
end of the interval by more than 2 % is not drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neurotier.advice.calibration import Costs, ObservedJob, Way, amounts_of, costs_of, cpu_s_of, fit, scatter, ways_of
from neurotier.advice.small_files import costs_here, drawn_files, without_files
from neurotier.core.kinds import KINDS
from neurotier.core.parallelism import COMPUTING_PHASES
from neurotier.model.machine import LAUNCH, Job, Machine, PageCache, Processors, Step, Workload
from neurotier.model.prediction import Prediction, Situation, predict_among
from neurotier.model.this_machine import FileCost, Probed, TierFigures, machines_of, open_s, tier_speed

START_UP = "start_up"

SLOT_OF = {"stage_in": "stage_in", **dict.fromkeys(COMPUTING_PHASES, "compute"), "stage_out": "stage_out"}
"""The slot that a participant holds during each phase, if some participants copy while others compute."""

READS = {"stage_in": "dataset", "container_start": "images", "compute": "work", "stage_out": "work"}
WRITES = {"stage_in": "work", "compute": "work", "stage_out": "results"}
"""Roles of the tiers that a phase reads from and writes to."""

FURTHEST = math.log(10)
"""The largest error of the mean of few records that is drawn (logarithm): Student's distribution is unbounded, and with
two records a drawn makespan might be so long that it takes hours to simulate."""


@dataclass(frozen=True)
class Participant:
    """A participant to analyse: the size of the images, how much of them must be fetched, how many times as long the
    analysis takes as is usual for that size, how many images are analysed one by one, and which share of all memory,
    or of the room on the work tier, is reserved for it."""

    size_bytes: int
    to_fetch_bytes: int = 0
    slowness: float = 1.0
    images: int = 1
    share: float = 0.0


@dataclass(frozen=True)
class Storage:
    """The storage that a workload runs on.

    Attributes
    ----------
    tiers
        The name of each role's tier.
    figures
        What was probed of each tier, by its name.
    resident
        Share of the images that is in the page cache at the start.
    files
        What a file of the tool costs on each tier (:mod:`neurotier.advice.small_files`).
    expiry_s, dirty_bytes
        Age at which the kernel writes dirty pages back, s, and how many dirty bytes it allows per participant.
    load_s
        How long the first jobs wait in each phase for their programs, s; empty if these are in the page cache.
    reread
        Share of what a job wrote to a network tier that it then reads from the tier instead of the page cache. Some
        file systems drop cached data when they find that a file has changed; half is assumed.
    """

    tiers: Mapping[str, str]
    figures: Mapping[str, TierFigures]
    resident: float
    files: Mapping[str, FileCost] = field(default_factory=dict)
    expiry_s: float = 0.0
    dirty_bytes: float = math.inf
    load_s: Mapping[str, float] = field(default_factory=dict)
    reread: float = 0.5

    def resident_of(self, phase: str, role: str) -> float:
        """Share of the bytes that a phase reads which is in the page cache."""
        if phase == "stage_in":
            return self.resident
        return 1 - self.reread if role == "work" and KINDS[self.figures[self.tiers[role]].kind].remote else 1.0


@dataclass(frozen=True)
class Fetching:
    """How images are fetched while others are analysed, in the order of their analysis.

    Attributes
    ----------
    cpu_s, wait_s
        CPU time of fetching a participant's images, and the time spent waiting for them, without the part that grows
        with size, s.
    s_per_byte
        Waiting time per byte, s.
    at_once
        How many participants' images are fetched at once; 0 if none are fetched during the run.
    more_at_once
        How many more were requested; whether fetching so many at once is as fast is unknown, and assumed not to be.
    """

    cpu_s: float = 0.0
    wait_s: float = 0.0
    s_per_byte: float = 0.0
    at_once: int = 0
    more_at_once: int = 0

    def steps(self, participant: Participant) -> tuple[Step, Step]:
        """The steps of fetching one participant's images."""
        wait_s = self.wait_s + participant.to_fetch_bytes * self.s_per_byte
        return Step(LAUNCH, "compute", self.cpu_s), Step(LAUNCH, "wait", wait_s)


def workload_of(
    participants: Sequence[Participant],
    costs: Costs,
    storage: Storage,
    fetching: Fetching,
    first: int,
    jobs: Sequence[Sequence[int]],
    copied: Costs,
    copiers: int = 0,
) -> Workload:
    """A task per participant, in order of start. The time before the first participants begin is not part of the
    makespan.

    Parameters
    ----------
    costs
        Costs of a participant that is alone in a job.
    first
        How many participants compute at once, and so how many start before their programs are in the page cache.
    jobs
        The participants of each job, as positions in ``participants``, in order.
    copied
        Costs of a participant in a fork of a job's process, without Python's start-up.
    copiers
        How many participants of a job copy while others compute.
    """
    largest_bytes, warm = max(one.size_bytes for one in participants), replace(storage, load_s={})
    launch_s = costs[START_UP]["cpu_s"].of(largest_bytes) if START_UP in costs else 0.0
    if copied == costs:
        copied = {phase: cost for phase, cost in costs.items() if phase != START_UP}
    order = itertools.chain(*jobs) if fetching.at_once else ()
    fetched = [position for position in order if participants[position].to_fetch_bytes]
    arrivals = {position: [Step(LAUNCH, "arrival", number)] for number, position in enumerate(fetched, start=1)}
    tasks: list[tuple[Step, ...]] = []
    made = []
    # participants whose images are here go first, as in a pool
    for members in (sorted(job, key=arrivals.__contains__) for job in jobs):
        own, alone = storage if len(tasks) < first else warm, len(members) == 1
        copying = max(0, min(copiers, len(members) - first))
        # the room is the shares of what there is, with a margin for rounding
        slots = {"room": 1.001, "stage_in": copying, "compute": first, "stage_out": copying}
        # participants of a job are forks of one process, which loads the programs that all use
        load = Step(LAUNCH, "wait", sum(own.load_s.values()))
        launch = () if alone else (Step(LAUNCH, "compute", launch_s), load)
        made.append(Job(range(len(tasks), len(tasks) + len(members)), launch, slots, first + copying))
        for position in members:
            each = steps(participants[position], *((costs, own) if alone else (copied, warm)))
            take = Step("room", "take", participants[position].share)
            each = [take, *(in_slots(each) if copying else each), replace(take, kind="give")]
            tasks.append((*arrivals.get(position, ()), *each))
    fetches = [fetching.steps(participants[position]) for position in fetched]
    return Workload(tasks, jobs=made, fetches=fetches, fetches_at_once=fetching.at_once)


def in_slots(steps_of_job: Sequence[Step]) -> list[Step]:
    """Add the steps by which a participant takes and returns the slots of its job for copying in, computing and copying
    out."""
    made: list[Step] = []
    for slot, group in itertools.groupby(steps_of_job, key=lambda step: SLOT_OF.get(step.phase)):
        inside = list(group)
        made += [Step(slot, "take", 1.0), *inside, Step(slot, "give", 1.0)] if slot else inside
    return made


def steps(participant: Participant, costs: Costs, storage: Storage) -> list[Step]:
    """The steps of one participant, phase by phase.

    In staging, the CPU time that grows with size is that of copying, which is included in the speeds of the tiers; only
    the fixed part counts as computing. What a participant that takes less than ``expiry_s`` writes to its work folder
    is deleted before the kernel writes it back, so it stays in the page cache, if the tier has one and so many bytes
    may be dirty.
    """
    images, steps_of_job = participant.images, list[Step]()
    taken = amounts_of(costs, participant.size_bytes, images)
    work = sum(took["written_bytes"] for phase, took in taken.items() if WRITES.get(phase) == "work")
    stays = cpu_s_of(taken) * participant.slowness < storage.expiry_s and work <= storage.dirty_bytes
    for phase, took in taken.items():
        staging = phase.startswith("stage_")
        cpu_s = costs[phase]["cpu_s"].of(0, images) if staging else took["cpu_s"] * participant.slowness
        wait_s = took["wait_s"] + storage.load_s.get(phase, 0.0)
        if phase in READS:
            steps_of_job += reads(phase, READS[phase], took["read_bytes"], storage)
            opened = (1 - storage.resident_of(phase, READS[phase])) * took["read_files"]  # the others are cached
            wait_s += opened * open_s(storage.figures[storage.tiers[READS[phase]]])
        if phase in WRITES:
            tier = storage.tiers[WRITES[phase]]
            if staging:
                wait_s += took["written_files"] * storage.figures[tier].make_s
            elif files := took["made_files"]:
                each = storage.files[tier]
                cpu_s += files * each.cpu_s
                steps_of_job += [Step(phase, "files", files, tier)] if each.wait_s else []
            steps_of_job.append(
                Step(phase, "write", took["written_bytes"], tier, cached=stays and WRITES[phase] == "work")
            )
        steps_of_job += [Step(phase, "wait", wait_s), Step(phase, "compute", cpu_s)]
    return steps_of_job


def reads(phase: str, role: str, count: float, storage: Storage) -> list[Step]:
    """The steps that read from a role's tier; tmpfs and DAX have no page cache."""
    tier = storage.tiers[role]
    if KINDS[storage.figures[tier].kind].in_memory:
        return [Step(phase, "read", count, tier)]
    resident = storage.resident_of(phase, role)
    return [Step(phase, "read", resident * count, tier, cached=True), Step(phase, "read", (1 - resident) * count, tier)]


@dataclass(frozen=True)
class Inputs:
    """The inputs of predictions that are the same for all placements.

    Attributes
    ----------
    observed
        Participant jobs that have been run.
    participants
        Participants to analyse, in the order of the index.
    fetching
        How images are fetched while others are analysed.
    probes
        The probe of each tier.
    processors, page_cache
        The processors and the page cache of this node.
    jobs, copiers
        The participants of each job, as positions in ``participants``, in order; and how many of a job copy while
        others compute.
    rehearsed
        The participants of the rehearsal's shared job, if there was one.
    load_s
        How long each phase waits for its programs in the first jobs of a cold run, s; ``None`` if no run is cold.
    load_unknown_because
        Why that is unknown; otherwise empty.
    others_cpu_share
        Share of the processors that other processes took in the calibration or rehearsal; ``None`` if unknown.
    """

    observed: Sequence[ObservedJob]
    participants: Sequence[Participant]
    fetching: Fetching
    probes: Mapping[str, Probed]
    processors: Processors
    page_cache: PageCache
    jobs: Sequence[Sequence[int]] = ()
    copiers: int = 0
    rehearsed: Sequence[ObservedJob] = ()
    load_s: Mapping[str, float] | None = None
    load_unknown_because: str = ""
    others_cpu_share: float | None = None


def predict(inputs: Inputs, storage: Storage, parallelism: int) -> Prediction:
    """Predict one placement with ``parallelism`` jobs at once. Draws are seeded: equal inputs give equal numbers."""
    usual, drawn = machines_of(inputs.probes, parallelism, inputs.processors, inputs.page_cache)
    best = workload(inputs, storage, parallelism, inputs.participants)
    return predict_among((best, usual), lambda rng: draw(inputs, storage, drawn(rng), parallelism, rng), parallelism)


def workload(
    inputs: Inputs, storage: Storage, parallelism: int, participants: Sequence[Participant], way: Way = fit
) -> Workload:
    """The workload of some participants, with costs that scale as ``way`` says."""
    files, work = costs_here(inputs.observed, inputs.probes, parallelism), storage.figures[storage.tiers["work"]]
    cache = inputs.page_cache.before(tier_speed(work, parallelism))
    storage = replace(storage, files=files, dirty_bytes=cache.throttling_bytes / parallelism)
    tried = inputs.rehearsed or inputs.observed
    costs, copied = (costs_of(without_files(jobs, inputs.probes), way) for jobs in (inputs.observed, tried))
    return workload_of(participants, costs, storage, inputs.fetching, parallelism, inputs.jobs, copied, inputs.copiers)


def draw(inputs: Inputs, storage: Storage, machine: Machine, parallelism: int, rng: np.random.Generator) -> Situation:
    """Draw a possible workload and machine; the speeds of the tiers of ``machine`` have been drawn before."""
    others = inputs.processors.others * rng.uniform(0, 2)
    machine = replace(machine, processors=replace(inputs.processors, others=others))
    ways = ways_of(inputs.observed)
    way = ways[rng.integers(len(ways))]
    spread = scatter(inputs.observed, costs_of(inputs.observed, way))
    few = rng.standard_t(max(len(inputs.observed) - 1, 1))  # with few records the scatter itself is known only roughly
    together = max(-FURTHEST, min(few * spread / math.sqrt(len(inputs.observed)), FURTHEST))
    slowness = np.exp(together + spread * rng.standard_normal(len(inputs.participants)) - spread**2 / 2)
    participants = [
        replace(one, slowness=float(factor)) for one, factor in zip(inputs.participants, slowness, strict=True)
    ]
    storage = replace(storage, reread=rng.uniform(0, 1))
    machine = drawn_files(machine, inputs.probes, parallelism, rng)
    gets = inputs.fetching.at_once + int(rng.integers(inputs.fetching.more_at_once + 1))
    inputs = replace(inputs, fetching=replace(inputs.fetching, at_once=gets))
    return workload(inputs, storage, parallelism, participants, way), machine


def paper_s(inputs: Inputs, storage: Storage) -> float:
    """Makespan by the paper's Eq. (1), s: all bytes are moved by one stream, one tier after the other, from and to
    devices."""
    total_s, costs = 0.0, costs_of(inputs.observed)
    taken = [amounts_of(costs, one.size_bytes, one.images) for one in inputs.participants]
    for phase in costs:
        read, written = (sum(took[phase][quantity] for took in taken) for quantity in ("read_bytes", "written_bytes"))
        if phase in READS:
            total_s += read / storage.figures[storage.tiers[READS[phase]]].single_read_bytes_per_s
        if phase in WRITES:
            total_s += written / storage.figures[storage.tiers[WRITES[phase]]].single_write_bytes_per_s
    return total_s
