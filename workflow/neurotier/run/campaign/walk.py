"""The walk: every run of a campaign in turn, those that are there left out.

It is one job of the outer Snakemake and not one job a run: a shuffled order cannot be said in rules, whose
priorities hold for all their jobs, and runs must never overlap.
"""

from __future__ import annotations

import statistics

from neurotier.core.errors import NeurotierError, RunError
from neurotier.core.quantities import counted, seconds
from neurotier.run.campaign.records import Campaign
from neurotier.run.campaign.snakemake_run import remove_inner_results, run_planned
from neurotier.run.disturbance import DISTURBED


def walk(campaign: Campaign) -> None:
    """Run what is not there yet.

    Raises
    ------
    RunError
        At the end, if runs could not be done, or were stopped; those that are invalid are there, and said. At once if
        others disturb the first run, or two in a row: so they would the rest.
    """
    planned, say = campaign.planned, campaign.say
    remove_inner_results(campaign)
    left = campaign.to_do
    say(f"{len(planned) - len(left)} of {counted(len(planned), 'run')} are there, {len(left)} to do")
    failed: list[str] = []
    undisturbed = False
    try:
        for count, run in enumerate(left, start=1):
            rest = remaining(campaign, len(left) - count + 1)
            say(f"run {count} of {len(left)}: {run.condition}, repetition {run.repetition}{rest}")
            try:
                condition = run_planned(campaign, run)
            except (NeurotierError, OSError) as error:
                failed.append(str(error))
                say(f"  {error}")
                continue
            cache = condition["cache_state"]["action"]
            say(f"  {condition['valid']}, makespan {seconds(condition['makespan_s'])} (before it: {cache})")
            before, undisturbed = undisturbed, DISTURBED not in condition["valid"]
            if not (before or undisturbed):
                fix = "when they have ended, start the same command again with campaign.repeat_invalid set to true"
                raise RunError(f"others use this machine ({condition['valid']})", where="campaign", fix=fix)
    finally:
        remove_inner_results(campaign)
    if failed:
        raise RunError(f"{counted(len(failed), 'run')} could not be done: {failed[0]}", where="campaign")
    conditions = list(filter(None, map(campaign.condition_of, planned)))
    if stopped := sum(bool(condition.get("stopped")) for condition in conditions):
        problem = f"{counted(stopped, 'run')} stopped, in whole or in part"
        raise RunError(problem, where="campaign", fix="start the same command again: no other run is done again")
    invalid = len(planned) - sum(condition["valid"] == "valid" for condition in conditions)
    if invalid and campaign.settings.campaign.repeat_invalid:
        raise RunError(f"{counted(invalid, 'run')} invalid again", where="campaign", fix=f"see {campaign.places.logs}")
    if invalid:
        say(f"{counted(invalid, 'run')} left out of the comparison; campaign.repeat_invalid does invalid runs again")


def remaining(campaign: Campaign, left: int) -> str:
    """How long so many runs will take, from the runs that are there: each repetition has all conditions."""
    conditions = filter(None, map(campaign.condition_of, campaign.planned))
    taken_s = [condition["taken_s"] for condition in conditions]
    return f"; about {seconds(left * statistics.fmean(taken_s))} left" if taken_s else ""
