"""The page of the incrementation: which engine on which tier was fastest and why, compared with the published runs.

The page of the published experiment has some of its figures, too, with other sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neurotier.bigbrain.conditions import ORIGIN, IncrementCondition
from neurotier.bigbrain.tabulation import TICK_S, outputs_text
from neurotier.bigbrain.tasks import DELAY, HEADER, INCREMENT, READ, SPARK, START_UP, STREAMING, WRITE
from neurotier.core.quantities import counted, percent, seconds, three_digits
from neurotier.core.tables import Row, Rows, columns, grouped
from neurotier.model.prediction import FLUID, MEASURED, PAPER
from neurotier.pages.bigbrain.tables import (
    NO_RUN,
    SUMS,
    Tables,
    cells,
    conditions_section,
    factors_text,
    in_panels,
    name_of,
    range_text,
    read_tables,
)
from neurotier.pages.kit.chart import BLUE, GREEN, GREY, PURPLE, SKY, VERMILION, YELLOW, Chart
from neurotier.pages.kit.contrasts import Contrast, contrasts
from neurotier.pages.kit.findings import at_once, between, glossary
from neurotier.pages.kit.marks import Lanes, Line, Mark, Points, Spans, in_lanes
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Figure, Page, Section, Verdict
from neurotier.run.compared import is_compared


class Look(NamedTuple):
    """The name and the marker of a member of the model."""

    label: str
    marker: str
    colour: str


MEMBERS = {
    PAPER: Look("Eq. (1)", "D", VERMILION),
    FLUID: Look("fluid", "s", BLUE),
    MEASURED: Look("fluid, measured", "s", BLUE),
}
"""Members of the model, in the order in which they are named."""

PREDICTED = {PAPER: ("equation_one_s",) * 3, FLUID: ("fluid_s", "fluid_low_s", "fluid_high_s")}
"""Columns of a condition with each member's prediction and the ends of its interval, s."""

PHASES = {
    START_UP: ("start of processes", GREY),
    HEADER: ("load header", PURPLE),
    READ: ("read", SKY),
    INCREMENT: ("increment", GREEN),
    WRITE: ("write", VERMILION),
    DELAY: ("pause", YELLOW),
}


def bigbrain_makespans(data: Tables) -> Chart:
    """Every valid repetition, and what Eq. (1) and the fluid model predict. As the published Figures 1a, 3a and 5a to
    8a.
    """
    known = data.own or data.published
    if not known:
        return Chart(NO_RUN)
    images = grouped((row["blocks"], row) for row in known).values()
    says = "; ".join(filter(None, [*map(range_text, images), factors_text(data.own)]))
    table, lanes = Rows(), []
    for row in in_panels(data.conditions):
        for run in row["repetitions"]:
            times = {"makespan_s": run["makespan_s"], "low_s": None, "high_s": None}
            table.append(cells(row) | {"kind": "measured", "of": f"repetition {run['repetition']}"} | times)
        for member, ends in PREDICTED.items():
            if row[ends[0]]:
                ends_s = (row[ends[0]] if row[name] is None else row[name] for name in ends)
                of = PAPER if member == PAPER else row["fluid_member"]
                times = dict(zip(("makespan_s", "low_s", "high_s"), ends_s, strict=True))
                table.append(cells(row) | {"kind": "predicted", "of": of} | times)
        lane = row | {"each_s": [run["makespan_s"] for run in row["repetitions"]], "text": seconds(row["makespan_s"])}
        if row["equation_one_ratio"]:
            lane["text"] += f"; Eq. (1) {three_digits(row['equation_one_ratio'])} x"
        lanes.append(lane)
    marks: list[Mark] = [
        Points("makespan_s", data.middle, "|", above=0.15),
        Points("each_s", "repetition", above=0.15),
    ]
    for member, (column, low, high) in PREDICTED.items():
        label, marker, colour = MEMBERS[member]
        marks.append(Line(low, high, colour, above=-0.27))
        marks.append(Points(column, label, marker, colour, above=-0.27))
    note = (
        f"Bar: {data.middle} over valid repetitions; circle: a repetition; line through a prediction: its interval;"
        f" axes are logarithmic, each with its own range. Right: {data.middle}, and Eq. (1) as a multiple of it."
    )
    if data.published:
        note += (
            " Published: latest end - earliest start of the tasks that ended; for Spark, the driver's time. Eq. (1)"
            " uses Table I; the fluid model uses measurements from the logs of other conditions."
        )
    if any(lane["incomplete_blocks"] for lane in lanes):
        note += " * Some blocks were read and not written (the SSD was full): their tasks never ended and do not count."
    return Lanes(says, table, note, marks=marks, x="Makespan", lanes=lanes, logarithmic=True)


def bigbrain_phases(data: Tables) -> Chart:
    """Time that all blocks together spent in each phase. As the published Figures 1b, 3b and 5b to 8b."""
    known = data.own or data.published
    if not known:
        return Chart(NO_RUN)
    longest = Counter(max(SUMS, key=lambda name: row[name] or 0.0).removesuffix("_s") for row in known)
    (first, count), *others = longest.most_common()
    among = "condition" if data.own else "published condition"
    longest_of = f"The longest phase is {PHASES[first][0]} in {count:,} of {counted(len(known), among)}"
    says = ", ".join([longest_of, *(f"{PHASES[name][0]} in {times:,}" for name, times in others)])
    known = in_panels(data.conditions)
    lanes = [row | {"text": f"{three_digits(row['mean_parallelism'])} at once"} for row in known]
    drawn = [name for name in SUMS if any(row[name] for row in known)]
    marks = []
    for place, (name, marker) in enumerate(zip(drawn, "vo^sD", strict=False)):
        label, colour = PHASES[name.removesuffix("_s")]
        above = 0.33 - 0.66 * (place + 0.5) / len(drawn)
        marks.append(Points(name, label, marker, colour, above=above))
    note = (
        f"{data.middle.capitalize()} over valid repetitions of the sum over all blocks and iterations; logarithmic"
        " axes. Right: the mean number of blocks in a phase at once. In the pairing 'published', reading is within"
        " incrementing (GNU parallel, Snakemake) or in no phase (Spark)."
    )
    if data.published:
        note += " Published runs are of that pairing; the start of their processes is not known."
    if any(row["engine"] == SPARK for row in data.published):
        note += " Spark as published: 'load header' turns bytes into images; only writing compares with GNU Parallel's."
    if any(row["incomplete_blocks"] for row in known):
        note += " * Some blocks were read and not written (the SSD was full): only their reading counts."
    columns = ("runs", "makespan_s", *SUMS, "mean_parallelism", "incomplete_blocks")
    table = [cells(row) | {name: row[name] for name in columns} for row in known]
    return Lanes(says, table, note, marks=marks, x="Sum over all blocks", lanes=lanes, logarithmic=True)


def middle_of(runs: Sequence[Row]) -> Row:
    """The repetition with the median makespan; the shorter one if two are in the middle."""
    return sorted(runs, key=lambda run: float(run["makespan_s"]))[(len(runs) - 1) // 2]


def bigbrain_gantts(data: Tables) -> Chart:
    """The phases of every block, a small chart for each condition. As the published Figures 2 and 4."""
    return gantt_chart(data, data.own)


def gantt_chart(data: Tables, rows: Sequence[Row]) -> Chart:
    """A chart of the repetition with the median makespan of each condition, and how busy its workers were."""
    if not rows:
        return Chart(NO_RUN)
    table, lanes, shares = Rows(), Rows(), dict[str, float]()
    for row in rows:
        run = middle_of(row["repetitions"])
        panel = f"{name_of(row)}: {seconds(run['makespan_s'])}, {three_digits(run['mean_parallelism'])} in a phase"
        if run["start_up_s"] and row["engine"] == SPARK:
            panel += f"; start of Spark {seconds(run['start_up_s'])}"
        if run["incomplete_blocks"]:
            panel += f"; {counted(run['incomplete_blocks'], 'block')} not written"
        phases = data.phases_of(run)
        written = {phase["block"] for phase in phases if phase["phase"] == WRITE}
        in_time = one_after_the_other(phases) if row["pairing"] == STREAMING else map(drawn_phase, phases)
        laid_out = in_lanes(in_time, "block", 0.0 if row["origin"] == ORIGIN else TICK_S)
        first_s = min((phase["start_s"] for phase in laid_out), default=0.0)
        about = {name: row[name] for name in ("origin", "engine", "tier", "parallelism")}
        about["repetition"] = run["repetition"]
        drawn = [about | one | {end: one[end] - first_s for end in ("start_s", "end_s")} for one in laid_out]
        table += [one for one in drawn if one["phase"]]
        lanes += [one | {"panel": panel, "left": one["block"] not in written} for one in drawn]
        busy_s = math.fsum(phase["end_s"] - phase["start_s"] for phase in drawn if phase["phase"])
        shares[name_of(row)] = busy_s / (run["makespan_s"] * row["parallelism"])
    much = between(f"{percent(shares[name])} ({name})" for name in sorted(shares, key=shares.__getitem__))
    note = (
        "For each condition, the valid repetition with the median makespan. A lane has blocks that were processed one"
        " after the other; each iteration is a bar; time starts at 0 in every panel."
    )
    if any(row["pairing"] == STREAMING for row in rows):
        note += (
            " In the pairing 'streaming', phases alternate in pieces of 2 MiB: within a bar, they are drawn one after"
            " the other with their summed durations; a grey line is the rest of the bar."
        )
    if any(row["engine"] == SPARK for row in rows):
        note += " Spark's own start and end are not drawn, but are part of its makespan."
    if any(row["origin"] == ORIGIN for row in rows):
        note += " For GNU Parallel, reading is part of 'increment'; for Spark, it is in no phase."
    says = f"Workers are busy, starts and pauses included, {much} of the time"
    return Lanes(says, table, note, (Spans("block", dict(PHASES.values())),), "Time since the first start", lanes=lanes)


def drawn_phase(phase: Row) -> Row:
    """A row of ``bigbrain_phases.tsv`` as a chart needs it."""
    drawn = {name: phase[name] for name in ("block", "iteration", "phase", "start_s", "end_s")}
    return drawn | {"phase": PHASES[phase["phase"]][0]}


def one_after_the_other(phases: Sequence[Row]) -> Rows:
    """Place the phases of streaming, which alternate, one after the other, each as long as its pieces together."""
    found, iterations = [], grouped(((phase["block"], phase["iteration"]), phase) for phase in phases)
    for members in iterations.values():
        at_s, last_s = min(one["start_s"] for one in members), max(one["end_s"] for one in members)
        for one in sorted(members, key=lambda one: [*PHASES].index(one["phase"])):
            end_s = at_s + one["duration_s"]
            found.append(drawn_phase(one) | {"start_s": at_s, "end_s": end_s})
            at_s = end_s
        if last_s > at_s:
            found.append(found[-1] | {"phase": "", "start_s": at_s, "end_s": last_s})
    return found


FIELDS = ("tier", "engine", "parallelism")
"""The fields that :func:`effects_text` varies."""

Pairs = Mapping[tuple[IncrementCondition, IncrementCondition], Contrast]
"""The contrast of each condition with each other one, by their valid runs."""

MUCH = 0.5
"""The start-up of processes is mentioned if it takes at least this share of their time without pauses."""


def verdicts(data: Tables) -> list[Verdict]:
    """The verdicts: the fastest condition, the effects of tier, engine and parallelism, and how far predictions are
    off."""
    known, runs, others = data.own, data.own_runs, factors_text(data.published)
    factors = factors_text(known)
    invalid = sum(not is_compared(run) for run in runs)
    same = len({run["sha256"] for run in runs if run["sha256"]}) < 2
    pairs = contrasts(grouped((IncrementCondition.of(run), run) for run in runs if is_compared(run)), paired=True)
    lines = (
        [effects_text(known, pairs), starts_text(fastest_of(known)), factors[:1].upper() + factors[1:]] if known else []
    )
    lines += [f"Published runs: {others}" if others else "", outputs_text(runs).replace("outputs", "Outputs", 1)]
    doubtful = not_beaten(known, pairs)
    kind = GOOD if known and not (invalid or doubtful) and same else OPEN
    found = [Verdict(headline(known, doubtful), kind, more=[f"{line}." for line in lines if line])]
    return found + [Verdict(f"{counted(invalid, 'run')} not compared, being invalid", BAD)] * bool(invalid)


def not_compared(data: Tables) -> Section | None:
    """The section on the user's own runs that are not compared, and why; ``None`` if there are none."""
    rows = [run for run in data.own_runs if not is_compared(run)]
    return Section("Not compared", items=[invalid_text(run) for run in rows]) if rows else None


def headline(known: Sequence[Row], doubtful: Sequence[Row]) -> str:
    """A sentence on which condition was fastest, and which ones it does not certainly beat."""
    if not known:
        return NO_RUN
    best = fastest_of(known)
    middle = f" (median of {counted(best['runs'], 'run')})" if best["runs"] > 1 else " (one run)"
    text = f"{name_of(best)}: {seconds(best['makespan_s'])}{middle}"
    blocks = counted(best["blocks"], "block")
    if len(known) == 1:
        return f"{text} for {blocks}; nothing to compare it with"
    text = f"for {blocks}: {text}, of {counted(len(known), 'condition')}"
    if doubtful:
        return f"Shortest makespan {text}; whether it beats {' or '.join(map(name_of, doubtful))} is not sure"
    return f"Fastest {text}"


def fastest_of(rows: Sequence[Row]) -> Row:
    """The condition with the shortest median makespan."""
    return min(rows, key=lambda row: float(row["makespan_s"]))


def not_beaten(known: Sequence[Row], pairs: Pairs) -> Rows:
    """The conditions that do not certainly take longer than the one with the shortest median makespan."""
    if len(known) < 2:
        return []
    best, key = fastest_of(known), IncrementCondition.of
    return [row for row in known if row is not best and not pairs[key(row), key(best)].is_longer]


def effects_text(known: Sequence[Row], pairs: Pairs) -> str:
    """A sentence on the effect of each field on the makespan, greatest first; empty if there is nothing to compare.

    The fastest condition is compared with the slowest one that differs only in this field.
    """
    best, effects, key = fastest_of(known), [], IncrementCondition.of
    for field in FIELDS:
        alike = [row for row in known if key(row | {field: ""}) == key(best | {field: ""})]
        slowest = max(alike, key=lambda row: float(row["makespan_s"]))
        if slowest is not best:
            effects.append((pairs[key(slowest), key(best)], field, slowest))
    effects.sort(key=lambda one: -one[0].ratio)
    texts = [effect_text(field, best, slowest, contrast) for contrast, field, slowest in effects]
    verb = "mattered" if effects and effects[0][0].is_longer else "may have mattered"
    return f"The {effects[0][1]} {verb} most: {'; '.join(texts)}" if len(texts) > 1 else "".join(texts)


def effect_text(field: str, fast: Row, slow: Row, contrast: Contrast) -> str:
    """The effect of a single field on the makespan, in words."""
    longer, shorter = (at_once(row[field]) if field == "parallelism" else row[field] for row in (slow, fast))
    about = {"engine": f" with {fast['engine']}", "tier": f" on {fast['tier']}"}
    about["parallelism"] = f", {at_once(fast['parallelism'])}"
    where = "".join(text for name, text in about.items() if name != field)
    doubt = "" if contrast.is_longer else f" ({contrast.doubt})"
    return f"{longer} took {three_digits(contrast.ratio)} times as long as {shorter}{where}{doubt}"


def starts_text(row: Row) -> str:
    """A sentence on why tiers cannot differ much if processes spend most of their time starting; otherwise empty."""
    work_s = sum(row[name] or 0.0 for name in SUMS[1:])
    share = row["start_up_s"] / (row["start_up_s"] + work_s) if row["start_up_s"] else 0.0
    if share < MUCH:
        return ""
    share_text = f"{percent(share)} of what processes did, pauses aside, was their own start"
    return f"With {name_of(row)}, {share_text}: with larger blocks, tiers would differ more"


def invalid_text(run: Row) -> str:
    """A run that is not compared, and why, in words."""
    reason = run["valid"].removeprefix("invalid: ") if run["valid"] != "valid" else "it has no makespan"
    return f"{name_of(run)}, repetition {run['repetition']}: {reason}"


def conditions(data: Tables) -> Section:
    """The section on all conditions, with medians over their valid runs."""
    text = """
        Makespan: median over valid runs of the latest end - earliest start of any phase, including starts of processes;
        for Spark, of the driver's time. Eq. (1): M >= D/R + D/W. Over measured: the prediction divided by the median;
        the factors above are geometric means of these ratios, inverted if below 1. Cache: state of the page cache when
        a run began. * Some blocks were read and not written, because the device was full: they count in the phases, and
        not in the makespan."""
    columns = (
        "cache runs makespan_s makespan_low_s makespan_high_s equation_one_s equation_one_ratio fluid_s fluid_ratio"
    )
    return conditions_section(text, data.conditions, columns)


def spark(data: Tables) -> Section:
    """The section on where Spark's time goes: the median of each part over valid runs, by their last start."""
    import pandas as pd  # imported here, since rules import this module without drawing

    keys = ["tier", "parallelism", "repetition"]
    valid = [{key: run[key] for key in keys} for run in data.own_runs if run["engine"] == SPARK and is_compared(run)]
    parts = pd.DataFrame(data.spark, columns=columns("bigbrain_spark")).merge(pd.DataFrame(valid, columns=keys))
    last = parts[parts["attempt"] == parts.groupby(keys)["attempt"].transform("max")]
    last = last.assign(part=last["part"] + "_s")
    medians = last.pivot_table("sum_s", ["tier", "parallelism", "of"], "part", "median", sort=False).reset_index()
    rows = medians.astype(object).where(medians.notna(), None).to_dict("records")
    text = """
        Medians over valid runs, s. Driver: wall time of the driver program; planning is the time before the end of the
        last task in which no task runs. Tasks: sums over tasks, many of which run at once, of the time from launch to
        end; garbage is the JVM's garbage collection outside our phases; Python is starting workers, importing, and
        moving data between files, JVM and Python."""
    return Section("Spark by its parts", text, rows)


PAGE = Page(
    name="bigbrain",
    title="BigBrain incrementation",
    caption="The BigBrain incrementation on one page: which engine on which tier was fastest and which of the two"
    " mattered more, whether all outputs are the same bytes, and how far Eq. (1) and the fluid model are from the"
    " measurements, with the published runs for comparison.",
    subtitle=lambda _: (
        "Every block of an image is read, 1 is added to every voxel, and it is written again: the second"
        " application of Hayot-Sasson, Brown and Glatard (2020)"
    ),
    tables=[f"bigbrain/bigbrain_{name}" for name in ("runs", "phases", "spark", "predictions")],
    read=read_tables,
    verdicts=verdicts,
    parts=(
        glossary("not told apart"),
        not_compared,
        Figure("Makespans", bigbrain_makespans),
        conditions,
        Figure("Time by phase", bigbrain_phases),
        Figure("Who did what when", bigbrain_gantts),
        spark,
    ),
)
