"""What small files cost on each tier: a term of the prediction, calibrated where the participants were analysed first.

Per participant, with n files that are made, looked at and removed on the work tier, by the probe of a tier with P
streams: cpu(tier, P) and wait(tier, P), both in s per file, and P / wait(tier, P), files/s, which all share.

- CPU time of the calls is part of what the calibration has measured, on its own tier c. It is taken off there and put
  in again for the tier t that is predicted: ``cpu_s + n * (cpu(t, P) - cpu(c, 1))``, in s; on the tier of the
  calibration, alone, that is nothing. Where c was not probed, nothing is taken off, and nothing put in.
- Waiting for storage is not taken from the calibration, whose tier is another, so ``n * wait(t, P)`` is added, as a
  step in which the participant makes at most ``1 / wait(t, 1)`` files/s, and all at once ``P / wait(t, P)``. Waiting
  for a network is booked as time asleep, which is taken over: of it, ``n * wait(c, 1)`` is taken off where c is one.

Files are counted by walks, at least so many: what is made and removed between two of them is in the CPU time alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from neurotier.advice.observed import ObservedJob
from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.tables import Row
from neurotier.model.machine import Machine
from neurotier.model.this_machine import Probed, file_cost
from neurotier.storage.probe.tier_figures import FileCost

FILES_SPREAD = 0.3
"""By how much files of a tool take more or less than those of the probe: standard deviation of the logarithm, assumed.
Folders are deeper or shallower, files larger or smaller, and inodes may just have been freed."""

MATTERS = 0.03
"""Share of a participant's time from which on the page says what files take."""


def are_known(observed: Sequence[ObservedJob], probes: Mapping[str, Probed]) -> bool:
    """Whether it is known what files took where participants were analysed."""
    return all(job.work_tier in probes for job in observed)


def without_files(
    observed: Sequence[ObservedJob], probes: Mapping[str, Probed], factors: Mapping[str, float] | None = None
) -> Sequence[ObservedJob]:
    """The jobs as if they had made no files; as they are where it is not known what files took.

    Parameters
    ----------
    factors
        For each tier, how many times as long as its probe says a file took.
    """
    if not are_known(observed, probes):
        return observed
    found = []
    for job in observed:
        probe, factor = probes[job.work_tier].usual, (factors or {}).get(job.work_tier, 1.0)
        cost, phases = file_cost(probe, 1), dict(job.phases)
        for phase, was in job.phases.items():
            files = factor * was.get("made_files", 0.0)
            if not files:
                continue
            asleep_s = cost.wait_s if probe.kind == "network" else 0.0
            less = {"cpu_s": files * cost.cpu_s, "wait_s": files * asleep_s}
            phases[phase] = {**was, **{name: max(0.0, was[name] - taken_s) for name, taken_s in less.items()}}
        found.append(replace(job, phases=phases))
    return found


def costs_here(
    observed: Sequence[ObservedJob],
    probes: Mapping[str, Probed],
    parallelism: int,
    factors: Mapping[str, float] | None = None,
    own: Mapping[str, int] | None = None,
) -> dict[str, FileCost]:
    """What a file takes besides what the jobs without files have, by tier, with so many at once, or as many as ``own``
    has for a tier."""
    known, found = are_known(observed, probes), {}
    for name, probe in probes.items():
        cost, factor = file_cost(probe.usual, (own or {}).get(name, parallelism)), (factors or {}).get(name, 1.0)
        found[name] = replace(cost, cpu_s=factor * cost.cpu_s if known else 0.0, wait_s=factor * cost.wait_s)
    return found


def drawn_factors(probes: Mapping[str, Probed], parallelism: int, rng: np.random.Generator) -> dict[str, float]:
    """How many times as long as by the probe a file may take, by tier: between its repetitions, and by the spread."""
    factors = {}
    for name, probe in probes.items():
        cost, where = file_cost(probe.usual, parallelism), float(rng.uniform(-1, 1))
        end = cost.high if where > 0 else cost.low
        factors[name] = end ** abs(where) * math.exp(rng.normal(0.0, FILES_SPREAD))
    return factors


def slower_files(machine: Machine, factors: Mapping[str, float]) -> Machine:
    """A machine whose tiers take so many times as long for a file."""
    tiers = {
        name: replace(
            tier,
            files_per_s=tier.files_per_s / factors.get(name, 1.0),
            files_stream_per_s=tier.files_stream_per_s / factors.get(name, 1.0),
        )
        for name, tier in machine.tiers.items()
    }
    return replace(machine, tiers=tiers)


def files_said(rows: Sequence[Row]) -> list[str]:
    """What files take on each work tier, if it matters on any; by rows of the greatest parallelism.

    >>> row = {"parallelism": 2, "work_tier": "tmpfs", "participants": 4, "work_files": 400, "files_s": 0.5}
    >>> row |= {f"{phase}_sum_s": 2.0 for phase in ("start_up", "stage_in", "container_start", "compute", "stage_out")}
    >>> (said,) = files_said([row, row | {"work_tier": "nfs", "files_s": 1.0}])
    >>> said
    'Of a participant, 100 small files take 0.50 s (20 %) on tmpfs, 1.00 s (40 %) on nfs'
    >>> files_said([row | {"files_s": 0.01}])
    []
    """
    most = max((row["parallelism"] for row in rows), default=0)
    tiers = {row["work_tier"]: row for row in reversed(rows) if row["parallelism"] == most and row["work_files"]}
    shares = {name: row["files_s"] / max(each_s(row), row["files_s"]) for name, row in tiers.items() if row["files_s"]}
    if max(shares.values(), default=0.0) < MATTERS:
        return []
    first = next(iter(tiers.values()))
    files = counted(round(first["work_files"] / max(1, first["participants"])), "small file")
    takes = [f"{seconds(tiers[name]['files_s'])} ({percent(shares[name])}) on {name}" for name in reversed(shares)]
    return [f"Of a participant, {files} take {', '.join(takes)}"]


def each_s(row: Row) -> float:
    """Predicted time of a participant, s."""
    phases = ("start_up", "stage_in", "container_start", "compute", "stage_out")
    return sum(float(row[f"{phase}_sum_s"]) for phase in phases) / max(1, int(row["participants"]))
