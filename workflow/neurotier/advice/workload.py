"""The model's workload: a task for each participant, its steps as a participant job has them on a placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neurotier.advice.scaling import Costs
from neurotier.model.machine import MEMORY
from neurotier.model.workload import LAUNCH, Step, Workload
from neurotier.storage.access import IN_MEMORY

READS = {"stage_in": "dataset", "container_start": "images", "compute": "work", "stage_out": "work"}
WRITES = {"stage_in": "work", "compute": "work", "stage_out": "results"}
"""Roles of the tiers that a phase reads from and writes to."""


@dataclass(frozen=True)
class Participant:
    """One to be analysed: size of the images, how much of them must be fetched, and how much longer than others of that
    size the analysis takes (1 on average)."""

    size_bytes: int
    to_fetch_bytes: int = 0
    slowness: float = 1.0


@dataclass(frozen=True)
class Placed:
    """Tiers as a workload sees them.

    Attributes
    ----------
    tiers
        Role to name of the tier.
    kinds
        Name of a tier to its kind.
    create_s
        Name of a tier to the time that making a file there takes, s.
    resident
        Share of the images that is in the page cache at the start.
    expiry_s
        The kernel writes back what has been dirty for longer, s.
    """

    tiers: Mapping[str, str]
    kinds: Mapping[str, str]
    create_s: Mapping[str, float] = field(default_factory=dict)
    resident: float = 1.0
    expiry_s: float = 0.0


@dataclass(frozen=True)
class Launch:
    """What comes before a job.

    Attributes
    ----------
    gap_s
        What passes between two jobs in a slot, s; ``None`` if no record tells.
    get_cpu_s
        CPU time of the job that sees to the images, s; ``None`` if there is none.
    get_wait_s, fetch_s_per_byte
        What that job waits for besides, s, and for each byte that it fetches, s/byte.
    """

    gap_s: float | None = None
    get_cpu_s: float | None = None
    get_wait_s: float = 0.0
    fetch_s_per_byte: float = 0.0


def workload_of(participants: Sequence[Participant], costs: Costs, placed: Placed, launch: Launch) -> Workload:
    """Everyone's steps, in the order of the index; what comes before a first job is not part of the makespan."""
    return Workload([(*before(one, launch), *steps(one, costs, placed)) for one in participants], launch_counts=False)


def before(participant: Participant, launch: Launch) -> list[Step]:
    """What comes before the job: a launch, and one more with a job of its own that sees to the images."""
    gap_s = launch.gap_s or 0.0
    if launch.get_cpu_s is None:
        return [Step(LAUNCH.phase, "wait", gap_s)]
    fetching_s = launch.get_wait_s + participant.to_fetch_bytes * launch.fetch_s_per_byte
    return [Step(LAUNCH.phase, "compute", launch.get_cpu_s), Step(LAUNCH.phase, "wait", 2 * gap_s + fetching_s)]


def steps(participant: Participant, costs: Costs, placed: Placed) -> list[Step]:
    """The steps of one job, phase by phase.

    CPU time that grows with what is staged is copying, which the tiers' streams contain; of staging only the fixed
    part is computing. What a short job writes to its work folder is gone before the kernel writes it back: it does not
    get beyond the page cache.
    """
    lifetime_s = sum(cost["cpu_s"].of(participant.size_bytes) for cost in costs.values()) * participant.slowness
    found: list[Step] = []
    for phase, cost in costs.items():
        size = participant.size_bytes
        staging = phase.startswith("stage_")
        cpu_s = cost["cpu_s"].base if staging else cost["cpu_s"].of(size) * participant.slowness
        read, written = cost["read_bytes"].of(size), cost["written_bytes"].of(size)
        wait_s = cost["wait_s"].of(size)
        if phase in READS:
            found += reads(phase, READS[phase], read, placed)
        if phase in WRITES:
            tier = placed.tiers[WRITES[phase]]
            wait_s += cost["written_files"].of(size) * placed.create_s.get(tier, 0.0)
            passing = WRITES[phase] == "work" and placed.kinds[tier] == "block" and lifetime_s < placed.expiry_s
            found.append(Step(phase, "write", written, MEMORY if passing else tier))
        found += [Step(phase, "wait", wait_s), Step(phase, "compute", cpu_s)]
    return found


def reads(phase: str, role: str, count: float, placed: Placed) -> list[Step]:
    """Reading from a role's tier. What a job has just written is in the page cache; files in memory have none."""
    tier = placed.tiers[role]
    if placed.kinds[tier] in IN_MEMORY:
        return [Step(phase, "read", count, tier)]
    resident = placed.resident if phase == "stage_in" else 1.0
    return [Step(phase, "read", resident * count, tier, cached=True), Step(phase, "read", (1 - resident) * count, tier)]
