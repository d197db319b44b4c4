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
from neurotier.pages.kit.chart import BLACK, SKY
from neurotier.pages.kit.findings import Finding, spread_text, times_text
from neurotier.pages.kit.lanes import Lane, draw_lanes
from neurotier.pages.kit.spread import side_by_side
from neurotier.pages.kit.style import write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

NOTE = (
    "Bar: median over repetitions; dot: a repetition; in brackets least, greatest and number. Speed-up: makespan at the"
    " lowest parallelism over that at this one, of as much as there would be if nothing were shared. Valid runs only."
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
    about = names.about(slow)
    if found[slow, fast].is_longer:
        return Finding(f"Beside {faster}, {slower} took {found[slow, fast]}{about and f', {about}'}")
    return Finding(f"{slower} and {faster}{about and f', {about},'} are {found[slow, fast].doubt}")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the makespans of all valid runs; write SVG, PNG and TSV."""
    times = makespans(tables.runs)
    ups = {up.higher: up for up in speed_ups(tables.runs)}

    def draw_lane(axes: plot.Axes, lane: int, _label: str, condition: Condition) -> str:
        values = times[condition].values
        axes.barh(lane, times[condition].median, height=0.66, color=SKY, linewidth=0)
        places = side_by_side(lane, len(values), 0.44)
        axes.plot(values, places, linestyle="", marker="o", markersize=4, markerfacecolor="white", color=BLACK)
        axes.set_xlim(0, max(axes.get_xlim()[1], 1.03 * max(values)))
        text = spread_text(times[condition])
        if up := ups.get(condition):
            text += f"; speed-up {times_text(up.ratio.median)} of {times_text(up.ideal)}"
        return text

    def figure() -> plot.Figure:
        return draw_lanes(group_panels(times, lambda one: [Lane(one.placement, one)]), draw_lane, "Makespan (s)")

    write_figure(stem, finding(tables), table(times, ups), figure, NOTE)


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
