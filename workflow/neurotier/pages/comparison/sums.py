"""What the figures of stacked bars share: sums over the participant jobs of a run, by condition, and their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neurotier.core.quantities import share_of, shorten
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import write_figure
from neurotier.run.conditions import Condition

NOTE = "Medians over repetitions of the sums over participant jobs. Valid runs only."
Parts = Mapping[str, Spread | None]
"""What a bar consists of, by name; what is not known may be missing."""

Bars = Mapping[tuple[Condition, str], Parts]
"""By condition, and by tier where a condition has several bars."""


def length(parts: Parts, *names: str) -> float:
    """Length of some parts of a bar, by default of all: what is below 0 or not known is drawn as 0."""
    spreads = [parts.get(name) for name in names or parts]
    return sum(max(0.0, spread.median) for spread in spreads if spread is not None)


def share(parts: Parts, *names: str) -> float:
    """Share of some parts in the length of their bar; 0 of no length."""
    return share_of(length(parts, *names), length(parts)) or 0.0


def write_sums(
    stem: Path,
    finding: Finding,
    bars: Bars,
    kinds: Mapping[str, Kind],
    text: Callable[[Parts], str],
    note: str,
    unit: str = "s",
    **style: Any,
) -> None:
    """Draw a lane for each bar; write SVG, PNG and TSV.

    Parameters
    ----------
    stem, finding
        As for :func:`neurotier.pages.kit.style.write_figure`.
    bars
        What is drawn; nothing if there is nothing to show.
    kinds
        How their parts are drawn, by name; parts that no bar has are left out.
    text
        What is written beside a bar.
    note
        How to read it, besides what holds for all such figures.
    unit
        Of the numbers.
    **style
        What is not as usual, see :func:`neurotier.pages.kit.stacks.draw_stacked`.
    """
    present = {name: kind for name, kind in kinds.items() if any(parts.get(name) for parts in bars.values())}

    def lanes(condition: Condition) -> list[Lane[Bar]]:
        own = {tier: parts for (other, tier), parts in bars.items() if other == condition}
        return [
            Lane(
                f"{shorten(condition.placement, 22)}: {shorten(tier, 18)}" if tier else condition.placement,
                Bar([parts.get(name) for name in present], text(parts)),
            )
            for tier, parts in own.items()
        ]

    def figure() -> plot.Figure:
        panels = group_panels({condition for condition, _ in bars}, lanes)
        return draw_stacked(panels, list(present.values()), **{"label": "Sum over participant jobs (s)"} | style)

    rows: list[Row] = []
    for (condition, tier), parts in bars.items():
        row = condition_cells(condition) | ({"tier": tier} if tier else {})
        for name in present:
            row |= spread_cells(name, unit, parts.get(name))
        rows.append(row)
    write_figure(stem, finding, rows, figure, f"{NOTE} {note}")
