"""The replay on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import counted, number
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.model.prediction import MEASURED, PAPER
from neurotier.pages.bigbrain.marks import MARKS, in_order
from neurotier.pages.bigbrain.names import published_name
from neurotier.pages.comparison.statistics import by_condition as bids_conditions
from neurotier.pages.kit.figures import draw_all, figures_of
from neurotier.pages.kit.findings import between
from neurotier.pages.kit.html import figure_view, write_html
from neurotier.pages.kit.page import link
from neurotier.pages.published.figures import FIGURES, READINGS, heading_of
from neurotier.pages.published.predicted import scores_of, sentence_of
from neurotier.pages.published.slips import slips_of
from neurotier.pages.published.tables import Replayed
from neurotier.published import own_columns
from neurotier.published.bids_app import CONDITIONS, PARALLELISMS
from neurotier.published.bigbrain import HEADER, BlockRun
from neurotier.published.claims import counts_text
from neurotier.published.conditions import absent, steady
from neurotier.published.knowledge import CHOSEN
from neurotier.published.replay import Replay, bandwidth_rows, name_of, run_rows, skipped_rows
from neurotier.published.skipped import DAMAGED, UNNAMED
from neurotier.published.validation import CONDITION, SPLITS

TEMPLATE = Path(__file__).resolve().parent / "published.html.j2"
SHOWN_ROWS = 50
"""Longest list on the page; the rest is in the files it links to."""

TABLES = (
    *("published_claims.tsv", "published_validation.tsv", "published_parameters.tsv", "published_predictions.tsv"),
    *("published_runs.tsv", "published_phases.tsv", "table_one.tsv", "published_bids_app.tsv"),
    "published_skipped.tsv",
)


BIDS_COLUMNS = ("participants", "makespan_s", "logged_makespan_s", "cpu_sum_s", "io_sum_s", "mean_parallelism")


@dataclass(frozen=True)
class ConditionView:
    """A condition in the table: its runs, Eq. (1), the same as the paper draws it, and predictions, s."""

    condition: IncrementCondition
    runs: Sequence[BlockRun]
    equation_one_s: float | None
    drawn_s: float | None
    predictions: dict[str, float]

    def mean(self, measure: str) -> float:
        """Mean of a property over repetitions."""
        return statistics.fmean(float(getattr(run, measure)) for run in self.runs)

    @property
    def repetitions(self) -> str:
        """Makespan of each repetition, s."""
        return " · ".join(f"{run.makespan_s:,.2f}" for run in self.runs)

    @property
    def outliers(self) -> list[str]:
        """Repetitions far from the middle one, and what tells why."""
        middle_s = statistics.median(run.makespan_s for run in self.runs)
        going, texts = steady(self.runs), []
        usual_s = statistics.fmean(run.header_s for run in going) if going else 0.0
        for run in self.runs:
            if run in going:
                continue
            longest = max(run.work, key=lambda phase: phase.duration_s)
            why = f"its longest phase is a {longest.name} of {longest.duration_s:,.2f} s"
            if run.makespan_s < middle_s:
                why = f"its images took {run.header_s:,.2f} s to make in all, those of the others {usual_s:,.0f} s"
                why += ": it read its input lazily" if run.header_s < usual_s / 10 else ""
            texts.append(
                f"{published_name(self.condition)}: repetition {run.repetition} took {run.makespan_s:,.2f} s, the"
                f" middle one {middle_s:,.2f} s; {why}"
            )
        return texts

    @property
    def incomplete(self) -> str:
        """How many blocks were not written."""
        counts = [len(run.incomplete_blocks) + run.missing_blocks for run in self.runs]
        return f"{between(counts, str)} of {self.condition.blocks:,} blocks not written" if max(counts) else ""

    @property
    def notes(self) -> list[str]:
        """How blocks that were not written bear on the makespan, and which repetitions are outliers."""
        if not self.incomplete:
            return self.outliers
        text = (
            f"* {self.condition.tier}: {self.incomplete}. With their reading, from the first start to the last end is"
            f" {self.mean('span_s'):,.2f} s on average; the makespan, as published, is {self.mean('makespan_s'):,.2f} s"
        )
        return [text, *self.outliers]


@dataclass(frozen=True)
class Judged:
    """Rows of ``published_claims.tsv`` and ``published_parameters.tsv``; may be empty."""

    claims: Sequence[Row] = ()
    parameters: Sequence[Row] = ()


def write_page(tables: Replayed, judged: Judged, folder: Path, page: Path) -> None:
    """Draw the figures and write ``published.html``; equal logs give equal bytes.

    Parameters
    ----------
    tables
        What was found, and what the model predicts.
    judged
        What the claims of the paper came to, and what the model was given.
    folder
        Folder of the tables, which it links to, and in it of the figures.
    page
        HTML file to write.
    """
    replay, members = tables.replay, in_order(row["member"] for row in tables.predicted)
    panels, figures = panel_views(tables), folder / "figures"
    draw_all("published", FIGURES, tables, figures)
    context = {
        "replay": replay,
        "headline": headline(replay),
        "verdict": verdict(tables, judged),
        "left_out": left_out(replay, panels),
        "claims": judged.claims,
        "scores": {what: list(scores_of(tables.validation, what).values()) for what in SPLITS},
        "titles": SPLITS,
        "marks": MARKS,
        "name_of_row": name_of_row,
        "panels": panels,
        "members": {member: MARKS[member].label for member in members if member != PAPER},
        "bids": bids_views(replay),
        "bandwidths": bandwidth_rows(replay),
        "parameters": parameter_views(judged.parameters),
        "given": given_text(judged),
        "unseen": [row for row in tables.predicted if row["measured_s"] is None and row["member"] == MEASURED],
        "equations": {name_of_row(row): row["predicted_s"] for row in tables.predicted if row["member"] == PAPER},
        "chosen": CHOSEN,
        "figures": [
            (
                figure_view(
                    figures / one.name,
                    page.parent,
                    heading_of(one.entry, one.name),
                    READINGS.get(one.name, one.entry.reading),
                    one.finding.sentence,
                ),
                slips_of(one.name),
            )
            for one in figures_of("published", FIGURES, tables)
        ],
        "files": {name: link(folder / name, page.parent) for name in TABLES},
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, page)


def verdict(tables: Replayed, judged: Judged) -> list[str]:
    """What the replay came to: the claims, and the predictions."""
    texts = [counts_text(judged.claims)] if judged.claims else []
    return texts + ([sentence_of(tables.validation)] if scores_of(tables.validation, CONDITION) else [])


def name_of_row(row: Row) -> str:
    """The condition of a row about a prediction in words."""
    return published_name(own_columns.condition_of(row))


def given_text(judged: Judged) -> str:
    """How many figures the measured member was given, by where they are from."""
    origins = Counter(row["origin"] for row in parameter_views(judged.parameters))
    own = ", ".join(f"{count} {origin}" for origin, count in origins.most_common())
    text = "The measured member has no fitted speed"
    return f"{text}: {own}" if own else text


def parameter_views(rows: Sequence[Row]) -> list[Row]:
    """The figures of all conditions; what several have alike stands once, with the first of them."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in ("device", "name", "value", "source"))
        factor, unit = {"bytes/s": (1e6, "MB/s"), "bytes": (1e9, "GB")}.get(row["unit"], (1.0, row["unit"]))
        value = row["value"] / factor
        text = f"{number(value, 0 if value >= 100 else 2)} {unit}".strip()
        found.setdefault(key, row | {"where": name_of_row(row), "text": text})
    return list(found.values())


def left_out(replay: Replay, panels: Mapping[str, Sequence[ConditionView]]) -> dict[str, list[str]]:
    """What the page does not show, or counts apart, by kind: one by one, by what it is in a line."""
    kinds: dict[str, list[str]] = {}
    for row in skipped_rows(replay):
        kinds.setdefault(row["kind"], []).append(f"{row['path']}: {row['reason']}")
    skipped = {f"{counted(len(items), 'file')} skipped: {REASONS[kind]}": items for kind, items in kinds.items()}
    missing = absent_texts(replay)
    invalid = [f"{row['run']}: {row['valid']}" for row in run_rows(replay) if row["valid"] != "valid"]
    outliers = [text for views in panels.values() for view in views for text in view.outliers]
    emulated = [
        f"{name_of(replay, run.path)}: {len(run.named(HEADER)):,} tasks over {len(run.blocks):,} files"
        for run in replay.bigbrain.runs
        if run.is_emulated
    ]
    found = {
        f"Not in these logs: {counted(len(missing), 'figure')} of the paper, or parts of them": missing,
        **skipped,
        f"{counted(len(invalid), 'run')} not shown: the log is not of a whole run": invalid,
        f"{counted(len(outliers), 'repetition')} shown apart, and in no comparison: an outlier": outliers,
        f"{counted(len(emulated), 'run')} that emulates an image: tasks share files": emulated,
    }
    return {summary: items for summary, items in found.items() if items}


REASONS = {DAMAGED: "damaged", UNNAMED: "its name tells no condition"}
"""Why files of a kind are skipped."""


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
    for figure, places in absent(replay.conditions).items():
        texts.append(f"Figure {figure}: {'; '.join(places) if places != ['all'] else 'no run'}")
    known = {(condition.placement, condition.parallelism) for condition in bids_conditions(replay.bids_app.runs)}
    for asked in PARALLELISMS:
        missing = [placement for placement, _ in CONDITIONS.values() if (placement, asked) not in known]
        if missing:
            text = "; ".join(missing) if len(missing) < len(CONDITIONS) else "no run"
            texts.append(f"Figures 9 and 10, {asked} processes: {text}")
    return texts


def panel_views(tables: Replayed) -> dict[str, list[ConditionView]]:
    """The conditions of the paper's figures, a table for each engine and number of processes, by its title."""
    panels: dict[str, list[ConditionView]] = {}
    for row in tables.conditions:
        one = IncrementCondition.of(row)
        if one.panel:
            predictions = {member: found.makespan_s for member, found in tables.predictions(row).items()}
            drawn_s = tables.replay.drawn_equation_s(one)
            view = ConditionView(one, tables.replay.conditions[one], row["equation_one_s"], drawn_s, predictions)
            panels.setdefault(published_name(one).removesuffix(f", {one.tier}"), []).append(view)
    return panels


def bids_views(replay: Replay) -> list[dict[str, Any]]:
    """The conditions of the BIDS App example: means over repetitions of what is known."""
    views = []
    for condition, runs in bids_conditions(replay.bids_app.runs).items():
        known = {column: spread(runs, column) for column in BIDS_COLUMNS}
        means = {column: found and statistics.fmean(found.values) for column, found in known.items()}
        views.append({"placement": condition.placement, "parallelism": condition.parallelism, "runs": runs, **means})
    return sorted(views, key=lambda view: (view["parallelism"], view["placement"]))
