"""Hooks: what happens at the start and the end of a run, in Snakemake's own process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from neurotier.core.configuration import WORKLOADS
from neurotier.core.errors import NeurotierError, StateError
from neurotier.core.files import Record, remove_whatever
from neurotier.core.places import Places
from neurotier.core.processes import CAMPAIGN, current_run, use_one_blas_thread
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import ROLES
from neurotier.core.tables import read_table
from neurotier.core.tiers import tiers_of
from neurotier.dataset.source import indexed_dataset, renew_clone
from neurotier.run.adoption import may_have_left, take_over
from neurotier.run.cluster_jobs import close_jobs, renew_jobs_table
from neurotier.run.disturbance import Watch, forget_readings
from neurotier.run.healing import (
    damage_lines,
    find_damage,
    note_outputs,
    remove,
    remove_from_records,
    remove_partial,
    restore_state,
    take_back_dates,
)
from neurotier.run.jobs import forget_stopped, load_settings, note_killed, read_failures, save_settings
from neurotier.run.journal import heard, tell
from neurotier.run.mixing import made_with, other_results
from neurotier.run.node_check import remove_marks
from neurotier.run.participants import participants
from neurotier.run.plan import Plan
from neurotier.run.preconditions import check_programs, check_start
from neurotier.run.profile_tables import (
    close_run,
    flush_results,
    note_flush,
    read_timed_rows,
    timings,
    unclosed_runs,
)
from neurotier.run.shares import Made
from neurotier.run.snakemake_internals import (
    Command,
    call_around,
    close_logs,
    command_of,
    cores,
    end_timers,
    errors_in_a_line,
    hear_submitted,
    is_main_process,
    leave_lost_folder,
    log_apart,
    name_lost_disks,
    names,
    rules_to_run_here,
    set_limits,
    slots,
)
from neurotier.run.start import (
    DAMAGED,
    acquire,
    clear_up,
    command_line,
    end_run,
    forget_runs_of_another,
    refuse_planted_places,
    start_run,
    unwritable,
)
from neurotier.run.stops import end_at_signals, jobs_have_ended

SHOWN = 5
"""Most participants who are named to the user."""

PAGES = {"all": "report", "advise": "advice", "comparison": "comparison", "probe": "probe", "bigbrain": "bigbrain"}
PAGES |= {"published": "published", **dict(zip(WORKLOADS, WORKLOADS, strict=True))}
"""Targets with a page, and its name."""

pages_asked_for: list[Path] = []
"""Pages of this command's targets, for the terminal to name where there is nothing to be done."""


def make_importable() -> None:
    """Have jobs find this Python and this library, installed or not: they run ``python3 -m neurotier``.

    It goes by the environment, since a command that named a path would be another one when the environment is moved:
    a reason to analyse everyone again. Jobs inherit the number of BLAS threads, too.
    """
    prepend("PATH", str(Path(sys.executable).parent))
    prepend("PYTHONPATH", str(Path(__file__).parents[2]))
    use_one_blas_thread()


def compile_library() -> None:
    """Have bytecode of this library where jobs look for it, even if Python shall not write any as it imports.

    Without, each job compiles what it imports, which doubles its start: 0.05 s of CPU. To find all of it there takes
    0.01 s. Where it cannot be written (a checkout of somebody else), jobs do without.
    """
    import compileall

    compileall.compile_dir(Path(__file__).parents[1], quiet=2)


def prepend(variable: str, folder: str) -> None:
    """Put a folder first in a search path of the environment."""
    known = filter(None, os.environ.get(variable, "").split(os.pathsep))
    os.environ[variable] = os.pathsep.join(dict.fromkeys([folder, *known]))


def start(plan: Plan, workflow: Any, pages: Any) -> list[str]:
    """What is done before Snakemake looks at any file: by input functions, for it then knows what it is started for.

    The begin and the end of the run are hung up here, too: Snakemake passes over such hooks of a module. A process that
    Snakemake has started for a job does nothing but say how much there is of each resource.
    The inputs that this adds to a rule are none.
    """
    with errors_in_a_line():
        if is_main_process(workflow):
            close_logs(workflow)
            leave_lost_folder(workflow)
            plan.most_mb = slots(workflow, plan.threads).limits.get("mem_mb")
            command = command_of(workflow)
            look_ahead(plan, command, cores(workflow))
            targets = command.targets or {"comparison" if plan.is_campaign else "all"}
            asked = [page for target, page in PAGES.items() if names(targets, target)]
            pages_asked_for[:] = [plan.places.results / f"{page}.html" for page in asked]
            watched: list[Watch] = []
            call_around(
                workflow,
                onstart=lambda: begin(plan, workflow, watched),
                onsuccess=lambda: finish(plan, watched, succeeded=True, after=pages),
                onerror=lambda: finish(plan, watched, succeeded=False, after=pages),
            )
        set_limits(workflow, plan.limits())
    return []


def look_ahead(plan: Plan, command: Command, cores: int | None) -> None:
    """Before the graph is built: have what was lost made again, decide who is analysed, refuse what cannot end well.

    Parameters
    ----------
    plan
        The plan of the run.
    command
        What Snakemake is started for. If it runs no job, nothing is changed, and a dry run says what would be.
    cores
        Cores for jobs on this machine; ``None`` if they are not known.

    Raises
    ------
    NeurotierError
        See :func:`neurotier.run.mixing.other_results`, :func:`heal` and
        :func:`neurotier.run.preconditions.check_start`; and if a tier in use does not answer, or another user may have
        planted it or the results folder.
    """
    tiers = list(tiers_of(plan.settings, elsewhere=plan.elsewhere).values())
    for tier in tiers:
        tier.require_answer()
    places, changes = Places.from_settings(plan.settings), command.starts
    if not command.is_dry_run:  # --delete-all-output removes files, too
        refuse_planted_places(places.results, tiers)
    starts = changes or command.is_dry_run
    others = other_results(plan, places, command.anew) if starts else None
    made = heal(plan, command, is_replaced=others is not None)
    if starts:
        check_start(plan, command, say)
    if command.asks_for("ior") and changes:
        forget_failed_points(places.workload("ior") / "ior.tsv")
    if command.asks_for("check") and changes:  # a look at what is now
        remove_whatever(places.checked(plan.node_class))
    slots = None if plan.elsewhere or not cores else max(1, cores // plan.threads)
    try:
        if changes:
            close_killed(places)
        if others:
            say(others.line(removed=changes))
        if others and changes:
            others.remove()
        if changes:
            remove_partial(places, command.targets)
        missing = plan.settle(made, command.anew, slots, write=changes)
        if missing and (command.is_dry_run or (changes and plan.elsewhere)):  # a pool on this machine says it itself
            would = "would be" if command.is_dry_run else "to be"
            say(f"{counted(len(missing), 'participant')} {would} analysed: {first_of(missing, shown=SHOWN)}")
    except OSError as error:
        raise unwritable(places, error) from None


def forget_failed_points(table: Path) -> None:
    """Have IOR's table made anew if points have failed, as by a node that was down; what was measured is kept apart."""
    with suppress(OSError, StateError):
        if any(row["status"].startswith("failed") for row in read_table(table, "ior", only=("status",))):
            remove_whatever(table)


def heal(plan: Plan, command: Command, is_replaced: bool = False) -> dict[str, Made]:
    """Have what the results folder has lost made again, before Snakemake looks what is there; who is whole.

    The folder is taken for this run first. A command that changes nothing, such as a dry run, is told what it would be.
    Where all results are replaced by others, nobody is looked at.

    Raises
    ------
    BusyError
        If another run holds the results folder.
    """
    places, changes = Places.from_settings(plan.settings), command.starts
    made: dict[str, Made] = {}
    if not places.state.is_dir():
        return made
    try:
        if changes:
            acquire(places)
            forget_runs_of_another(places)
            if plan.elsewhere or may_have_left(places):
                wanted = {} if is_replaced or command.anew else plan.works()
                plan.taken_over = take_over(places, wanted, command.cancel, say)
            if not plan.taken_over:  # nothing may be left to run
                clear_up(places, tiers_of(plan.settings, elsewhere=plan.elsewhere)["work"])
        damages = [] if is_replaced else find_damage(places, plan.is_app, made)
        if changes:
            with suppress(*DAMAGED):  # then it is tried again without what is removed here
                close_killed(places)
            remove(damages)
            remove_whatever(places.state / "got")  # what a killed run says there about images may be outdated
            remove_from_records()
            restore_state(places)
            take_back_dates(places)
            try:
                load_settings(places.results)
            except NeurotierError:  # lost, or the folder was moved: and there may be nothing left to run
                save_settings(plan.settings, places, plan.elsewhere)
            renew_clone(places, say)
    except OSError:  # not writable: the start of the run says so
        return made
    for line in damage_lines(damages, removed=changes):
        say(line)
    return made


def close_killed(places: Places) -> None:
    """Write the final rows of runs that were killed, while the records that they left are there.

    To heal the folder removes some of these, and to decide who is analysed does. The caller holds the folder's lock,
    and its own run has not begun.
    """
    for run in unclosed_runs(places):
        close_jobs(places, run, was_killed=True)
        close_run(places, run, participants(places), read_failures(places))
    forget_readings(places)


def begin(plan: Plan, workflow: Any, watched: list[Watch]) -> None:
    """Start a run (:func:`neurotier.run.start.start_run`); ``watched`` takes what watches the processors meanwhile."""
    log_apart(workflow, plan.places.logs.absolute() / "slurm")
    name_lost_disks(workflow)
    rules_here = rules_to_run_here(workflow)
    check_programs(rules_here, plan.settings)
    compile_library()
    end_at_signals()
    command = command_of(workflow)
    wishes = {
        "keep_going": command.keep_going,
        "anew": command.anew,
        "elsewhere": plan.elsewhere,
        "made_with": made_with(plan),
        "analysis_key": plan.analysis,
    }
    only_checks = len(command.targets) == 1 and command.asks_for("check")
    roles = ("results",) if only_checks else ROLES  # what is wrong with others, the check is to tell
    run = start_run(plan.settings, slots(workflow, plan.threads), command_line(), wishes, roles)
    places = Places.from_settings(plan.settings)
    if plan.elsewhere:
        hear_submitted(workflow, partial(tell, places, "submitted"))
    remove_whatever(places.outputs)  # a run may write all of them again and be killed
    if not plan.elsewhere and not plan.is_campaign:
        watched.append(Watch(places, run))


def finish(plan: Plan, watched: list[Watch], succeeded: bool, after: Any) -> None:
    """End a run, and what has ``watched`` meanwhile; after failures, the pages are written of what was done.

    They are built on the run, so it is given what does so, as in :mod:`neurotier.pages.partial`.
    """
    end_timers()
    settings, run, stopped_by = plan.settings, current_run(), jobs_have_ended()
    places = Places.from_settings(settings)
    while watched:
        watched.pop().stop()
    try:
        end_run(settings, run, stopped_by, succeeded)
        if plan.elsewhere:
            remove_marks(settings, places)
        stopped = 0
        if stopped_by is None:
            note_killed(places, run)
        else:
            stopped = forget_stopped(places, run)
        everyone, failures = participants(places), read_failures(places)
        if not succeeded and stopped_by is None:  # then nobody has tabulated it
            flush = flush_results(places)
            note_flush(places, flush, read_timed_rows(map(places.record, everyone)))
        told = heard(places, run, "failed")
        close_jobs(places, run)
        close_run(places, run, everyone, failures)
        for one in told if stopped_by is None else ():
            say(str(one.get("line")))
        for path, reason in indexed_dataset(places).get("unreachable", {}).items():
            say(f"failed  {path}: cannot be reached: {reason}")
        for failure in failures:
            say(f"failed  {failure['participant']}: {failure['reason']}")
        # A campaign that was stopped does this run again.
        is_done_again = stopped_by is not None and CAMPAIGN in os.environ
        if not succeeded and not is_done_again and everyone:
            if not plan.is_campaign:
                after.report(settings, places)
            elif (places.campaign / "plan.tsv").exists():  # else the campaign was refused, and what is there stays
                after.comparison(settings, places)
        if not succeeded and not is_done_again and (places.bigbrain / "runs").is_dir():
            for line in after.bigbrain(settings, places):
                if stopped_by is None:
                    say(line)
    except OSError as error:
        say(f"neurotier: the end of the run could not be written: {error.filename}: {error.strerror}")
        return
    except NeurotierError as error:
        say(f"neurotier: the end of the run could not be written: {error}")
        return
    with suppress(OSError):  # the results tier may be full: then damage is not found out, no more
        renew_jobs_table(places)
        note_outputs(places)
    report = places.results / "report.html"
    if stopped_by is not None:
        counts = f": {count_states(places, everyone, failures, stopped)}" if everyone and not plan.is_campaign else ""
        say(f"Stopped by {stopped_by}{counts}; start the same command again to go on")
        return
    if not plan.is_campaign and report.exists():
        say(f"Results: {count_states(places, everyone, failures)}")
        with suppress(*DAMAGED):  # the page says what is missing
            for row in read_table(places.profile / "runs.tsv", "runs")[-1:]:
                say(f"Timings: {timings(row['valid'])}")
        say(f"Report: {report}")
    if plan.is_comparing and (places.results / "comparison.html").exists():
        for line in after.verdict(places):
            say(line)
        say(f"Report: {places.results / 'comparison.html'}")


def count_states(places: Places, everyone: list[str], failures: list[Record], stopped: int = 0) -> str:
    """How many participants are done, failed, stopped and left, and how many brain masks there are."""
    done = {name for name in everyone if places.record(name).exists()}
    failed = {failure["participant"] for failure in failures} - done
    left = len(everyone) - len(done) - len(failed) - stopped
    counts = [f"{len(done)} of {len(everyone)} participants done", f"{len(failed)} failed"]
    counts += [f"{count} {state}" for state, count in (("stopped", stopped), ("not run", left)) if count]
    with suppress(*DAMAGED):  # the page says what is missing
        masks = len(read_table(places.group / "group.tsv", "group", only=("image",)))
        counts += [counted(masks, "brain mask")] if masks else []
    return ", ".join(counts)


def say(line: str) -> None:
    """Tell the user, where Snakemake tells its own progress."""
    print(line, file=sys.stderr, flush=True)
