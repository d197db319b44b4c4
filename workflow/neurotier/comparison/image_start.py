"""The figure ``image_start``: how long containers took to start, by the tier of their image."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from neurotier.comparison.findings import NO_RUN, Finding, at_once
from neurotier.comparison.panels import Lane, Panel, beside, draw_distribution, label_lanes, panel_axes
from neurotier.comparison.statistics import by_condition, condition_of
from neurotier.report.quantities import counted, seconds, shorten
from neurotier.report.stacks import quartiles
from neurotier.report.style import BLACK, BLUE, PURPLE, empty_figure, house_style, save_figure, state
from neurotier.tables import Row

READABLE_DOTS = 100
NOTE = (
    "Wall time until the container was up, of every participant job of all repetitions. Box: quartiles; line: 5th to"
    " 95th per cent; diamond: median; dots: jobs, if few. Valid runs only."
)


@dataclass(frozen=True, order=True)
class Place:
    """Where and among how many containers were started."""

    origin: str
    tool: str
    parallelism: int
    tier: str


def starts(runs: Sequence[Row], participants: Sequence[Row]) -> dict[Place, list[float]]:
    """Start-up times, s, by place, shortest first."""
    places: dict[tuple[str, str], Place] = {}
    for members in by_condition(runs).values():
        for run in members:
            condition = condition_of(run)
            tier = run["images_tier"] or "tier not known"
            places[run["origin"], run["run"]] = Place(condition.origin, condition.tool, condition.parallelism, tier)
    found: dict[Place, list[float]] = {}
    for row in participants:
        place = places.get((row["origin"], row["run"]))
        if place is not None and row["phase"] == "container_start":
            found.setdefault(place, []).append(row["wall_s"])
    return {place: sorted(found[place]) for place in sorted(found)}


def image_start_finding(runs: Sequence[Row], participants: Sequence[Row]) -> Finding:
    """Where containers started fastest and slowest."""
    if not by_condition(runs):
        return Finding(NO_RUN, shown=False)
    found = starts(runs, participants)
    if not found:
        return Finding("No run that is compared started a container as a phase of its own", shown=False)
    ordered = sorted(found, key=lambda place: statistics.median(found[place]))
    several = len({place.parallelism for place in found}) > 1
    slow, fast = (
        f"{shorten(place.tier, 30)}{f', {at_once(place.parallelism)}' if several else ''}"
        f" ({seconds(statistics.median(found[place]))})"
        for place in (ordered[-1], ordered[0])
    )
    if len(found) == 1:
        return Finding(f"Containers start from {fast}, median of {counted(len(found[ordered[0]]), 'job')}")
    return Finding(f"Containers start fastest from {fast} and slowest from {slow}, medians")


def draw_image_start(runs: Sequence[Row], participants: Sequence[Row], stem: Path) -> None:
    """Draw the start-up times of all valid runs; write SVG, PNG and TSV."""
    found, finding = starts(runs, participants), image_start_finding(runs, participants)
    with house_style():
        if finding.shown:
            figure = draw(found)
            state(figure, finding.sentence, NOTE)
        else:
            figure = empty_figure(finding.sentence)
        save_figure(figure, stem, table(found))


def draw(found: dict[Place, list[float]]) -> Figure:
    """The figure of at least one place."""
    panels = group(found)
    figure, all_axes = panel_axes(panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        for lane, place in panel.filled():
            values = found[place]
            draw_distribution(axes, lane, values)
            if len(values) <= READABLE_DOTS:
                steps = lane + 0.2 * np.sin(2.4 * np.arange(len(values)))
                axes.plot(values, steps, linestyle="", marker=".", markersize=3.5, color=BLUE, alpha=0.6)
            median = statistics.median(values)
            axes.plot([median], [lane], marker="D", markersize=5, color=PURPLE, markeredgecolor=BLACK)
            beside(axes, lane, f"{seconds(median)}, {counted(len(values), 'job')}")
        label_lanes(axes, panel)
        axes.set_xlim(0, None)
        axes.set_xlabel("Container start-up (s)")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    return figure


def group(found: dict[Place, list[float]]) -> list[Panel[Place]]:
    """A panel per origin and tool, with a heading for each parallelism."""
    panels: dict[str, list[Lane[Place]]] = {}
    for place in found:
        panel = panels.setdefault(f"{shorten(place.origin, 50)}: {shorten(place.tool, 50)}", [])
        heading: Lane[Place] = Lane(at_once(place.parallelism))
        panel += [] if heading in panel else [heading]
        panel.append(Lane(f"image on {place.tier}", place))
    return [Panel(title, tuple(lanes)) for title, lanes in panels.items()]


def table(found: dict[Place, list[float]]) -> list[Row]:
    """The numbers behind the figure: one row per place."""
    rows = []
    for place, values in found.items():
        lower, median, upper = quartiles(values) if len(values) > 1 else [values[0]] * 3
        row = {name: getattr(place, name) for name in ("origin", "tool", "parallelism")} | {"images_tier": place.tier}
        times = {"lower_quartile_s": lower, "median_s": median, "upper_quartile_s": upper}
        rows.append(row | {"jobs": len(values), "least_s": values[0], **times, "greatest_s": values[-1]})
    return rows
