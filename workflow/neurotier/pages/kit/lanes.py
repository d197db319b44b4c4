"""Panels of the comparison's figures: one per origin, tool and cache state, in it a lane per condition.

Times of other origins are not of one size and not to be compared at a glance, so every panel has an axis of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from neurotier.core.quantities import shorten
from neurotier.core.spread import Spread
from neurotier.pages.comparison.statistics import Condition, Family, families
from neurotier.pages.kit.findings import at_once
from neurotier.pages.kit.style import BLACK, LIGHT_GREY, WIDTH_IN
from neurotier.pages.report.stacks import Part, Stack, draw_bars, filling
from neurotier.run.compared import MEMORY

LANE_IN, LEGEND_IN = 0.23, 0.2
Value = TypeVar("Value")


@dataclass(frozen=True)
class Lane(Generic[Value]):
    """One line of a panel; a heading has no value."""

    label: str
    value: Value | None = None


@dataclass(frozen=True)
class Panel(Generic[Value]):
    """Lanes that share an axis."""

    title: str
    lanes: tuple[Lane[Value], ...]

    def filled(self) -> list[tuple[int, Value]]:
        """Place and value of every lane that has one."""
        return [(place, lane.value) for place, lane in enumerate(self.lanes) if lane.value is not None]


def panel_title(family: Family, length: int = 24) -> str:
    """What the conditions of a panel have in common, its names cut to some length."""
    cache = "inputs in memory" if family.cache == MEMORY else f"page cache {family.cache}"
    return f"{shorten(family.origin, length)}: {shorten(family.tool, length)}, {cache}"


def headed(groups: Iterable[tuple[Family, Sequence[Lane[Value]]]]) -> list[Panel[Value]]:
    """Panels of families with a heading for each parallelism; families that differ in it alone share one."""
    found: dict[Family, list[Lane[Value]]] = {}
    for family, lanes in groups:
        panel = found.setdefault(replace(family, parallelism=0), [])
        panel += [Lane(at_once(family.parallelism)), *lanes]
    return [Panel(panel_title(family), tuple(lanes)) for family, lanes in found.items()]


def group_panels(
    conditions: Iterable[Condition], lanes: Callable[[Condition], Sequence[Lane[Value]]]
) -> list[Panel[Value]]:
    """Panels of conditions.

    Parameters
    ----------
    conditions
        At least one.
    lanes
        The lanes of a condition.
    """
    return headed(
        (family, [lane for condition in members for lane in lanes(condition)])
        for family, members in families(conditions).items()
    )


def panel_axes(panels: Sequence[Panel[Value]], legend: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with one axes per panel, one above the other, as high as their lanes need; first one for a legend."""
    heights = [LEGEND_IN] * legend + [LANE_IN * len(panel.lanes) + 0.75 for panel in panels]
    figure = Figure(figsize=(WIDTH_IN, sum(heights) + 1.0))
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    return figure, list(axes)


def draw_legend(axes: Axes, handles: Sequence[Artist]) -> None:
    """A legend in a line, in axes of its own: above panels that are narrow there is no room for one beside titles."""
    axes.set_axis_off()
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (0, 0.5), "borderaxespad": 0, "borderpad": 0}
    legend = axes.legend(handles=handles, ncols=len(handles), fontsize=8, handlelength=1.2, columnspacing=1.2, **place)
    legend.set_in_layout(False)


def label_lanes(axes: Axes, panel: Panel[Value]) -> None:
    """Names of the lanes, headings in bold, the first on top."""
    axes.set_title(panel.title, fontsize=9, weight="bold")
    axes.set_yticks(range(len(panel.lanes)), [shorten(lane.label, 42) for lane in panel.lanes])
    for lane, text in zip(panel.lanes, axes.get_yticklabels(), strict=True):
        text.set_fontweight("bold" if lane.value is None else "normal")
    axes.set_ylim(len(panel.lanes) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def beside(axes: Axes, lane: int, text: str) -> None:
    """Write at the right of a lane, outside the axes."""
    axes.annotate(
        text, (1, lane), (6, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=8
    )


@dataclass(frozen=True)
class Kind:
    """One part of stacked bars: how it is named and filled."""

    label: str
    colour: str
    hatched: bool = False

    def part(self, values: Sequence[float]) -> Part:
        """Its part of every bar."""
        return Part(self.label, self.colour, values, self.hatched)


@dataclass(frozen=True)
class Bar:
    """A stacked bar: a spread for each kind, ``None`` where it is not known, and what is written beside it."""

    parts: tuple[Spread | None, ...]
    text: str

    def medians(self) -> list[float]:
        """The parts' medians; 0 for what is not known."""
        return [part.median if part is not None else 0.0 for part in self.parts]


def draw_stacked(
    panels: Sequence[Panel[Bar]], kinds: Sequence[Kind], label: str, scale: float = 1.0, ranges: bool = False
) -> Figure:
    """Stacked bars of medians over repetitions.

    Parameters
    ----------
    panels
        At least one.
    kinds
        The parts of every bar, from the axis outwards.
    label
        Of the axis.
    scale
        Size of the axis' unit in that of the values.
    ranges
        Draw a line from the least to the greatest value of every part.
    """
    figure, (legend, *all_axes) = panel_axes(panels, legend=True)
    for axes, panel in zip(all_axes, panels, strict=True):
        medians = [lane.value.medians() if lane.value is not None else [0.0] * len(kinds) for lane in panel.lanes]
        parts = [kind.part([row[place] / scale for row in medians]) for place, kind in enumerate(kinds)]
        labels = [lane.label for lane in panel.lanes]
        stack = Stack(labels, [], parts)
        draw_bars(axes, stack, labels, [""] * len(labels), 1.02)
        label_lanes(axes, panel)
        for lane, bar in panel.filled():
            beside(axes, lane, bar.text)
            if ranges:
                draw_ranges(axes, lane, bar, scale)
        axes.set_xlabel(label)
    draw_legend(legend, [Patch(label=kind.label, **filling(kind.part([]))) for kind in kinds])
    return figure


def draw_ranges(axes: Axes, lane: int, bar: Bar, scale: float) -> None:
    """A line from the least to the greatest value at the end of every part."""
    left = 0.0
    for part, step in zip(bar.parts, (0.14, -0.14), strict=False):
        if part is None:
            continue
        if part.high > part.low:
            low, high = ((left + max(0.0, value)) / scale for value in (part.low, part.high))
            axes.plot([low, high], [lane - step] * 2, color=BLACK, linewidth=1.2, marker="|", markersize=4)
            axes.set_xlim(0, max(axes.get_xlim()[1], 1.02 * high))
        left += max(0.0, part.median)


def draw_distribution(axes: Axes, lane: int, values: Sequence[float], colour: str = LIGHT_GREY) -> None:
    """Where values lie: a box of the quartiles, a line from the 5th to the 95th per cent, and few values as dots."""
    axes.boxplot(
        [list(values)],
        positions=[lane],
        orientation="horizontal",
        widths=0.6,
        whis=(5, 95),
        showfliers=False,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "linewidth": 0},
        medianprops={"linewidth": 0},
        whiskerprops={"color": "#8c8c8c", "linewidth": 1},
        capprops={"linewidth": 0},
    )
