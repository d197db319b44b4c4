"""Stages of a sweep: what the scripts of its rules do."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.places import Places
from neurotier.core.tables import read_table, write_table
from neurotier.pages.sweep.headlines import headline_rows
from neurotier.run.scripting import Context
from neurotier.storage.sweep.walk import sweep


def run_sweep(context: Context) -> None:
    """Measure what is not there yet on this machine, and write ``sweep.tsv`` and ``headlines.tsv``."""
    places = context.places
    rows = sweep(context.settings, places, context.say)
    write_table(places.sweep / "sweep.tsv", "sweep", rows)
    write_table(places.sweep / "headlines.tsv", "headlines", headline_rows(rows))


def draw_sweep(places: Places) -> None:
    """Write the figures of the sweep, each as SVG, PNG and TSV."""
    from neurotier.pages.sweep.figures import draw_all

    rows = read_table(places.sweep / "sweep.tsv", "sweep")
    numbers = read_table(places.sweep / "headlines.tsv", "headlines")
    draw_all(rows, numbers, places.sweep / "figures")


def write_sweep(context: Context) -> None:
    """Write the page, and say where it is."""
    from neurotier.pages.sweep.page import write_sweep as write

    places = context.places
    rows = read_table(places.sweep / "sweep.tsv", "sweep")
    numbers = read_table(places.sweep / "headlines.tsv", "headlines")
    write(rows, numbers, places.sweep / "figures", places.results / "sweep.html")
    context.say(f"Report: {places.shortened(Path.cwd()).results / 'sweep.html'}")
