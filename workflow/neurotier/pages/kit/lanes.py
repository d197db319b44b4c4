"""Panels of lanes: one axes per panel, one above the other, in it a name and a value on every line.

Times of several origins differ by orders, and are not to be compared at a glance: every panel has an axis of its own.

For the pages of BigBrain and of the published runs, which are no declarations yet; it goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from neurotier.core.quantities import shorten
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import WIDTH_IN

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


def panel_axes(panels: Sequence[Panel[Value]], legend: bool = False) -> tuple[plot.Figure, list[plot.Axes]]:
    """A figure with one axes per panel, one above the other, as high as their lanes need; first one for a legend."""
    heights = [LEGEND_IN] * legend + [LANE_IN * len(panel.lanes) + 0.75 for panel in panels]
    figure = plot.Figure(figsize=(WIDTH_IN, sum(heights) + 1.0))
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    return figure, list(axes)


def draw_legend(axes: plot.Axes, handles: Sequence[plot.Artist]) -> None:
    """A legend in a line, in axes of its own: above panels that are narrow there is no room for one beside titles."""
    axes.set_axis_off()
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (0, 0.5), "borderaxespad": 0, "borderpad": 0}
    legend = axes.legend(handles=handles, ncols=len(handles), fontsize=8, handlelength=1.2, columnspacing=1.2, **place)
    legend.set_in_layout(False)


def label_lanes(axes: plot.Axes, panel: Panel[Value]) -> None:
    """Names of the lanes, headings in bold, the first on top."""
    axes.set_title(panel.title, fontsize=9, weight="bold")
    axes.set_yticks(range(len(panel.lanes)), [shorten(lane.label, 42) for lane in panel.lanes])
    for lane, text in zip(panel.lanes, axes.get_yticklabels(), strict=True):
        text.set_fontweight("bold" if lane.value is None else "normal")
    axes.set_ylim(len(panel.lanes) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def annotate_lane(axes: plot.Axes, lane: float, text: str) -> None:
    """Write at the right of a lane, outside the axes."""
    axes.annotate(
        text, (1, lane), (6, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=8
    )


def draw_lanes(
    panels: Sequence[Panel[Value]],
    draw: Callable[[plot.Axes, int, str, Value], str],
    label: str,
    handles: Sequence[plot.Artist] = (),
) -> plot.Figure:
    """A figure of panels whose lanes are all drawn alike.

    Parameters
    ----------
    panels
        At least one.
    draw
        Draws one lane, given its axes, place, label and value, and gives back what is written beside it.
    label
        Of the axes.
    handles
        Of the legend, if there is one.
    """
    figure, all_axes = panel_axes(panels, legend=bool(handles))
    if handles:
        draw_legend(all_axes.pop(0), handles)
    for axes, panel in zip(all_axes, panels, strict=True):
        for place, lane in enumerate(panel.lanes):
            if lane.value is not None:
                annotate_lane(axes, place, draw(axes, place, lane.label, lane.value))
        label_lanes(axes, panel)
        axes.set_xlabel(label)
        axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,g}"))
    return figure
