"""What is written about the incrementation after a run that failed: Snakemake makes no tables of some of the runs."""

from __future__ import annotations

import socket

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.room import make_room, remove_blocks
from neurotier.bigbrain.tables import lines_of, tabulate, write_tables
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.settings import Settings
from neurotier.pages.bigbrain.page import PAGE
from neurotier.pages.bigbrain.tables import write_conditions

RULES = ("make_blocks", "begin_increment", "increment_block", "run_gnu_parallel", "run_spark", "check_increment")
"""Rules whose failure is one of the incrementation."""


def write_partial(settings: Settings, places: Places) -> list[str]:
    """Write tables, figures and page of the runs that have begun; lines that say what they show.

    Nothing is written, and nothing said, if this run of the workflow had no part in the incrementation. Predictions
    that were made for other runs than these are removed.
    """
    plan = BigBrainPlan(settings, places)
    begun = {run: file for run in plan.order if (file := places.bigbrain_run(run) / "plan.json").exists()}
    if not begun or not had_a_part(places):
        return []
    predictions = places.bigbrain / "bigbrain_predictions.tsv"
    if predictions.exists() and predictions.stat().st_mtime < max(file.stat().st_mtime for file in begun.values()):
        predictions.unlink()
    tabulated = tabulate(begun[run].parent for run in plan.runs if run in begun)
    write_tables(tabulated, places.bigbrain)
    make_room(plan)
    remove_blocks(plan)
    conditions = places.bigbrain / "bigbrain_conditions.tsv"
    write_conditions(
        places.bigbrain / "bigbrain_runs.tsv", predictions, plan.published, socket.gethostname(), conditions
    )
    said = [f"BigBrain: {line}" for line in PAGE.write(places, settings)]
    report = places.shortened().results / "bigbrain.html"
    return [*lines_of(tabulated["runs"]), *said, f"Report: {report}"]


def had_a_part(places: Places) -> bool:
    """Whether this run of the workflow has done any job of the incrementation: each writes a log."""
    started_s = read_json(places.runs / f"{current_run()}.json")["started_s"]
    logs = [log for rule in RULES for log in (places.logs / rule).rglob("*.log")]
    return any(log.stat().st_mtime >= started_s for log in logs)
