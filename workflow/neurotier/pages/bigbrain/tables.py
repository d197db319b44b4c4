"""What the figures and the page of the incrementation are made of: its tables, and those of the published experiment.

Runs of both origins have the same columns: those of ``bigbrain_runs.tsv`` and an origin
(:mod:`neurotier.published.own_columns`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.bigbrain.conditions import ORIGIN, IncrementCondition
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.bigbrain.tasks import GNU_PARALLEL, PUBLISHED, SPARK
from neurotier.core.places import Places
from neurotier.core.quantities import counted, seconds, size
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, columns, gathered, read_table, write_table
from neurotier.model.prediction import FLUID, MEASURED, PAPER
from neurotier.pages.kit.findings import at_once, between, times_text
from neurotier.pages.kit.page import Section
from neurotier.published import own_columns
from neurotier.published.conditions import FIGURES
from neurotier.run.compared import is_compared
from neurotier.storage.spread import spread

FLUIDS = (FLUID, MEASURED)
"""Fluid members of the model, the one to show first."""

SUMS = ("start_up_s", "load_header_s", "read_s", "increment_s", "write_s")
CELLS = ("origin", "engine", "tier", "parallelism", "blocks", "iterations", "pairing")

Predictions = Mapping[IncrementCondition, Mapping[str, Row]]
"""What is predicted of a condition, by member of the model."""


@dataclass(frozen=True)
class Tables:
    """What there is to show.

    Attributes
    ----------
    conditions
        Rows of ``bigbrain_conditions.tsv``.
    runs
        Runs of all origins.
    phases_of
        Gives the rows of ``bigbrain_phases.tsv`` of a run.
    spark
        Rows of ``bigbrain_spark.tsv``.
    middle
        What the values of a condition are of its repetitions.
    """

    conditions: list[Row]
    runs: list[Row]
    phases_of: Callable[[Row], list[Row]] = lambda _: []
    spark: list[Row] = field(default_factory=list)
    middle: str = "median"

    @property
    def own_runs(self) -> list[Row]:
        """Runs of this machine, the invalid ones, too."""
        return [run for run in self.runs if run["origin"] != ORIGIN]

    def repetitions(self) -> dict[IncrementCondition, list[Row]]:
        """The valid runs of each condition."""
        return by_condition(filter(is_compared, self.runs))


def run_key(row: Row) -> tuple[object, ...]:
    """What tells a run of one's own from others."""
    return tuple(row[name] for name in ("engine", "tier", "parallelism", "repetition"))


def read_tables(places: Places, settings: Settings) -> Tables:
    """The tables of the incrementation, and the published ones if the conditions have any."""
    conditions, runs, phases, spark = (
        read_table(places.bigbrain / f"{name}.tsv", name)
        for name in ("bigbrain_conditions", "bigbrain_runs", "bigbrain_phases", "bigbrain_spark")
    )
    host = next((row["origin"] for row in conditions if row["origin"] != ORIGIN), "")
    runs = own_runs(runs, host)
    if any(row["origin"] == ORIGIN for row in conditions):
        runs += read_published_runs(BigBrainPlan(settings, places).published)
    by_run = gathered((run_key(row), row) for row in phases)
    return Tables(conditions, runs, lambda run: by_run.get(run_key(run), []), spark)


def write_conditions(runs: Path, predictions: Path, published: Mapping[str, Path], host: str, conditions: Path) -> None:
    """Write ``bigbrain_conditions.tsv``.

    Parameters
    ----------
    runs, predictions
        ``bigbrain_runs.tsv`` and ``bigbrain_predictions.tsv``, which is not there after a run that failed.
    published
        Files ``published_runs``, ``published_phases`` and ``published_predictions`` if they belong to it, by name.
    host
        What conditions of one's own are called of which no machine is known.
    conditions
        File to write.
    """
    run_rows = own_runs(read_table(runs, "bigbrain_runs"), host) + read_published_runs(published)
    own = read_if_there({"bigbrain_predictions": predictions}, "bigbrain_predictions")
    predicted = predictions_by_condition(run_rows, own, read_if_there(published, "published_predictions"))
    rows = condition_rows(run_rows, predicted)
    write_table(
        conditions,
        "bigbrain_conditions",
        [{name: row[name] for name in columns("bigbrain_conditions")} for row in rows],
    )


def own_runs(runs: Iterable[Row], host: str) -> list[Row]:
    """Rows of ``bigbrain_runs.tsv`` with their origin: the machine that they were on, ``host`` if that is not known.

    So runs that went on on another node of a cluster are conditions of their own.
    """
    return [{"origin": run["host"] or host, **run} for run in runs]


def read_published_runs(published: Mapping[str, Path]) -> list[Row]:
    """Published runs of the paper's figures, in their order; see :func:`read_tables`."""
    runs, phases = (read_if_there(published, name) for name in ("published_runs", "published_phases"))
    return own_columns.run_rows([run for run in runs if run["variant"] is None], phases)


def read_if_there(files: Mapping[str, Path], name: str) -> list[Row]:
    """A table's rows; none while it is not there."""
    return read_table(files[name], name) if name in files and files[name].exists() else []


def by_condition(runs: Iterable[Row]) -> dict[IncrementCondition, list[Row]]:
    """All runs, invalid ones too, by condition; those of one's own by parallelism, else in the order given."""
    found = gathered((IncrementCondition.of(run), run) for run in runs)
    own = sorted((one for one in found if not one.is_published), key=lambda one: one.parallelism)
    return {one: found[one] for one in [*own, *(one for one in found if one.is_published)]}


def predictions_by_condition(runs: Iterable[Row], own: Iterable[Row], published: Iterable[Row]) -> Predictions:
    """Predictions of the conditions of some runs.

    Parameters
    ----------
    runs
        Runs of all origins.
    own, published
        Rows of ``bigbrain_predictions.tsv`` and ``published_predictions.tsv``.
    """
    names = ("engine", "tier", "parallelism")
    by_name = gathered((tuple(row[name] for name in names), row) for row in own)
    found = {
        one: by_name.get(tuple(getattr(one, name) for name in names), [])
        for one in by_condition(runs)
        if not one.is_published
    }
    found |= gathered((own_columns.condition_of(row), row) for row in published)
    return {one: {row["member"]: row for row in rows} for one, rows in found.items()}


def condition_rows(
    runs: Sequence[Row],
    predictions: Predictions,
    middle: Callable[[Sequence[float]], float] = statistics.median,
) -> list[Row]:
    """Rows of ``bigbrain_conditions.tsv``, and the variant of each condition.

    Published conditions without a valid run are left out; those of one's own are there, without values.

    Parameters
    ----------
    runs
        Runs of all origins.
    predictions
        What is predicted of their conditions.
    middle
        What is taken of the values of valid repetitions.
    """
    rows = []
    for one, members in by_condition(runs).items():
        valid = [run for run in members if is_compared(run)]
        if valid or not one.is_published:
            values = measured(valid, middle)
            rows.append(
                vars(one)
                | {"runs": len(valid), "invalid_runs": len(members) - len(valid)}
                | values
                | predicted(predictions.get(one, {}), values["makespan_s"])
            )
    return rows


def measured(valid: Sequence[Row], middle: Callable[[Sequence[float]], float]) -> Row:
    """Middle and range over valid runs; empty of none."""

    times, peaks = spread(valid, "makespan_s"), spread(valid, "peak_parallelism")
    middles = {name: spread(valid, name) for name in ("makespan_s", *SUMS, "mean_parallelism")}
    return {
        "cache": ", ".join(sorted({run["cache"] for run in valid if run["cache"]})) or None,
        "incomplete_blocks": max((run["incomplete_blocks"] for run in valid), default=0),
        "makespan_low_s": times and times.low,
        "makespan_high_s": times and times.high,
        **{name: found and middle(found.values) for name, found in middles.items()},
        "peak_parallelism": int(peaks.high) if peaks else None,
    }


def predicted(members: Mapping[str, Row], makespan_s: float | None) -> Row:
    """What Eq. (1) and a fluid model say, and how that compares with what was measured, s."""
    member = next((one for one in FLUIDS if one in members), None)
    fluid = members[member] if member else {}
    paper_s = members[PAPER]["predicted_s"] if PAPER in members else None
    return {
        "equation_one_s": paper_s,
        "equation_one_ratio": ratio(paper_s, makespan_s),
        "fluid_member": member,
        "fluid_s": fluid.get("predicted_s"),
        "fluid_low_s": fluid.get("low_s"),
        "fluid_high_s": fluid.get("high_s"),
        "fluid_ratio": ratio(fluid.get("predicted_s"), makespan_s),
    }


def ratio(predicted_s: float | None, measured_s: float | None) -> float | None:
    """Predicted over measured, where both are known."""
    return predicted_s / measured_s if predicted_s and measured_s else None


def cells(row: Row) -> Row:
    """A condition as the first cells of a row behind a figure; those of the replay have a variant."""
    return {name: row[name] for name in (*CELLS, "variant") if name in row}


NO_RUN = "No run of the incrementation is valid"
ENGINES = {GNU_PARALLEL: "GNU Parallel", SPARK: "Spark"}
"""What the paper calls the engines."""


def shown(rows: Iterable[Row]) -> list[Row]:
    """Conditions with at least one valid run."""
    return [row for row in rows if row["runs"]]


def own(rows: Iterable[Row]) -> list[Row]:
    """Conditions with a valid run that this machine, not the paper, has measured."""
    return [row for row in shown(rows) if not IncrementCondition.of(row).is_published]


def published(rows: Iterable[Row]) -> list[Row]:
    """Conditions that the paper has measured."""
    return [row for row in shown(rows) if IncrementCondition.of(row).is_published]


def name_of(row: Row) -> str:
    """A condition in words.

    >>> name_of({"engine": "spark", "tier": "tmpfs", "parallelism": 2})
    'spark on tmpfs, 2 at once'
    """
    text = f"{row['engine']} on {row['tier']}, {at_once(row['parallelism'])}"
    return f"{text}, {row['variant']}" if row.get("variant") else text


def published_name(one: IncrementCondition) -> str:
    """A published condition in words: image, engine, processes, device and mode."""
    parts = [f"{one.resolution_um} µm", ENGINES[one.engine], f"{one.parallelism} processes", one.tier]
    return ", ".join([*parts, one.variant] if one.variant else parts)


def label_of(row: Row) -> str:
    """A condition beside others of its image and parallelism; a star where blocks were not written."""
    one = IncrementCondition.of(row)
    if not one.is_published:
        return f"{row['engine']} on {row['tier']}"
    device, comma, mode = row["tier"].partition(", ")
    label = f"{device}{'*' if row['incomplete_blocks'] else ''}{comma}{mode}"
    return f"{label}: {one.variant}" if one.variant else label


def image_of(row: Row) -> str:
    """What was incremented, and how often."""
    one = IncrementCondition.of(row)
    where = f"{one.origin}, {one.resolution_um} µm" if one.resolution_um else one.origin
    text = f"{where}: {counted(one.blocks, 'block')}, {size(one.block_bytes)} in all"
    text += f", {counted(one.iterations, 'iteration')}" if one.iterations > 1 else ""
    return text + (", pairing 'published'" if one.pairing == PUBLISHED and not one.is_published else "")


def heading_of(row: Row, part: str = "") -> str:
    """What stands above conditions that differ in their tier, and of one's own, in their engine."""
    one = IncrementCondition.of(row)
    if not one.is_published:
        return at_once(one.parallelism)
    number = FIGURES.get(one.panel) if one.panel else None
    return f"{ENGINES[one.engine]}, {at_once(one.parallelism)}" + (f" (Figure {number}{part})" if number else "")


def in_panels(rows: Iterable[Row], part: str = "") -> list[Row]:
    """Conditions with a valid run as rows of a chart: a panel for each origin and image, a group for each parallelism.

    Parameters
    ----------
    rows
        Rows of ``bigbrain_conditions.tsv``.
    part
        Of the paper's figure: ``a`` for makespans, ``b`` for phases.
    """
    found = [
        row | {"panel": image_of(row), "group": heading_of(row, part), "lane": label_of(row)} for row in shown(rows)
    ]
    panels = list(dict.fromkeys(row["panel"] for row in found))
    return sorted(found, key=lambda row: panels.index(row["panel"]))


def condition_sections(heading: str, text: str, rows: Iterable[Row], columns: Sequence[str]) -> list[Section]:
    """A table of conditions for each image and parallelism, below a heading; each may have a ``note`` of its own."""
    found = gathered((f"{image_of(row)}; {heading_of(row)}", row) for row in rows)
    tables = [
        Section(
            text=title, rows=members, columns=columns, note=" ".join(row.get("note", "") for row in members).strip()
        )
        for title, members in found.items()
    ]
    return [Section(heading, text), *tables] if tables else []


def range_text(rows: Sequence[Row]) -> str:
    """From the fastest to the slowest of at least one condition of one's own."""
    times = sorted((row["makespan_s"], name_of(row)) for row in rows)
    blocks = counted(max(row["blocks"] for row in rows), "block")
    return f"Incrementing {blocks} took {between(f'{seconds(time_s)} ({name})' for time_s, name in times)}"


def off_factor(ratios: Iterable[float]) -> float | None:
    """Geometric mean of the factors by which ratios miss 1, either way; ``None`` of none.

    >>> off_factor([2.0, 0.5])
    2.0
    """
    logarithms = [abs(math.log(ratio)) for ratio in ratios]
    return math.exp(statistics.fmean(logarithms)) if logarithms else None


def factors_text(rows: Sequence[Row]) -> str:
    """By how much predictions miss; empty without any.

    >>> factors_text([{"equation_one_ratio": 0.5, "fluid_ratio": 1.2}])
    'Eq. (1) is off by a factor of 2.00 (1 condition), the fluid model by 1.20 (1 condition)'
    """
    ratios = {
        "Eq. (1)": [row["equation_one_ratio"] for row in rows if row["equation_one_ratio"]],
        "the fluid model": [row["fluid_ratio"] for row in rows if row["fluid_ratio"]],
    }
    texts: list[str] = []
    for name, some in ratios.items():
        if (factor := off_factor(some)) is not None:
            much = f"{times_text(factor)} ({counted(len(some), 'condition')})"
            texts.append(f"{name} by {much}" if texts else f"{name} is off by a factor of {much}")
    return ", ".join(texts)
