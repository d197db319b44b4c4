"""What the page of the published experiment shows: its logs, as tables that the figures of the incrementation take."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.pages.bigbrain.tables import Tables, condition_rows, predictions_by_condition, ratio
from neurotier.published import own_columns
from neurotier.published.conditions import FIGURES
from neurotier.published.replay import Replay, name_of, phase_rows, read_published, run_rows

IMAGES = tuple(dict.fromkeys(f"{resolution_um}um" for resolution_um, *_ in FIGURES))
PROCESSES = tuple(dict.fromkeys(f"{resolution_um}um_{processes}" for resolution_um, _, processes in FIGURES))
OTHERS = "others"
"""Parts of figures: images, images with a number of processes, and what is in no figure of the paper."""


@dataclass(frozen=True, kw_only=True)
class Replayed(Tables):
    """The logs, and what the model predicts for them.

    Attributes
    ----------
    replay
        What was found.
    predicted, validation, claims
        Rows of ``published_predictions.tsv`` and so on; may be empty.
    """

    replay: Replay
    predicted: Sequence[Row] = ()
    validation: Sequence[Row] = ()
    claims: Sequence[Row] = ()

    def part(self, name: str) -> Replayed:
        """The conditions of a part of the figures; without a name, all that are in figures of the paper."""
        chosen = []
        for row in self.conditions:
            image = f"{IncrementCondition.of(row).resolution_um}um"
            if name in ([OTHERS] if row["variant"] else ["", image, f"{image}_{row['parallelism']}"]):
                chosen.append(row)
        return replace(self, conditions=chosen)


def read(places: Places, settings: Settings) -> Replayed:
    """The replay, and the tables of a results folder about it."""
    names = {name: f"published_{name}" for name in ("validation", "claims")}
    tables: dict[str, Any] = {key: read_table(places.published / f"{name}.tsv", name) for key, name in names.items()}
    predicted = read_table(places.published / "published_predictions.tsv", "published_predictions")
    return replayed(read_published(Path(settings.published or "")), predicted, **tables)


def replayed(replay: Replay, predicted: Sequence[Row] = (), **tables: Sequence[Row]) -> Replayed:
    """The tables of a replay: means over repetitions, as the paper has them.

    Parameters
    ----------
    replay
        What was found.
    predicted
        Rows of ``published_predictions.tsv``.
    **tables
        The other tables of :class:`Replayed`.
    """
    runs = own_columns.run_rows(run_rows(replay), phase_rows(replay))
    logs = {name_of(replay, run.path): run for run in replay.runs}
    conditions = []
    for row in condition_rows(runs, predictions_by_condition(runs, (), predicted), statistics.fmean):
        equation_s = row["equation_one_s"] or replay.equation_one_s(IncrementCondition.of(row))
        error = {"equation_one_s": equation_s, "equation_one_ratio": ratio(equation_s, row["makespan_s"])}
        conditions.append(row | error)

    def phases_of(run: Row) -> list[Row]:
        return own_columns.phase_rows(logs[run["run"]])

    about: dict[str, Any] = {"replay": replay, "predicted": predicted, **tables}
    return Replayed(conditions, runs, phases_of, middle="mean", **about)
