"""Stages of an advice: what the scripts of its rules do."""

from __future__ import annotations

from pathlib import Path

from neurotier.advice.basis import basis
from neurotier.advice.calibration import choose_calibration, size_of
from neurotier.advice.situation import Situation
from neurotier.advice.table import advice_rows
from neurotier.advice.words import advices, text_table
from neurotier.core.errors import SettingsError
from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.quantities import size
from neurotier.core.tables import Row, read_table, write_table
from neurotier.run.scripting import Context
from neurotier.run.start import current_run


def choose(context: Context) -> None:
    """Write who is analysed first, and say so; nobody where another results folder tells."""
    settings, places = context.settings, context.places
    situation = Situation(settings, places)
    facts = read_json(places.runs / f"{current_run()}.json")
    if facts["parallelism"] is None and not settings.campaign.placements:
        fix = "start it with --cores and without a cluster's profile, on a node like those of the jobs"
        raise SettingsError("predicts runs on one machine, and jobs go to a cluster", where="target advise", fix=fix)
    if settings.advice.calibration:
        situation.seen  # noqa: B018  # what is wrong with that folder is said before tiers are probed for minutes
        chosen: list[str] = []
    else:
        chosen = choose_calibration(situation.people, settings, places)
        context.say("Calibration: " + ", ".join(f"{name} ({size(size_of(situation.people[name]))})" for name in chosen))
    write_json(Path(context.snakemake.output.calibration), {"participants": chosen})


def tabulate_advice(context: Context) -> None:
    """Write ``advice/advice.tsv``, and what it rests on."""
    snakemake, places = context.snakemake, context.places
    situation = Situation(context.settings, places)
    known = situation.known([Path(table) for table in snakemake.input.probes])
    limits = read_json(places.runs / f"{current_run()}.json")["limits"]
    rows = advice_rows(situation, known, snakemake.params.asked["parallelism"], limits)
    write_table(Path(snakemake.output.table), "advice", rows)
    chosen = read_json(Path(snakemake.input.calibration))["participants"]
    write_json(Path(snakemake.output.basis), basis(situation, known, chosen))


def read_advice(places: Places) -> list[Row]:
    """Rows of the advice."""
    return read_table(places.advice / "advice.tsv", "advice")


def draw_advice(places: Places) -> None:
    """Write the figure as SVG, PNG and TSV."""
    from neurotier.pages.advice.figure import draw_makespans

    draw_makespans(read_advice(places), places.advice_figures / "advised")


def write_advice(places: Places) -> None:
    """Write the page."""
    from neurotier.pages.advice.page import write_page

    write_page(read_advice(places), read_json(places.advice / "basis.json"), places)


def advise(context: Context) -> None:
    """Say on the terminal what is advised: a short table, what it rests on, and the recommendation."""
    rows = read_advice(context.places)
    for line in [*text_table(rows), *(f"{line}." for line in read_json(context.places.advice / "basis.json"))]:
        context.say(line)
    for line in advices(rows):
        context.say(f"Advice: {line}.")
    context.say(f"Report: {context.places.shortened(Path.cwd()).results / 'advice.html'}")
