"""Stages after the participants: tables, figures and report of a results folder, each written from its records.

The rules call these one by one; after a run with failures, where Snakemake will not run the rules that depend on
everyone, all are called for those who were analysed.
"""

from __future__ import annotations

import os

from neurotier.analysis.steps import step_rows
from neurotier.core.files import write_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table, write_table
from neurotier.run.group import group_rows, summary
from neurotier.run.jobs import participants, read_failures
from neurotier.run.profile_tables import note_flush, profile_rows, read_records, run_rows, traffic_rows
from neurotier.run.start import note_swapping


def tabulate_profile(places: Places) -> None:
    """Write the tables of folder ``profile``: ``profile.tsv``, ``traffic.tsv``, ``runs.tsv`` and ``steps.tsv``."""
    note_flush(places, lambda: read_records(places, participants(places)))
    note_swapping(places, current_run())
    everyone = participants(places)
    records = read_records(places, everyone)
    rows = profile_rows(records)
    write_table(places.profile / "profile.tsv", "profile", rows)
    write_table(places.profile / "traffic.tsv", "traffic", traffic_rows(records))
    write_table(places.profile / "runs.tsv", "runs", run_rows(places, rows, read_failures(places), len(everyone)))
    write_table(places.profile / "steps.tsv", "steps", step_rows(places))


def summarize_group(places: Places) -> None:
    """Write ``group/group.tsv`` and ``group/summary.json``."""
    rows = group_rows(read_records(places, participants(places)))
    write_table(places.group / "group.tsv", "group", rows)
    write_json(places.group / "summary.json", summary(rows))


def draw_figures(places: Places) -> None:
    """Write the figures as SVG and PNG, each with its TSV."""
    from neurotier.pages.report import figures

    figures.draw_all(
        profile=read_table(places.profile / "profile.tsv", "profile"),
        runs=read_table(places.profile / "runs.tsv", "runs"),
        group=read_table(places.group / "group.tsv", "group"),
        folder=places.figures,
    )


def draw_mosaics(places: Places, workers: int) -> None:
    """Write a picture of every brain mask on its T1w image."""
    from neurotier.pages.report.mosaics import Picture, draw_mosaics

    places.mosaics.mkdir(parents=True, exist_ok=True)  # there is none to draw with the tool noop
    rows = read_table(places.group / "group.tsv", "group")
    draw_mosaics([Picture.of(row, places) for row in rows], places.mosaics, workers)


def write_report(settings: Settings, places: Places) -> None:
    """Write the run report."""
    from neurotier.pages.report.page import collect, write_page

    write_page(collect(places, settings), places.results / "report.html")


def write_partial(settings: Settings, places: Places) -> None:
    """All stages in turn, for those who were analysed in a run that failed.

    The tables are dated back: Snakemake would take them for finished ones, and neither make them again nor miss
    the participants that are not in them.
    """
    tabulate_profile(places)
    summarize_group(places)
    draw_figures(places)
    draw_mosaics(places, workers=1)
    write_report(settings, places)
    tables = [places.profile / f"{name}.tsv" for name in ("profile", "traffic", "runs", "steps")]
    for file in (*tables, places.group / "group.tsv", places.group / "summary.json"):
        os.utime(file, (0, 0))
