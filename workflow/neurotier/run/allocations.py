"""Allocations: whole nodes of Slurm for a measurement that needs several at once.

Snakemake gives a job one node. So such a rule runs where Snakemake does, and asks for nodes itself, with the partition,
account and options that a job of it would have.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress

from neurotier.core.errors import BusyError
from neurotier.core.files import Facts
from neurotier.core.places import Places
from neurotier.core.settings import IorSettings
from neurotier.run import slurm
from neurotier.run.adoption import prefix_of
from neurotier.run.profile_config import SLURM, told_before
from neurotier.storage.ior.points import over_nodes

OPTIONS = ("slurm_account", "slurm_partition", "clusters", "constraint", "qos")
"""Resources of Snakemake that are options of Slurm, some with the prefix ``slurm_``."""

WHOLE = ("--ntasks-per-node=1", "--mem=0")
"""One program on each node, with all of its memory."""

STEP = ("--overlap", "--cpu-bind=none", "--mpi=none", "--label", "--kill-on-bad-exit=1")
"""With all of its cores, too, and what the previous step still holds; if one program fails, all are ended."""

HOLD = ("sh", "-c", 'echo "$SLURM_JOB_ID"; exec cat')
"""What ``salloc`` runs on this machine: it ends with its input, and so with the process that asked for the nodes."""

END_S = 60.0
"""How long Slurm may take to end an allocation: it kills 30 s after it has asked."""


def asks_for_nodes(settings: IorSettings) -> bool:
    """Whether an IOR run asks Slurm for nodes itself instead of being a job."""
    return over_nodes(settings) and told_before().executor in SLURM


class Allocations:
    """Nodes of Slurm, one allocation at a time; all have the same name, by which the next start finds leftovers.

    Parameters
    ----------
    places
        Of the results.
    resources
        Of the rule: ``runtime`` (min) and, if set, :data:`OPTIONS` and ``slurm_extra``.
    """

    def __init__(self, places: Places, resources: Facts) -> None:
        self.name = f"{prefix_of(places)}ior"
        self.minutes = int(resources["runtime"])
        given = [f"--{name.removeprefix('slurm_')}={resources[name]}" for name in OPTIONS if resources.get(name)]
        self.options = [*given, *shlex.split(str(resources.get("slurm_extra") or ""))]
        granted = ("SLURM_", "SRUN_", "SBATCH_", "SALLOC_")  # variables of the job that Snakemake itself may run in
        self.environment = {
            name: value for name, value in os.environ.items() if name == "SLURM_CONF" or not name.startswith(granted)
        }

    def allocation(self, nodes: int) -> list[str]:
        """The ``salloc`` that gets ``nodes`` whole nodes, prints the number of their job, and ends with its input."""
        named = [f"--job-name={self.name}", f"--nodes={nodes}", f"--ntasks={nodes}", f"--time={self.minutes}"]
        return ["salloc", *named, *WHOLE, "--exclusive", *self.options, *HOLD]

    def step(self, job: str, nodes: int, program: Sequence[str]) -> list[str]:
        """The ``srun`` command that runs a program on each of them."""
        return ["srun", f"--jobid={job}", f"--nodes={nodes}", f"--ntasks={nodes}", *WHOLE, *STEP, *program]

    def waits_for(self) -> str:
        """Why the allocation waits; empty if there is none, or Slurm does not answer."""
        said, _ = slurm.answer("squeue", "--me", "--all", "--noheader", f"--name={self.name}", "--format=%r")
        return said.partition("\n")[0]

    def end(self) -> None:
        """End the allocation if it still exists, and wait until it is gone."""
        with suppress(BusyError):
            slurm.cancel(slurm.queue(f"--name={self.name}"), patience_s=END_S)
