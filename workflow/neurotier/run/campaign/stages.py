"""Stages of a campaign: what the scripts of its rules do."""

from __future__ import annotations

from neurotier.core.files import read_json
from neurotier.core.processes import current_run
from neurotier.core.tables import write_table
from neurotier.run.campaign.matrix import planned_runs
from neurotier.run.campaign.preflight import check_campaign, plan_rows
from neurotier.run.campaign.records import Campaign
from neurotier.run.campaign.walk import walk
from neurotier.run.scripting import Context


def campaign_of(context: Context) -> Campaign:
    """The campaign that a rule's script works on."""
    settings, places = context.settings, context.places
    planned = planned_runs(context.snakemake.params.configuration, settings)
    limits = read_json(places.runs / f"{current_run()}.json")["limits"]  # as this run of Snakemake was given them
    return Campaign(planned, settings, places, limits, context.say)


def plan_campaign(context: Context) -> None:
    """Write ``campaign/plan.tsv``, once it is known that all of it can be done."""
    campaign = campaign_of(context)
    check_campaign(campaign)
    write_table(campaign.places.campaign / "plan.tsv", "plan", plan_rows(campaign))


def run_campaign(context: Context) -> None:
    """Run what is not there, and write ``campaign/done.tsv``: the plan, done."""
    campaign = campaign_of(context)
    walk(campaign)
    write_table(campaign.places.campaign / "done.tsv", "plan", plan_rows(campaign))
