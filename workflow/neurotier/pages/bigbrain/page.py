"""The page of the incrementation: which engine on which tier was fastest and why, compared with the published runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.bigbrain.tabulation import outputs_text
from neurotier.bigbrain.tasks import SPARK
from neurotier.core.quantities import counted, percent, seconds, three_digits
from neurotier.core.tables import Row, Rows, columns, gathered
from neurotier.pages.bigbrain.figures import bigbrain_gantts, bigbrain_makespans, bigbrain_phases
from neurotier.pages.bigbrain.tables import (
    NO_RUN,
    SUMS,
    Tables,
    conditions_section,
    factors_text,
    name_of,
    read_tables,
)
from neurotier.pages.kit.contrasts import Contrast, contrasts
from neurotier.pages.kit.findings import at_once, words
from neurotier.pages.kit.page import BAD, GOOD, OPEN, Figure, Page, Section, Verdict
from neurotier.run.compared import is_compared

FIELDS = ("tier", "engine", "parallelism")
"""What conditions differ in, by :func:`effects_text`."""

Pairs = Mapping[tuple[IncrementCondition, IncrementCondition], Contrast]
"""How many times as long each condition takes as each other one, by its valid runs."""

MUCH = 0.5
"""Share of the processes' time that their start may take without being mentioned."""


def verdicts(data: Tables) -> list[Verdict]:
    """Which condition was fastest, what tier, engine and parallelism are worth, and how far predictions are off."""
    known, runs, others = data.own, data.own_runs, factors_text(data.published)
    factors = factors_text(known)
    invalid = sum(not is_compared(run) for run in runs)
    same = len({run["sha256"] for run in runs if run["sha256"]}) < 2
    pairs = contrasts(gathered((IncrementCondition.of(run), run) for run in runs if is_compared(run)), paired=True)
    lines = (
        [effects_text(known, pairs), starts_text(fastest_of(known)), factors[:1].upper() + factors[1:]] if known else []
    )
    lines += [f"Published runs: {others}" if others else "", outputs_text(runs).replace("outputs", "Outputs", 1)]
    doubtful = not_beaten(known, pairs)
    kind = GOOD if known and not (invalid or doubtful) and same else OPEN
    found = [Verdict(headline(known, doubtful), kind, more=[f"{line}." for line in lines if line])]
    return found + [Verdict(f"{counted(invalid, 'run')} not compared, being invalid", BAD)] * bool(invalid)


def not_compared(data: Tables) -> Section | None:
    """Each of one's own runs that is not compared, and why."""
    rows = [run for run in data.own_runs if not is_compared(run)]
    return Section("Not compared", items=[invalid_text(run) for run in rows]) if rows else None


def headline(known: Sequence[Row], doubtful: Sequence[Row]) -> str:
    """Which of the conditions was fastest, and which ones it does not certainly beat."""
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
    """The conditions that may not take longer than the one with the shortest median makespan."""
    if len(known) < 2:
        return []
    best, key = fastest_of(known), IncrementCondition.of
    return [row for row in known if row is not best and not pairs[key(row), key(best)].is_longer]


def effects_text(known: Sequence[Row], pairs: Pairs) -> str:
    """What each field contributes to the fastest condition's makespan, the greatest first; empty without others.

    The comparison is with the slowest condition that differs in this field alone.
    """
    best, effects, key = fastest_of(known), [], IncrementCondition.of
    for field in FIELDS:
        alike = [row for row in known if key(row | {field: ""}) == key(best | {field: ""})]
        slowest = max(alike, key=lambda row: float(row["makespan_s"]))
        if slowest is not best:
            effects.append((pairs[key(slowest), key(best)], field, slowest))
    effects.sort(key=lambda one: -one[0].ratio)
    texts = [effect_text(field, best, slowest, contrast) for contrast, field, slowest in effects]
    return f"The {effects[0][1]} mattered most: {'; '.join(texts)}" if len(texts) > 1 else "".join(texts)


def effect_text(field: str, fast: Row, slow: Row, contrast: Contrast) -> str:
    """What one field alone makes of the makespan."""
    longer, shorter = (at_once(row[field]) if field == "parallelism" else row[field] for row in (slow, fast))
    about = {"engine": f" with {fast['engine']}", "tier": f" on {fast['tier']}"}
    about["parallelism"] = f", {at_once(fast['parallelism'])}"
    where = "".join(text for name, text in about.items() if name != field)
    doubt = "" if contrast.is_longer else f" ({contrast.doubt})"
    return f"{longer} took {three_digits(contrast.ratio)} times as long as {shorter}{where}{doubt}"


def starts_text(row: Row) -> str:
    """Why tiers cannot differ much, if processes spend most of their time on their own start; else empty."""
    work_s = sum(row[name] or 0.0 for name in SUMS[1:])
    share = row["start_up_s"] / (row["start_up_s"] + work_s) if row["start_up_s"] else 0.0
    if share < MUCH:
        return ""
    share_text = f"{percent(share)} of the processes' time was their own start"
    return f"With {name_of(row)}, {share_text}: with larger blocks, tiers would differ more"


def invalid_text(run: Row) -> str:
    """A run that is not compared, and why."""
    reason = run["valid"].removeprefix("invalid: ") if run["valid"] != "valid" else "it has no makespan"
    return f"{name_of(run)}, repetition {run['repetition']}: {reason}"


def conditions(data: Tables) -> Section:
    """All conditions, with medians over their valid runs."""
    text = """
        Makespan: median over valid runs of the latest end - earliest start of any phase, starts of processes included;
        of Spark, of the driver's time. Eq. (1): M >= D/R + D/W. Over measured: over the median; the factors above are
        geometric means of these, either way, without conditions to which speeds were fitted. Cache: of pages, when a
        run began. * Some blocks were read and not written, because the device was full: they count in the phases, and
        not in the makespan."""
    columns = (
        "cache runs makespan_s makespan_low_s makespan_high_s equation_one_s equation_one_ratio fluid_s fluid_ratio"
    )
    return conditions_section(text, data.conditions, *columns.split())


def spark(data: Tables) -> Section:
    """Where Spark's time goes: of each part the median over valid runs, in which the last start counts."""
    import pandas as pd  # rules read what the pages show

    keys = ["tier", "parallelism", "repetition"]
    valid = [{key: run[key] for key in keys} for run in data.own_runs if run["engine"] == SPARK and is_compared(run)]
    parts = pd.DataFrame(data.spark, columns=columns("bigbrain_spark")).merge(pd.DataFrame(valid, columns=keys))
    last = parts[parts["attempt"] == parts.groupby(keys)["attempt"].transform("max")]
    last = last.assign(part=last["part"] + "_s")
    medians = last.pivot_table("sum_s", ["tier", "parallelism", "of"], "part", "median", sort=False).reset_index()
    rows = medians.astype(object).where(medians.notna(), None).to_dict("records")
    text = """
        Medians over valid runs, s. Driver: wall time of the driver program; planning is while no task runs before the
        last one has ended. Tasks: sums over tasks (side by side) of the time from launch to end; garbage is the JVM's
        collections beside our phases, Python starting workers, importing, and moving data between files, JVM and
        Python."""
    return Section("Spark by its parts", text, rows)


PAGE = Page(
    name="bigbrain",
    title="BigBrain incrementation",
    caption="The BigBrain incrementation on one page: which engine on which tier was fastest and which of the two"
    " mattered more, whether all outputs are the same bytes, and how far Eq. (1) and the fluid model are from the"
    " measurements, with the published runs for comparison.",
    under=lambda _: (
        "Every block of an image is read, 1 is added to every voxel, and it is written again: the second"
        " application of Hayot-Sasson, Brown and Glatard (2020)"
    ),
    tables={f"bigbrain_{name}": f"bigbrain/bigbrain_{name}.tsv" for name in ("runs", "phases", "spark", "predictions")},
    read=read_tables,
    verdicts=verdicts,
    parts=(
        words("not told apart"),
        not_compared,
        Figure("Makespans", bigbrain_makespans),
        conditions,
        Figure("Time by phase", bigbrain_phases),
        Figure("Who did what when", bigbrain_gantts),
        spark,
    ),
)
