"""Stages of a campaign: what the scripts of its rules do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neurotier.campaign.matrix import planned_runs
from neurotier.campaign.preflight import check_campaign, plan_rows
from neurotier.campaign.walk import walk
from neurotier.files import read_json
from neurotier.places import Places
from neurotier.run import current_run
from neurotier.settings import Settings
from neurotier.tables import write_table


def plan_campaign(
    configuration: Mapping[str, Any], settings: Settings, places: Places, say: Callable[[str], None]
) -> None:
    """Write ``campaign/plan.tsv``, once it is known that all of it can be done."""
    planned = planned_runs(configuration, settings)
    check_campaign(planned, settings, places, shared_resources(places), say)
    write_table(places.campaign / "plan.tsv", "plan", plan_rows(planned, places))


def run_campaign(
    configuration: Mapping[str, Any], settings: Settings, places: Places, say: Callable[[str], None]
) -> None:
    """Run what is not there, and write ``campaign/done.tsv``: the plan, done."""
    planned = planned_runs(configuration, settings)
    walk(planned, settings, places, shared_resources(places), say)
    write_table(places.campaign / "done.tsv", "plan", plan_rows(planned, places))


def shared_resources(places: Places) -> dict[str, int]:
    """Snakemake resources that jobs share, as the campaign's own run was given them."""
    limits: dict[str, int] = read_json(places.runs / f"{current_run()}.json")["limits"]
    return limits
