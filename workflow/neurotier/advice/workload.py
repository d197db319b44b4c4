"""The workload given to the model: a task per participant, with the steps of a participant job on a placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from neurotier.advice.scaling import Costs
from neurotier.core.kinds import KINDS, is_in_memory
from neurotier.model.machine import MEMORY
from neurotier.model.workload import LAUNCH, Step, Workload

START_UP = "start_up"

READS = {"stage_in": "dataset", "container_start": "images", "compute": "work", "stage_out": "work"}
WRITES = {"stage_in": "work", "compute": "work", "stage_out": "results"}
"""Roles of the tiers that a phase reads from and writes to."""


@dataclass(frozen=True)
class Participant:
    """A participant to analyse: size of the images, how much of it must be fetched, and how many times as long as usual
    for that size the analysis takes."""

    size_bytes: int
    to_fetch_bytes: int = 0
    slowness: float = 1.0


@dataclass(frozen=True)
class Storage:
    """The storage that a workload runs on.

    Attributes
    ----------
    tiers
        Role to name of the tier.
    kinds
        Name of a tier to its kind.
    create_s
        Name of a tier to the time it takes to create a file there, s.
    open_s
        Name of a tier to what opening a file there takes before its bytes flow, s: looking it up, and a small request.
    resident
        Share of the images that is in the page cache at the start.
    expiry_s
        Age at which the kernel writes dirty pages back, s.
    load_s
        Phase to what the first jobs wait for their programs, s; none if these are in the page cache.
    """

    tiers: Mapping[str, str]
    kinds: Mapping[str, str]
    create_s: Mapping[str, float] = field(default_factory=dict)
    open_s: Mapping[str, float] = field(default_factory=dict)
    resident: float = 1.0
    expiry_s: float = 0.0
    load_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class JobStart:
    """What precedes a participant job.

    Attributes
    ----------
    gap_s
        Time between two jobs of a slot, s; ``None`` if no record has it.
    get_cpu_s
        CPU time of the job that fetches the images, s; ``None`` if there is no such job.
    get_wait_s, fetch_s_per_byte
        Time that this job waits besides, s, and per byte that it fetches, s/byte.
    spawn_s
        Time from the start of one job to that of another that could have been started at the same time, s.
    """

    gap_s: float | None = None
    get_cpu_s: float | None = None
    get_wait_s: float = 0.0
    fetch_s_per_byte: float = 0.0
    spawn_s: float = 0.0


def workload_of(
    participants: Sequence[Participant],
    costs: Costs,
    storage: Storage,
    job_start: JobStart,
    first: int = 0,
    tasks: Sequence[Sequence[int]] | None = None,
) -> Workload:
    """A task per job, in order of start. What precedes the first jobs is not part of the makespan.

    Parameters
    ----------
    first
        How many jobs are started at once, before any program is in the page cache.
    tasks
        Participants that share a job, one after the other, as positions; each has a job alone if ``None``.
    """
    together = [[number] for number in range(len(participants))] if tasks is None else tasks
    warm = replace(storage, load_s={})
    made = []
    for number, positions in enumerate(together):
        members = [participants[position] for position in positions]
        job = job_of(members, costs, storage if number < first else warm)
        made.append((*before(members, job_start), *job))
    return Workload(made, spawn_s=job_start.spawn_s, launch_counts=False)


def before(members: Sequence[Participant], job_start: JobStart) -> list[Step]:
    """The steps before a job: one launch, or two where a job of its own fetches the images of all its participants."""
    gap_s = job_start.gap_s or 0.0
    if job_start.get_cpu_s is None:
        return [Step(LAUNCH.phase, "wait", gap_s)]
    fetching_s = job_start.get_wait_s + sum(one.to_fetch_bytes for one in members) * job_start.fetch_s_per_byte
    return [Step(LAUNCH.phase, "compute", job_start.get_cpu_s), Step(LAUNCH.phase, "wait", 2 * gap_s + fetching_s)]


def job_of(members: Sequence[Participant], costs: Costs, storage: Storage) -> list[Step]:
    """The steps of a job. One of several participants starts Python, and loads what all use, before any of them."""
    if len(members) == 1:
        return steps(members[0], costs, storage)
    start_up_s = costs[START_UP]["cpu_s"].of(members[0].size_bytes) if START_UP in costs else 0.0
    launch = [Step(LAUNCH.phase, "compute", start_up_s), Step(LAUNCH.phase, "wait", sum(storage.load_s.values()))]
    copied, warm = {phase: cost for phase, cost in costs.items() if phase != START_UP}, replace(storage, load_s={})
    return launch + [step for one in members for step in steps(one, copied, warm)]


def steps(participant: Participant, costs: Costs, storage: Storage) -> list[Step]:
    """The steps of one job, phase by phase.

    When staging, CPU time that grows with size is copying, which the speeds of the tiers include; only the fixed part
    counts as computing. What a job shorter than ``expiry_s`` writes to its work folder is deleted before the kernel
    writes it back, so it stays in the page cache.
    """
    lifetime_s = sum(cost["cpu_s"].of(participant.size_bytes) for cost in costs.values()) * participant.slowness
    steps_of_job: list[Step] = []
    for phase, cost in costs.items():
        size = participant.size_bytes
        staging = phase.startswith("stage_")
        cpu_s = cost["cpu_s"].base if staging else cost["cpu_s"].of(size) * participant.slowness
        read, written = cost["read_bytes"].of(size), cost["written_bytes"].of(size)
        wait_s = cost["wait_s"].of(size) + storage.load_s.get(phase, 0.0)
        if phase in READS:
            steps_of_job += reads(phase, READS[phase], read, storage)
            wait_s += opening_s(phase, READS[phase], cost["read_files"].of(size), storage)
        if phase in WRITES:
            tier = storage.tiers[WRITES[phase]]
            wait_s += cost["written_files"].of(size) * storage.create_s.get(tier, 0.0)
            deleted_in_cache = (
                WRITES[phase] == "work" and KINDS[storage.kinds[tier]].write_back and lifetime_s < storage.expiry_s
            )
            steps_of_job.append(Step(phase, "write", written, MEMORY if deleted_in_cache else tier))
        steps_of_job += [Step(phase, "wait", wait_s), Step(phase, "compute", cpu_s)]
    return steps_of_job


def opening_s(phase: str, role: str, files: float, storage: Storage) -> float:
    """Time in which the files that a phase reads are looked up and first asked for, s; none of what is cached."""
    resident = storage.resident if phase == "stage_in" else 1.0
    return (1 - resident) * files * storage.open_s.get(storage.tiers[role], 0.0)


def reads(phase: str, role: str, count: float, storage: Storage) -> list[Step]:
    """Steps that read from a role's tier. What a job wrote itself is still cached; tmpfs and DAX have no cache."""
    tier = storage.tiers[role]
    if is_in_memory(storage.kinds[tier]):
        return [Step(phase, "read", count, tier)]
    resident = storage.resident if phase == "stage_in" else 1.0
    return [Step(phase, "read", resident * count, tier, cached=True), Step(phase, "read", (1 - resident) * count, tier)]
