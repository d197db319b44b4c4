"""The figure ``makespan``: makespan by placement and parallelism, every repetition a dot (the published Figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import shorten
from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import LONGEST_NAME, NO_RUN, Names, condition_cells, spread_cells
from neurotier.pages.comparison.panels import group_panels
from neurotier.pages.comparison.statistics import SpeedUp, by_condition, family_contrasts, speed_ups
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding, at_once, spread_text, times_text
from neurotier.pages.kit.lanes import Lane, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.spread import side_by_side
from neurotier.pages.kit.style import BLACK, SKY, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

NOTE = (
    "Bar: median over repetitions; dot: a repetition; in brackets least, greatest and number. Speed-up: makespan at the"
    " lowest parallelism over that at this one. Valid runs only."
)


def makespans(runs: Sequence[Row]) -> dict[Condition, Spread]:
    """Makespan of every condition, s."""
    found = {condition: spread(members, "makespan_s") for condition, members in by_condition(runs).items()}
    return {condition: value for condition, value in found.items() if value is not None}


def finding(tables: Compared) -> Finding:
    """The widest gap between two placements at the same parallelism, and whether it is more than chance."""
    times = makespans(tables.runs)
    if not times:
        return Finding(NO_RUN, shown=False)
    names = Names(times)
    found = family_contrasts(by_condition(tables.runs))
    if not found:
        fastest = min(times, key=lambda condition: times[condition].median)
        shortest = "is shortest with" if len(times) > 1 else "with"
        return Finding(f"Makespan {shortest} {names.of(fastest)}: {spread_text(times[fastest])}")
    slow, fast = max(found, key=lambda pair: found[pair].ratio)
    slower, faster = (shorten(condition.placement, LONGEST_NAME) for condition in (slow, fast))
    where = f", {about}" if (about := names.about(slow)) else ""
    if found[slow, fast].is_longer:
        return Finding(f"Beside {faster}, {slower} took {found[slow, fast]}{where}")
    return Finding(f"{slower} and {faster}{where}, are {found[slow, fast].doubt}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the makespans of all valid runs; write SVG, PNG and TSV."""
    times = makespans(tables.runs)
    ups = {up.higher: up for up in speed_ups(tables.runs)}
    write_figure(stem, finding(tables), table(times, ups), lambda: figure_of(times, ups), NOTE)


def figure_of(times: dict[Condition, Spread], ups: dict[Condition, SpeedUp]) -> plot.Figure:
    """The figure of at least one condition."""
    panels = group_panels(times, lambda condition: [Lane(condition.placement, condition)])
    figure, all_axes = panel_axes(panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        longest = 0.0
        for lane, condition in panel.filled():
            values = times[condition].values
            longest = max(longest, *values)
            axes.barh(lane, times[condition].median, height=0.66, color=SKY, linewidth=0)
            places = side_by_side(lane, len(values), 0.44)
            axes.plot(values, places, linestyle="", marker="o", markersize=4, markerfacecolor="white", color=BLACK)
            up = ups.get(condition)
            speed_up = f"; {times_text(up.ratio.median)} x as fast" if up is not None else ""
            annotate_lane(axes, lane, spread_text(times[condition]) + speed_up)
            if up is not None and panel.lanes[lane - 1].value is None:
                annotate_lane(
                    axes, lane - 1, f"speed-up from {at_once(up.lower.parallelism)}; ideal {times_text(up.ideal)} x"
                )
        label_lanes(axes, panel)
        axes.set_xlim(0, 1.03 * longest or 1)
        axes.set_xlabel("Makespan (s)")
        axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,g}"))
    return figure


def table(times: dict[Condition, Spread], ups: dict[Condition, SpeedUp]) -> list[Row]:
    """The numbers behind the figure: one row per condition."""
    return [
        {
            **condition_cells(condition),
            "repetitions": len(time.values),
            **spread_cells("makespan", "s", time),
            "speed_up_from": ups[condition].lower.parallelism if condition in ups else None,
            **spread_cells("speed_up", "ratio", ups[condition].ratio if condition in ups else None),
        }
        for condition, time in times.items()
    ]
