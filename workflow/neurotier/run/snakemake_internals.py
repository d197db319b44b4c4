"""All uses of Snakemake beyond its documentation; no other module has any.

Only ``workflow.cores`` and ``workflow.basedir`` are documented for a Snakefile. The rest may change in any version:
each function here says what it uses, why nothing documented would do, and in which version of Snakemake that was
introduced. All functions have been tried with 9.19, the oldest version that the Snakefile accepts, and with 9.27.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from snakemake.logging import logger

from neurotier.core.errors import SettingsError
from neurotier.core.files import Facts, Record
from neurotier.core.parallelism import RESOURCES
from neurotier.run.jobs import EXTERNAL, own_error


class Command(NamedTuple):
    """What this Snakemake was started for, as known when it builds its graph of jobs.

    Attributes
    ----------
    starts
        Whether jobs are run: not in a dry run, nor with an option that only inspects, lists or touches files.
    is_dry_run
        Whether Snakemake only says what would be run.
    targets
        Requested rules and files, as returned by :func:`requested_names`.
    until
        Rules after which Snakemake stops (``--until``).
    forced, reindexes
        Whether all participants are analysed, even those that are done; whether the dataset is indexed again.
    keep_going
        Whether jobs that do not depend on a failed one are still run.
    cancel
        The command by which the executor cluster-generic ends a job; empty if none was given.
    """

    starts: bool
    is_dry_run: bool
    targets: frozenset[str]
    until: frozenset[str]
    forced: bool
    reindexes: bool
    keep_going: bool
    cancel: str


def own_names(workflow: Any) -> dict[str, str]:
    """Map the present names of the rules that were just read to the names that this workflow gives them; the two differ
    if another workflow includes this one as a module (``WorkflowModifier.rule_proxies``, 7.0).
    """
    modifier = workflow.modifier
    return {
        proxy.rule.name: name for name, proxy in modifier.rule_proxies._rules.items() if proxy.rule in modifier.rules
    }


def requested_names(names: Mapping[str, str], given: Iterable[object]) -> frozenset[str]:
    """Requested rules and files: rules of this workflow by their own ``names``; rules of other modules, and files, as
    paths."""
    return frozenset(names.get(name) or str(Path(name).absolute()) for name in map(str, given))


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    """End this process with one line at an error or Ctrl-C: for exceptions in Snakefiles and hooks, Snakemake would
    show a trace."""
    try:
        yield
    except EXTERNAL as error:
        logger.error(f"neurotier: {own_error(error)}")
    except KeyboardInterrupt:
        logger.error("neurotier: stopped; start the same command again to go on")
    else:
        return
    sys.exit(1)


def announce_pages(pages: Sequence[Path]) -> None:
    """Tell logger plugins which pages were requested, by a record without a message, which Snakemake itself ignores.

    The plugin ``neurotier`` names them if there is nothing to be done. If a workflow includes this one twice, each
    module names its own pages.
    """
    logger.info(None, extra={"pages": pages})


# Settings. Since version 8, Snakemake keeps the command line in settings objects; a Snakefile only sees --config.


def is_main_process(workflow: Any) -> bool:
    """Whether this is the Snakemake that the user started, not one that it started for a job (8.0)."""
    return bool(workflow.is_main_process)


def main_snakefile(workflow: Any) -> Path:
    """The Snakefile that the user named, where Snakemake also looks for profiles (4.0)."""
    return Path(workflow.main_snakefile)


def directory_option(workflow: Any) -> Path | None:
    """The folder given with ``--directory`` on the command line or in a profile (``overwrite_workdir``, 4.0)."""
    given = workflow.overwrite_workdir
    return given and Path(given)


def command_line_config(workflow: Any) -> Record:
    """The entries of ``--config`` alone (8.0): in ``config`` they are merged with those of files."""
    return dict(workflow.config_settings.config)


def has_config_of_its_own(workflow: Any, config: Facts) -> bool:
    """Whether this workflow is a module with a configuration of its own (``modifier_stack``, 6.0).

    ``--config`` and profiles apply only to the configuration of the main Snakefile.
    """
    return config is not workflow.modifier_stack[0].globals["config"]


def uses_containers(workflow: Any) -> bool:
    """Whether Snakemake is asked to use containers, ``--sdm apptainer`` (8.0). Our jobs start the containers, not
    Snakemake."""
    return any(method.name == "APPTAINER" for method in workflow.deployment_settings.deployment_method)


def slots(workflow: Any, threads: int) -> Record:
    """How many jobs of ``threads`` threads this Snakemake may run at once (8.0), as noted in the facts of a run.

    ``cores`` are those given to Snakemake; ``parallelism`` is how many participants fit into these, and ``None`` on a
    cluster, where ``workflow.cores`` would raise; ``limits`` are the resources that jobs share, such as MB of memory.
    """
    given, limits = workflow.resource_settings.cores, workflow.global_resources
    return {
        "cores": given,
        "parallelism": max(1, given // threads) if given and workflow.local_exec else None,
        "limits": {name: int(limits[name].value) for name in RESOURCES if name in limits},
    }


def cores(workflow: Any) -> int | None:
    """Cores given to this Snakemake (8.0); ``None`` if none were given, as on a cluster or if it runs no jobs."""
    given = workflow.resource_settings.cores
    return given if isinstance(given, int) else None


def check_without_cores(workflow: Any, arguments: Sequence[str]) -> None:
    """Let the target ``check`` run on one core if no cores are given; refuse ``--cores 0``, with which Snakemake would
    wait for ever.

    Without cores Snakemake refuses to run any job once it has read the Snakefile (``DAGApi.execute_workflow``, 8.0).

    Raises
    ------
    SettingsError
        If the number of cores is less than 1.
    """
    given = cores(workflow)
    if given is not None and given < 1:
        raise SettingsError(f"nothing runs on {given} cores", "--cores", "give at least 1")
    if given is None and options_of(arguments).targets == [workflow.modifier.avail_rulename("check")]:
        workflow.resource_settings.cores = workflow.global_resources["_cores"] = 1


def require_folder(arguments: Sequence[str]) -> None:
    """Refuse a working folder that this user may not write to: Snakemake would show a trace (``Persistence``, 8.0).

    Raises
    ------
    SettingsError
        If the folder cannot be written, and Snakemake is to do more than read the Snakefile.
    """
    folder, options = os.path.abspath(".snakemake" if os.path.isdir(".snakemake") else "."), options_of(arguments)
    if not (options.list_rules or options.lint or options.print_compilation or os.access(folder, os.W_OK | os.X_OK)):
        raise SettingsError(
            "you may not write to it, or it is mounted read-only",
            folder,
            "start in a folder of your own; neurotier init FOLDER lays one out",
        )


def command_of(workflow: Any, own: Callable[..., frozenset[str]]) -> Command:
    """What this Snakemake was started for (8.0), with rules by their ``own`` names; not known yet while it reads a
    Snakefile.

    Snakemake has an executor only if it is to run jobs, or to pretend to. With ``--summary``, ``--report``,
    ``--delete-all-output`` and the like it has none, though ``workflow.dryrun`` is false for them, too.
    """
    executor, asked = workflow.executor_plugin, workflow.dag_settings
    return Command(
        starts=executor is not None and not workflow.dryrun and not workflow.touch,
        is_dry_run=workflow.dryrun,
        targets=own(asked.targets),
        until=own(asked.until),
        forced=asked.forceall or "analyze_participants" in own(asked.forcerun),
        reindexes=bool(own(asked.forcerun) & {"clone_dataset", "index_dataset"}),
        keep_going=executor is not None and workflow.execution_settings.keep_going,
        cancel=getattr(workflow.executor_settings, "cancel_cmd", None) or "",
    )


readings: dict[tuple[int, Path], tuple[Any, ...]] = {}


def first_reading(workflow: Any, results: Path, *made: Any) -> tuple[Any, ...]:
    """The objects made when the Snakefile was first read for these results, which are ``made`` if this is the first
    time.

    For each rule of a module that a user changes (``use rule ... with``), Snakemake reads the whole module again, with
    ``checkpoints`` that hold only that rule (``ModuleInfo.use_rules``, 9.0).
    """
    return readings.setdefault((id(workflow), results), made)


def call_before_inputs(workflow: Any, function: Callable[[Any], list[str]]) -> None:
    """Make Snakemake call an input function before it looks at any rule's inputs (``Namedlist._names``, 5.0).

    The work of a start must be done before Snakemake looks at any file, whichever rule or file is requested. The
    function is added to the rules of this workflow only, not to those of a workflow that includes it
    (``Workflow.modifier``, 6.0).
    """
    for rule in workflow.modifier.rules:
        rule.input.insert(0, function)
        for name, (first, end) in rule.input._names.items():
            rule.input._names[name] = (first + 1, end and end + 1)


def set_limits(workflow: Any, limits: Mapping[str, int]) -> None:
    """Limit resources that jobs share, except those that the user gave with ``--resources`` (7.0).

    A Snakefile can say how much of a resource a job takes, but how much there is can be said only by a profile or the
    command line.
    """
    for name, limit in limits.items():
        if name not in workflow.global_resources:
            workflow.register_resource(name, limit)


def force_rule_of(workflow: Any, file: Path) -> None:
    """Make Snakemake run the rule of a file even if the file exists (``DAG.forcefiles``, 5.0)."""
    workflow.dag.forcefiles.add(str(file))


def outputs_of(workflow: Any, file: Path) -> list[Path]:
    """All files made by the rule that makes a file, or a folder that contains it (``Rule.is_producer``, 5.0); empty if
    no rule makes it, that is, if it is the user's.
    """
    for path in map(str, (file, *file.parents)):
        for rule in workflow.rules:
            if rule.is_producer(path):
                return [Path(output) for output in rule.expand_output(rule.get_wildcards(path))[0]]
    return []


def run_locally_except(workflow: Any, names: Iterable[str]) -> None:
    """Make all rules local except the named ones, which become cluster jobs (the ``localrules`` list).

    The documented ways are that list and ``localrule: True`` in each rule. With both, the many local rules would have
    to be named instead of the few others, and the list needs the names that rules have in a workflow that includes this
    one as a module.
    """
    submitted = set(map(workflow.modifier.avail_rulename, names))
    workflow.localrules(*(rule.name for rule in workflow.modifier.rules if rule.name not in submitted))


def add_hooks(workflow: Any, **functions: Callable[[], None]) -> None:
    """Make ``onstart``, ``onsuccess`` and ``onerror`` call functions before what they already do (``_onstart``).

    To be called once all rules have been read: until then Snakemake ignores hooks of a module (6.0).
    """

    def call_both(function: Callable[[], None], known: Callable[[Any], None], log: Any) -> None:
        with errors_as_one_line():
            function()
        known(log)

    for name, function in functions.items():
        getattr(workflow, name)(partial(call_both, function, getattr(workflow, f"_{name}")))


# The graph of jobs, which Snakemake does not pass to hooks.


def rules_to_run_here(workflow: Any) -> set[str]:
    """Names of the rules that have jobs to run on this machine, as far as is known (``DAG``, 3.0)."""
    return {job.rule.name for job in workflow.dag.needrun_jobs() if workflow.is_local(job.rule)}


def close_logs(workflow: Any) -> None:
    """Let only this user read Snakemake's log, which contains the command line; the documented hooks get its path too
    late (9.0)."""
    for file in workflow.logger_manager.get_logfile():
        if Path(file).parts[-3:-1] == (".snakemake", "log"):  # not the file of a logger plugin, which may be a device
            with suppress(OSError):  # a file system without permissions, or a lost one
                os.chmod(file, 0o600)


def hide_traces_of_lost_disks(workflow: Any) -> None:
    """If the disks that hold Snakemake's own files are lost, prevent traces that would hide the line that says what is
    wrong.

    Snakemake's temporary folder is then left behind (``Workflow.tear_down``, 9.0), and lines that its log cannot take
    are lost.
    """
    workflow._snakemake_tmp_dir._ignore_cleanup_errors = True
    logging.raiseExceptions = False


def report_lost_disks(workflow: Any) -> None:
    """End the run with one line if a job cannot be started because of a disk error (``JobScheduler.run``, 8.0).

    Snakemake removes a job's files before it tries the job again; if it cannot, it shows a trace.
    """
    from snakemake.exceptions import CliException

    begin_jobs = workflow.scheduler.run

    def begin_or_fail(*jobs: Any, **executor: Any) -> None:
        try:
            begin_jobs(*jobs, **executor)
        except OSError as error:
            raise CliException(f"neurotier: {error.filename}: {error.strerror}") from None  # shown without a trace

    workflow.scheduler.run = begin_or_fail


def separate_slurm_logs(workflow: Any, folder: Path) -> None:
    """Make the plugin slurm (2.8) keep its logs in a folder of this run's own, below ``folder`` or ``slurm-logdir``.

    At its end, the plugin removes all empty folders below its log folder. By default all runs in a working folder share
    one log folder: jobs of another run that still wait for nodes would then fail, since Slurm could not open their
    logs.
    """
    executor = workflow.scheduler._executor
    if (name := getattr(executor, "run_uuid", None)) is not None:
        folder = executor.slurm_logdir if workflow.executor_settings.logdir else folder
        if "%j" in str(folder):
            raise SettingsError("%j in its path is the number of a job to Slurm", folder, "choose another folder")
        executor.slurm_logdir = folder / name


def report_submissions(workflow: Any, logs: Path, tell: Callable[..., None]) -> None:
    """Report each submitted job that has a log below ``logs`` (``SubmittedJobInfo``, 8.0): its number, the rule that
    its log is named after, its share, and the log. Other jobs belong to other modules, or to a workflow that includes
    this one.
    """
    executor = workflow.scheduler._executor
    report = executor.report_job_submission

    def reported(info: Any, *arguments: Any, **options: Any) -> None:
        report(info, *arguments, **options)
        for job in getattr(info.job, "jobs", [info.job]):
            for file in (Path(file) for file in job.log if Path(file).is_relative_to(logs)):
                rule, share = file.relative_to(logs).parts[0], job.wildcards_dict.get("share")
                tell(job=str(info.external_jobid), rule=rule, share=share, log=str(file))

    executor.report_job_submission = reported


def end_timers() -> None:
    """End the timers of Snakemake's limit on submissions, for which Python would wait at exit (8.0).

    Each time the scheduler has chosen jobs, it starts a timer for its next look
    (``JobScheduler._schedule_reevalutation``), by default a second later; a run that is over needs none.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


# The command line: while a Snakefile is read, Snakemake's settings contain neither the executor nor the profiles.


def options_of(arguments: Sequence[str]) -> Namespace:
    """A command line as read by Snakemake's own parser, which takes some time to build (``get_argument_parser``,
    5.0)."""
    from snakemake.cli import get_argument_parser

    known: Namespace = get_argument_parser().parse_known_args(arguments)[0]
    return known


def settings_of_slurm(arguments: Sequence[str]) -> Any:
    """The settings for the plugin ``slurm`` in a command line and its profiles, whichever executor these choose (8.0).

    Snakemake gives an executor only the settings under the executor's own name. The output of ``parse_args`` is
    suppressed: it would print again which profiles are used.
    """
    from snakemake.cli import parse_args
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    said = StringIO()
    try:
        with redirect_stderr(said):
            _, options = parse_args(list(arguments))
    except SystemExit:
        sys.stderr.write(said.getvalue())
        raise
    return ExecutorPluginRegistry().get_plugin("slurm").get_settings(options)


def options_of_profile(name: str) -> Facts:
    """The options in a profile, which is found (``get_profile_dir``, 8.0) and read, by YTE, as Snakemake does it."""
    import yte
    from snakemake.cli import get_profile_dir

    found = get_profile_dir(name)
    options = yte.process_yaml(found[1].read_text(), require_use_yte=True) if found else None
    return options if isinstance(options, Mapping) else {}


def config_of_profile(name: str) -> Facts:
    """The ``config:`` entry of a profile; empty if it has none."""
    from snakemake.cli import parse_config

    entry = options_of_profile(name).get("config", {})
    return entry if isinstance(entry, Mapping) else dict(parse_config([entry] if isinstance(entry, str) else entry))


def default_resources(given: Any) -> dict[str, str]:
    """Resources as given by ``--default-resources`` or a profile, as text; of parsed values, the text that was parsed
    (8.0).

    >>> default_resources(["slurm_partition=long", "mem_mb=10"]), default_resources({"runtime": 30})
    ({'slurm_partition': 'long', 'mem_mb': '10'}, {'runtime': '30'})
    >>> default_resources("mem_mb=10")
    {'mem_mb': '10'}
    """
    given = getattr(given, "args", given) or {}
    given = [given] if isinstance(given, str) else given
    pairs = given.items() if isinstance(given, Mapping) else (str(each).partition("=")[::2] for each in given)
    return {name: str(getattr(value, "raw", value)) for name, value in pairs}


# Signals; those that end a run are handled in neurotier.run.stops.


def ignore_interrupts_in_jobs() -> None:
    """Make jobs on this machine ignore SIGINT, which a terminal sends to them, too.

    Python would show a trace of the import that it is in, since a rule's script has no handler until it has imported
    ours. This process must therefore end its jobs with another signal. The prefix replaces Snakemake's default prefix
    of bash commands (5.0), so that is repeated here.
    """
    from snakemake.shell import shell

    strict = 'test -z "$BASH_VERSION" || set -euo pipefail; '
    shell.prefix(f"trap '' INT; {strict if shell._process_prefix is None else shell._process_prefix}")
