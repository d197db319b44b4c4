"""The figure ``phases``: summed wall time by phase, placement and parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from neurotier.core.quantities import percent, seconds
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import NO_RUN, Names, condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import by_condition, run_key
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import PHASE_COLOURS, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

WHOLE = "whole"
NOTE = (
    "Medians over repetitions of the sums over participant jobs; of published jobs the whole is known only. Beside the"
    " bars: share of the longest phase. Valid runs only."
)
Breakdown = dict[str, Spread]


def breakdowns(tables: Compared) -> dict[Condition, Breakdown]:
    """Summed wall time of each phase, s, of every condition; of the phases that it has."""
    jobs = pd.DataFrame(tables.participants, columns=["origin", "run", "phase", "wall_s"])
    sums = jobs.pivot_table("wall_s", ["origin", "run"], "phase", "sum")
    found = {}
    for condition, members in by_condition(tables.runs).items():
        own = sums[sums.index.isin([run_key(run) for run in members])].dropna(axis="columns", how="all").fillna(0.0)
        if len(own):
            found[condition] = {phase: Spread(tuple(own[phase])) for phase in PHASE_COLOURS if phase in own}
    return found


def share(breakdown: Breakdown, phase: str) -> float:
    """Share of a phase of the sum of all; 0 of no time."""
    whole_s = sum(value.median for value in breakdown.values())
    return breakdown[phase].median / whole_s if phase in breakdown and whole_s > 0 else 0.0


def finding(tables: Compared) -> Finding:
    """What computing takes of the summed wall time, and the largest other phase."""
    breakdowns_by_condition = breakdowns(tables)
    if not breakdowns_by_condition:
        return Finding(NO_RUN, shown=False)
    known = {
        condition: breakdown for condition, breakdown in breakdowns_by_condition.items() if set(breakdown) != {WHOLE}
    }
    if not known:
        return Finding("Published logs know no phases, only whole jobs")
    names = Names(known)
    computing = sorted(share(breakdown, "compute") for breakdown in known.values())
    low, high = percent(computing[0]), percent(computing[-1])
    text = f"Computing takes {low if low == high else f'{low} to {high}'} of the jobs' time"
    others = [
        (share(breakdown, phase), phase, condition)
        for condition, breakdown in known.items()
        for phase in breakdown
        if phase not in ("compute", WHOLE)
    ]
    if not others:
        return Finding(text)
    largest, phase, condition = max(others)
    where = f" ({names.of(condition)})" if len(known) > 1 else ""
    return Finding(f"{text}; the longest of the other phases, {phase}, takes up to {percent(largest)}{where}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the phases of all valid runs; write SVG, PNG and TSV."""
    breakdowns_by_condition = breakdowns(tables)
    write_figure(
        stem, finding(tables), table(breakdowns_by_condition), lambda: figure_of(breakdowns_by_condition), NOTE
    )


def figure_of(breakdowns_by_condition: dict[Condition, Breakdown]) -> plot.Figure:
    """The figure of at least one condition."""
    present = [
        phase for phase in PHASE_COLOURS if any(phase in breakdown for breakdown in breakdowns_by_condition.values())
    ]
    kinds = [Kind(phase, PHASE_COLOURS[phase]) for phase in present]
    panels = group_panels(
        breakdowns_by_condition,
        lambda condition: [Lane(condition.placement, bar(breakdowns_by_condition[condition], present))],
    )
    return draw_stacked(panels, kinds, "Sum of wall time over participant jobs (s)")


def bar(breakdown: Breakdown, present: Sequence[str]) -> Bar:
    """The bar of one condition."""
    longest = max(breakdown, key=lambda phase: breakdown[phase].median)
    text = seconds(sum(value.median for value in breakdown.values()))
    if longest != WHOLE:
        text += f"; {longest} {percent(share(breakdown, longest))}"
    return Bar(tuple(breakdown.get(phase) for phase in present), text)


def table(breakdowns_by_condition: dict[Condition, Breakdown]) -> list[Row]:
    """The numbers behind the figure: one row per condition and phase."""
    return [
        {
            **condition_cells(condition),
            "phase": phase,
            "repetitions": len(value.values),
            **spread_cells("wall_sum", "s", value),
            "share": share(breakdown, phase),
        }
        for condition, breakdown in breakdowns_by_condition.items()
        for phase, value in breakdown.items()
    ]
