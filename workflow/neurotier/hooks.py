"""Hooks: what happens at the start and the end of a run, in Snakemake's own process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.dataset.health import remove_broken_clone
from neurotier.dataset.unreachable import forget_unreachable, unreachable_sites
from neurotier.errors import NeurotierError
from neurotier.healing import (
    find_damage,
    forget_markers,
    forget_outputs,
    lines,
    lost_kept,
    note_outputs,
    remove,
    restore_kept,
    restore_state,
)
from neurotier.jobs import note_killed, participants, read_failures
from neurotier.parallelism import RESOURCES
from neurotier.places import Places
from neurotier.planning import Plan
from neurotier.processes import CAMPAIGN
from neurotier.profile import Record, close_run, note_flush, read_records, unclosed_runs
from neurotier.profile_config import only_looks
from neurotier.run import Slots, acquire, command_line, current_run, end_run, start_run
from neurotier.stops import end_at_signals, jobs_have_ended

WOULD_BE_PUT_BACK = "it would be put back, and what is listed here for want of it would not be done"


def uses_containers(workflow: Any) -> bool:
    """Whether Snakemake was told to use containers (``--sdm apptainer``)."""
    return any(method.name == "APPTAINER" for method in workflow.deployment_settings.deployment_method)


def make_importable(workflow_folder: str) -> None:
    """Have jobs find this Python and this library, installed or not: they run ``python3 -m neurotier``.

    The command of a rule names no path, so that moving the environment is no reason to analyse everyone again.
    """
    prepend("PATH", str(Path(sys.executable).parent))
    prepend("PYTHONPATH", workflow_folder)


def prepend(variable: str, folder: str) -> None:
    """Put a folder first in a search path of the environment."""
    known = filter(None, os.environ.get(variable, "").split(os.pathsep))
    os.environ[variable] = os.pathsep.join(dict.fromkeys([folder, *known]))


def heal(plan: Plan, arguments: Sequence[str]) -> None:
    """Have what the results folder has lost made again, before Snakemake looks what is there.

    The folder is taken for this run first. A command that changes nothing, such as a dry run, is told what it would be.

    Raises
    ------
    BusyError
        If another run holds the results folder.
    """
    places, changes = Places.from_settings(plan.settings), not only_looks(arguments)
    if not places.state.is_dir():
        return
    try:
        if changes:
            acquire(places)
        lost = lost_kept(places)
        if changes:
            restore_kept(lost)
        damages = find_damage(places, plan.is_app)
        if changes:
            remove(damages)
            forget_markers(places)
            restore_state(places)
            remove_broken_clone(places, say)
            forget_unreachable(places)
    except OSError:  # not writable: the start of the run says so
        return
    for file in lost:
        say(f"neurotier: {file} was lost or damaged; " + ("it is put back" if changes else WOULD_BE_PUT_BACK))
    for line in lines([damage for damage in damages if not lost.keys() & set(damage.files)], removed=changes):
        say(line)


def begin(plan: Plan, workflow: Any) -> None:
    """Start a run; see :func:`neurotier.run.start_run`. Earlier runs that were killed get their rows first."""
    end_at_signals()
    run = start_run(plan.settings, slots(plan, workflow), command_line())
    places = Places.from_settings(plan.settings)
    forget_outputs(places)
    for earlier in unclosed_runs(places):
        if earlier != run:
            close_run(places, earlier, participants(places), read_failures(places))


def slots(plan: Plan, workflow: Any) -> Slots:
    """How many jobs this Snakemake may run at once."""
    cores, limits = workflow.resource_settings.cores, workflow.global_resources
    return Slots(
        cores=cores,
        parallelism=max(1, cores // plan.threads) if cores and workflow.local_exec else None,
        limits={name: int(limits[name].value) for name in RESOURCES if name in limits},
    )


def finish(plan: Plan, succeeded: bool) -> None:
    """End a run. After failures, write tables, figures and report for those who were analysed."""
    settings, run, stopped_by = plan.settings, current_run(), jobs_have_ended()
    places = Places.from_settings(settings)
    try:
        end_run(settings, run, stopped_by)
        note_killed(places, run)
        everyone, failures = participants(places), read_failures(places)
        if not succeeded and stopped_by is None:  # then nobody has tabulated it
            note_flush(places, lambda: read_records(places, everyone))
        close_run(places, run, everyone, failures)
        for path, reason in unreachable_sites(places).items():
            say(f"failed  {path}: cannot be reached: {reason}")
        for failure in failures:
            say(f"failed  {failure['participant']}: {failure['reason']}")
        is_done_again = (
            stopped_by is not None and CAMPAIGN in os.environ
        )  # the campaign was stopped, and goes on with it
        if not succeeded and not is_done_again and everyone:
            write_what_is_there(plan, places)
        if not succeeded and not is_done_again and (places.bigbrain / "runs").is_dir():
            from neurotier.bigbrain.stages import write_partial

            for line in write_partial(settings, places):
                say(line)
    except OSError as error:
        say(f"neurotier: the end of the run could not be written: {error.filename}: {error.strerror}")
        return
    except NeurotierError as error:
        say(f"neurotier: the end of the run could not be written: {error}")
        return
    with suppress(OSError):  # the results tier may be full: then damage is not found out, no more
        note_outputs(places)
    if not plan.is_campaign and (places.results / "report.html").exists():
        say(summary_line(places, everyone, failures))
        say(f"Report: {places.results / 'report.html'}")
    if plan.is_comparing and (places.results / "comparison.html").exists():
        for line in verdict_lines(places):
            say(line)
        say(f"Report: {places.results / 'comparison.html'}")


def write_what_is_there(plan: Plan, places: Places) -> None:
    """Write the report on what a run that failed has done."""
    if plan.is_campaign:
        from neurotier.comparison.stages import write_all

        if (places.campaign / "plan.tsv").exists():  # else the campaign was refused, and what is there stays
            write_all(plan.settings, places)
    else:
        from neurotier.stages import write_partial

        write_partial(plan.settings, places)


def verdict_lines(places: Places) -> list[str]:
    """How many runs a comparison has and leaves out, and which placement was fastest."""
    from neurotier.comparison.collect import read_comparison_tables
    from neurotier.comparison.verdict import judge

    compared = read_comparison_tables(places.comparison)
    verdict = judge(compared.runs, compared.participants)
    return [verdict.counts, *(f"{family.name}: {family.headline}" for family in verdict.families)]


def summary_line(places: Places, everyone: list[str], failures: list[Record]) -> str:
    """How many participants are done, failed and left."""
    done = {name for name in everyone if places.record(name).exists()}
    failed = {failure["participant"] for failure in failures} - done
    left = len(everyone) - len(done) - len(failed)
    return f"{len(done)} of {len(everyone)} participants done, {len(failed)} failed" + (
        f", {left} not run" if left else ""
    )


def say(line: str) -> None:
    """Tell the user, where Snakemake tells its own progress."""
    print(line, file=sys.stderr, flush=True)
