"""Executor plugin ``neurotier-slurm``: the plugin ``slurm``, mended where a cluster that nobody tuned needs it.

- The plugin (2.8) has sbatch start a Snakemake that starts another by srun, which runs the rule. Each costs 2 CPU
  seconds. Here sbatch starts the one that runs the rule, as the plugin ``cluster-generic`` does.
- A job has the name of its work (:mod:`neurotier.run.adoption`): a job of an earlier head that is at it is
  waited for, and none is submitted.
- A submission that Slurm refuses, because its controller is away or a limit is reached, is tried again later, and is no
  attempt of the job. So a limit of submitted jobs is the number of jobs at once.
- A job that squeue does not name any more has ended: its outputs say how. The plugin would wait for ever for one that
  was cancelled or preempted, and hear of ends up to 180 s late.
- SIGTERM reaches all of a job's processes a minute ahead of its time limit, and they may clear up until Slurm kills.
- A node that was at fault for the failure of a job gets no more of this run.

All else is the plugin ``slurm``, options included, so that ``executor: slurm`` in a profile has the same jobs without
all this. Snakemake finds a plugin by the name of its package, so this one lies beside neurotier and not in it.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import snakemake_executor_plugin_slurm as plugin
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

common_settings = plugin.common_settings

LATE_SHARE = 0.1
"""By this share of the time that the youngest job has had, its end may be heard of late."""

BLINK_S = 0.5
"""After so long a wait looks whether it is still wanted."""

PATIENCE_S, LONGEST_PAUSE_S = 3600.0, 60.0
"""For how long a submission is tried again while no job of this run is there, and the longest pause between two."""

FOR_GOOD = re.compile(r"invalid|unrecognized|not (available|permitted|allowed)|can ?not be satisfied", re.IGNORECASE)
"""What sbatch says of a job that it will never take; of all else it is asked again."""

SCRIPT = """#!/bin/sh
trap 'trap "" TERM; kill -TERM 0' TERM
trap 'late=1; trap "" TERM; kill -TERM 0' USR1
{command} &
wait $!
code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
[ -z "$late" ] || [ $code = 0 ] || sleep 180
exit $code
"""
"""A job's script: it passes SIGTERM on, and lasts as long as its command, or Slurm would kill that within a second.

SIGUSR1 says that the time is nearly over; then it waits until Slurm has ended it, and says so.
"""

GRACE, GRACE_MIN = "--signal=B:USR1@60", 10
"""What asks for that, and the shortest limit of a job that has so much time to clear up, min."""


class Executor(plugin.Executor):  # type: ignore[misc]  # it has no types
    """Submits jobs to Slurm; it has no options of its own, and is given those of the plugin ``slurm``.

    Attributes
    ----------
    submitted_s
        When the youngest job was submitted, by the monotonic clock.
    going
        Jobs that Slurm has, as far as is known, by their numbers.
    ended
        Those that had ended badly when it was looked last: files may come late, so it is looked once more.
    left
        Jobs of earlier heads, name to number; ``None`` until it is looked.
    folder
        The results folder, once a job of neurotier's is submitted.
    """

    def __init__(self, workflow: Any, logger: Any) -> None:
        from neurotier.run.profile_config import starting_folder
        from neurotier.run.snakemake_internals import options_of, settings_of_executor

        if not isinstance(workflow.executor_settings, plugin.ExecutorSettings):  # they are, if a program gives them
            arguments = sys.argv[1:]
            with chdir(starting_folder(options_of(arguments).directory)):  # where profiles are meant from
                workflow.executor_settings = settings_of_executor("slurm", arguments)
        self.submitted_s = time.monotonic()
        self.going: dict[str, SubmittedJobInfo] = {}
        self.ended: set[str] = set()
        self.left: dict[str, str] | None = None
        self.folder: Path | None = None
        self.said: set[str] = set()
        self.stopping, self.has_news = threading.Event(), threading.Event()
        super().__init__(workflow, logger)  # which begins to look

    def __post_init__(self, test_mode: bool = False) -> None:
        super().__post_init__(test_mode)
        self._job_submission_executor = ThreadPoolExecutor(max_workers=1)  # what waits for a limit has others wait

    def say(self, line: str) -> None:
        """Tell the user, once."""
        if line not in self.said:
            self.said.add(line)
            print(f"neurotier: {line}", file=sys.stderr, flush=True)

    def additional_general_args(self) -> str:
        """What the Snakemake of a job is told: to be the executor of its rule, which is what it is if told nothing.

        Tasks of an array share a command line, which only ``slurm-jobstep`` can take apart.
        """
        return super().additional_general_args() if self.array_jobs else ""

    # Submission, one at a time, by a thread of its own.

    def run_job(self, job: Any) -> None:
        """Submit a job, as soon as Slurm takes it, or attach to one that is at the same work."""
        info = SubmittedJobInfo(job, aux={})
        try:
            plugin.validate_slurm_extra(job)
            name = self.name_of(job)
            if self.until_it_succeeds(lambda: self.attach(info, name)) or self.stopping.is_set():
                return
            self.until_it_succeeds(lambda: self.submit(info, name))
        except Exception as error:
            self._report_job_error_threadsafe(info, f"could not be submitted: {error}. ")

    def until_it_succeeds(self, function: Any) -> Any:
        """What a function gives once Slurm answers and refuses nothing; ``None`` if the run is stopped meanwhile.

        Raises
        ------
        WorkflowError, NeurotierError
            If Slurm refuses for good, or for too long while there is no job of this run.
        """
        since_s, pause_s = time.monotonic(), 1.0
        while not self.stopping.is_set():
            self.has_news.clear()
            try:
                return function()
            except Exception as error:
                waited_s = time.monotonic() - since_s
                if FOR_GOOD.search(str(error)) or (waited_s > PATIENCE_S and not self.going):
                    raise
                self.say(f"Slurm takes no job now, and is asked again: {error}")
            self.has_news.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return None

    @cached_property
    def results(self) -> tuple[Any, Any]:
        """Places and settings of the results folder, once the run has begun."""
        from neurotier.core.files import read_json
        from neurotier.core.places import Places
        from neurotier.run.jobs import load_settings

        places = Places.from_settings(load_settings(self.folder))  # type: ignore[arg-type]  # it is known by then
        return places, read_json(places.settings_file)

    def name_of(self, job: Any) -> str:
        """Name of the Slurm job for a job: that of its work, if it is one of neurotier's."""
        from neurotier.run.adoption import name_of_job, prefix_of

        if job.is_group() or not job.params.get("results"):
            return str(self.run_uuid)
        self.folder = Path(job.params.results)
        places, settings = self.results
        share, analysis = job.wildcards_dict.get("share"), job.params.get("analysis")
        return name_of_job(places, share, analysis, settings) if share else f"{prefix_of(places)}{job.name}"

    def attach(self, info: SubmittedJobInfo, name: str) -> bool:
        """Wait for the job of an earlier head that is at this work, if there is one; whether there is.

        Those that another division into shares had, or other participants of this share, are ended.
        """
        from neurotier.run import slurm
        from neurotier.run.adoption import JOB_NAME, is_outdated

        if not JOB_NAME.fullmatch(name):
            return False
        if self.left is None or info.job.attempt > 1:
            others = {number: job for number, job in slurm.queue().items() if number not in self.going}
            self.left = {job.name: number for number, job in reversed(others.items())}
        slurm.cancel([self.left.pop(other) for other in [*self.left] if is_outdated(other, name)])
        number = self.left.pop(name, None)
        if number is not None:
            self.register(info, number)
        return number is not None

    def submit(self, info: SubmittedJobInfo, name: str) -> None:
        """Give a job to Slurm.

        Raises
        ------
        WorkflowError
            If Slurm refuses it.
        """
        job, wildcards = info.job, plugin.get_job_wildcards(info.job)
        log = self.slurm_logdir / f"rule_{job.name}" / wildcards / "%j.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        facts = {
            "run_uuid": name,
            "slurm_logfile": log,
            "comment_str": f"rule_{job.name}" + (f"_wildcards_{wildcards}" if wildcards else ""),
            "account": next(self.get_account_arg(job)),
            "partition": self.get_partition_arg(job),
            "workdir": self.workflow.workdir_init,
        }
        options = self.workflow.executor_settings
        command = plugin.get_submit_command(job, facts, settings=options, failed_nodes=self._failed_nodes)
        grace = GRACE if (job.resources.get("runtime") or GRACE_MIN) >= GRACE_MIN else ""
        done = subprocess.run(  # noqa: S602  # slurm_extra is the user's own, and may have variables of the shell
            f"{command}{plugin.set_gres_string(job)} {grace} /dev/stdin",
            shell=True,
            input=SCRIPT.format(command=self.format_job_exec(job)),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            if self._failed_nodes and FOR_GOOD.search(done.stderr):  # there may be no other node
                self._failed_nodes.clear()
                self.has_news.set()
                raise plugin.WorkflowError("no node is left, and those that had failed are tried again")
            raise plugin.WorkflowError(done.stderr.strip().rpartition("\n")[2])
        self.register(info, plugin.validate_or_get_slurm_job_id(done.stdout.strip().split(";")[0], done.stdout), log)

    def register(self, info: SubmittedJobInfo, number: str, log: Path | None = None) -> None:
        """Take note of a job that Slurm has."""
        info.external_jobid = number
        if log is None:  # it was submitted by another head
            log = next(self.slurm_logdir.parent.rglob(f"{number}.log"), Path(f"{number}.log"))
        info.aux["slurm_logfile"] = log.with_name(f"{number}.log")
        clusters = (info.job.resources.get(key) for key in ("cluster", "clusters", "slurm_cluster"))
        self._submitted_job_clusters.update(filter(None, clusters))
        self._report_job_submission_threadsafe(info)

    def report_job_submission(self, job_info: SubmittedJobInfo, *arguments: Any, **options: Any) -> None:
        self.submitted_s = time.monotonic()
        self.going[str(job_info.external_jobid)] = job_info
        super().report_job_submission(job_info, *arguments, **options)

    # Looks at the jobs, by another thread.

    async def check_active_jobs(self, active_jobs: Sequence[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Look at all jobs by one call of squeue; those that go on are given back."""
        from neurotier.core.errors import BusyError
        from neurotier.run import slurm

        clusters = [f"--clusters={','.join(self._submitted_job_clusters)}"] if self._submitted_job_clusters else []
        jobs: dict[str, slurm.Queued] | None = None
        if active_jobs:
            with suppress(BusyError):  # it is asked again
                jobs = await asyncio.to_thread(slurm.queue, "--states=all", *clusters)
        for info in active_jobs:
            number = str(info.external_jobid)
            if jobs is None or self.goes_on(info, jobs.get(number)):
                yield info
                continue
            self.ended.discard(number)
            del self.going[number]
            self.has_news.set()

    def goes_on(self, info: SubmittedJobInfo, job: Any) -> bool:
        """Whether a job goes on, by what squeue says of it; of one that does not, the end is reported."""
        from neurotier.run import slurm

        number = str(info.external_jobid)
        if job is not None and job.state not in slurm.OVER:
            self.ended.discard(number)
            if job.state == "PENDING" and job.reason not in slurm.USUAL:
                self.say(f"job {number} waits: {job.reason}")
            return True
        is_done = job.state == "COMPLETED" if job is not None else all(Path(file).exists() for file in info.job.output)
        if not is_done and number not in self.ended:
            self.ended.add(number)
            return True
        if is_done:
            self.report_job_success(info)
            if not self.workflow.executor_settings.keep_successful_logs:
                info.aux["slurm_logfile"].unlink(missing_ok=True)
        else:
            self.avoid_node(number)
            state = job.state if job is not None else "it is gone, and has not made its outputs"
            self.report_job_error(info, msg=f"Slurm job {number}: {state}. ", aux_logs=[str(info.aux["slurm_logfile"])])
        return False

    def avoid_node(self, number: str) -> None:
        """Have no other job go to the node of a failed one, if the node was at fault by the job's own word."""
        from neurotier.run import slurm
        from neurotier.run.adoption import node_at_fault

        node = node_at_fault(self.results[0], number) if self.folder else None
        if node is None or node in self._failed_nodes:
            return
        self._failed_nodes.add(node)
        self.say(f"job {number} failed for its node, {node}, to which no other job of this run is given")
        if waiting := [other for other, job in slurm.queue().items() if other in self.going and job.state == "PENDING"]:
            slurm.answer(
                "scontrol", "update", f"JobId={','.join(waiting)}", f"ExcNodeList={','.join(self._failed_nodes)}"
            )

    def pause_s(self, had_s: float) -> float:
        """How long to wait between two looks at jobs of which the youngest has had so much time, s.

        It is never shorter than the first wait that the profile sets, nor longer than three minutes.
        """
        shortest_s: int = self.workflow.executor_settings.init_seconds_before_status_checks
        return min(180.0, max(shortest_s, had_s * LATE_SHARE))

    async def sleep(self) -> None:
        """Wait for the next look at the jobs, if there is to be one."""
        looked_s = now_s = time.monotonic()
        while self.wait and now_s < looked_s + self.pause_s(now_s - self.submitted_s):
            await asyncio.sleep(BLINK_S)
            now_s = time.monotonic()

    # The end.

    def cancel_jobs(self, active_jobs: Sequence[SubmittedJobInfo]) -> None:
        """End all jobs of this run, also one whose number nobody has heard, since sbatch was ended, too."""
        from neurotier.core.errors import BusyError
        from neurotier.run import slurm

        self.stopping.set()
        self.has_news.set()
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        names = {self.name_of(info.job) for info in [*active_jobs, *self.going.values()]}
        numbers = {str(info.external_jobid) for info in active_jobs} | self.going.keys()
        with suppress(BusyError):  # the next start finds them
            slurm.cancel(numbers | {number for number, job in slurm.queue().items() if job.name in names}, patience_s=0)
