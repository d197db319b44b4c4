"""The figure ``image_start``: how long containers took to start, by the tier of their image."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from neurotier.core.quantities import counted, seconds, share_of, shorten
from neurotier.core.tables import Row
from neurotier.pages.comparison.names import LONGEST_NAME, NO_RUN, Names
from neurotier.pages.comparison.panels import headed
from neurotier.pages.comparison.statistics import Family, by_condition, families, run_key
from neurotier.pages.kit import plot
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.lanes import Lane, annotate_lane, label_lanes, panel_axes
from neurotier.pages.kit.spread import draw_distribution, quartiles
from neurotier.pages.kit.style import PURPLE, write_figure
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

NOTE = (
    "Wall time until the container was up, of every participant job of all repetitions. Box: quartiles; line: 5th to"
    " 95th per cent; diamond: median; dots: jobs, if few. Valid runs only."
)


@dataclass(frozen=True, order=True)
class Place:
    """Where and among what containers were started."""

    family: Family
    tier: str


def starts(tables: Compared) -> dict[Place, list[float]]:
    """Start-up times, s, by place, shortest first."""
    times: dict[tuple[str, str], list[float]] = {}
    for row in tables.participants:
        if row["phase"] == "container_start":
            times.setdefault(run_key(row), []).append(row["wall_s"])
    groups, found = by_condition(tables.runs), dict[Place, list[float]]()
    for family, members in families(groups).items():
        for run in (run for condition in members for run in groups[condition]):
            if own := times.get(run_key(run)):
                found.setdefault(Place(family, run["images_tier"] or "tier not known"), []).extend(own)
    return {place: sorted(found[place]) for place in sorted(found)}


def finding(tables: Compared) -> Finding:
    """Where containers started fastest and slowest."""
    if not by_condition(tables.runs):
        return Finding(NO_RUN, shown=False)
    times_by_place = starts(tables)
    if not times_by_place:
        return Finding("No run that is compared started a container as a phase of its own", shown=False)
    medians = {place: statistics.median(times) for place, times in times_by_place.items()}
    names = Names(by_condition(tables.runs))
    gaps = []
    for family, places in groupby(times_by_place, lambda place: place.family):
        ordered = sorted(places, key=lambda place: medians[place])
        ratio = share_of(medians[ordered[-1]], medians[ordered[0]]) or 0.0
        gaps.append((len(ordered) > 1, ratio, family, ordered[0], ordered[-1]))
    several, _, family, fast, slow = max(gaps)
    faster, slower = (f"{shorten(place.tier, LONGEST_NAME)} ({seconds(medians[place])})" for place in (fast, slow))
    like = Condition(family.origin, family.tool, family.cache, family.parallelism, "")
    where = f", {about}" if (about := names.about(like)) else ""
    if not several:
        return Finding(f"Containers start from {faster}, median of {counted(len(times_by_place[fast]), 'job')}{where}")
    return Finding(f"Containers start fastest from {faster} and slowest from {slower}{where}, medians")


def draw(tables: Compared, stem: Path) -> None:
    """Draw the start-up times of all valid runs; write SVG, PNG and TSV."""
    times_by_place = starts(tables)
    write_figure(stem, finding(tables), table(times_by_place), lambda: figure_of(times_by_place), NOTE)


def figure_of(times_by_place: dict[Place, list[float]]) -> plot.Figure:
    """The figure of at least one place."""
    panels = headed(
        (family, [Lane(f"image on {place.tier}", place) for place in places])
        for family, places in groupby(times_by_place, lambda place: place.family)
    )
    figure, all_axes = panel_axes(panels)
    for axes, panel in zip(all_axes, panels, strict=True):
        for lane, place in panel.filled():
            values = times_by_place[place]
            median = statistics.median(values)
            draw_distribution(axes, lane, values, median, PURPLE)
            annotate_lane(axes, lane, f"{seconds(median)}, {counted(len(values), 'job')}")
        label_lanes(axes, panel)
        axes.set_xlim(0, None)
        axes.set_xlabel("Container start-up (s)")
        axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,g}"))
    return figure


def table(times_by_place: dict[Place, list[float]]) -> list[Row]:
    """The numbers behind the figure: one row per place."""
    rows = []
    for place, values in times_by_place.items():
        lower, median, upper = quartiles(values)
        row = {**asdict(place.family), "images_tier": place.tier}
        times = {"lower_quartile_s": lower, "median_s": median, "upper_quartile_s": upper}
        rows.append(row | {"jobs": len(values), "least_s": values[0], **times, "greatest_s": values[-1]})
    return rows
