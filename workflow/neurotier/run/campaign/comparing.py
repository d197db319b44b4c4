"""The runs of a campaign that are there, for a comparison, and how many are not."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.quantities import counted
from neurotier.core.tables import read_table
from neurotier.run.campaign.records import read_condition
from neurotier.run.compared import Compared, runs_of_results
from neurotier.run.conditions import CAMPAIGN


def campaign_runs(plan: Path) -> Compared:
    """The runs of a campaign that are there; ``plan`` is its table, beside the folder of its runs."""
    compared = Compared()
    for row in read_table(plan, "plan"):
        folder = plan.parent / "runs" / row["folder"]
        condition = read_condition(folder)
        if condition is not None:
            cache = condition["cache_state"]["state"]
            found = runs_of_results(folder, CAMPAIGN, row["placement"], row["repetition"], cache)
            judged = {"valid": condition["valid"], "parallelism": row["parallelism"], "cache": row["cache"]}
            compared += Compared([run | judged for run in found.runs], found.participants, found.traffic)
    return compared


def lacking(plan: Path) -> str:
    """What a campaign has not done yet, for people; empty if it is done."""
    rows = read_table(plan, "plan")
    there = sum(read_condition(plan.parent / "runs" / row["folder"]) is not None for row in rows)
    if there == len(rows):
        return ""
    return f"{there} of {counted(len(rows), 'run')} of the campaign are there; the same command goes on with the others"
