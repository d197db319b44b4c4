"""The walk: every run of a campaign in turn, those that are there left out.

It is one job of the outer Snakemake and not one job a run: a shuffled order cannot be said in rules, whose
priorities hold for all their jobs, and runs must never overlap.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace

from neurotier.core.errors import NeurotierError, RunError
from neurotier.core.quantities import counted, seconds
from neurotier.run.campaign.matrix import PlannedRun
from neurotier.run.campaign.records import Campaign, folder_of, is_valid, keep_run, was_stopped
from neurotier.run.campaign.snakemake_run import remove_inner_results, run_planned
from neurotier.run.profile_tables import Record


def walk(campaign: Campaign) -> None:
    """Run what is not there yet.

    Raises
    ------
    RunError
        At the end, if runs could not be done, or were stopped; those that are invalid are there, and said.
    """
    planned, say = campaign.planned, campaign.say
    remove_inner_results(planned, campaign.settings, campaign.places)
    left = campaign.to_do
    say(f"{len(planned) - len(left)} of {counted(len(planned), 'run')} are there, {len(left)} to do")
    failed: list[str] = []
    try:
        for count, run in enumerate(left, start=1):
            rest = remaining(campaign, left[count - 1 :])
            say(f"run {count} of {len(left)}: {run.condition}, repetition {run.repetition}{rest}")
            try:
                condition = do_run(campaign, run)
            except (NeurotierError, OSError) as error:
                failed.append(str(error))
                say(f"  {error}")
                continue
            before = condition["cache_state"]["action"]
            say(f"  {condition['valid']}, makespan {seconds(condition['makespan_s'])} (before it: {before})")
    finally:
        remove_inner_results(planned, campaign.settings, campaign.places)
    if failed:
        raise RunError(f"{counted(len(failed), 'run')} could not be done: {failed[0]}", where="campaign")
    conditions = [campaign.condition_of(run) for run in planned]
    stopped = sum(was_stopped(condition) for condition in conditions)
    if stopped:
        problem = f"{counted(stopped, 'run')} stopped, in whole or in part"
        raise RunError(problem, where="campaign", fix="start the same command again: no other run is done again")
    invalid = sum(not is_valid(condition) for condition in conditions)
    if invalid and campaign.settings.campaign.repeat_invalid:
        raise RunError(f"{counted(invalid, 'run')} invalid again", where="campaign", fix=f"see {campaign.places.logs}")
    if invalid:
        say(f"{counted(invalid, 'run')} left out of the comparison; campaign.repeat_invalid does invalid runs again")


def do_run(campaign: Campaign, run: PlannedRun) -> Record:
    """Do one run, and keep its records."""
    settings, places = campaign.settings, campaign.places
    folder = folder_of(places, run)
    log = places.logs / "run_campaign" / run.name / f"{run.repetition}.log"
    before = campaign.condition_of(run)
    outcome = run_planned(run, settings, campaign.limits, folder, log)
    shutil.rmtree(folder, ignore_errors=True)  # an invalid one that is done again
    if outcome.killed and not was_stopped(before):  # twice is no accident: too little memory, for example
        outcome = replace(outcome, stopped=True)
    return keep_run(places, run, outcome, settings.campaign.compare_outputs)


def remaining(campaign: Campaign, left: Sequence[PlannedRun]) -> str:
    """How long the rest will take, from the runs that are there: those of a condition, else all of them."""
    taken: dict[str, list[float]] = {}
    for run in campaign.planned:
        condition = campaign.condition_of(run)
        if condition is not None:
            taken.setdefault(run.name, []).append(condition["taken_s"])
    if not taken:
        return ""
    usual_s = statistics.median(value for values in taken.values() for value in values)
    rest_s = sum(statistics.median(taken.get(run.name, [usual_s])) for run in left)
    return f"; about {seconds(rest_s)} left"
