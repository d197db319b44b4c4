"""The page of the published experiment, replayed: what the paper says, what its logs say, what the model predicts."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.core.quantities import counted, number
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.model.prediction import MEASURED, PAPER
from neurotier.pages.bigbrain.figures import MEMBERS
from neurotier.pages.bigbrain.names import by_heading, label_of, published_name
from neurotier.pages.comparison.statistics import by_condition as bids_conditions
from neurotier.pages.kit.findings import between, gathered
from neurotier.pages.kit.page import OPEN, Figure, Head, Page, Section, Verdict
from neurotier.pages.published.figures import (
    bids_cpu_io,
    bids_makespan,
    gantt,
    makespan,
    mean_parallelism,
    phases,
    predicted,
    scores_of,
    table_one,
    validation_text,
)
from neurotier.pages.published.tables import IMAGES, OTHERS, PROCESSES, Replayed, read
from neurotier.published import own_columns
from neurotier.published.bids_app import CONDITIONS, PARALLELISMS
from neurotier.published.bigbrain import HEADER, BlockRun
from neurotier.published.claims import counts_text
from neurotier.published.conditions import absent, steady
from neurotier.published.knowledge import CHOSEN
from neurotier.published.replay import Replay, bandwidth_rows, name_of, run_rows, skipped_rows
from neurotier.published.skipped import DAMAGED, UNNAMED
from neurotier.published.validation import CLOSE, CONDITION, SPLITS

SIGNS = {"holds": "✓", "contradicted": "✗", "cannot be told": "?"}
REASONS = {DAMAGED: "damaged", UNNAMED: "its name tells no condition"}
"""Why files of a kind are skipped."""


def under(data: Replayed) -> str:
    """Which paper it is, and where its logs are."""
    return (
        "Hayot-Sasson, Brown and Glatard (2020), Performance benefits of Intel Optane DC persistent memory for the"
        f" parallel processing of large neuroimaging data; logs below {data.replay.root}"
    )


def verdicts(data: Replayed) -> list[Verdict]:
    """What the replay came to: the claims, and the predictions; and what was found."""
    replay, said = data.replay, [counts_text(data.claims)] if data.claims else []
    if scores_of(data.validation, CONDITION):
        said.append(validation_text(data.validation))
    devices = len({one.device for one in replay.bandwidths})
    found = [
        counted(len(replay.runs), "BigBrain run") if replay.runs else "",
        counted(len(replay.bids_app.runs), "BIDS App run") if replay.bids_app.runs else "",
        f"the storage benchmark of {counted(devices, 'device')}" if devices else "",
    ]
    said.append(f"Replayed from raw logs: {', '.join(filter(None, found))}")
    first, *more = said
    return [Verdict(first, OPEN, more=[f"{line}." for line in more])]


def name_of_row(row: Row) -> str:
    """The condition of a row about a prediction in words."""
    return published_name(own_columns.condition_of(row))


def validation(data: Replayed) -> Section | None:
    """How far each member of the model is off, by what was not known."""
    rows = [
        {"what": words, "member": MEMBERS[score.member].label, "factor": score.factor, "worst": score.worst}
        | {"where": name_of_row(score.worst_row), "close": f"{score.close} of {score.conditions}"}
        | {"covered": "" if score.covered is None else f"{score.covered} of {score.conditions}"}
        for split, words in SPLITS.items()
        for score in scores_of(data.validation, split).values()
    ]
    heads: dict[str, Head] = {
        "what": "Not known",
        "member": "Member of the model",
        "factor": ("Off by (geometric mean)", lambda value: number(value, 3)),
        "worst": ("at worst", lambda value: number(value, 2)),
        "where": "where",
        "close": f"Within a factor of {CLOSE:g}",
        "covered": "In its 90 % interval",
    }
    note = (
        "A twin is the same condition in the other memory mode, of a device that is the same in both: copying it"
        " would do as well. A device is Optane in one mode, or the SSD, Isilon or DRAM. What the model does not know:"
        " why Optane in App Direct mode gives 20 % more on the 20 µm image than on the 40 µm image, how the JVM"
        " behaves with more processes than a run has shown (its pauses are taken to grow with the blocks in flight),"
        " and what App Direct gives under load where no run on it is known: one stream says nothing of that."
    )
    return Section(rows=rows, columns=heads, note=note) if rows else None


def unseen(data: Replayed) -> Section | None:
    """Predictions of conditions of the paper that these logs do not hold."""
    equations = {name_of_row(row): row["predicted_s"] for row in data.predicted if row["member"] == PAPER}
    rows = [
        row | {"name": name_of_row(row), "equation_s": equations.get(name_of_row(row))}
        for row in data.predicted
        if row["measured_s"] is None and row["member"] == MEASURED
    ]
    heads = {"name": "Condition", "predicted_s": "Predicted", "low_s": "90 % interval", "high_s": "to"}
    heads |= {"equation_s": "Eq. (1)", "limit": "Limit"}
    folded = f"{counted(len(rows), 'condition')} of the paper that these logs do not hold, predicted"
    return Section(rows=rows, columns=heads, folded=folded) if rows else None


def parameters(data: Replayed) -> Section | None:
    """The figures that the measured member was given; what several conditions have alike stands once."""
    found: dict[tuple[object, ...], Row] = {}
    for row in data.parameters:
        factor, unit = {"bytes/s": (1e6, "MB/s"), "bytes": (1e9, "GB")}.get(row["unit"], (1.0, row["unit"]))
        value = row["value"] / factor
        text = f"{number(value, 0 if value >= 100 else 2)} {unit}".strip()
        key = tuple(row[name] for name in ("device", "name", "value", "source"))
        found.setdefault(key, row | {"where": name_of_row(row), "text": text})
    if not found:
        return None
    origins = Counter(row["origin"] for row in found.values()).most_common()
    return Section(
        text="The measured member has no fitted speed:"
        f" {', '.join(f'{count} {origin}' for origin, count in origins)}. What was chosen once for all conditions:"
        f" {'; '.join(CHOSEN)}.",
        rows=list(found.values()),
        columns={"where": "First for", "name": "Figure", "text": "Value", "origin": "Origin", "source": "Source"},
        folded="What the measured member was given",
    )


def claims(data: Replayed) -> Section | None:
    """What the paper says, and what its logs say."""
    rows = [row | {"verdict": f"{SIGNS.get(row['verdict'], '~')}\u00a0{row['verdict']}"} for row in data.claims]
    text = (
        "Figures are means over the repetitions that are no outliers. A figure that was said holds if the logs agree to"
        " a tenth, and is contradicted if all are off by more than three tenths; several parts that are true in part"
        " hold partly."
    )
    heads = {"place": "Section", "claim": "Said", "found": "Found", "verdict": "Verdict"}
    return Section("What the paper says, and what its logs say", text, rows=rows, columns=heads) if rows else None


def bandwidths(data: Replayed) -> Section | None:
    """The storage benchmark as numbers."""
    heads: dict[str, Head] = {"device": "Device", "mode": "Mode", "samples": "Measurements"}
    for way in ("read", "write"):
        for measure, words in (
            ("mean", f"{way.capitalize()}: mean (MB/s)"),
            ("median", "median"),
            ("published", "printed"),
        ):
            heads[f"{way}_{measure}_mb_s"] = words, lambda value: number(value, 1)
    rows = bandwidth_rows(data.replay)
    return Section(rows=rows, columns=heads) if rows else None


def conditions(data: Replayed) -> list[Section]:
    """All conditions of the paper's figures, with means over repetitions, and what is to be known of some."""
    heads: dict[str, Head] = {
        "place": "Device",
        "makespan_s": "Makespan",
        "repetitions": "Repetitions (s)",
        "equation_one_s": "Eq. (1)",
        "equation_one_ratio": ("over measured", lambda value: number(value, 2)),
        "drawn_s": "as drawn",
        "fluid_s": MEMBERS[MEASURED].label,
        "load_header_s": "Load header",
        "increment_s": "Read + increment",
        "write_s": "Write",
        "mean_parallelism": "Busy",
    }
    text = """
        Means over repetitions, as the paper has them. Makespan: latest end - earliest start of the tasks that ended; of
        Spark, the driver's time. Eq. (1): M >= D/R + D/W, with D the size of the image in MiB and R and W of Table I in
        MB/s, as the paper counts; as drawn: where the paper's figures have another bar, for Memory mode by the
        benchmark of tmpfs, for the SSD with DRAM's write bandwidth. Phases: sums over all blocks. Busy: sum of the
        phases over the makespan. A block that was not written was read and incremented, and its task never ended: as
        published, it counts in the phases and not in the makespan."""
    found = [Section("BigBrain incrementation, all conditions", text)]
    for title, members in by_heading(data.part("").conditions).items():
        rows, notes = [], list[str]()
        for row in members:
            one = IncrementCondition.of(row)
            runs = data.replay.conditions[one]
            times = " · ".join(f"{run.makespan_s:,.2f}" for run in runs)
            about = {"place": label_of(row), "repetitions": times, "drawn_s": data.replay.drawn_equation_s(one)}
            rows.append(row | about)
            notes += [*incomplete_texts(one, runs), *outlier_texts(one, runs)]
        found.append(Section(text=title, rows=rows, columns=heads, note=" ".join(notes)))
    return found if len(found) > 1 else []


def incomplete_texts(one: IncrementCondition, runs: Sequence[BlockRun]) -> list[str]:
    """How blocks that were not written bear on the makespan."""
    counts = [len(run.incomplete_blocks) + run.missing_blocks for run in runs]
    if not any(counts):
        return []
    span_s, makespan_s = statistics.fmean(run.span_s for run in runs), statistics.fmean(run.makespan_s for run in runs)
    text = (
        f"* {one.tier}: {between(counts, str)} of {one.blocks:,} blocks not written. With their reading, from the first"
    )
    text += f" start to the last end is {span_s:,.2f} s on average"
    return [f"{text}; the makespan, as published, is {makespan_s:,.2f} s."]


def outlier_texts(one: IncrementCondition, runs: Sequence[BlockRun]) -> list[str]:
    """Repetitions far from the middle one, and what tells why."""
    middle_s = statistics.median(run.makespan_s for run in runs)
    going, texts = steady(runs), []
    usual_s = statistics.fmean(run.sum_s(HEADER) for run in going) if going else 0.0
    for run in runs:
        if run in going:
            continue
        longest = max(run.work, key=lambda phase: phase.duration_s)
        why = f"its longest phase is a {longest.name} of {longest.duration_s:,.2f} s"
        if run.makespan_s < middle_s:
            why = f"its images took {run.sum_s(HEADER):,.2f} s to make in all, those of the others {usual_s:,.0f} s"
            why += ": it read its input lazily" if run.sum_s(HEADER) < usual_s / 10 else ""
        took = f"repetition {run.repetition} took {run.makespan_s:,.2f} s, the middle one {middle_s:,.2f} s"
        texts.append(f"{published_name(one)}: {took}; {why}.")
    return texts


def bids(data: Replayed) -> Section | None:
    """The conditions of the BIDS App example: means over repetitions of what is known."""
    heads: dict[str, Head] = {
        "parallelism": "Processes",
        "placement": "Placement",
        "runs": "Runs",
        "participants": "Participants",
        "makespan_s": "Makespan",
        "logged_makespan_s": "as logged",
        "cpu_sum_s": "CPU time",
        "io_sum_s": "The paper's I/O",
        "mean_parallelism": "Mean at once",
    }
    rows = []
    for one, runs in bids_conditions(data.replay.bids_app.runs).items():
        row: Row = {"parallelism": one.parallelism, "placement": one.placement, "runs": len(runs)}
        for column in [*heads][3:]:
            known = spread(runs, column)
            row[column] = known and statistics.fmean(known.values)
        rows.append(row)
    rows.sort(key=lambda row: (row["parallelism"], row["placement"]))
    text = (
        "Means over repetitions. CPU time and the paper's I/O (wall - CPU) are sums over all tasks of a run. As logged:"
        " the file makespan_seconds of a run is the end of the task that is last by name - the start of the first by"
        " name, which is short of latest end - earliest start, which is shown."
    )
    return Section("BIDS App example, all conditions", text, rows=rows, columns=heads) if rows else None


SLIPS = Section(
    "Known slips of the paper",
    """
    In the names of the logs, tmpfs is Optane in Memory mode (all memory is Optane there) and tmpfsAD is DRAM, the tmpfs
    of App Direct mode; the paper's figures call the first one Optane.

    The paper's Eq. (1) divides MiB by dd's MB/s, and Table I counts dd's 1 GB/s as 1,024 MB/s; both count so here, so
    that Eq. (1) is the paper's. In the units that dd means (1 MB = 10^6 bytes), Eq. (1) is 7 % longer on DRAM and
    Optane, and 5 % on the SSD and Isilon.

    The paper draws the SSD's estimate with DRAM's write bandwidth and calls the SSD 1.4 times slower than expected.
    Held against Eq. (1) with the SSD's own, the runs are faster, because writes end in the page cache.

    The text says once that Spark's writes are 1.4 to 1.6 times longer, and once that they take nearly half; in the
    whole repository the first is the reverse.

    The text says that 'Real + Sys' is CPU time and 'User - (Real + Sys)' I/O time. Its plot code computes CPU = user +
    sys and I/O = wall - CPU, which is what is shown. On Optane in App Direct mode (DAX) I/O is copying by the kernel:
    it counts as sys, hence as CPU.

    The paper says 'the entire CoRR dataset'; the table of all conditions says of how many participants the logs are.
    """,
)


def left_out(data: Replayed) -> list[Section]:
    """What the page does not show, or counts apart, by kind."""
    replay = data.replay
    kinds = gathered((row["kind"], f"{row['path']}: {row['reason']}") for row in skipped_rows(replay))
    missing = absent_texts(replay)
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
        f"{counted(len(emulated), 'run')} that emulates an image: tasks share files": emulated,
    }
    sections = [Section(items=items, folded=words) for words, items in found.items() if items]
    return [Section("What these logs do not have", "" if sections else "Everything in these logs is shown."), *sections]


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


PAGE = Page(
    name="published",
    title="The published experiment, replayed",
    category="Published experiment",
    caption="The experiment of Hayot-Sasson, Brown and Glatard (2020), recomputed from its raw logs: the claims of the"
    " paper with verdicts, the validation of the model, every condition with its repetitions, all figures, known slips"
    " of the paper, and what is not shown.",
    under=under,
    tables={
        **{
            f"published_{name}": f"published/published_{name}.tsv"
            for name in ("claims", "validation", "parameters", "predictions", "runs", "phases", "bids_app", "skipped")
        },
        "table_one": "published/table_one.tsv",
    },
    read=read,
    verdicts=verdicts,
    parts=(
        Figure("Predicted against measured", predicted),
        validation,
        unseen,
        parameters,
        claims,
        Figure("Table I: bandwidth of one stream", table_one),
        bandwidths,
        Figure("Makespans", makespan, lambda _: [*IMAGES, OTHERS]),
        Figure("Time by phase", phases, lambda _: IMAGES),
        Figure("Who did what when", gantt, lambda _: PROCESSES),
        Figure("Mean parallelism", mean_parallelism),
        conditions,
        Figure("Makespan of the BIDS App example (Figure 9)", bids_makespan),
        Figure("CPU time, and I/O as the paper counts it, of the BIDS App example (Figure 10)", bids_cpu_io),
        bids,
        SLIPS,
        left_out,
    ),
)
