"""Executor plugin ``neurotier-slurm``: the plugin ``slurm``, with one Snakemake in each job in place of two.

The plugin ``slurm`` (2.8) has sbatch start a Snakemake whose executor, ``slurm-jobstep``, starts another by srun, and
that one runs the rule. Each costs 2 CPU seconds before it does anything, and no option leaves one out. Here sbatch
starts the one that runs the rule, as the plugin ``cluster-generic`` does: what srun was for, to set apart the CPUs of a
part of the job, is not needed by a job of one program, which has them all.

The plugin waits 10 s longer before each look at its jobs at which none has ended, up to 180 s, and once more when all
have: jobs of a minute were heard of half a minute late. Here no look comes later than a tenth of the time that the
youngest job has had, and none is waited for when the run is over.

All else is the plugin ``slurm``, options and log included, so that ``executor: slurm`` in a profile, or ``--executor
slurm``, has the same jobs with a step of srun each. Snakemake finds a plugin by the name of its package, so this one
lies beside neurotier and not in it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import chdir
from typing import Any

import snakemake_executor_plugin_slurm as slurm

common_settings = slurm.common_settings

LATE_SHARE = 0.1
"""By this share of the time that the youngest job has had, its end may be heard of late."""

BLINK_S = 0.5
"""After so long a wait looks whether it is still wanted."""


class Executor(slurm.Executor):  # type: ignore[misc]  # it has no types
    """Submits jobs to Slurm; it has no options of its own, and is given those of the plugin ``slurm``.

    Attributes
    ----------
    submitted_s
        When the youngest job was submitted, by the monotonic clock.
    """

    def __init__(self, workflow: Any, logger: Any) -> None:
        from neurotier.run.profile_config import starting_folder
        from neurotier.run.snakemake_internals import options_of, settings_of_executor

        if not isinstance(workflow.executor_settings, slurm.ExecutorSettings):  # they are, if a program gives them
            arguments = sys.argv[1:]
            with chdir(starting_folder(options_of(arguments).directory)):  # where profiles are meant from
                workflow.executor_settings = settings_of_executor("slurm", arguments)
        self.submitted_s = time.monotonic()
        super().__init__(workflow, logger)  # which begins to look

    def additional_general_args(self) -> str:
        """What the Snakemake of a job is told: to be the executor of its rule, which is what it is if told nothing.

        Tasks of an array share a command line, which only ``slurm-jobstep`` can take apart.
        """
        return super().additional_general_args() if self.array_jobs else ""

    def report_job_submission(self, *arguments: Any, **options: Any) -> None:
        self.submitted_s = time.monotonic()
        super().report_job_submission(*arguments, **options)

    def pause_s(self, had_s: float) -> float:
        """How long to wait between two looks at jobs of which the youngest has had so much time, s.

        It is never shorter than the first wait that the profile sets, nor longer than the plugin's own.
        """
        shortest_s: int = self.workflow.executor_settings.init_seconds_before_status_checks
        longest_s: float = self.next_seconds_between_status_checks
        return min(longest_s, max(shortest_s, had_s * LATE_SHARE))

    async def sleep(self) -> None:
        """Wait for the next look at the jobs, if there is to be one."""
        looked_s = now_s = time.monotonic()
        while self.wait and now_s < looked_s + self.pause_s(now_s - self.submitted_s):
            await asyncio.sleep(BLINK_S)
            now_s = time.monotonic()
