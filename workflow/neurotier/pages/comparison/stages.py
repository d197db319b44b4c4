"""Stages of a comparison: what the scripts of its rules do."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.places import Places
from neurotier.core.quantities import counted
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.pages.comparison.summary import write_summary_tables
from neurotier.published.bids_app import published_runs
from neurotier.run.campaign.records import read_condition
from neurotier.run.compared import Compared, read_comparison_tables, runs_of_results, write_comparison_tables


def compared_runs(settings: Settings, places: Places) -> Compared:
    """Everything that is to be compared, as far as it is there."""
    compared = campaign_runs(places)
    for folder in settings.comparison.results:
        compared += runs_of_results(Path(folder), origin=folder)
    if settings.published:
        compared += published_runs(Path(settings.published))
    return compared


def campaign_runs(places: Places) -> Compared:
    """The runs of this results folder's campaign that are there."""
    compared, plan = Compared(), places.campaign / "plan.tsv"
    for row in read_table(plan, "plan") if plan.exists() else []:
        folder = places.campaign / "runs" / row["folder"]
        condition = read_condition(folder)
        if condition is not None:
            found = runs_of_results(
                folder, "campaign", row["placement"], row["repetition"], condition["cache_state"]["state"]
            )
            told = {"valid": condition["valid"], "parallelism": row["parallelism"], "cache": row["cache"]}
            judged = [run | told for run in found.runs]
            compared += Compared(judged, found.participants, found.traffic)
    return compared


def tabulate_comparison(settings: Settings, places: Places) -> None:
    """Write the tables of folder ``comparison``."""
    compared = compared_runs(settings, places)
    write_comparison_tables(compared, places.comparison)
    write_summary_tables(compared, places.comparison)


def write_all(settings: Settings, places: Places) -> None:
    """All stages in turn, for the runs that are there of a campaign that failed."""
    tabulate_comparison(settings, places)
    draw_comparison(places)
    write_comparison(places)


def draw_comparison(places: Places) -> None:
    """Write the figures of the comparison, each as SVG, PNG and TSV."""
    from neurotier.pages.comparison.figures import draw_all

    compared = read_comparison_tables(places.comparison)
    draw_all(compared.runs, compared.participants, compared.traffic, places.comparison_figures)


def write_comparison(places: Places) -> None:
    """Write the comparison report."""
    from neurotier.pages.comparison.page import write_comparison as write

    compared = read_comparison_tables(places.comparison)
    folder, page = places.comparison_figures, places.results / "comparison.html"
    write(compared.runs, compared.participants, compared.traffic, folder, page, lacking(places))


def lacking(places: Places) -> str:
    """What a campaign has not done yet, for people; empty if there is none, or it is done."""
    plan = places.campaign / "plan.tsv"
    rows = read_table(plan, "plan") if plan.exists() else []
    there = sum(read_condition(places.campaign / "runs" / row["folder"]) is not None for row in rows)
    if there == len(rows):
        return ""
    return f"{there} of {counted(len(rows), 'run')} of the campaign are there; the same command goes on with the others"
