"""The figures of the published experiment: each a function from the replay to a chart."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.places import Places
from neurotier.core.quantities import number
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.model.prediction import MEASURED, PAPER
from neurotier.pages.bigbrain.figures import (
    MEMBERS,
    bigbrain_makespans,
    bigbrain_phases,
    gantt_chart,
)
from neurotier.pages.bigbrain.tables import Tables, condition_rows, predictions_by_condition, published_name, ratio
from neurotier.pages.comparison import figures as comparison
from neurotier.pages.kit.chart import SKY, VERMILION, Chart
from neurotier.pages.kit.findings import times_text
from neurotier.pages.kit.marks import Lanes, Line, Points
from neurotier.published import own_columns
from neurotier.published.conditions import APP_DIRECT, FIGURES
from neurotier.published.replay import Replay, name_of, phase_rows, read_published, run_rows
from neurotier.published.table_one import Bandwidth
from neurotier.published.validation import ALONE, CLOSE, CONDITION, DEVICE, TWIN, Score, scores

IMAGES = {f"{um}um": f"{um} µm" for um, *_ in FIGURES}
PROCESSES = {f"{um}um_{processes}": f"{um} µm, {processes} processes" for um, _, processes in FIGURES}
OTHERS = {"others": "in no figure of the paper"}
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
            if name in (OTHERS if row["variant"] else ["", image, f"{image}_{row['parallelism']}"]):
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


def scores_of(rows: Sequence[Row], held_out: str) -> dict[str, Score]:
    """The score of each member, by what was held out, in their order."""
    found = {score.member: score for score in scores(held_against(rows)) if score.held_out == held_out}
    return {member: found[member] for member in MEMBERS if member in found}


def held_against(rows: Sequence[Row]) -> list[Row]:
    """The predictions of conditions that were measured."""
    return [row for row in rows if row["measured_s"] and row["predicted_s"] > 0]


def validation_text(rows: Sequence[Row]) -> str:
    """What the validation says: without a condition, with a twin in the other mode or not; without a device."""
    alone = scores_of(rows, CONDITION)
    best = MEASURED if MEASURED in alone else next(iter(alone))
    score = alone[best]
    text = f"Held out, conditions are predicted within a factor of {times_text(score.factor)}"
    text += f" ({score.close} of {score.conditions} within {CLOSE:g}"
    text += f", {score.covered} in their interval)" if score.covered is not None else ")"
    parts = {TWIN: "with a twin in the other memory mode", ALONE: "without", DEVICE: "whole devices"}
    for split, words in parts.items():
        of_split = scores_of(rows, split)
        text += f", {words} {times_text(of_split[best].factor)}" if best in of_split else ""
    return text + (f"; Eq. (1): {times_text(alone[PAPER].factor)}" if PAPER in alone and best != PAPER else "")


def predicted(data: Replayed) -> Chart:
    """Every condition, predicted without having seen its runs, and without any run on its device: how many times what
    was measured.
    """
    rows = held_against(data.validation)
    if not rows:
        return Chart("No condition that is predicted was measured")
    lanes: dict[IncrementCondition, Row] = {}
    for row in rows:
        one, ratio = own_columns.condition_of(row), row["predicted_s"] / row["measured_s"]
        about = {"group": published_name(one).removesuffix(f", {one.tier}"), "lane": one.tier}
        lane = lanes.setdefault(one, about | dict.fromkeys((PAPER, CONDITION, DEVICE, "low", "high")))
        lane[PAPER if row["member"] == PAPER else row["held_out"]] = ratio
        if (row["member"], row["held_out"]) == (MEASURED, CONDITION):
            ends = {end: row[f"{end}_s"] / row["measured_s"] for end in ("low", "high")}
            lane |= ends | {"text": f"{times_text(ratio)} ({times_text(ends['low'])} to {times_text(ends['high'])})"}
    label, marker, colour = MEMBERS[MEASURED]
    return Lanes(
        validation_text(data.validation),
        rows,
        "1: predicted as measured; logarithmic axis. Line and right: interval of the prediction without the condition's"
        " own runs. Outliers among the repetitions are left out. Eq. (1) learns nothing from runs.",
        marks=(
            Line("low", "high"),
            Points(PAPER, *MEMBERS[PAPER], filled=True),
            Points(DEVICE, f"{label}, without its device", marker, colour),
            Points(CONDITION, f"{label}, without its condition", marker, colour, filled=True),
        ),
        x="Predicted over measured makespan",
        lanes=list(lanes.values()),
        words=times_text,
        logarithmic=True,
        marked=1.0,
    )


def table_one(data: Replayed) -> Chart:
    """Read and write bandwidth of each device by the published storage benchmark."""
    bandwidths = data.replay.bandwidths
    if not bandwidths:
        return Chart("These logs have no storage benchmark")
    lanes = [
        {"panel": way, "lane": f"{one.device}, {one.mode}", "measured": values, "mean": statistics.fmean(values)}
        | {"printed": one.published and one.published[place]}
        | {"text": f"{number(statistics.fmean(values), 1)}; {number(statistics.median(values), 1)} MB/s"}
        for place, way in enumerate(("Read", "Write"))
        for one in bandwidths
        for values in [[*((one.read_mb_s, one.write_mb_s)[place])]]
    ]
    return Lanes(
        bandwidths_text(bandwidths),
        [
            {"device": one.device, "mode": one.mode, "number": place, "read_mb_s": read, "write_mb_s": write}
            for one in bandwidths
            for place, (read, write) in enumerate(zip(one.read_mb_s, one.write_mb_s, strict=True), start=1)
        ],
        "One stream of dd; points: measurements; cross: as printed in Table I, which is App Direct mode. 1 GB is"
        " counted as 1,024 MB, as printed; dd means 1,000. Right: mean and median; the axis is logarithmic.",
        marks=(
            Points("measured", "measurement", colour=SKY, filled=True, size=3.5),
            Points("mean", "mean", "|", VERMILION, size=11),
            Points("printed", "Table I as printed", "x", size=8),
        ),
        x="Bandwidth (MB/s)",
        lanes=lanes,
        words=lambda value: f"{number(value, 1)} MB/s",
        logarithmic=True,
    )


def bandwidths_text(bandwidths: Sequence[Bandwidth]) -> str:
    """How far apart the devices are."""
    in_table = [one for one in bandwidths if one.mode == APP_DIRECT] or list(bandwidths)
    means = {one: one.of(statistics.fmean) for one in in_table}
    fast, slow = (chosen(means, key=lambda one: means[one][0]) for chosen in (max, min))
    if fast == slow:
        read, write = map(number, means[fast])
        return f"{fast.device} reads {read} MB/s and writes {write} MB/s"
    by_read, by_write = (times_text(means[fast][way] / means[slow][way]) for way in (0, 1))
    return f"{fast.device} reads {by_read} times and writes {by_write} times as fast as {slow.device}"


def makespan(data: Replayed, part: str) -> Chart:
    """Measured makespans of each device beside the paper's estimate and, where there are any, the model's; others: runs
    with a delay, of several iterations, and those that were made again later.
    """
    return bigbrain_makespans(data.part(part))


def phases(data: Replayed, part: str) -> Chart:
    """Time that all blocks together spent in each phase."""
    return bigbrain_phases(data.part(part))


def gantt(data: Replayed, part: str) -> Chart:
    """The phases of every block, with 25 processes on the 40 µm image as Figure 2 of the paper, with 96 as Figure 4;
    grey lines: between two phases of a block.
    """
    own = data.part(part)
    return gantt_chart(own, own.conditions)


def bids_makespan(data: Replayed) -> Chart:
    """A bar per condition (median), a dot per repetition."""
    return comparison.makespan(data.replay.bids_app)


def bids_cpu_io(data: Replayed) -> Chart:
    """Sums over all tasks of a run, medians over repetitions."""
    return comparison.cpu_io_sums(data.replay.bids_app)
