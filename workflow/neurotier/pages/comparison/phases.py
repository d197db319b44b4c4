"""The figure ``phases``: summed wall time by phase, placement and parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, seconds
from neurotier.core.spread import Spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import NO_RUN, Names, condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import Condition, by_condition
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane
from neurotier.pages.kit.stacks import Bar, Kind, draw_stacked
from neurotier.pages.kit.style import PHASE_COLOURS, empty_figure, house_style, save_figure, state
from neurotier.pages.report.findings import PHASES

WHOLE = "whole"
NOTE = (
    "Medians over repetitions of the sums over participant jobs; of published jobs the whole is known only. Beside the"
    " bars: share of the longest phase. Valid runs only."
)
Breakdown = dict[str, Spread]


def breakdowns(runs: Sequence[Row], participants: Sequence[Row]) -> dict[Condition, Breakdown]:
    """Summed wall time of each phase, s, of every condition; of the phases that it has."""
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for row in participants:
        phases = sums.setdefault((row["origin"], row["run"]), {})
        phases[row["phase"]] = phases.get(row["phase"], 0.0) + row["wall_s"]
    found = {}
    for condition, members in by_condition(runs).items():
        known = [times for run in members if (times := sums.get((run["origin"], run["run"])))]
        present = {phase for times in known for phase in times}
        if known:
            found[condition] = {
                phase: Spread(tuple(times.get(phase, 0.0) for times in known)) for phase in PHASES if phase in present
            }
    return found


def share(breakdown: Breakdown, phase: str) -> float:
    """Share of a phase of the sum of all; 0 of no time."""
    whole_s = sum(value.median for value in breakdown.values())
    return breakdown[phase].median / whole_s if phase in breakdown and whole_s > 0 else 0.0


def phases_finding(runs: Sequence[Row], participants: Sequence[Row]) -> Finding:
    """What computing takes of the summed wall time, and the largest other phase."""
    found = breakdowns(runs, participants)
    if not found:
        return Finding(NO_RUN, shown=False)
    known = {condition: breakdown for condition, breakdown in found.items() if set(breakdown) != {WHOLE}}
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


def draw_phases(runs: Sequence[Row], participants: Sequence[Row], stem: Path) -> None:
    """Draw the phases of all valid runs; write SVG, PNG and TSV."""
    found, finding = breakdowns(runs, participants), phases_finding(runs, participants)
    with house_style():
        if finding.shown:
            present = [phase for phase in PHASES if any(phase in breakdown for breakdown in found.values())]
            kinds = [Kind(phase, PHASE_COLOURS[phase]) for phase in present]
            panels = group_panels(found, lambda condition: [Lane(condition.placement, bar(found[condition], present))])
            figure = draw_stacked(panels, kinds, "Sum of wall time over participant jobs (s)")
            state(figure, finding.sentence, NOTE)
        else:
            figure = empty_figure(finding.sentence)
        save_figure(figure, stem, table(found))


def bar(breakdown: Breakdown, present: Sequence[str]) -> Bar:
    """The bar of one condition."""
    longest = max(breakdown, key=lambda phase: breakdown[phase].median)
    text = seconds(sum(value.median for value in breakdown.values()))
    if longest != WHOLE:
        text += f"; {longest} {percent(share(breakdown, longest))}"
    return Bar(tuple(breakdown.get(phase) for phase in present), text)


def table(found: dict[Condition, Breakdown]) -> list[Row]:
    """The numbers behind the figure: one row per condition and phase."""
    return [
        {
            **condition_cells(condition),
            "phase": phase,
            "repetitions": len(value.values),
            **spread_cells("wall_sum", "s", value),
            "share": share(breakdown, phase),
        }
        for condition, breakdown in found.items()
        for phase, value in breakdown.items()
    ]
