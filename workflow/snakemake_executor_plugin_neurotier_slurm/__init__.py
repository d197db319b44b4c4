"""Executor plugin ``neurotier-slurm``: the plugin ``slurm``, with one Snakemake in each job in place of two.

The plugin ``slurm`` (2.8) has sbatch start a Snakemake whose executor, ``slurm-jobstep``, starts another by srun, and
that one runs the rule. Each costs 2 CPU seconds before it does anything, and no option leaves one out. Here sbatch
starts the one that runs the rule, as the plugin ``cluster-generic`` does: what srun was for, to set apart the CPUs of a
part of the job, is not needed by a job of one program, which has them all.

All else is the plugin ``slurm``, options and log included, so that ``executor: slurm`` in a profile, or ``--executor
slurm``, has the same jobs with a step of srun each. Snakemake finds a plugin by the name of its package, so this one
lies beside neurotier and not in it.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from typing import Any

import snakemake_executor_plugin_slurm as slurm

common_settings = slurm.common_settings


class Executor(slurm.Executor):  # type: ignore[misc]  # it has no types
    """Submits jobs to Slurm; it has no options of its own, and is given those of the plugin ``slurm``."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        from neurotier.run.profile_config import starting_folder
        from neurotier.run.snakemake_internals import options_of, settings_of_executor

        if not isinstance(workflow.executor_settings, slurm.ExecutorSettings):  # they are, if a program gives them
            arguments = sys.argv[1:]
            with chdir(starting_folder(options_of(arguments).directory)):  # where profiles are meant from
                workflow.executor_settings = settings_of_executor("slurm", arguments)
        super().__init__(workflow, logger)

    def additional_general_args(self) -> str:
        """What the Snakemake of a job is told: to be the executor of its rule, which is what it is if told nothing.

        Tasks of an array share a command line, which only ``slurm-jobstep`` can take apart.
        """
        return super().additional_general_args() if self.array_jobs else ""
