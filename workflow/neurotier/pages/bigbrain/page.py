"""The page of the incrementation: which engine on which tier was fastest, beside the published runs."""

from __future__ import annotations

from neurotier.bigbrain.tasks import SPARK
from neurotier.core.quantities import seconds
from neurotier.core.tables import Row, columns
from neurotier.pages.bigbrain.figures import (
    bigbrain_gantts,
    bigbrain_makespans,
    bigbrain_phases,
)
from neurotier.pages.bigbrain.tables import Tables, by_heading, label_of, read_tables
from neurotier.pages.bigbrain.verdict import not_compared, verdicts
from neurotier.pages.kit.findings import words
from neurotier.pages.kit.page import Figure, Page, Section
from neurotier.run.compared import is_compared

COLUMNS = (
    *("engine", "tier_and_cache", "valid_runs", "makespan_s", "least_to_greatest", "equation_one_s"),
    *("equation_one_ratio", "fluid_s", "fluid_ratio", "start_up_s", "load_header_s", "read_s", "increment_s"),
    *("write_s", "mean_parallelism"),
)
"""Of the table of conditions."""


def conditions(data: Tables) -> list[Section]:
    """All conditions, with medians over their valid runs."""
    text = """
        Medians over valid runs. Makespan: latest end - earliest start of any phase, starts of processes included; of
        Spark, the driver's time. Eq. (1): M >= D/R + D/W. Over measured: over the median; the factors above are
        geometric means of these, either way, without conditions to which speeds were fitted. Cache: of pages, when a
        run began. Phases: sums over all blocks and iterations; as published, reading is within incrementing, and of
        Spark in no phase: its header turns bytes into images. Mean parallelism: of blocks in a phase at once. * Some
        blocks were read and not written, because the device was full: they count in the phases, and not in the
        makespan."""
    found = [Section("Conditions", text)]
    for title, members in by_heading(data.conditions).items():
        rows = [row | cells(row) for row in members]
        found.append(Section(text=title, rows=rows, columns=COLUMNS))
    return found if data.conditions else []


def cells(row: Row) -> Row:
    """Where a condition was, how many of its runs are valid, and between what their makespans are."""
    every = row["runs"] + row["invalid_runs"]
    low, high = (seconds(row[f"makespan_{end}_s"]) for end in ("low", "high"))
    return {
        "tier_and_cache": ", ".join(filter(None, (label_of(row).removeprefix(f"{row['engine']} on "), row["cache"]))),
        "valid_runs": f"{row['runs']:,} of {every:,}" if row["invalid_runs"] else f"{every:,}",
        "least_to_greatest": f"{low.removesuffix(' s')} to {high}" if row["runs"] > 1 else "",
    }


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
    category="BigBrain incrementation",
    caption="The BigBrain incrementation on one page: which engine on which tier was fastest and which of the two"
    " mattered more, whether all outputs are the same bytes, and how far Eq. (1) and the fluid model are from the"
    " measurements, with the published runs for comparison.",
    under=lambda _: (
        "Every block of an image is read, 1 is added to every voxel, and it is written again: the second"
        " application of Hayot-Sasson, Brown and Glatard (2020)"
    ),
    tables={
        f"bigbrain_{name}": f"bigbrain/bigbrain_{name}.tsv"
        for name in ("conditions", "runs", "phases", "spark", "predictions")
    },
    read=read_tables,
    verdicts=verdicts,
    parts=(
        words("valid", "not told apart"),
        not_compared,
        Figure("Makespans", bigbrain_makespans),
        conditions,
        Figure("Time by phase", bigbrain_phases),
        Figure("Who did what when", bigbrain_gantts),
        spark,
    ),
)
