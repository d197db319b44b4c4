"""Allocations: whole nodes of Slurm for a measurement that needs several at once.

Snakemake gives a job one node. So such a rule runs on Snakemake's machine, and requests nodes itself, with the
partition, account and options that a job of the rule would have.
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
from neurotier.run.profile_config import SLURM, inherited_command
from neurotier.storage.ior.points import over_nodes

OPTIONS = ("slurm_account", "slurm_partition", "clusters", "constraint", "qos")
"""Snakemake resources that are options of Slurm, some with the prefix ``slurm_``."""

WHOLE = ("--ntasks-per-node=1", "--mem=0")
"""Run one program on each node, with all of the node's memory."""

STEP = ("--overlap", "--cpu-bind=none", "--mpi=none", "--label", "--kill-on-bad-exit=1")
"""Give the program all of the node's cores, too, even those that the previous step still holds; if one program fails,
end all."""

HOLD = ("sh", "-c", 'echo "$SLURM_JOB_ID"; exec cat')
"""What ``salloc`` runs on this machine: it ends with its input, and so with the process that requested the nodes."""

END_S = 60.0
"""How long Slurm may take to end an allocation, s: by default it kills 30 s after SIGTERM."""


def asks_for_nodes(settings: IorSettings) -> bool:
    """Whether an IOR run requests nodes from Slurm itself instead of being a job."""
    return over_nodes(settings) and inherited_command().executor in SLURM


class Allocations:
    """Allocations of Slurm nodes, one at a time; all have the same name, by which the next start finds leftovers.

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
        granted = ("SLURM_", "SRUN_", "SBATCH_", "SALLOC_")  # variables of a Slurm job that Snakemake itself may run in
        self.environment = {
            name: value for name, value in os.environ.items() if name == "SLURM_CONF" or not name.startswith(granted)
        }

    def allocation(self, nodes: int) -> list[str]:
        """The ``salloc`` command that allocates ``nodes`` whole nodes, prints the number of their job, and ends with
        its input."""
        named = [f"--job-name={self.name}", f"--nodes={nodes}", f"--ntasks={nodes}", f"--time={self.minutes}"]
        return ["salloc", *named, *WHOLE, "--exclusive", *self.options, *HOLD]

    def step(self, job: str, nodes: int, program: Sequence[str]) -> list[str]:
        """The ``srun`` command that runs a program on each node of a job."""
        return ["srun", f"--jobid={job}", f"--nodes={nodes}", f"--ntasks={nodes}", *WHOLE, *STEP, *program]

    def waits_for(self) -> str:
        """Why the allocation waits; empty if there is none, or if Slurm does not answer."""
        said, _ = slurm.run_command("squeue", "--me", "--all", "--noheader", f"--name={self.name}", "--format=%r")
        return said.partition("\n")[0]

    def end(self) -> None:
        """End the allocation if it still exists, and wait until it is gone."""
        with suppress(BusyError):
            slurm.cancel(slurm.queue(f"--name={self.name}"), patience_s=END_S)
