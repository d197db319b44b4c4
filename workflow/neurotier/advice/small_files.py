"""What small files cost on each tier: a term of the prediction, relative to the tier where the calibration was done.

A participant makes, looks at and removes n files on the work tier. The probe of a tier with P streams gives cpu(tier,
P) and wait(tier, P), both in s per file, and P / wait(tier, P), the files/s of all streams together.

- The CPU time of these calls is part of what the calibration has measured, on its own tier c. It is subtracted for c
  and added for the predicted tier t: ``cpu_s + n * (cpu(t, P) - cpu(c, 1))``, in s; for t = c and P = 1, this changes
  nothing. If c was not probed, nothing is subtracted or added.
- Waiting for storage is not taken from the calibration, whose tier may be another, so ``n * wait(t, P)`` is added, as a
  step in which the participant makes at most ``1 / wait(t, 1)`` files/s, and all together at most ``P / wait(t, P)``.
  Waiting for a network, however, is booked as sleep, which is taken from the calibration: if c is a network tier, ``n *
  wait(c, 1)`` is subtracted from it.

Files are counted by walks, which give a lower bound: files that are made and removed between two walks are accounted
for only in the CPU time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from neurotier.advice.calibration import ObservedJob
from neurotier.core.kinds import KINDS
from neurotier.model.machine import Machine
from neurotier.model.this_machine import FileCost, Probed, file_cost

FILES_SPREAD = 0.3
"""How much more or less a tool's files may cost than the probe's: standard deviation of the logarithm, an assumption.
The tool's folders may be deeper or shallower, its files larger or smaller, and inodes may just have been freed."""


def are_known(observed: Sequence[ObservedJob], probes: Mapping[str, Probed]) -> bool:
    """Whether the cost of files is known for the tiers on which participants were analysed."""
    return all(job.work_tier in probes for job in observed)


def without_files(observed: Sequence[ObservedJob], probes: Mapping[str, Probed]) -> Sequence[ObservedJob]:
    """The jobs as if they had made no files; unchanged if the cost of files is unknown."""
    if not are_known(observed, probes):
        return observed
    found = []
    for job in observed:
        probe = probes[job.work_tier].usual
        cost = file_cost(probe, 1)
        each = {"cpu_s": cost.cpu_s, "wait_s": cost.wait_s * KINDS[probe.kind].remote}
        phases = {
            phase: was | {name: max(0.0, was[name] - was["made_files"] * one) for name, one in each.items()}
            for phase, was in job.phases.items()
        }
        found.append(replace(job, phases=phases))
    return found


def costs_here(observed: Sequence[ObservedJob], probes: Mapping[str, Probed], parallelism: int) -> dict[str, FileCost]:
    """Cost of a file on each tier at this parallelism, to be added to the costs of :func:`without_files`."""
    costs = {name: file_cost(probe.usual, parallelism) for name, probe in probes.items()}
    return costs if are_known(observed, probes) else {name: one._replace(cpu_s=0.0) for name, one in costs.items()}


def drawn_files(machine: Machine, probes: Mapping[str, Probed], parallelism: int, rng: np.random.Generator) -> Machine:
    """A machine with randomly drawn costs of a file on its tiers: within the probe's repetitions, and by
    :data:`FILES_SPREAD`."""
    tiers = dict(machine.tiers)
    for name, probe in probes.items():
        cost, where, tier = file_cost(probe.usual, parallelism), rng.uniform(-1, 1), tiers[name]
        slower = (cost.high if where > 0 else cost.low) ** abs(where) * rng.lognormal(0.0, FILES_SPREAD)
        tiers[name] = replace(
            tier, files_per_s=tier.files_per_s / slower, files_stream_per_s=tier.files_stream_per_s / slower
        )
    return replace(machine, tiers=tiers)
