"""How figures and page group conditions of the incrementation, and call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurotier.bigbrain.tasks import PUBLISHED
from neurotier.core.quantities import counted, seconds, size
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.conditions import Condition
from neurotier.pages.kit.findings import at_once
from neurotier.pages.kit.lanes import Lane, Panel
from neurotier.published.conditions import ENGINES, FIGURES

NO_RUN = "No run of the incrementation is valid"


def shown(rows: Iterable[Row]) -> list[Row]:
    """Conditions with at least one valid run."""
    return [row for row in rows if row["runs"]]


def own(rows: Iterable[Row]) -> list[Row]:
    """Conditions with a valid run that this machine, not the paper, has measured."""
    return [row for row in shown(rows) if not Condition.of(row).is_published]


def published(rows: Iterable[Row]) -> list[Row]:
    """Conditions that the paper has measured."""
    return [row for row in shown(rows) if Condition.of(row).is_published]


def name_of(row: Row) -> str:
    """A condition in words.

    >>> name_of({"engine": "spark", "tier": "tmpfs", "parallelism": 2})
    'spark on tmpfs, 2 at once'
    """
    return f"{row['engine']} on {row['tier']}, {at_once(row['parallelism'])}"


def label_of(row: Row) -> str:
    """A published condition beside others of its engine and parallelism; a star where blocks were not written."""
    device, comma, mode = row["tier"].partition(", ")
    return f"{device}{'*' if row['incomplete_blocks'] else ''}{comma}{mode}"


def image_of(row: Row) -> str:
    """What was incremented, and how often."""
    one = Condition.of(row)
    where = f"{one.origin}, {one.resolution_um} µm" if one.resolution_um else one.origin
    text = f"{where}: {counted(one.blocks, 'block')}, {size(one.block_bytes)} in all"
    text += f", {counted(one.iterations, 'iteration')}" if one.iterations > 1 else ""
    return text + (", pairing 'published'" if one.pairing == PUBLISHED and not one.is_published else "")


def heading_of(row: Row, part: str = "") -> str:
    """What stands above conditions that differ in their tier, and of one's own, in their engine."""
    one = Condition.of(row)
    if one.panel is None:
        return at_once(one.parallelism)
    number = FIGURES.get(one.panel)
    return f"{ENGINES[one.engine]}, {at_once(one.parallelism)}" + (f" (Figure {number}{part})" if number else "")


def image_panels(rows: Iterable[Row], part: str = "") -> list[Panel[Row]]:
    """A panel for each origin and image, in it a heading for each parallelism, and a lane for each condition.

    Parameters
    ----------
    rows
        Rows of ``bigbrain_conditions.tsv``; those without a valid run have no lane.
    part
        Of the paper's figure: ``a`` for makespans, ``b`` for phases.
    """
    groups: dict[str, dict[str, list[Lane[Row]]]] = {}
    for row in shown(rows):
        text = label_of(row) if Condition.of(row).is_published else f"{row['engine']} on {row['tier']}"
        groups.setdefault(image_of(row), {}).setdefault(heading_of(row, part), []).append(Lane(text, row))
    return [Panel(image, headed(lanes)) for image, lanes in groups.items()]


def tier_panels(rows: Iterable[Row]) -> list[Panel[Row]]:
    """A panel for each tier, in it a heading for each parallelism and a lane for each engine; the paper's as there."""
    groups: dict[str, dict[str, list[Lane[Row]]]] = {}
    for row in own(rows):
        title = f"{row['origin']}: tier {row['tier']}"
        groups.setdefault(title, {}).setdefault(heading_of(row), []).append(Lane(row["engine"], row))
    panels = [Panel(title, headed(lanes)) for title, lanes in groups.items()]
    papers: dict[str, list[Lane[Row]]] = {}
    for row in published(rows):
        title = f"published, {Condition.of(row).resolution_um} µm: {heading_of(row, 'b')}"
        papers.setdefault(title, []).append(Lane(label_of(row), row))
    return [*panels, *(Panel(title, tuple(lanes)) for title, lanes in papers.items())]


def headed(lanes: dict[str, list[Lane[Row]]]) -> tuple[Lane[Row], ...]:
    """Lanes below their headings."""
    return tuple(lane for heading, some in lanes.items() for lane in (Lane[Row](heading), *some))


def range_text(rows: Sequence[Row]) -> str:
    """From the fastest to the slowest of at least one condition of one's own."""
    ordered = sorted(rows, key=lambda row: float(row["makespan_s"]))
    low, high = (f"{seconds(row['makespan_s'])} ({name_of(row)})" for row in (ordered[0], ordered[-1]))
    blocks = counted(max(row["blocks"] for row in rows), "block")
    return f"Incrementing {blocks} took {low}" if len(rows) == 1 else f"Incrementing {blocks} took from {low} to {high}"
