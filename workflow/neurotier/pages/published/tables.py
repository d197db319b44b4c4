"""What the page of the published experiment shows: its logs, as tables that the figures of the incrementation take."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.tables import Row
from neurotier.model.prediction import PAPER, Prediction
from neurotier.pages.bigbrain.marks import in_order
from neurotier.pages.bigbrain.tables import Tables, by_condition, condition_rows
from neurotier.published import own_columns
from neurotier.published.bigbrain import BlockRun
from neurotier.published.replay import Replay, name_of, phase_rows, run_rows
from neurotier.run.compared import is_compared


@dataclass(frozen=True, kw_only=True)
class Replayed(Tables):
    """The logs, and what the model predicts for them.

    Attributes
    ----------
    replay
        What was found.
    predicted, validation
        Rows of ``published_predictions.tsv`` and ``published_validation.tsv``; may be empty.
    """

    replay: Replay
    predicted: Sequence[Row]
    validation: Sequence[Row]

    middle = "mean"
    is_replay = True

    @cached_property
    def logs(self) -> dict[str, BlockRun]:
        """BigBrain runs by the name of their log."""
        return {name_of(self.replay, run.path): run for run in self.replay.bigbrain.runs}

    @cached_property
    def predicted_by_condition(self) -> dict[IncrementCondition, dict[str, Row]]:
        """Predictions of each condition, by member of the model."""
        found: dict[IncrementCondition, dict[str, Row]] = {}
        for row in self.predicted:
            found.setdefault(own_columns.condition_of(row), {})[row["member"]] = row
        return found

    def phases_of(self, run: Row) -> list[Row]:
        """Rows of ``bigbrain_phases.tsv`` of a run, from its log."""
        return own_columns.phase_rows(IncrementCondition.of(run), self.logs[run["run"]])

    def predictions(self, row: Row) -> dict[str, Prediction]:
        """What members of the model predict for a condition.

        Eq. (1) is taken from the logs where no prediction has it; variants of a condition have no other.
        """
        found = {PAPER: Prediction(*[row["equation_one_s"]] * 3)} if row["equation_one_s"] is not None else {}
        for member, one in self.predicted_by_condition.get(IncrementCondition.of(row), {}).items():
            ends = (one["predicted_s"] if one[end] is None else one[end] for end in ("low_s", "high_s"))
            found[member] = Prediction(one["predicted_s"], *ends)
        return {member: found[member] for member in in_order(found)}

    def parts(self, by: Callable[[IncrementCondition], str], rest: str = "") -> dict[str, Tables]:
        """Tables of each part of a figure; see :meth:`neurotier.pages.bigbrain.tables.Tables.parts`."""
        parts: dict[str, list[Row]] = {}
        for row in self.conditions:
            one = IncrementCondition.of(row)
            if rest or not one.variant:
                parts.setdefault(rest if one.variant else by(one), []).append(row)
        last = {rest: parts.pop(rest)} if rest in parts and rest else {}
        return {name: replace(self, conditions=rows) for name, rows in (parts | last).items()}


def replayed(replay: Replay, predicted: Sequence[Row], validation: Sequence[Row] = ()) -> Replayed:
    """The tables of a replay: means over repetitions, as the paper has them.

    Parameters
    ----------
    replay
        What was found.
    predicted, validation
        Rows of ``published_predictions.tsv`` and ``published_validation.tsv``; may be empty.
    """
    runs = own_columns.run_rows(run_rows(replay), phase_rows(replay))
    valid = {one: some for one, members in by_condition(runs).items() if (some := list(filter(is_compared, members)))}
    rows = [
        row | {"variant": one.variant, "equation_one_s": members[0]["equation_one_s"]}
        for row, (one, members) in zip(condition_rows(runs, {}, statistics.fmean), valid.items(), strict=True)
    ]
    return Replayed(rows, runs, replay=replay, predicted=predicted, validation=validation)
