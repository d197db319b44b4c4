"""Stages of the replay: what the scripts of its rules do."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table, write_table
from neurotier.published.replay import Replay, read_published, write_tables

PREDICTIONS, SPEEDS = "published_predictions.tsv", "published_speeds.tsv"


def replay_of(settings: Settings) -> Replay:
    """What is below the path that the settings name."""
    return read_published(Path(settings.published or ""))


def predictions_of(places: Places) -> list[Row]:
    """What the model predicts."""
    return read_table(places.published / PREDICTIONS, "published_predictions")


def speeds_of(places: Places) -> list[Row]:
    """What the model was given of the devices."""
    return read_table(places.published / SPEEDS, "published_speeds")


def tabulate_published(settings: Settings, places: Places) -> None:
    """Write the tables of folder ``published``."""
    write_tables(replay_of(settings), places.published)


def predict_published(settings: Settings, places: Places) -> None:
    """Write what the model predicts for the published conditions, and what it was given of the devices."""
    from neurotier.published.fits import fit_all, speed_rows
    from neurotier.published.predictions import predictions

    replay = replay_of(settings)
    fits = fit_all(replay)
    write_table(places.published / SPEEDS, "published_speeds", speed_rows(replay, fits))
    write_table(places.published / PREDICTIONS, "published_predictions", predictions(replay, fits))


def draw_published(settings: Settings, places: Places) -> None:
    """Draw the figures of the replay, each as SVG, PNG and TSV."""
    from neurotier.pages.published.figures import draw_all

    draw_all(replay_of(settings), predictions_of(places), places.published_figures)


def write_published(settings: Settings, places: Places) -> str:
    """Write the page; what was found, and where the page is."""
    from neurotier.pages.published.page import headline, write_page

    replay, page = replay_of(settings), places.results / "published.html"
    write_page(replay, predictions_of(places), speeds_of(places), places.published, page)
    return f"{headline(replay)}. Page: {page}"
