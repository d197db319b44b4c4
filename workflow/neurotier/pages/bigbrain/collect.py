"""What the report of the incrementation is made of: its tables, and those of the published experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neurotier.core.places import Places
from neurotier.core.tables import Row, read_table, write_table
from neurotier.pages.bigbrain.conditions import condition_rows, own_runs, published_runs
from neurotier.published.bids_app import ORIGIN

CONDITIONS, PREDICTIONS = "bigbrain_conditions", "bigbrain_predictions"


@dataclass(frozen=True)
class Collected:
    """Rows of ``bigbrain_conditions.tsv``, ``_runs``, ``_phases`` and ``_spark``; and all runs, alike."""

    conditions: list[Row]
    runs: list[Row]
    phases: list[Row]
    spark: list[Row]
    alike: list[Row]


def write_conditions(places: Places, host: str, with_published: bool) -> None:
    """Write ``bigbrain_conditions.tsv``.

    Parameters
    ----------
    places
        Where the tables are; predictions may be missing, after a run that failed.
    host
        What the conditions of one's own are called.
    with_published
        Whether those of the paper belong to it.
    """
    predictions = read_if_there(places.bigbrain / f"{PREDICTIONS}.tsv", PREDICTIONS)
    published = read_published(places, "published_predictions") if with_published else []
    runs = all_runs(places, read_table(places.bigbrain / "bigbrain_runs.tsv", "bigbrain_runs"), host, with_published)
    write_table(places.bigbrain / f"{CONDITIONS}.tsv", CONDITIONS, condition_rows(runs, predictions, published))


def read_collected(places: Places) -> Collected:
    """Read the tables back; what they have of the paper is told by the conditions."""
    conditions = read_table(places.bigbrain / f"{CONDITIONS}.tsv", CONDITIONS)
    names = ("bigbrain_runs", "bigbrain_phases", "bigbrain_spark")
    runs, phases, spark = (read_table(places.bigbrain / f"{name}.tsv", name) for name in names)
    origins = [row["origin"] for row in conditions]
    host = next((origin for origin in origins if origin != ORIGIN), "")
    return Collected(conditions, runs, phases, spark, all_runs(places, runs, host, ORIGIN in origins))


def all_runs(places: Places, runs: list[Row], host: str, with_published: bool) -> list[Row]:
    """Runs of one's own and, if they belong to it, published ones, alike."""
    found = own_runs(runs, host)
    if with_published:
        found += published_runs(read_published(places, "published_runs"), read_published(places, "published_phases"))
    return found


def read_published(places: Places, name: str) -> list[Row]:
    """A table of the published experiment."""
    return read_if_there(places.published / f"{name}.tsv", name)


def read_if_there(file: Path, name: str) -> list[Row]:
    """A table's rows; none while it is not there."""
    return read_table(file, name) if file.exists() else []
