"""The head: what Snakemake's own process does at the start and at the end of a run.

Reading a Snakefile changes nothing: the work of a start is done in the first input function that Snakemake calls, since
Snakemake knows by then what it was started for. A run locks the results folder, removes what a killed run left, checks
its tiers before any job runs, and notes facts about the machine, tiers and versions. Snakemake's own lock survives a
``kill -9`` and then requires ``--unlock``. Ours is a kernel lock on an open file and ends with the process, so the
Snakemake profiles set ``nolock``.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import platform
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil

from neurotier import __version__
from neurotier.analysis.app import app_name
from neurotier.core.configuration import WORKLOADS
from neurotier.core.control_groups import usable_cores
from neurotier.core.errors import BusyError, NeurotierError, StateError, TierError, without_credentials
from neurotier.core.files import (
    Record,
    open_lock,
    read_intact_json,
    read_json,
    read_json_or_empty,
    remove_partials,
    remove_path,
    try_lock,
    write_json,
    write_text,
)
from neurotier.core.installed import ROOT, search_path
from neurotier.core.places import Places
from neurotier.core.private import refuse_planted, remove_leftovers, user_name
from neurotier.core.processes import CAMPAIGN, RUN, THREADS, current_run, end, processes_of, use_threads
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.core.tiers import Tier, tiers_of
from neurotier.dataset.source import renew_clone, requested_unreachable
from neurotier.run.adoption import last_facts, take_over
from neurotier.run.cluster_jobs import close_jobs, read_jobs, renew_jobs_table
from neurotier.run.disturbance import Watch
from neurotier.run.healing import (
    PAGE_OF,
    Whole,
    correct_future_dates,
    damage_lines,
    find_damage,
    note_outputs,
    remove_damaged_metadata,
    remove_partial,
)
from neurotier.run.jobs import (
    EXTERNAL,
    add_facts,
    forget_stopped,
    load_settings,
    note_killed,
    note_swapping,
    own_error,
    read_failures,
    results_folder,
    save_settings,
    say,
    settings_without_credentials,
)
from neurotier.run.journal import add_entry, entries
from neurotier.run.node_check import remove_marks
from neurotier.run.participants import selected_in
from neurotier.run.plan import Plan
from neurotier.run.preconditions import (
    WITHOUT_DATASET,
    WITHOUT_PARTICIPANTS,
    check_programs,
    check_start,
    made_with,
    other_results,
)
from neurotier.run.profile_tables import (
    close_run,
    flush_results,
    note_flush,
    read_timed_rows,
    timings,
)
from neurotier.run.snakemake_internals import (
    Command,
    add_hooks,
    announce_pages,
    close_logs,
    command_of,
    end_timers,
    errors_as_one_line,
    force_rule_of,
    ignore_interrupts_in_jobs,
    is_main_process,
    outputs_of,
    report_lost_disks,
    report_submissions,
    requested_names,
    rules_to_run_here,
    separate_slurm_logs,
    set_limits,
    slots,
)
from neurotier.run.stops import end_at_signals, jobs_have_ended

PAGES = PAGE_OF | {"all": "report", "advise": "advice"}
"""The name of the page that belongs to a target."""


def make_importable() -> None:
    """Make sure that jobs, which run ``python3 -m neurotier``, find this Python and this library, installed or not.

    This is done by environment variables: a path in the command itself would change when the environment is moved, and
    Snakemake would analyse all participants again.
    """
    os.environ |= {
        "PATH": search_path("PATH", Path(sys.executable).parent),
        "PYTHONPATH": search_path(),
        "PYTHONUTF8": "1",
        "PYTHONOPTIMIZE": "",  # DataLad fails without assertions
        "LOGNAME": os.environ.get("LOGNAME") or user_name(),  # Snakemake fails for a user without a name
    }
    if not {*THREADS} & os.environ.keys():  # the user's choice must apply in the user's own rules
        use_threads(1)


def compile_library() -> None:
    """Compile this library to bytecode where jobs look for it, even if Python is told not to write any.

    Otherwise each job compiles what it imports, which doubles its start-up and costs 0.05 s of CPU time. If all is
    compiled already, this takes 0.01 s. Where bytecode cannot be written (another user's checkout), jobs do without it.
    """
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)


class Head:
    """The Snakemake of a run.

    Parameters
    ----------
    plan, workflow
        Of the run.
    pages
        Module that writes pages after failures, passed in because pages import the run: :mod:`neurotier.pages.partial`.
    names
        See :func:`neurotier.run.snakemake_internals.own_names`; complete once all rules have been read.

    Attributes
    ----------
    watch
        Watches the processors during the run.
    """

    def __init__(self, plan: Plan, workflow: Any, pages: Any, names: Mapping[str, str]) -> None:
        self.plan, self.workflow, self.pages = plan, workflow, pages
        self.settings, self.places = plan.settings, Places.from_settings(plan.settings)
        self.own_names = partial(requested_names, names)
        self.watch: Watch | None = None

    def start(self) -> list[str]:
        """Do all that must be done before Snakemake looks at any file; an input function that adds no inputs to a rule.

        It also installs the hooks for the start and the end of the run, since Snakemake ignores ``onstart`` and the
        like in a module. In a process that Snakemake has started for a job, it only declares how much there is of each
        resource.
        """
        plan, workflow = self.plan, self.workflow
        with errors_as_one_line():
            if is_main_process(workflow):
                close_logs(workflow)
                known = slots(workflow, plan.threads)
                command = self.command()
                self.look_ahead(command, None if plan.on_cluster else known["parallelism"])
                if plan.on_cluster:
                    plan.most_mb = known["limits"].get("mem_mb")
                else:
                    plan.room |= known["limits"]  # only now are the tiers known to respond
                asked = sorted(PAGES.keys() & command.targets)
                announce_pages([plan.places.results / f"{PAGES[target]}.html" for target in asked])
                add_hooks(
                    workflow,
                    onstart=self.begin,
                    onsuccess=partial(self.finish, True),
                    onerror=partial(self.finish, False),
                )
            set_limits(workflow, plan.limits())
        return []

    def command(self) -> Command:
        """What Snakemake was started for; without a target, that is the first rule. Targets that analyse no
        participants, such as a probe, do not replace results, even with ``--forceall``.
        """
        command = command_of(self.workflow, self.own_names)
        targets = command.targets or frozenset({"comparison" if self.settings.is_campaign else "all"})
        return command._replace(targets=targets, forced=command.forced and bool(targets - WITHOUT_DATASET))

    def look_ahead(self, command: Command, at_once: int | None) -> None:
        """Before the graph is built, arrange the repair of damage, decide on the shares, and refuse runs that would
        fail.

        Parameters
        ----------
        command
            What Snakemake was started for. If it runs no jobs, nothing is changed; a dry run says what would be
            changed.
        at_once
            How many participants this machine analyses at once; ``None`` if unknown, as on a cluster.

        Raises
        ------
        NeurotierError
            See :func:`neurotier.run.preconditions.other_results`, :meth:`heal` and
            :func:`neurotier.run.preconditions.check_start`; and if a tier in use does not respond, or if another user
            may have planted it or the results folder.
        """
        plan, places, changes = self.plan, self.places, command.starts
        tiers = tiers_of(self.settings, on_cluster=plan.on_cluster).values()
        for tier in tiers:
            tier.require_answer()
        if not command.is_dry_run:  # --delete-all-output removes files, too
            refuse_planted(Path(".snakemake/metadata"), "Snakemake's folder", "start in a folder of your own")
            refuse_planted_results(places.results)
            for tier in tiers:
                tier.refuse_planted()
        starts = changes or command.is_dry_run
        with naming_unwritable(places):
            others = other_results(plan, places, command) if starts else None
            made = self.heal(command, is_replaced=others is not None)
        if starts:
            check_start(plan, command, say)
        with naming_unwritable(places):
            if changes:
                close_killed(places)
                remove_partial(places, self.outputs_of, command.targets)
                for workload in command.targets.intersection(WORKLOADS):
                    table = places.workload(workload) / f"{workload}.tsv"
                    # points that failed, for example because a node was down, are tried again; measured ones are kept
                    with suppress(OSError, StateError):
                        if any(row["status"].startswith("failed") for row in read_table(table, workload)):
                            remove_path(table)
                if "check" in command.targets:  # the check must look at the present state
                    remove_path(places.check_table(plan.node_class))
            if others:
                say(others.line)
                if changes:
                    others.remove()
            missing = plan.find_remaining(made, command.forced, at_once, write=changes)
        # Snakemake would not look for them where a workflow that includes this one has made files from their results.
        if starts and (missing or (places.identity and not places.complete.exists())):
            force_rule_of(self.workflow, plan.places.complete)
        # On this machine the pool reports it.
        if missing and command.targets - WITHOUT_PARTICIPANTS and starts and (command.is_dry_run or plan.on_cluster):
            names = f"{'would be' if command.is_dry_run else 'to be'} analysed: {first_of(missing, shown=5)}"
            say(f"{counted(len(missing), 'participant')} {names}")

    def heal(self, command: Command, is_replaced: bool) -> Whole:
        """Remove damaged files so that Snakemake makes them again; returns the participants whose results are whole.

        The folder is locked for this run first. If the command changes nothing, it is only said what would be made
        again. If all results are about to be replaced, none are checked.

        Raises
        ------
        BusyError
            If another run holds the results folder.
        """
        plan, places, changes = self.plan, self.places, command.starts
        made = Whole()
        if not places.state.is_dir():
            return made
        if changes:
            acquire(places)
            forget_runs_of_another(places)
            last = last_facts(places)  # a run on a cluster that did not succeed may have left jobs
            if plan.on_cluster or (last.get("elsewhere") and not last.get("succeeded")):
                # what jobs do is known from the present index, which may be about to be made again
                wanted = {} if command.forced or command.reindexes else plan.names_of_jobs()
                plan.taken_over = take_over(places, wanted, command.cancel, say)
            if not plan.taken_over:  # jobs that were taken over still need what is ended and removed here
                end(processes_of({file.stem for file in places.runs.glob("*.json")}))
                for tier in [tiers_of(self.settings, on_cluster=plan.on_cluster)["work"], *work_tier_of_killed(places)]:
                    if not tier.node:  # otherwise the jobs on the nodes clear it
                        remove_leftovers(tier.folder("work") / places.work.name, places.identity)
                remove_partials(places.results)
        damages = [] if is_replaced else find_damage(places, self.outputs_of, plan.is_app, plan.selection, made)
        if changes:
            with suppress(*DAMAGED):  # this is tried again later, without the files that are removed here
                close_killed(places)
            for damage in damages:
                for file in damage.files:
                    remove_path(file)
            remove_path(places.state / "got")  # what a killed run noted about fetched images may be outdated
            remove_damaged_metadata()
            correct_future_dates(places)
            try:
                load_settings(places.results)
            except NeurotierError:  # lost, or the folder was moved; perhaps no run follows that would save them
                save_settings(self.settings, places, plan.on_cluster)
            with suppress(OSError):  # on a read-only tier; a job that needs the clone reports it
                renew_clone(places, self.settings.dataset.participants, say)
        for line in damage_lines(damages, removed=changes):
            say(line)
        return made

    def outputs_of(self, file: Path) -> list[Path]:
        """The files that are made together with a file of the results, with the paths that rules use."""
        return outputs_of(self.workflow, self.plan.places.results / file.relative_to(self.places.results))

    def begin(self) -> None:
        """Begin a run: check programs and tiers, lock the results folder, and note the facts. Jobs find the run's
        identifier in the environment.

        Raises
        ------
        ToolError, ContainerError
            If a program is missing.
        TierError
            If a tier is missing, not writable, or not of the declared kind.
        BusyError
            If another run holds the results folder.
        """
        plan, workflow, settings, places = self.plan, self.workflow, self.settings, self.places
        on_cluster = plan.on_cluster
        separate_slurm_logs(workflow, places.logs / "slurm")
        report_lost_disks(workflow)
        check_programs(self.rules_here(), settings, say)
        compile_library()
        end_at_signals()
        ignore_interrupts_in_jobs()
        command = self.command()
        facts = {
            "command_line": command_line(),
            **slots(workflow, plan.threads),
            "keep_going": command.keep_going,
            "forced": command.forced,
            "without_participants": not command.targets - WITHOUT_PARTICIPANTS,
            "made_with": made_with(plan),
            "analysis_key": plan.analysis,
        }
        tiers = tiers_of(settings, on_cluster=on_cluster)
        if command.targets == {"check"}:  # the check itself reports faults of other tiers
            needed = tiers["results"].name
            tiers = {role: tier if tier.name == needed else tier._replace(node=True) for role, tier in tiers.items()}
        for tier in dict.fromkeys(tiers.values()):
            tier.claim()
        run = identifier()
        with naming_unwritable(places):
            acquire(places)
            remove_path(places.journal(""))  # before jobs that were taken over write to this run's journal
            write_text(places.latest_run, run + "\n")
            save_settings(settings, places, on_cluster)
            facts |= {
                "run": run,
                "started_s": time.time(),
                "pid": os.getpid(),
                "elsewhere": on_cluster,
                "analysis": app_name(settings),
                "image": settings.image,
                # On a cluster the nodes' CPUs count; jobs report these (neurotier.run.cluster_jobs).
                "oversubscribed": bool(facts["cores"] and facts["cores"] > usable_cores() and not on_cluster),
                "settings": settings_without_credentials(settings),
                "tiers": {role: tier.facts() for role, tier in tiers.items()},
                "versions": versions(),
                **machine(),
            }
            write_json(places.runs / f"{run}.json", facts)
        os.environ[RUN] = run
        os.environ.pop("SLURM_RESTART_COUNT", None)  # of a job that contains this process; its jobs begin without it
        if on_cluster:
            report_submissions(workflow, plan.places.logs, partial(add_entry, places, "submitted", folder=os.getcwd()))
        remove_path(places.outputs)  # a run may rewrite all outputs and then be killed
        if not on_cluster and not settings.is_campaign:
            self.watch = Watch(places, run)

    def rules_here(self) -> set[str]:
        """Rules that run on this machine, including those that Snakemake adds to its graph only once participants are
        chosen."""
        rules = {*self.own_names(rules_to_run_here(self.workflow))}
        is_advised = "tabulate_advice" in rules
        if not self.plan.on_cluster and (
            "require_participants" in rules or (is_advised and not self.settings.advice.calibration)
        ):
            rules.add("prepare_tool")
        if is_advised and not any(
            self.places.probe_table(tier, self.plan.node_class).exists() for tier in self.settings.placed_tiers
        ):
            rules.add("probe_tier")
        return rules

    def finish(self, succeeded: bool) -> None:
        """End a run; after failures, write pages about what was done."""
        end_timers()
        stopped_by = jobs_have_ended()
        if self.watch:
            self.watch.stop()
        try:
            counts = self.close(succeeded, stopped_by)
        except EXTERNAL as error:
            say(f"neurotier: how the run ended could not be written: {own_error(error)}")
            return
        places = self.places
        report = places.results / "report.html"
        comparison = places.results / "comparison.html"
        with suppress(OSError):  # the results tier may be full; the only consequence is that damage goes undetected
            renew_jobs_table(places)
            note_outputs(places, self.outputs_of)
        is_campaign = self.settings.is_campaign
        if stopped_by:
            said = f": {counts}" if selected_in(places) and not is_campaign else ""
            say(f"Stopped by {stopped_by}{said}; start the same command again to go on")
            return
        has_analysed = succeeded and self.command().targets - WITHOUT_PARTICIPANTS
        has_report = not is_campaign and is_newer(report, places.latest_run)
        if has_report or (has_analysed and selected_in(places)):
            say(f"Results: {counts}")
        if has_report:
            with suppress(*DAMAGED):  # the page says what is missing
                for row in read_table(places.profile / "runs.tsv", "runs"):
                    if row["run"] == current_run():
                        say(f"Timings: {timings(row['valid'])}")
            say(f"Report: {report}")
        elif has_analysed and report.exists():
            say(f"Report of an earlier run: {report}; target all makes it again")
        if self.plan.is_comparing and is_newer(comparison, places.latest_run):
            with suppress(*DAMAGED):
                for line in self.pages.verdict(self.settings, places):
                    say(line)
            say(f"Report: {comparison}")

    def close(self, succeeded: bool, stopped_by: str) -> str:
        """End the run's processes, clear the work tier, note how the run and its participants ended, and write pages
        after failures; returns counts of participants as text."""
        settings, places, pages, run = self.settings, self.places, self.pages, current_run()
        end(processes_of([run]))
        with suppress(TierError):  # participants have failed for the same reason, and the next start is refused
            remove_leftovers(places.work, places.identity)
        note_swapping(places)
        add_facts(
            places,
            run,
            ended_s=time.time(),
            succeeded=succeeded and not stopped_by,
            stopped_by=stopped_by,
            again=bool(entries(places, run, "again")),
        )
        if self.plan.on_cluster:
            remove_marks(settings, places)
        failed_on_nodes, everyone = entries(places, run, "failed"), selected_in(places)
        if not succeeded and not stopped_by:  # then no job has tabulated the run
            note_flush(places, flush_results(places), read_timed_rows(map(places.record, everyone)))
        close_jobs(places, run)
        if not stopped_by:
            note_killed(places, run, read_jobs(places, run))
        stopped = forget_stopped(places, run) if stopped_by else 0
        failures = read_failures(places)
        close_run(places, run, everyone, failures)
        for one in failed_on_nodes if not stopped_by else ():
            say(str(one.get("line")))
        unreachable = read_intact_json(places.dataset_facts).get("unreachable", {})
        for path, reason in requested_unreachable(unreachable, settings.dataset.participants).items():
            say(f"failed  {path}: cannot be reached: {reason}")
        for failure in failures:
            say(f"failed  {failure['participant']}: {failure['reason']}")
        # A campaign that was stopped does this inner run again.
        if not succeeded and (not stopped_by or CAMPAIGN not in os.environ):
            page, of = pages.report, places.dataset_facts
            if settings.is_campaign:
                page, of = pages.comparison, places.campaign / "plan.tsv"
            # Otherwise the run was refused or is that of others, too; what is made from the page would be made again.
            if everyone and of.exists() and not is_newer(places.results / "report.html", places.complete):
                page(settings, places)
            if (places.bigbrain / "runs").is_dir():
                for line in pages.bigbrain(settings, places):
                    if not stopped_by:
                        say(line)
        return count_states(places, everyone, failures, stopped)


def is_newer(page: Path, file: Path) -> bool:
    """Whether a page was written since a file was."""
    with suppress(OSError):
        return page.stat().st_mtime >= file.stat().st_mtime
    return False


def close_killed(places: Places) -> None:
    """Write the final rows of killed runs while the records that they left still exist.

    Records are removed both when the folder is repaired and when it is decided who is analysed. The caller holds the
    folder's lock, and its own run has not begun.
    """
    for run in [file.stem for file in sorted(places.runs.glob("*.json")) if "row" not in read_json(file)]:
        close_jobs(places, run, was_killed=True)
        forget_stopped(places, run)  # failures of participants that were stopped with their jobs
        close_run(places, run, selected_in(places), read_failures(places))
    if (last := last_facts(places)).get("stopped_by"):  # failures that cluster jobs noted after the end of that run
        forget_stopped(places, last["run"])
    for file in places.runs.glob(places.readings("*").name):  # left by a run that could not remove them
        remove_path(file)


def count_states(places: Places, everyone: Collection[str], failures: list[Record], stopped: int) -> str:
    """How many participants are done, failed, stopped and not run, and how many brain masks there are, as text."""
    made_s = {name: file.stat().st_mtime for name in everyone if (file := places.record(name)).exists()}
    failed = {failure["participant"] for failure in failures} - made_s.keys()
    left = len(everyone) - len(made_s) - len(failed) - stopped
    counts = [f"{len(made_s):,} of {counted(len(everyone), 'participant')} done", f"{len(failed)} failed"]
    counts += [f"{count} {state}" for state, count in (("stopped", stopped), ("not run", left)) if count]
    with suppress(*DAMAGED):  # the page says what is missing
        table = places.group / "group.tsv"
        masks = len(read_table(table, "group", only=("image",)))
        if masks and table.stat().st_mtime >= max(made_s.values()):  # else the table is of an earlier run
            counts.append(counted(masks, "brain mask"))
    return ", ".join(counts)


DAMAGED = (NeurotierError, OSError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that reading damaged state may raise."""

VERSIONED = ("snakemake", "datalad", "git-annex", "pybids", "nibabel", "numpy", "brainextractor")

held = set[Path]()
"""Locks held by this process until it ends; their descriptors stay open."""


def refuse_planted_results(results: Path) -> None:
    """Raise :class:`TierError` if another user may have planted the results folder, or a part of its path."""
    refuse_planted(results, "results folder", "use one of your own (snakemake: --config results=NAME)", own=True)


@contextmanager
def naming_unwritable(places: Places) -> Iterator[None]:
    """Turn an operating system's error into one that says that the results folder cannot be written or mended."""
    try:
        yield
    except OSError as error:
        raise TierError(
            f"results folder cannot be written or mended: {error.filename or 'a file'}: {error.strerror}",
            places.results,
            "free some space, or correct its permissions",
        ) from None


def acquire(places: Places) -> None:
    """Lock the results folder until this process ends, however that happens, and make sure that it has an identity.

    Further calls do nothing.

    Raises
    ------
    BusyError
        If another run holds it, or the file system has no locks.
    TierError
        If another user may have planted it.
    """
    lock = places.lock
    if lock in held:
        return
    places.results.mkdir(parents=True, exist_ok=True)
    refuse_planted_results(places.results)  # now that it exists, no other user can replace it
    descriptor = open_lock(lock)
    try:
        if holder := try_lock(descriptor):
            raise BusyError(
                f"another run is using this results folder ({holder})",
                places.results,
                f"wait for it, or choose another folder with --config results=NAME; if its host is down, remove {lock}",
            )
    except OSError as error:
        raise BusyError(
            f"its file system cannot keep two runs apart (flock: {error.strerror})",
            places.results,
            "choose a folder on another one with --config results=NAME",
        ) from None
    held.add(lock)
    if not places.identity:
        write_text(places.state / "identity", secrets.token_hex(8) + "\n")


@cache
def identifier() -> str:
    """The identifier of this process's run. Several modules share one, since their jobs inherit the same
    environment."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(2)


def work_tier_of_killed(places: Places) -> list[Tier]:
    """The work tier of the last run, if that run was killed; if the tier cannot be cleared any more, a line says
    why."""
    last = last_facts(places)
    if last and "ended_s" not in last:
        try:
            tier = tiers_of(Settings.from_json(last["settings"]), on_cluster=last["elsewhere"])["work"]
            tier.require_answer()
            tier.check()
            return [tier]
        except DAMAGED as error:
            say(f"neurotier: work files of the killed run {last.get('run')} stay: {error}")
    return []


def forget_runs_of_another(places: Places) -> None:
    """Forget unfinished runs and cluster jobs if this folder is a copy: they may still be running in the original."""
    with suppress(*DAMAGED):
        made = results_folder(Settings.from_json(read_json(places.settings_file)))
        if made.exists() and not made.samefile(places.results):
            remove_path(places.journal(""))
            for file in places.runs.glob("*.json"):
                if "ended_s" not in read_json_or_empty(file):
                    remove_path(file)


def machine() -> Record:
    """Facts about the node that Snakemake runs on."""
    return {
        "host": socket.gethostname(),
        "kernel": f"{platform.system()} {platform.release()}",
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "swap_bytes": psutil.swap_memory().total,
        "swap_out_before_bytes": psutil.swap_memory().sout,
    }


def versions() -> dict[str, str]:
    """Versions of the software that results and timings depend on."""
    installed = {"neurotier": __version__, "python": platform.python_version()}
    for name in VERSIONED:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    at = f"--git-dir={ROOT / '.git'}"  # an installed package may lie in an unrelated repository
    commit = subprocess.run(["git", at, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return installed | ({"commit": commit.stdout.strip()} if commit.returncode == 0 else {})


def command_line() -> list[str]:
    """The command as the user gave it, without credentials."""
    return [Path(sys.argv[0]).name, *map(without_credentials, sys.argv[1:])]
