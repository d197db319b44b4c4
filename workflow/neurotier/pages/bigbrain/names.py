"""How figures and page group conditions of the incrementation, and call them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.bigbrain.tasks import GNU_PARALLEL, PUBLISHED, SPARK
from neurotier.core.quantities import counted, seconds, size
from neurotier.core.tables import Row
from neurotier.pages.kit.findings import at_once, from_to, gathered, times_text
from neurotier.published.conditions import FIGURES

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


def by_heading(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Conditions by their image and parallelism, in words."""
    return gathered((f"{image_of(row)}; {heading_of(row)}", row) for row in rows)


def range_text(rows: Sequence[Row]) -> str:
    """From the fastest to the slowest of at least one condition of one's own."""
    times = sorted((row["makespan_s"], name_of(row)) for row in rows)
    blocks = counted(max(row["blocks"] for row in rows), "block")
    return f"Incrementing {blocks} took {from_to([f'{seconds(time_s)} ({name})' for time_s, name in times])}"


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
