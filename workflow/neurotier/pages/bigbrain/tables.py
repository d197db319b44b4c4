"""What the figures and the page of the incrementation are made of: its tables, and those of the published experiment.

Runs of both origins have the same columns: those of ``bigbrain_runs.tsv`` and an origin
(:mod:`neurotier.published.own_columns`).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.bigbrain.conditions import ORIGIN, IncrementCondition
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, columns, read_table, write_table
from neurotier.model.prediction import FLUID, MEASURED, PAPER
from neurotier.pages.kit.findings import gathered
from neurotier.published import own_columns
from neurotier.run.compared import is_compared
from neurotier.storage.spread import spread

FLUIDS = (FLUID, MEASURED)
"""Fluid members of the model, the one to show first."""

SUMS = ("start_up_s", "load_header_s", "read_s", "increment_s", "write_s")
CELLS = ("origin", "engine", "tier", "parallelism", "blocks", "iterations", "pairing")

Predictions = Mapping[IncrementCondition, Mapping[str, Row]]
"""What is predicted of a condition, by member of the model."""


@dataclass(frozen=True)
class Tables:
    """What there is to show.

    Attributes
    ----------
    conditions
        Rows of ``bigbrain_conditions.tsv``.
    runs
        Runs of all origins.
    phases_of
        Gives the rows of ``bigbrain_phases.tsv`` of a run.
    spark
        Rows of ``bigbrain_spark.tsv``.
    middle
        What the values of a condition are of its repetitions.
    """

    conditions: list[Row]
    runs: list[Row]
    phases_of: Callable[[Row], list[Row]] = lambda _: []
    spark: list[Row] = field(default_factory=list)
    middle: str = "median"

    @property
    def own_runs(self) -> list[Row]:
        """Runs of this machine, the invalid ones, too."""
        return [run for run in self.runs if run["origin"] != ORIGIN]

    def repetitions(self) -> dict[IncrementCondition, list[Row]]:
        """The valid runs of each condition."""
        return by_condition(filter(is_compared, self.runs))


def run_key(row: Row) -> tuple[object, ...]:
    """What tells a run of one's own from others."""
    return tuple(row[name] for name in ("engine", "tier", "parallelism", "repetition"))


def read_tables(places: Places, settings: Settings) -> Tables:
    """The tables of the incrementation, and the published ones if the conditions have any."""
    conditions, runs, phases, spark = (
        read_table(places.bigbrain / f"{name}.tsv", name)
        for name in ("bigbrain_conditions", "bigbrain_runs", "bigbrain_phases", "bigbrain_spark")
    )
    host = next((row["origin"] for row in conditions if row["origin"] != ORIGIN), "")
    runs = own_runs(runs, host)
    if any(row["origin"] == ORIGIN for row in conditions):
        runs += read_published_runs(BigBrainPlan(settings, places).published)
    by_run = gathered((run_key(row), row) for row in phases)
    return Tables(conditions, runs, lambda run: by_run.get(run_key(run), []), spark)


def write_conditions(runs: Path, predictions: Path, published: Mapping[str, Path], host: str, conditions: Path) -> None:
    """Write ``bigbrain_conditions.tsv``.

    Parameters
    ----------
    runs, predictions
        ``bigbrain_runs.tsv`` and ``bigbrain_predictions.tsv``, which is not there after a run that failed.
    published
        Files ``published_runs``, ``published_phases`` and ``published_predictions`` if they belong to it, by name.
    host
        What conditions of one's own are called of which no machine is known.
    conditions
        File to write.
    """
    run_rows = own_runs(read_table(runs, "bigbrain_runs"), host) + read_published_runs(published)
    own = read_if_there({"bigbrain_predictions": predictions}, "bigbrain_predictions")
    predicted = predictions_by_condition(run_rows, own, read_if_there(published, "published_predictions"))
    rows = condition_rows(run_rows, predicted)
    write_table(
        conditions,
        "bigbrain_conditions",
        [{name: row[name] for name in columns("bigbrain_conditions")} for row in rows],
    )


def own_runs(runs: Iterable[Row], host: str) -> list[Row]:
    """Rows of ``bigbrain_runs.tsv`` with their origin: the machine that they were on, ``host`` if that is not known.

    So runs that went on on another node of a cluster are conditions of their own.
    """
    return [{"origin": run["host"] or host, **run} for run in runs]


def read_published_runs(published: Mapping[str, Path]) -> list[Row]:
    """Published runs of the paper's figures, in their order; see :func:`read_tables`."""
    runs, phases = (read_if_there(published, name) for name in ("published_runs", "published_phases"))
    return own_columns.run_rows([run for run in runs if run["variant"] is None], phases)


def read_if_there(files: Mapping[str, Path], name: str) -> list[Row]:
    """A table's rows; none while it is not there."""
    return read_table(files[name], name) if name in files and files[name].exists() else []


def by_condition(runs: Iterable[Row]) -> dict[IncrementCondition, list[Row]]:
    """All runs, invalid ones too, by condition; those of one's own by parallelism, else in the order given."""
    found = gathered((IncrementCondition.of(run), run) for run in runs)
    own = sorted((one for one in found if not one.is_published), key=lambda one: one.parallelism)
    return {one: found[one] for one in [*own, *(one for one in found if one.is_published)]}


def predictions_by_condition(runs: Iterable[Row], own: Iterable[Row], published: Iterable[Row]) -> Predictions:
    """Predictions of the conditions of some runs.

    Parameters
    ----------
    runs
        Runs of all origins.
    own, published
        Rows of ``bigbrain_predictions.tsv`` and ``published_predictions.tsv``.
    """
    names = ("engine", "tier", "parallelism")
    about: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in own:
        about.setdefault(tuple(row[name] for name in names), {})[row["member"]] = row
    predictions: dict[IncrementCondition, dict[str, Row]] = {}
    for one in by_condition(runs):
        if not one.is_published:
            predictions[one] = about.get(tuple(getattr(one, name) for name in names), {})
    for row in published:
        predictions.setdefault(own_columns.condition_of(row), {})[row["member"]] = row
    return predictions


def condition_rows(
    runs: Sequence[Row],
    predictions: Predictions,
    middle: Callable[[Sequence[float]], float] = statistics.median,
) -> list[Row]:
    """Rows of ``bigbrain_conditions.tsv``, and the variant of each condition.

    Published conditions without a valid run are left out; those of one's own are there, without values.

    Parameters
    ----------
    runs
        Runs of all origins.
    predictions
        What is predicted of their conditions.
    middle
        What is taken of the values of valid repetitions.
    """
    rows = []
    for one, members in by_condition(runs).items():
        valid = [run for run in members if is_compared(run)]
        if valid or not one.is_published:
            values = measured(valid, middle)
            rows.append(
                vars(one)
                | {"runs": len(valid), "invalid_runs": len(members) - len(valid)}
                | values
                | predicted(predictions.get(one, {}), values["makespan_s"])
            )
    return rows


def measured(valid: Sequence[Row], middle: Callable[[Sequence[float]], float]) -> Row:
    """Middle and range over valid runs; empty of none."""

    times, peaks = spread(valid, "makespan_s"), spread(valid, "peak_parallelism")
    middles = {name: spread(valid, name) for name in ("makespan_s", *SUMS, "mean_parallelism")}
    return {
        "cache": ", ".join(sorted({run["cache"] for run in valid if run["cache"]})) or None,
        "incomplete_blocks": max((run["incomplete_blocks"] for run in valid), default=0),
        "makespan_low_s": times and times.low,
        "makespan_high_s": times and times.high,
        **{name: found and middle(found.values) for name, found in middles.items()},
        "peak_parallelism": int(peaks.high) if peaks else None,
    }


def predicted(members: Mapping[str, Row], makespan_s: float | None) -> Row:
    """What Eq. (1) and a fluid model say, and how that compares with what was measured, s."""
    member = next((one for one in FLUIDS if one in members), None)
    fluid = members[member] if member else {}
    paper_s = members[PAPER]["predicted_s"] if PAPER in members else None
    return {
        "equation_one_s": paper_s,
        "equation_one_ratio": ratio(paper_s, makespan_s),
        "fluid_member": member,
        "fluid_s": fluid.get("predicted_s"),
        "fluid_low_s": fluid.get("low_s"),
        "fluid_high_s": fluid.get("high_s"),
        "fluid_ratio": ratio(fluid.get("predicted_s"), makespan_s),
    }


def ratio(predicted_s: float | None, measured_s: float | None) -> float | None:
    """Predicted over measured, where both are known."""
    return predicted_s / measured_s if predicted_s and measured_s else None


def cells(row: Row) -> Row:
    """A condition as the first cells of a row behind a figure; those of the replay have a variant."""
    return {name: row[name] for name in (*CELLS, "variant") if name in row}
