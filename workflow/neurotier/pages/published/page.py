"""The replay on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.comparison.statistics import by_condition as bids_conditions
from neurotier.pages.kit.html import FigureView, figure_view, link, write_html
from neurotier.pages.published.figures import Figure, figures
from neurotier.pages.published.slips import slips_of
from neurotier.published.bids_app import CONDITIONS, PARALLELISMS
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import Condition, absent, incomplete_text, is_stalled, mean, panels
from neurotier.published.members import mark_of, members_of, predicted
from neurotier.published.replay import Replay, bandwidth_rows, run_rows, skipped_rows

TEMPLATE = Path(__file__).resolve().parent / "published.html.j2"
SHOWN_ROWS = 50
"""Longest list on the page; the rest is in the files it links to."""

TABLES = (
    *("published_runs.tsv", "published_phases.tsv", "table_one.tsv", "published_bids_app.tsv"),
    *("published_skipped.tsv", "published_predictions.tsv", "published_speeds.tsv"),
)


@dataclass(frozen=True)
class ConditionView:
    """A condition in the table: its runs, Eq. (1), and what members of the model predict, s."""

    condition: Condition
    runs: Sequence[BlockRun]
    equation_one_s: float | None
    predictions: dict[str, float]

    def mean(self, measure: str) -> float:
        """Mean of a property over repetitions."""
        return mean(self.runs, measure)

    @property
    def repetitions(self) -> str:
        """Makespan of each repetition, s."""
        return " · ".join(f"{run.makespan_s:,.2f}" for run in self.runs)

    @property
    def stalled(self) -> list[str]:
        """Repetitions that took much longer than the middle one, and the longest phase of each."""
        middle_s = statistics.median(run.makespan_s for run in self.runs)
        texts = []
        for run in self.runs:
            if is_stalled(run, self.runs):
                longest = max(run.work, key=lambda phase: phase.duration_s)
                texts.append(
                    f"{self.condition.place}: repetition {run.repetition} took {run.makespan_s:,.2f} s, the middle one"
                    f" {middle_s:,.2f} s; its longest phase is a {longest.name} of {longest.duration_s:,.2f} s"
                )
        return texts

    @property
    def incomplete(self) -> str:
        """How many blocks were not written."""
        return incomplete_text(self.runs)


@dataclass(frozen=True)
class PanelView:
    """Conditions in one table."""

    title: str
    views: list[ConditionView]

    @property
    def notes(self) -> list[str]:
        """How blocks that were not written bear on the makespans, and which repetitions stand apart."""
        incomplete = [
            f"* {view.condition.place}: {view.incomplete}. With their reading, from the first start to the last end is"
            f" {view.mean('span_s'):,.2f} s on average; the makespan, as published, is"
            f" {view.mean('makespan_s'):,.2f} s"
            for view in self.views
            if view.incomplete
        ]
        return incomplete + [text for view in self.views for text in view.stalled]


@dataclass(frozen=True)
class BidsView:
    """A condition of the BIDS App example in the table; means over repetitions, s."""

    placement: str
    parallelism: int
    runs: list[Row]

    def mean(self, column: str) -> float | None:
        """Mean of a column, as far as it is known."""
        known = [run[column] for run in self.runs if run[column] is not None]
        return statistics.fmean(known) if known else None


def write_page(replay: Replay, predictions: Sequence[Row], speeds: Sequence[Row], folder: Path, path: Path) -> None:
    """Write the page; equal logs and figures give equal bytes.

    Parameters
    ----------
    replay
        What was found.
    predictions
        Rows of ``published_predictions.tsv``; may be empty.
    speeds
        Rows of ``published_speeds.tsv``; may be empty.
    folder
        Folder of the tables; figures are in ``figures`` below it.
    path
        HTML file to write; its links are relative to its folder.
    """
    rows = run_rows(replay)
    context = {
        "replay": replay,
        "headline": headline(replay),
        "absent": absent_texts(replay),
        "skipped": skipped_rows(replay),
        "invalid": [row for row in rows if row["valid"] != "valid"],
        "panels": panel_views(replay, predictions),
        "members": {member: mark_of(member).label for member in members_of(predictions) if member != "paper"},
        "bids": bids_views(replay),
        "bandwidths": bandwidth_rows(replay),
        "speeds": speeds,
        "figures": [
            (view(one, folder / "figures", path.parent), slips_of(one.name, replay))
            for one in figures(replay, predictions)
        ],
        "files": {name: link(folder / name, path.parent) for name in TABLES},
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, path)


def view(figure: Figure, folder: Path, page_folder: Path) -> FigureView:
    """A figure with its finding and its files."""
    return figure_view(folder / figure.name, page_folder, figure.heading, figure.reading, figure.finding)


def headline(replay: Replay) -> str:
    """What was found, in a sentence."""
    found = [
        counted(len(replay.bigbrain.runs), "BigBrain run") if replay.bigbrain.runs else "",
        counted(len(replay.bids_app.runs), "BIDS App run") if replay.bids_app.runs else "",
        f"the storage benchmark of {counted(len({one.device for one in replay.bandwidths}), 'device')}"
        if replay.bandwidths
        else "",
    ]
    parts = [part for part in found if part]
    return f"Replayed from raw logs: {', '.join(parts)}"


def absent_texts(replay: Replay) -> list[str]:
    """Figures of the paper, or conditions of them, that the logs at hand do not have."""
    texts = []
    if not replay.bandwidths:
        texts.append("Table I: no storage benchmark; Eq. (1) uses the bandwidths as printed")
    for number, places in absent(replay.conditions).items():
        texts.append(f"Figure {number}: {'; '.join(places) if places != ['all'] else 'no run'}")
    known = {(condition.placement, condition.parallelism) for condition in bids_conditions(replay.bids_app.runs)}
    for asked in PARALLELISMS:
        missing = [placement for placement, _ in CONDITIONS.values() if (placement, asked) not in known]
        if missing:
            text = "; ".join(missing) if len(missing) < len(CONDITIONS) else "no run"
            texts.append(f"Figures 9 and 10, {asked} processes: {text}")
    return texts


def panel_views(replay: Replay, predictions: Sequence[Row]) -> list[PanelView]:
    """The conditions of the paper's figures, a table for each engine and number of processes."""
    found = []
    for members in panels(replay.conditions).values():
        views = []
        for condition in members:
            estimate = replay.equation_one_s(condition)
            values = {member: value for member, value, *_ in predicted(predictions, condition, estimate)}
            views.append(ConditionView(condition, replay.conditions[condition], estimate, values))
        found.append(PanelView(members[0].name.removesuffix(f", {members[0].place}"), views))
    return found


def bids_views(replay: Replay) -> list[BidsView]:
    """The conditions of the BIDS App example."""
    return [
        BidsView(condition.placement, condition.parallelism, runs)
        for condition, runs in sorted(
            bids_conditions(replay.bids_app.runs).items(), key=lambda item: (item[0].parallelism, item[0].placement)
        )
    ]
