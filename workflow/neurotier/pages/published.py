"""The page of the published experiment, replayed: what the paper says, what its logs say, what the model predicts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.places import Places
from neurotier.core.quantities import counted, number, three_digits
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, Rows, grouped, read_table
from neurotier.model.prediction import MEASURED, PAPER
from neurotier.pages.bigbrain.page import MEMBERS, bigbrain_makespans, bigbrain_phases, gantt_chart
from neurotier.pages.bigbrain.tables import (
    Tables,
    condition_rows,
    conditions_section,
    heading_of,
    predictions_by_condition,
    published_name,
    ratio,
)
from neurotier.pages.comparison.page import makespan, wall_time
from neurotier.pages.comparison.verdict import Comparison
from neurotier.pages.kit.chart import SKY, VERMILION, Chart
from neurotier.pages.kit.findings import between
from neurotier.pages.kit.marks import Lanes, Line, Points
from neurotier.pages.kit.page import OPEN, Figure, Page, Section, Verdict
from neurotier.published import own_columns
from neurotier.published.bids_app import CONDITIONS, PARALLELISMS
from neurotier.published.bigbrain import HEADER, BlockRun
from neurotier.published.claims import counts_text
from neurotier.published.conditions import APP_DIRECT, FIGURES, condition_of, missing_conditions
from neurotier.published.knowledge import CHOSEN
from neurotier.published.replay import Replay, name_of, phase_rows, read_published, run_rows, skipped_rows
from neurotier.published.skipped import DAMAGED, UNNAMED
from neurotier.published.table_one import Bandwidth
from neurotier.published.validation import CLOSE, CONDITION, DEVICE, SPLITS, Score, scores

PROCESSES = {f"{um}um_{processes}": f"{um} µm, {processes} processes" for um, _, processes in FIGURES}
"""Parts of a figure: each image with each number of processes."""

SIGNS = {"holds": "✓", "contradicted": "✗", "cannot be told": "?"}
REASONS = {DAMAGED: "damaged", UNNAMED: "its name gives no condition"}
"""Why files of each kind are skipped."""


@dataclass(frozen=True, kw_only=True)
class Replayed(Tables):
    """The logs, and the model's predictions for them.

    Attributes
    ----------
    replay
        The contents of the logs.
    predictions, validation, claims
        Rows of ``published_predictions.tsv`` and so on; may be empty.
    """

    replay: Replay
    predictions: Sequence[Row] = ()
    validation: Sequence[Row] = ()
    claims: Sequence[Row] = ()

    @property
    def bids_app(self) -> Comparison:
        """The runs of the BIDS App example."""
        return Comparison(**vars(self.replay.bids_app))


def read(places: Places, settings: Settings) -> Replayed:
    """Read the replay, and the tables of a results folder about it."""
    names = ("predictions", "validation", "claims")
    tables = {name: read_table(places.published / f"published_{name}.tsv", f"published_{name}") for name in names}
    return replayed(read_published(Path(settings.published or "")), **tables)


def replayed(replay: Replay, predictions: Sequence[Row] = (), **tables: Any) -> Replayed:
    """The tables of a replay: means over repetitions, as in the paper.

    Parameters
    ----------
    replay
        The contents of the logs.
    predictions, tables
        As for :class:`Replayed`.
    """
    runs = own_columns.run_rows(run_rows(replay), phase_rows(replay))
    logs = {name_of(replay, run.path): run for run in replay.runs}
    conditions = []
    for row in condition_rows(runs, predictions_by_condition((), predictions), "mean"):
        equation_s = row["equation_one_s"] or replay.equation_one_s(IncrementCondition.of(row))
        error = {"equation_one_s": equation_s, "equation_one_ratio": ratio(equation_s, row["makespan_s"])}
        conditions.append(row | error)

    def phases_of(run: Row) -> Rows:
        return own_columns.phase_rows(logs[run["run"]])

    return Replayed(conditions, runs, phases_of, middle="mean", replay=replay, predictions=predictions, **tables)


def scores_of(rows: Sequence[Row], held_out: str) -> dict[str, Score]:
    """The score of each member for what was held out, in the order of the members."""
    found = {score.member: score for score in scores(measured_predictions(rows)) if score.held_out == held_out}
    return {member: found[member] for member in MEMBERS if member in found}


def measured_predictions(rows: Sequence[Row]) -> Rows:
    """The predictions for conditions that were measured."""
    return [row for row in rows if row["measured_s"] and row["predicted_s"] > 0]


def validation_text(rows: Sequence[Row]) -> str:
    """How far the members of the model are off for conditions whose runs they did not know, in words."""
    factors = [
        f"{three_digits(one.factor)} ({MEMBERS[name].label})" for name, one in scores_of(rows, CONDITION).items()
    ]
    return f"Without their own runs, predictions are off by a factor of {', '.join(factors)} on average"


def predicted(data: Replayed) -> Chart:
    """Every condition, predicted without its own runs, and without any run on its device: the predicted makespan over
    the measured one.
    """
    rows = measured_predictions(data.validation)
    if not rows:
        return Chart("No condition that is predicted was measured")
    lanes: dict[IncrementCondition, Row] = {}
    for row in rows:
        one, ratio = condition_of(row), row["predicted_s"] / row["measured_s"]
        about = {"group": f"{one.resolution_um} µm, {heading_of(vars(one))}", "lane": one.tier}
        lane = lanes.setdefault(one, about | dict.fromkeys((PAPER, CONDITION, DEVICE, "low", "high")))
        lane[PAPER if row["member"] == PAPER else row["held_out"]] = ratio
        if (row["member"], row["held_out"]) == (MEASURED, CONDITION):
            ends = {end: row[f"{end}_s"] / row["measured_s"] for end in ("low", "high")}
            lane |= ends | {
                "text": f"{three_digits(ratio)} ({three_digits(ends['low'])} to {three_digits(ends['high'])})"
            }
    label, marker, colour = MEMBERS[MEASURED]
    return Lanes(
        validation_text(data.validation),
        rows,
        "1: predicted as measured; logarithmic axis. Line and right: interval of the prediction without the condition's"
        " own runs. Outliers among the repetitions are left out. Eq. (1) does not depend on runs.",
        marks=(
            Line("low", "high"),
            Points(PAPER, *MEMBERS[PAPER]),
            Points(DEVICE, f"{label}, without its device", "^", colour),
            Points(CONDITION, f"{label}, without its condition", marker, colour),
        ),
        x="Predicted over measured makespan",
        unit="",
        lanes=list(lanes.values()),
        logarithmic=True,
        marked=1.0,
    )


def table_one(data: Replayed) -> Chart:
    """Read and write bandwidth of each device by the published storage benchmark."""
    bandwidths, rows = data.replay.bandwidths, Rows()
    if not bandwidths:
        return Chart("These logs have no storage benchmark")
    for place, way in enumerate(("Read", "Write")):
        for one in bandwidths:
            values = (one.read_mb_s, one.write_mb_s)[place]
            mean = statistics.fmean(values)
            text = f"{number(mean, 1)}; {number(statistics.median(values), 1)} MB/s"
            about = {"panel": way, "lane": f"{one.device}, {one.mode}", "text": text}
            rows += [about | {"number": place, "mb_s": value} for place, value in enumerate(values, start=1)]
            rows[-1] |= {"mean_mb_s": mean, "printed_mb_s": one.published and one.published[place]}
    return Lanes(
        bandwidths_text(bandwidths),
        [dict.fromkeys(("mean_mb_s", "printed_mb_s")) | row for row in rows],
        "One stream of dd; points: measurements; cross: as printed in Table I, for App Direct mode. 1 GB is"
        " counted as 1,024 MB, as printed; dd means 1,000. Right: mean and median; the axis is logarithmic.",
        (
            Points("mb_s", "measurement", colour=SKY),
            Points("mean_mb_s", "mean", "|", VERMILION),
            Points("printed_mb_s", "Table I as printed", "x"),
        ),
        "Bandwidth (MB/s)",
        unit="",
        logarithmic=True,
    )


def bandwidths_text(bandwidths: Sequence[Bandwidth]) -> str:
    """How far apart the bandwidths of the devices are, in words."""
    in_table = [one for one in bandwidths if one.mode == APP_DIRECT] or list(bandwidths)
    slow, *_, fast = sorted(in_table * 2, key=lambda one: one.means[0])
    by_read, by_write = (three_digits(high / low) for high, low in zip(fast.means, slow.means, strict=True))
    return f"{fast.device} reads {by_read} times and writes {by_write} times as fast as {slow.device}"


def gantt(data: Replayed, part: str) -> Chart:
    """The phases of every block, with 25 processes on the 40 µm image as Figure 2 of the paper, with 96 as Figure 4;
    grey lines: between two phases of a block.
    """
    found = ((IncrementCondition.of(row).resolution_um, row) for row in data.published)
    return gantt_chart(data, [row for um, row in found if f"{um}um_{row['parallelism']}" == part])


def bids_makespan(data: Replayed) -> Chart:
    """A bar per condition (median), a dot per repetition."""
    return makespan(data.bids_app)


def bids_cpu_io(data: Replayed) -> Chart:
    """Sums over all tasks of a run, medians over repetitions."""
    return wall_time(data.bids_app)


def subtitle(data: Replayed) -> str:
    """The text below the title: the paper, and where its logs are."""
    return (
        "Hayot-Sasson, Brown and Glatard (2020), Performance benefits of Intel Optane DC persistent memory for the"
        f" parallel processing of large neuroimaging data; logs below {data.replay.root}"
    )


def verdicts(data: Replayed) -> list[Verdict]:
    """The verdicts on the claims and on the predictions, and what the logs contain."""
    replay, said = data.replay, [counts_text(data.claims)] if data.claims else []
    if scores_of(data.validation, CONDITION):
        said.append(validation_text(data.validation))
    devices = counted(len({one.device for one in replay.bandwidths}), "device")
    runs = f"{counted(len(replay.runs), 'BigBrain run')}, {counted(len(replay.bids_app.runs), 'BIDS App run')}"
    said.append(f"Replayed from raw logs: {runs}, the storage benchmark of {devices}")
    first, *more = said
    return [Verdict(first, OPEN, more=[f"{line}." for line in more])]


def name_of_row(row: Row) -> str:
    """The condition of a prediction's row in words."""
    return published_name(condition_of(row))


def validation(data: Replayed) -> Section:
    """The section on how far each member of the model is off, by what was left out."""
    rows = [
        {
            "not_known": words,
            "member_of_the_model": MEMBERS[score.member].label,
            "off_by_ratio": score.factor,
            "at_worst_ratio": score.worst,
            "where": name_of_row(score.worst_row),
            f"within_a_factor_of_{CLOSE:g}": f"{score.close} of {score.conditions}",
            "in_its_90_%_interval": "" if score.covered is None else f"{score.covered} of {score.conditions}",
        }
        for split, words in SPLITS.items()
        for score in scores_of(data.validation, split).values()
    ]
    note = (
        "A twin is the same condition in the other memory mode, of a device that is the same in both: copying it"
        " would do as well. A device is Optane in one mode, or the SSD, Isilon or DRAM. What the model does not know:"
        " why Optane in App Direct mode gives 20 % more on the 20 µm image than on the 40 µm image, how the JVM"
        " behaves with more processes than a run has shown (its pauses are taken to grow with the blocks in flight),"
        " and what App Direct gives under load where no run on it is known: one stream does not show that. What the"
        " measured member was given is in published_parameters.tsv; it has no fitted speed. What was chosen once for"
        f" all conditions: {'; '.join(CHOSEN)}."
    )
    return Section(rows=rows, note=note)


def unseen(data: Replayed) -> Section:
    """The section with predictions for conditions of the paper that these logs do not contain."""
    equations = {name_of_row(row): row["predicted_s"] for row in data.predictions if row["member"] == PAPER}
    rows = [
        {
            "condition": name_of_row(row),
            **{name: row[name] for name in ("predicted_s", "low_s", "high_s")},
            "equation_one_s": equations.get(name_of_row(row)),
            "limit": row["limit"],
        }
        for row in data.predictions
        if row["measured_s"] is None and row["member"] == MEASURED
    ]
    folded = f"{counted(len(rows), 'condition')} of the paper that these logs do not hold, predicted"
    return Section(rows=rows, folded=folded)


def claims(data: Replayed) -> Section:
    """The section on what the paper says, and what its logs say."""
    rows = [
        {
            "section": row["place"],
            "said": row["claim"],
            "found": row["found"],
            "verdict": f"{SIGNS.get(row['verdict'], '~')}\u00a0{row['verdict']}",
        }
        for row in data.claims
    ]
    text = (
        "Times and bytes are means over repetitions that are not outliers, parallelism and counts over all. A claim"
        " holds if the logs agree with it to within a tenth, and is contradicted if all are off by more than three"
        " tenths; otherwise it holds partly."
    )
    return Section("What the paper says, and what its logs say", text, rows)


def conditions(data: Replayed) -> Section:
    """The section on all conditions of the paper's figures, with means over repetitions, and notes on some."""
    text = """
        BigBrain incrementation; means over repetitions, as the paper has them. Makespan: latest end - earliest start of
        the tasks that ended; for Spark, the driver's time. Eq. (1): M >= D/R + D/W, with D the size of the image in MiB
        and R and W of Table I in MB/s, as the paper counts. Over measured: Eq. (1) divided by the makespan. As drawn:
        Eq. (1) where the paper's bar differs: for Memory mode from the benchmark of tmpfs, for the SSD with DRAM's
        write bandwidth. A block that was not written was read and incremented, and its task never ended: as published,
        it counts in the phases and not in the makespan."""
    rows = []
    for row in data.published:
        one = IncrementCondition.of(row)
        runs = data.replay.conditions[one]
        each = " · ".join(f"{run.makespan_s:,.2f}" for run in runs)
        about = {"each_s": each, "as_drawn_s": data.replay.drawn_equation_s(one), "note": incomplete_text(one, runs)}
        rows.append(row | about)
    columns = "makespan_s each_s equation_one_s equation_one_ratio as_drawn_s fluid_s"
    return conditions_section(text, rows, columns)


def incomplete_text(one: IncrementCondition, runs: Sequence[BlockRun]) -> str:
    """How blocks that were not written affect the makespan, in words; empty if there are none."""
    counts = sorted(len(run.incomplete_blocks) + run.missing_blocks for run in runs)
    if not any(counts):
        return ""
    span_s, makespan_s = statistics.fmean(run.span_s for run in runs), statistics.fmean(run.makespan_s for run in runs)
    text = f"* {one.tier}: {between(map(str, counts))} of {one.blocks:,} blocks not written. With their reading, from"
    text += f" the first start to the last end is {span_s:,.2f} s on average; the makespan, as published, is"
    return f"{text} {makespan_s:,.2f} s."


SLIPS = Section(
    "Known slips of the paper",
    """
    In the names of the logs, tmpfs is Optane in Memory mode (all memory is Optane there) and tmpfsAD is DRAM, the tmpfs
    of App Direct mode; the paper's figures call the first one Optane.

    The paper's Eq. (1) divides MiB by dd's MB/s, and Table I counts dd's 1 GB/s as 1,024 MB/s; both are kept here, so
    that Eq. (1) is the paper's. In the units that dd means (1 MB = 10^6 bytes), Eq. (1) is 7 % longer on DRAM and
    Optane, and 5 % on the SSD and Isilon.

    The paper draws the SSD's estimate with DRAM's write bandwidth and calls the SSD 1.4 times slower than expected.
    Compared with Eq. (1) with the SSD's own, the runs are faster, because writes end in the page cache.

    The text says once that Spark's writes are 1.4 to 1.6 times longer, and once that they take nearly half; in the
    whole repository, the first is the other way round.

    The text says that 'Real + Sys' is CPU time and 'User - (Real + Sys)' I/O time. Its plot code computes CPU = user +
    sys and I/O = wall - CPU, which is what is shown. On Optane in App Direct mode (DAX) I/O is copying by the kernel:
    it counts as sys, hence as CPU.

    The paper says 'the entire CoRR dataset'; published_bids_app.tsv says how many participants the logs have.

    In the BIDS App example, the file makespan_seconds of a run has the end of the task whose name sorts last - the
    start of the one whose name sorts first. That is less than latest end - earliest start, which is shown.
    """,
)


def left_out(data: Replayed) -> list[Section]:
    """The sections on what the page does not show, or counts separately, by kind."""
    replay = data.replay
    kinds = grouped((row["kind"], f"{row['path']}: {row['reason']}") for row in skipped_rows(replay))
    missing = absent_texts(data)
    invalid = [f"{row['run']}: {row['valid']}" for row in run_rows(replay) if row["valid"] != "valid"]
    emulated = [
        f"{name_of(replay, run.path)}: {len(run.named(HEADER)):,} tasks over {len(run.blocks):,} files"
        for run in replay.runs
        if run.is_emulated
    ]
    found = {
        f"Not in these logs: {counted(len(missing), 'figure')} of the paper, or parts of them": missing,
        **{f"{counted(len(items), 'file')} skipped: {REASONS[kind]}": items for kind, items in kinds.items()},
        f"{counted(len(invalid), 'run')} not shown: the log is not of a whole run": invalid,
        f"{counted(len(emulated), 'run')} of an emulated image: tasks share files": emulated,
    }
    sections = [Section(items=items, folded=words) for words, items in found.items() if items]
    return [Section("What these logs do not have", "" if sections else "Everything in these logs is shown."), *sections]


def absent_texts(data: Replayed) -> list[str]:
    """The paper's figures, or conditions in them, that are not in the logs at hand, in words."""
    replay, texts = data.replay, []
    if not replay.bandwidths:
        texts.append("Table I: no storage benchmark; Eq. (1) uses the bandwidths as printed")
    for figure, places in missing_conditions(replay.conditions).items():
        texts.append(f"Figure {figure}: {'; '.join(places) if places != ['all'] else 'no run'}")
    known = {(condition.placement, condition.parallelism) for condition in data.bids_app.conditions}
    for asked in PARALLELISMS:
        missing = [placement for placement, _ in CONDITIONS.values() if (placement, asked) not in known]
        if missing:
            text = "; ".join(missing) if len(missing) < len(CONDITIONS) else "no run"
            texts.append(f"Figures 9 and 10, {asked} processes: {text}")
    return texts


PAGE = Page(
    name="published",
    title="The published experiment, replayed",
    caption="The experiment of Hayot-Sasson, Brown and Glatard (2020), recomputed from its raw logs: the claims of the"
    " paper with verdicts, the validation of the model, every condition with its repetitions, all figures, known slips"
    " of the paper, and what is not shown.",
    subtitle=subtitle,
    tables=[
        f"published/published_{name}"
        for name in ("claims", "validation", "parameters", "predictions", "runs", "phases", "bids_app", "skipped")
    ],
    read=read,
    verdicts=verdicts,
    parts=(
        Figure("Predicted against measured", predicted),
        validation,
        unseen,
        claims,
        Figure("Table I: bandwidth of one stream", table_one),
        Figure("Makespans", bigbrain_makespans),
        Figure("Time by phase", bigbrain_phases),
        Figure("Who did what when", gantt, lambda _: PROCESSES),
        conditions,
        Figure("Makespan of the BIDS App example (Figure 9)", bids_makespan),
        Figure("CPU time, and I/O as the paper counts it, of the BIDS App example (Figure 10)", bids_cpu_io),
        SLIPS,
        left_out,
    ),
)
