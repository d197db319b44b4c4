"""The replay on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.model.prediction import PAPER
from neurotier.pages.bigbrain.marks import MARKS, in_order
from neurotier.pages.bigbrain.names import published_name
from neurotier.pages.comparison.statistics import by_condition as bids_conditions
from neurotier.pages.kit.figures import figures_of
from neurotier.pages.kit.html import figure_view, link, write_html
from neurotier.pages.published.figures import FIGURES, READINGS, heading_of
from neurotier.pages.published.slips import mean_of, slips_of
from neurotier.pages.published.tables import Replayed
from neurotier.published.bids_app import CONDITIONS, PARALLELISMS
from neurotier.published.bigbrain import BlockRun
from neurotier.published.conditions import absent, steady
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

    condition: IncrementCondition
    runs: Sequence[BlockRun]
    equation_one_s: float | None
    predictions: dict[str, float]

    def mean(self, measure: str) -> float:
        """Mean of a property over repetitions."""
        return mean_of(self.runs, measure)

    @property
    def repetitions(self) -> str:
        """Makespan of each repetition, s."""
        return " · ".join(f"{run.makespan_s:,.2f}" for run in self.runs)

    @property
    def stalled(self) -> list[str]:
        """Repetitions that took much longer than the middle one, and the longest phase of each."""
        middle_s = statistics.median(run.makespan_s for run in self.runs)
        steady_runs, texts = steady(self.runs), []
        for run in self.runs:
            if run not in steady_runs:
                longest = max(run.work, key=lambda phase: phase.duration_s)
                texts.append(
                    f"{self.condition.tier}: repetition {run.repetition} took {run.makespan_s:,.2f} s, the middle one"
                    f" {middle_s:,.2f} s; its longest phase is a {longest.name} of {longest.duration_s:,.2f} s"
                )
        return texts

    @property
    def incomplete(self) -> str:
        """How many blocks were not written."""
        counts = [len(run.incomplete_blocks) + run.missing_blocks for run in self.runs]
        some = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        return f"{some} of {self.condition.blocks:,} blocks not written" if max(counts) else ""


@dataclass(frozen=True)
class PanelView:
    """Conditions in one table."""

    title: str
    views: list[ConditionView]

    @property
    def notes(self) -> list[str]:
        """How blocks that were not written bear on the makespans, and which repetitions stand apart."""
        incomplete = [
            f"* {view.condition.tier}: {view.incomplete}. With their reading, from the first start to the last end is"
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


def write_page(tables: Replayed, speeds: Sequence[Row], folder: Path, figures: Path, page: Path) -> None:
    """Write ``published.html``; equal logs and figures give equal bytes.

    Parameters
    ----------
    tables
        What was found, and what the model predicts.
    speeds
        Rows of ``published_speeds.tsv``; may be empty.
    folder, figures
        Folders of the tables and of the figures, which it links to.
    page
        HTML file to write.
    """
    replay, members = tables.replay, in_order(row["member"] for row in tables.predicted)
    context = {
        "replay": replay,
        "headline": headline(replay),
        "absent": absent_texts(replay),
        "skipped": skipped_rows(replay),
        "invalid": [row for row in run_rows(replay) if row["valid"] != "valid"],
        "panels": panel_views(tables),
        "members": {member: MARKS[member].label for member in members if member != PAPER},
        "bids": bids_views(replay),
        "bandwidths": bandwidth_rows(replay),
        "speeds": speeds,
        "figures": [
            (
                figure_view(
                    figures / one.name,
                    page.parent,
                    heading_of(one.entry, one.name),
                    READINGS.get(one.name, one.entry.reading),
                    one.finding.sentence,
                ),
                slips_of(one.name, replay),
            )
            for one in figures_of("published", FIGURES, tables)
        ],
        "files": {name: link(folder / name, page.parent) for name in TABLES},
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, page)


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


def panel_views(tables: Replayed) -> list[PanelView]:
    """The conditions of the paper's figures, a table for each engine and number of processes."""
    panels: dict[tuple[int, str, int], list[ConditionView]] = {}
    for row in tables.conditions:
        one = IncrementCondition.of(row)
        if one.panel:
            predictions = {member: found.makespan_s for member, found in tables.predictions(row).items()}
            view = ConditionView(one, tables.replay.conditions[one], row["equation_one_s"], predictions)
            panels.setdefault(one.panel, []).append(view)
    return [
        PanelView(published_name(views[0].condition).removesuffix(f", {views[0].condition.tier}"), views)
        for views in panels.values()
    ]


def bids_views(replay: Replay) -> list[BidsView]:
    """The conditions of the BIDS App example."""
    return [
        BidsView(condition.placement, condition.parallelism, runs)
        for condition, runs in sorted(
            bids_conditions(replay.bids_app.runs).items(), key=lambda item: (item[0].parallelism, item[0].placement)
        )
    ]
