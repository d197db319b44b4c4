"""Executor plugin ``neurotier-slurm``: the plugin ``slurm`` with changes that let it work well on an untuned cluster.

- With the plugin ``slurm`` (2.8), sbatch starts a Snakemake that starts another one by srun, which runs the rule; each
  costs 2 CPU seconds. Here sbatch starts the one that runs the rule, as with the plugin ``cluster-generic``.
- The name of a job identifies its work (:mod:`neurotier.run.adoption`): if a job of an earlier head is doing the same
  work, it is waited for, and no job is submitted.
- A submission that Slurm refuses because its controller does not respond or a limit is reached is tried again later,
  and does not count as an attempt of the job. So a limit on submitted jobs just limits the number of jobs at once.
- A job that squeue does not list any more has ended, and its outputs show whether it succeeded. The plugin ``slurm``
  would wait for ever for a job that was cancelled or preempted, and notice the end of others up to 180 s late.
- A job that was preempted is submitted again, which does not count as an attempt, either.
- SIGTERM reaches all of a job's processes a minute before its time limit, so that they can clean up before Slurm kills
  them.
- A node that was at fault for the failure of a job gets no more jobs of this run.

All else, including the options, is the plugin ``slurm``, so that a profile may say ``executor: slurm`` to run the same
jobs without these changes. Snakemake finds a plugin by the name of its package, so this package is next to neurotier
and not in it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import snakemake_executor_plugin_slurm as plugin
from neurotier.core.errors import BusyError, one_line
from neurotier.core.files import read_or_empty
from neurotier.core.places import Places
from neurotier.run import slurm
from neurotier.run.adoption import last_notes, name_of_job, prefix_of
from neurotier.run.jobs import load_settings, own_error
from neurotier.run.journal import add_entry
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

common_settings = plugin.common_settings

LATE_SHARE = 0.1
"""How late the end of the youngest job may be noticed, as a share of the time since its submission."""

BLINK_S = 0.5
"""How often a wait checks whether it should go on, s."""

PATIENCE_S, LONGEST_PAUSE_S = 3600.0, 60.0
"""How long a submission is retried while this run has no job, and the longest pause between two tries, s."""

FINAL_REFUSAL = re.compile(
    r"invalid(?! (authentication )?credential)"  # munge is down for a moment
    r"|unrecognized|(not|than) permitted|not allowed|denied|no partition|can ?not be satisfied"
    r"|(?<!partition )not available",  # a partition may become available again
    re.IGNORECASE,
)
"""What sbatch says about a job that it will never accept; after any other error, the submission is repeated."""

TOO_MUCH = re.compile(r"PartitionTimeLimit|Max(WallDuration|Mem(ory)?|Cpu|\w+Minutes)Per(Job|Limit|Node)")
"""Slurm's reasons why a job waits that requests more time, memory or CPUs than it may have, or their product."""

LESS = (
    ", until that limit is raised; or stop, and ask for less (shares.minutes_per_participant, runtime, "
    "--resources mem_mb, --cores)"
)
"""What the user can do about that."""

NOT_BEGUN = re.compile("launch failed|JobHoldMaxRequeue")
"""Slurm's reasons why a job is held that nodes could not start, as after a failed prolog: it would wait until a person
releases it."""

NO_NODE = "no node is left but those that failed"
"""Why a job waits for ever, or is refused, though the fault may be in the jobs and not in the nodes."""

SCRIPT = """trap 'trap "" TERM; kill -TERM 0' TERM
trap 'late=1; trap "" TERM; kill -TERM 0' USR1
if [ ! -w "$HOME" ] && own="$(mktemp -d)"; then
    export XDG_CACHE_HOME="${{XDG_CACHE_HOME:-$own}}" MPLCONFIGDIR="${{MPLCONFIGDIR:-$own}}"
    set -- --runtime-source-cache-path "$own"
fi
{command} "$@" &
wait $!
code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
rm -rf "$2"
[ -z "$late" ] || [ $code = 0 ] || sleep 180
exit $code
"""
"""A job's script: it passes SIGTERM on, and runs until its command has ended, since Slurm would otherwise kill the
command within a second. SIGUSR1 announces the time limit: if the command then fails, the script waits until Slurm ends
it, so that the job's state is TIMEOUT. On nodes where the user's home is missing or read-only, caches are in a folder
of the job's own."""

GRACE, GRACE_MIN = "B:USR1@60", 10
"""The value of sbatch's ``--signal`` that requests SIGUSR1, and the shortest time limit, min, with which it is
requested."""

UNWANTED_VARIABLES = ("SBATCH_WAIT", "SBATCH_ARRAY_INX")
"""Variables of a user's own defaults for sbatch that would make jobs run one after the other, or each of them several
times."""

NUMBER = re.compile(r"^(\d+)(?:;.*)?$", re.MULTILINE)
"""The line with the number of a job, among further lines that a site may make sbatch print."""

find_number = plugin.validate_or_get_slurm_job_id
plugin.validate_or_get_slurm_job_id = lambda number, said: (NUMBER.findall(said) or [find_number(number, said)])[-1]

array_size = plugin.get_max_array_size
plugin.get_max_array_size = lambda: most if (most := array_size()) > 1 else 1000  # without arrays, it would run nothing

submit_command = plugin.get_submit_command


EXCLUDE = re.compile(r"(?<!\S)(?:--exclude[=\s]|-x)\s*(\S+)")
"""The option of sbatch that excludes nodes."""


def excluded(job: Any) -> tuple[str, ...]:
    """The nodes that a job's own ``slurm_extra`` excludes; sbatch takes a value with a slash as a file of nodes."""
    own = EXCLUDE.findall(" ".join(shlex.split(str(job.resources.get("slurm_extra") or ""))))
    texts = (read_or_empty(Path(each).resolve()).decode(errors="replace") if "/" in each else each for each in own)
    return tuple(name for text in texts for name in re.sub("#.*", "", text).split())


def literal_folder(job: Any, params: Mapping[str, Any], **options: Any) -> str:
    """The plugin's sbatch command, with each ``%`` in the folder of the log escaped, since sbatch would take it for a
    pattern.

    Of two options ``--exclude``, sbatch uses the last, which would be the job's own, without the nodes that were at
    fault. So one with both lists is appended.
    """
    log = params["slurm_logfile"]
    literal = Path(str(log.parent).replace("%", "%%"), log.name)
    command = str(submit_command(job, {**params, "slurm_logfile": literal}, **options))
    failed, own = options["failed_nodes"], excluded(job)
    return f"{command} --exclude={shlex.quote(','.join([*failed, *own]))}" if failed and own else command


plugin.get_submit_command = literal_folder


class Executor(plugin.Executor):  # type: ignore[misc]  # the plugin has no types
    """Submits jobs to Slurm. It has no options of its own, and uses those of the plugin ``slurm``.

    Attributes
    ----------
    submitted_s, seen_s
        When the youngest job was submitted, and when jobs of this run were last seen, s, by the monotonic clock.
    left
        The numbers of the jobs that Slurm has beside those of this run, by name; ``None`` until Slurm has been asked.
    places
        Places of the results, once a job of neurotier is submitted.
    names
        The names of this run's jobs, each with the nodes that its own options exclude.
    refusal
        Why Slurm did not accept the last submission; empty if it did.
    said, waiting
        What has been printed for the user, and what the journal says about waiting jobs.
    notes
        The last notes of jobs about themselves, by their numbers; ``None`` until a look needs them: each job has a file
        of its own, and there may be thousands.
    has_avoided
        Whether a node was ever excluded; jobs that were waiting then still exclude it, even if all nodes may be used
        again.
    """

    run_uuid: str
    has_avoided = False
    notes: Mapping[str, Mapping[str, Any]] | None = None

    def __init__(self, workflow: Any, logger: Any) -> None:
        from neurotier.run.profile_config import starting_folder
        from neurotier.run.snakemake_internals import directory_option, settings_of_slurm

        if not isinstance(workflow.executor_settings, plugin.ExecutorSettings):  # only programs pass such
            with chdir(starting_folder(directory_option(workflow))):  # profiles are relative to this folder
                workflow.executor_settings = settings_of_slurm(sys.argv[1:])
        self.submitted_s = self.seen_s = time.monotonic()
        self.left: dict[str, str] | None = None
        self.places: Any = None
        self.names, self.said, self.waiting = dict[str, tuple[str, ...]](), set[str](), ""
        self.refusal, self.has_news = "", threading.Event()
        for name in UNWANTED_VARIABLES:
            os.environ.pop(name, None)
        if "SLURM_JOB_ID" in os.environ:  # the plugin would remove SLURM_CONF, too
            for name in [name for name in os.environ if name.startswith("SLURM_") and name != "SLURM_CONF"]:
                del os.environ[name]
        super().__init__(workflow, logger)  # which starts to look at jobs

    def __post_init__(self, test_mode: bool = False) -> None:
        super().__post_init__(test_mode)
        self._job_submission_executor = ThreadPoolExecutor(max_workers=1)  # while one is refused, others wait
        self.workflow.executor_settings.pass_command_as_script = True
        self.array_jobs = set[str]()  # none, since the plugin quotes their commands wrongly

    def say(self, line: str) -> None:
        """Print a line for the user, unless it has been printed before."""
        if line not in self.said:
            self.said.add(line)
            print(f"neurotier: {line}", file=sys.stderr, flush=True)

    def additional_general_args(self) -> str:
        """No further arguments for the Snakemake in a job, so that it runs the rule itself."""
        return ""

    def format_job_exec(self, job: Any) -> str:
        """The script that sbatch is given."""
        return SCRIPT.format(command=super().format_job_exec(job))

    # Submissions, one at a time, in a thread of their own.

    def run_job(self, job: Any) -> None:
        """Submit a job, or report an error: an error in this thread would go unnoticed, and the head would wait for
        ever."""
        shared = self.run_uuid  # the plugin names all jobs of a run after this
        try:
            self.submit(job)
        except Exception as error:
            self.say(f"a job of rule {job.name} could not be submitted: {own_error(error)}")
            super()._report_job_error_threadsafe(SubmittedJobInfo(job), f"Job submission failed: {error}. ")
        finally:
            self.run_uuid = shared
            os.environ.pop("SBATCH_SIGNAL", None)

    def submit(self, job: Any) -> None:
        """Submit a job, repeatedly until Slurm accepts it, or attach to a job that is doing the same work."""
        self.run_uuid = self.name_of(job)
        self.names[self.run_uuid] = excluded(job)
        if (job.resources.get("runtime") or GRACE_MIN) >= GRACE_MIN:
            os.environ["SBATCH_SIGNAL"] = GRACE
        self.seen_s, pause_s = time.monotonic(), 1.0
        while self.wait:
            self.has_news.clear()
            if not self.is_attached(job):
                super().run_job(job)
            if not self.refusal:
                break
            self.say(f"Slurm accepts no job now, and is asked again: {self.refusal}")
            self.has_news.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def name_of(self, job: Any) -> str:
        """A unique name for the Slurm job of a Snakemake job; if it is neurotier's, it identifies the work."""
        if job.is_group() or not is_own(job):
            return f"{self.run_uuid}.{job.jobid}"
        self.places = Places.from_settings(load_settings(Path(job.params.results)))
        share = job.wildcards_dict.get("share")
        if share and job.params.get("analysis"):
            return name_of_job(self.places, share, job.params.analysis)
        return f"{prefix_of(self.places)}{job.name}.{job.jobid}"

    def is_attached(self, job: Any) -> bool:
        """Attach to the job that is doing this work, if any: an earlier head's, or one that exists though sbatch
        failed.

        Returns whether nothing is to be submitted now. If Slurm does not answer, that counts as a refusal.
        """
        try:
            if self.left is None or self.refusal:
                # Jobs that this run has submitted do not count: a further attempt has the name of the one that failed.
                others = self.names.keys() - {self.run_uuid}
                self.left = {job.name: number for number, job in slurm.queue().items() if job.name not in others}
        except BusyError as error:
            self.refusal = error.what
            return True
        self.refusal, number = "", self.left.pop(self.run_uuid, None)
        if number is not None:
            self._report_job_submission_threadsafe(SubmittedJobInfo(job, external_jobid=number, aux={}))
        return number is not None

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The options for the accounts that a job names, or for Slurm's default. The plugin would guess an account by a
        command that always fails, and submit nothing without sacct. sbatch refuses an account that is not valid, for
        which the plugin would show a trace."""
        named = re.split(r"[,\s]+", str(job.resources.get("slurm_account") or "").strip(", "))
        return iter([account and f" -A {shlex.quote(account)}" for account in named])

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        """Report a job that was not submitted or, if that is to be tried again, note why."""
        said = msg.partition("'")[2].partition("'.\n")[0] if msg.startswith("SLURM sbatch failed") else ""
        errors = "\n".join(line for line in said.splitlines() if "error:" in line)  # without notices of the site
        said = errors or said.partition("\nTry ")[0]  # without the hint at --help after an unknown option
        if self._failed_nodes and FINAL_REFUSAL.search(said):  # perhaps too many nodes were excluded
            self._failed_nodes.clear()
            said = NO_NODE
        if said and not FINAL_REFUSAL.search(said) and time.monotonic() < self.seen_s + PATIENCE_S:
            self.refusal = said.rpartition("\n")[2]
        else:
            if said:  # Snakemake's logger does not print it
                self.say(f"Slurm refuses a job of rule {job_info.job.name}: {said.strip().rpartition(chr(10))[2]}")
            super()._report_job_error_threadsafe(job_info, msg)

    def report_job_submission(self, *arguments: Any, **options: Any) -> None:
        self.submitted_s = time.monotonic()
        super().report_job_submission(*arguments, **options)

    # Looks at the jobs, in another thread.

    async def check_active_jobs(self, active_jobs: Sequence[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Look at all jobs with one call of squeue; yields those that go on."""
        if not active_jobs:  # the plugin may not be set up yet, and an error would end this thread silently
            return
        self.seen_s = time.monotonic()
        try:
            jobs = await asyncio.to_thread(slurm.queue, "--states=all", *self.clusters())
        except BusyError:  # the next look asks again
            for info in active_jobs:
                yield info
            return
        self.tell_reasons(jobs)
        self.notes = None
        for info in active_jobs:
            number = str(info.external_jobid)
            job = jobs.get(number)
            if job is not None and job.state not in slurm.OVER:
                if job.state == "PENDING" and job.reason not in slurm.USUAL:
                    # The user can change what a first attempt requests; a further one, which requests more, must not
                    # block the run.
                    is_too_much = TOO_MUCH.search(job.reason) is not None
                    why = "this attempt asks for more than it may have" if is_too_much and info.job.attempt > 1 else ""
                    why = "its node could not begin it" if NOT_BEGUN.search(job.reason) else why
                    # Its next attempt may use the excluded nodes, too.
                    why = NO_NODE if self.has_avoided and job.reason == "BadConstraints" else why
                    ended = why and not slurm.run_command("scancel", *self.clusters(), number)[1]
                    given_up = f", and is given up: {why}" if ended else LESS if is_too_much else ""
                    if ended or job.reason not in self.said:  # of jobs that wait for the same reason, one is named
                        self.said.add(job.reason)
                        self.say(f"job {number} of rule {info.job.name} waits: {job.reason}{given_up}")
                yield info
                continue
            log = info.aux.get("slurm_logfile")
            if job is None or job.state == "COMPLETED":  # Snakemake checks its outputs
                self.report_job_success(info)
                if log and not self.workflow.executor_settings.keep_successful_logs:
                    with suppress(OSError):
                        log.unlink()
            elif job.state == "PREEMPTED":  # by PreemptMode=CANCEL; a requeue by Slurm is no attempt, either
                self.say(f"job {number} of rule {info.job.name} was preempted, and is submitted again")
                with suppress(RuntimeError):  # the run is about to end
                    self._job_submission_executor.submit(self.run_job, info.job)
            else:
                is_share = "share" in getattr(info.job, "wildcards_dict", ())
                self.avoid_node(number, jobs, log, is_share)
                # Participants of a share say themselves why they failed, if the job could note its end.
                said = last_line(log) if is_share and "exit_code" not in self.note_of(number) else ""
                if said or job.state != "FAILED":
                    on = f" on {job.nodes}" if job.nodes else ""
                    self.say(f"Slurm ended job {number} of rule {info.job.name}: {job.state}{on}{said}")
                self.report_job_error(
                    info, msg=f"Slurm job {number}: {job.state}. ", aux_logs=[str(log)] if log else []
                )
            self.has_news.set()

    def tell_reasons(self, jobs: Mapping[str, slurm.Queued]) -> None:
        """Write to the journal, which ``neurotier watch`` reads, why jobs of this run wait, if that has changed."""
        reasons = Counter(
            job.reason
            for job in jobs.values()
            if job.name in self.names and job.state == "PENDING" and job.reason != "None"
        )
        waiting = ", ".join(f"{count} for {reason}" for reason, count in reasons.most_common())
        if self.places and waiting != self.waiting:
            self.waiting = waiting
            add_entry(self.places, "step", name="pending jobs", progress=waiting or None)

    def avoid_node(self, number: str, jobs: Mapping[str, slurm.Queued], log: Path | None, is_share: bool) -> None:
        """Exclude the node of a failed job from this run, if the node was at fault.

        It was, if the job's own note says so, or if there is no note and either no log of Slurm's, or the job was a
        share's, which writes a note as soon as it runs. Such a node is always free, and would attract all jobs.
        """
        note = self.note_of(number)
        node, why = note.get("node"), note.get("fault_of_node")
        if not note and jobs[number].state == "FAILED":
            node = jobs[number].nodes
            if log and not log.exists():
                why = f"{log} could not be written there"
            elif is_share:
                why = "neurotier could not begin there"
        if not (why and node) or node in self._failed_nodes:
            return
        self._failed_nodes.add(node)
        self.has_avoided = True
        self.say(f"job {number} failed for its node, {node}, which this run will not use any more: {why}")
        pending = {
            other: self.names[job.name]
            for other, job in jobs.items()
            if job.state == "PENDING" and job.name in self.names
        }
        for own in {*pending.values()}:
            waiting = ",".join(other for other, kept_off in pending.items() if kept_off == own)
            nodes = ",".join([*self._failed_nodes, *own])  # this replaces the nodes that they exclude so far
            slurm.run_command("scontrol", "update", f"JobId={waiting}", f"ExcNodeList={nodes}")

    def note_of(self, number: str) -> Mapping[str, Any]:
        """The last note of a job about itself; empty if it has written none."""
        if self.notes is None:
            self.notes = last_notes(self.places) if self.places else {}
        return self.notes.get(number, {})

    def pause_s(self, had_s: float) -> float:
        """How long to wait between two looks at the jobs if the youngest was submitted ``had_s`` ago, s.

        At least the first wait that the profile sets, and at most three minutes.
        """
        shortest_s: int = self.workflow.executor_settings.init_seconds_before_status_checks
        return min(180.0, max(shortest_s, had_s * LATE_SHARE))

    async def sleep(self) -> None:
        """Wait until the next look at the jobs is due, or none is needed."""
        looked_s = now_s = time.monotonic()
        while self.wait and now_s < looked_s + self.pause_s(now_s - self.submitted_s):
            await asyncio.sleep(BLINK_S)
            now_s = time.monotonic()

    # The end.

    def cancel_jobs(self, active_jobs: Sequence[SubmittedJobInfo]) -> None:
        """End all jobs of this run, including any whose number is unknown because sbatch was ended, too."""
        self.wait = False
        self.has_news.set()
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        numbers = {str(info.external_jobid) for info in active_jobs}
        with suppress(BusyError):  # the next start finds jobs that are missed here
            numbers |= {number for number, job in slurm.queue(*self.clusters()).items() if job.name in self.names}
        with suppress(BusyError):  # it is not checked whether they are gone
            slurm.cancel(numbers, *self.clusters(), patience_s=0)

    def clusters(self) -> list[str]:
        """The option that makes Slurm's commands cover all clusters that have jobs of this run."""
        return [f"--clusters={','.join(self._submitted_job_clusters)}"] if self._submitted_job_clusters else []

    def shutdown(self) -> None:
        self.wait = False
        self.has_news.set()
        super().shutdown()


def last_line(log: Path | None) -> str:
    """The last line of a job's log, after a colon; empty if there is none."""
    lines = read_or_empty(log).decode(errors="replace").split("\n") if log else []
    return next((f": {one_line(line)[:300]}" for line in reversed(lines) if line.strip()), "")


def is_own(job: Any) -> bool:
    """Whether a job is neurotier's: its log is among the results of a run. Other jobs may have a parameter ``results``,
    too."""
    results = Path(str(job.params.get("results")))
    has_log = any(Path(file).is_relative_to(results / "logs") for file in job.log)
    return has_log and (results / "state" / "settings.json").exists()
