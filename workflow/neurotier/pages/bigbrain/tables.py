"""What the figures and the page of the incrementation are made from: its tables, and those of the published experiment.

Runs of both have the same columns: those of ``bigbrain_runs.tsv``, and an origin
(:mod:`neurotier.published.own_columns`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from socket import gethostname

from neurotier.bigbrain.conditions import ORIGIN, IncrementCondition
from neurotier.bigbrain.tasks import GNU_PARALLEL, PUBLISHED, SPARK
from neurotier.core.places import Places
from neurotier.core.quantities import counted, seconds, size, three_digits
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, Rows, grouped, read_table
from neurotier.model.prediction import FLUID, MEASURED, PAPER
from neurotier.pages.kit.findings import at_once, between
from neurotier.pages.kit.page import Section
from neurotier.published import own_columns
from neurotier.published.conditions import FIGURES, condition_of
from neurotier.run.compared import is_compared
from neurotier.storage.spread import spread

FLUIDS = (FLUID, MEASURED)
"""The fluid members of the model, the preferred one first."""

SUMS = ("start_up_s", "load_header_s", "read_s", "increment_s", "write_s")
CELLS = ("origin", "engine", "tier", "parallelism", "blocks", "iterations", "pairing", "variant")

Predictions = Mapping[IncrementCondition | tuple[str, str, int], Mapping[str, Row]]
"""Predictions by member of the model, for a published condition, or for engine, tier and parallelism of an own one."""


@dataclass(frozen=True)
class Tables:
    """Everything that the page shows.

    Attributes
    ----------
    conditions
        The conditions, with a middle of their repetitions' values, and the predictions (:func:`condition_rows`).
    runs
        The runs of all origins.
    phases_of
        Gives the rows of ``bigbrain_phases.tsv`` of a run.
    spark
        Rows of ``bigbrain_spark.tsv``.
    middle
        How a condition's values follow from those of its repetitions: ``median`` or ``mean``.
    """

    conditions: Rows
    runs: Rows
    phases_of: Callable[[Row], Rows] = lambda _: []
    spark: Rows = field(default_factory=list)
    middle: str = "median"

    @property
    def own_runs(self) -> Rows:
        """The user's own runs, including invalid ones."""
        return [run for run in self.runs if run["origin"] != ORIGIN]

    @property
    def own(self) -> Rows:
        """The user's own conditions."""
        return [row for row in self.conditions if row["origin"] != ORIGIN]

    @property
    def published(self) -> Rows:
        """The conditions of the paper's figures."""
        return [row for row in self.conditions if row["origin"] == ORIGIN and not row["variant"]]


def run_key(row: Row) -> tuple[object, ...]:
    """What identifies one of the user's own runs."""
    return tuple(row[name] for name in ("engine", "tier", "parallelism", "repetition"))


def read_tables(places: Places, settings: Settings) -> Tables:
    """Read the tables of the incrementation, and the published ones if the configuration includes them.

    There are no predictions after a failed run. The origin of a run is the machine on which it ran, or this one if that
    is not known. So runs that continued on another node of a cluster are separate conditions.
    """

    def read(name: str, folder: Path = places.bigbrain) -> Rows:
        file = folder / f"{name}.tsv"
        return read_table(file, name) if file.exists() else []

    runs = [{"origin": run["host"] or gethostname(), **run} for run in read("bigbrain_runs")]
    by_run = grouped((run_key(row), row) for row in read("bigbrain_phases"))
    said = Rows()
    if settings.published:
        published_runs, phases, said = (
            read(f"published_{name}", places.published) for name in ("runs", "phases", "predictions")
        )
        runs += own_columns.run_rows([run for run in published_runs if run["variant"] is None], phases)
    conditions = condition_rows(runs, predictions_by_condition(read("bigbrain_predictions"), said))
    return Tables(conditions, runs, lambda run: by_run.get(run_key(run), []), read("bigbrain_spark"))


def by_condition(runs: Iterable[Row]) -> dict[IncrementCondition, Rows]:
    """The runs by condition; the user's own conditions are sorted by parallelism, others keep their order."""
    found = grouped((IncrementCondition.of(run), run) for run in runs)
    ordered = sorted(found, key=lambda one: (one.is_published, 0 if one.is_published else one.parallelism))
    return {one: found[one] for one in ordered}


def predictions_by_condition(own: Iterable[Row], published: Iterable[Row]) -> Predictions:
    """The rows of ``bigbrain_predictions.tsv`` and ``published_predictions.tsv`` by the condition that they predict."""
    found: dict[IncrementCondition | tuple[str, str, int], dict[str, Row]] = {}
    for row in own:
        found.setdefault((row["engine"], row["tier"], row["parallelism"]), {})[row["member"]] = row
    for row in published:
        found.setdefault(condition_of(row), {})[row["member"]] = row
    return found


def condition_rows(runs: Iterable[Row], predictions: Predictions, middle: str = "median") -> Rows:
    """A row for each condition with a valid run: its valid runs, a middle of their values, and predictions.

    Parameters
    ----------
    runs
        The runs of all origins.
    predictions
        The predictions for their conditions.
    middle
        Name of a function of :mod:`statistics` that is applied to the values of valid repetitions.
    """
    rows = []
    for one, valid in by_condition(filter(is_compared, runs)).items():
        spreads = {name: spread(valid, name) for name in ("makespan_s", *SUMS, "mean_parallelism")}
        row = vars(one) | {"repetitions": valid, "runs": len(valid)}
        row |= {name: found and getattr(statistics, middle)(found.values) for name, found in spreads.items()}
        row |= {f"makespan_{end}_s": getattr(spreads["makespan_s"], end) for end in ("low", "high")}
        row["cache"] = ", ".join(sorted({run["cache"] for run in valid if run["cache"]}))
        row["incomplete_blocks"] = max(run["incomplete_blocks"] for run in valid)
        key = one if one.is_published else (one.engine, one.tier, one.parallelism)
        rows.append(row | predicted(predictions.get(key, {}), row["makespan_s"]))
    return rows


def predicted(members: Mapping[str, Row], makespan_s: float | None) -> Row:
    """The predictions of Eq. (1) and of a fluid model, s, and their ratios to the measured makespan."""
    paper_s = members[PAPER]["predicted_s"] if PAPER in members else None
    fluid = next((members[one] for one in FLUIDS if one in members), {})
    fluid_s = fluid.get("predicted_s")
    return {
        "equation_one_s": paper_s,
        "equation_one_ratio": ratio(paper_s, makespan_s),
        "fluid_member": fluid.get("member"),
        "fluid_s": fluid_s,
        "fluid_ratio": ratio(fluid_s, makespan_s),
        "fluid_low_s": fluid.get("low_s"),
        "fluid_high_s": fluid.get("high_s"),
    }


def ratio(predicted_s: float | None, measured_s: float | None) -> float | None:
    """Predicted over measured, where both are known."""
    return predicted_s / measured_s if predicted_s and measured_s else None


def cells(row: Row) -> Row:
    """The first cells of a row of a figure's table, which describe the condition."""
    return {name: row[name] for name in CELLS}


NO_RUN = "No valid run of the incrementation"
ENGINES = {GNU_PARALLEL: "GNU Parallel", SPARK: "Spark"}
"""The paper's names of the engines."""


def name_of(row: Row) -> str:
    """A condition in words.

    >>> name_of({"engine": "spark", "tier": "tmpfs", "parallelism": 2})
    'spark on tmpfs, 2 at once'
    """
    text = f"{row['engine']} on {row['tier']}, {at_once(row['parallelism'])}"
    return f"{text}, {row['variant']}" if row.get("variant") else text


def published_name(one: IncrementCondition) -> str:
    """A published condition in words: image, engine, device and mode, processes."""
    return f"{one.resolution_um} µm, {name_of(vars(one))}"


def label_of(row: Row) -> str:
    """The label of a condition among those with the same image and parallelism; a star if blocks were not written."""
    one = IncrementCondition.of(row)
    if not one.is_published:
        return f"{row['engine']} on {row['tier']}"
    device, comma, mode = row["tier"].partition(", ")
    label = f"{device}{'*' if row['incomplete_blocks'] else ''}{comma}{mode}"
    return f"{label}: {one.variant}" if one.variant else label


def image_of(row: Row) -> str:
    """What was incremented, and how often, in words."""
    one = IncrementCondition.of(row)
    where = f"{one.origin}, {one.resolution_um} µm" if one.resolution_um else one.origin
    text = f"{where}: {counted(one.blocks, 'block')}, {size(one.block_bytes)} in all"
    text += f", {counted(one.iterations, 'iteration')}" if one.iterations > 1 else ""
    return text + (", pairing 'published'" if one.pairing == PUBLISHED and not one.is_published else "")


def heading_of(row: Row) -> str:
    """The heading of conditions that differ only in their tier or, for the user's own conditions, in their engine."""
    one = IncrementCondition.of(row)
    if not one.is_published:
        return at_once(one.parallelism)
    number = FIGURES.get(one.panel) if one.panel else None
    return f"{ENGINES[one.engine]}, {at_once(one.parallelism)}" + (f" (Figure {number})" if number else "")


def in_panels(rows: Iterable[Row]) -> Rows:
    """Conditions as rows of a chart with a panel for each origin and image, and a group for each parallelism."""
    found = [row | {"panel": image_of(row), "group": heading_of(row), "lane": label_of(row)} for row in rows]
    panels, groups = ([row[name] for row in found] for name in ("panel", "group"))
    return sorted(found, key=lambda row: (panels.index(row["panel"]), groups.index(row["group"])))


def conditions_section(text: str, rows: Iterable[Row], columns: str) -> Section:
    """A section with a table of conditions, each of which may have a ``note``."""

    def cells(row: Row) -> Row:
        by, is_published = heading_of(row), IncrementCondition.of(row).is_published
        own = {"run_by": by, "tier": label_of(row)} if is_published else {"run_by": f"{row['engine']}, {by}"}
        return row | {"image": image_of(row)} | own

    rows = list(map(cells, rows))
    notes = dict.fromkeys(row["note"] for row in rows if row.get("note"))
    return Section("Conditions", text, rows, f"image run_by tier {columns}", note=" ".join(notes))


def range_text(rows: Sequence[Row]) -> str:
    """The range from the fastest to the slowest of at least one of the user's own conditions, in words."""
    times = sorted((row["makespan_s"], name_of(row)) for row in rows)
    blocks = counted(max(row["blocks"] for row in rows), "block")
    return f"Incrementing {blocks} took {between(f'{seconds(time_s)} ({name})' for time_s, name in times)}"


def off_factor(ratios: Iterable[float]) -> float:
    """The geometric mean of the factors by which ratios differ from 1, either way.

    >>> off_factor([2.0, 0.5])
    2.0
    """
    return math.exp(statistics.fmean(abs(math.log(ratio)) for ratio in ratios))


def factors_text(rows: Sequence[Row]) -> str:
    """How far predictions are off, in words; empty if there are none.

    >>> factors_text([{"equation_one_ratio": 0.5, "fluid_ratio": 1.2}])
    'Eq. (1) is off by a factor of 2.00 (1 condition), the fluid model by 1.20 (1 condition)'
    """
    texts: list[str] = []
    for name, column in {"Eq. (1)": "equation_one_ratio", "the fluid model": "fluid_ratio"}.items():
        if some := [row[column] for row in rows if row[column]]:
            much = f"{three_digits(off_factor(some))} ({counted(len(some), 'condition')})"
            texts.append(f"{name} by {much}" if texts else f"{name} is off by a factor of {much}")
    return ", ".join(texts)
