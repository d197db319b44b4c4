"""Stacked times: a bar per participant, or ranked areas of many, and below them the sums by phase."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.core.quantities import counted, percent, seconds, share_of, shorten
from neurotier.pages.kit.style import GREY, READABLE_LANES, WIDTH_IN

BAR_IN = 0.22


@dataclass(frozen=True)
class Part:
    """One part of every bar.

    Attributes
    ----------
    label, colour
        As in the legend.
    values
        One per bar, s; what is below 0 is drawn as 0.
    hatched
        For what is not a measured cause.
    """

    label: str
    colour: str
    values: Sequence[float]
    hatched: bool = False


@dataclass(frozen=True)
class Stack:
    """Bars that are made of the same parts.

    Attributes
    ----------
    names
        One per bar.
    wall_s
        Wall time of each, s: the figure at the bar's end.
    parts
        From the axis outwards.
    """

    names: Sequence[str]
    wall_s: Sequence[float]
    parts: Sequence[Part]

    def edges(self) -> list[np.ndarray]:
        """Where each part of every bar begins, and, last, where the bars end, s."""
        found = [np.zeros(len(self.names))]
        for part in self.parts:
            found.append(found[-1] + np.maximum(0.0, np.asarray(part.values, dtype=float)))
        return found


def draw_stacks(participants: Stack, phases: Stack) -> Figure:
    """A figure of at least one participant.

    Parameters
    ----------
    participants
        One bar per participant, slowest first; more than 40 are ranked into areas with the quartiles marked.
    phases
        One bar per phase: sums over participants.
    """
    many = len(participants.names) > READABLE_LANES
    upper = 3.4 if many else BAR_IN * len(participants.names) + 0.7
    lower = BAR_IN * len(phases.names) + 0.7
    figure = Figure(figsize=(WIDTH_IN, upper + lower + 1.1))
    above, below = figure.subplots(2, 1, height_ratios=[upper, lower])
    draw_ranked(above, participants) if many else draw_participants(above, participants)
    tight: dict[str, Any] = {"fontsize": 8, "handlelength": 1.2, "columnspacing": 1.2}
    columns = len(participants.parts)
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
    above.legend(ncols=columns, **place, **(tight if columns > 3 else {}))
    draw_phases(below, phases)
    return figure


def filling(part: Part) -> dict[str, Any]:
    """How a part is filled."""
    if part.hatched:
        return {"facecolor": part.colour, "edgecolor": GREY, "hatch": "/////", "linewidth": 0}
    return {"color": part.colour, "linewidth": 0}


def draw_bars(axes: Axes, stack: Stack, names: Sequence[str], ends: Sequence[str], room: float) -> None:
    """Horizontal bars, the first name on top.

    Parameters
    ----------
    axes
        Where to.
    stack
        The bars.
    names, ends
        What is written before and behind each.
    room
        Length of the axis over that of the longest bar.
    """
    lanes, edges = range(len(names)), stack.edges()
    for part, left, right in zip(stack.parts, edges, edges[1:], strict=False):
        axes.barh(lanes, right - left, left=left, height=0.72, label=part.label, **filling(part))
    for lane, (end, text) in enumerate(zip(edges[-1], ends, strict=True)):
        axes.annotate(text, (end, lane), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(lanes, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, room * float(edges[-1].max()) or 1)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def draw_participants(axes: Axes, stack: Stack) -> None:
    """One bar per participant, its wall time at the end."""
    names = [shorten(name, 42) for name in stack.names]
    draw_bars(axes, stack, names, [seconds(wall_s) for wall_s in stack.wall_s], 1.12)
    axes.set_xlabel("Time per participant (s); the figure at the bar's end is wall time")


def draw_phases(axes: Axes, stack: Stack) -> None:
    """One bar per phase, with its share of all wall time."""
    total_s = sum(stack.wall_s)
    ends = [f"{percent(share_of(wall_s, total_s))} ({seconds(wall_s)})" for wall_s in stack.wall_s]
    draw_bars(axes, stack, stack.names, ends, 1.22)
    axes.set_xlabel("Sum over participants, by phase (s); in per cent of all wall time")


def draw_ranked(axes: Axes, stack: Stack) -> None:
    """All participants in the order given, slowest first, as stacked areas; quartiles as lines."""
    count, edges = len(stack.names), stack.edges()
    # one step per participant: areas between ranks would show times that nobody had
    rank, steps = np.arange(count + 1), [np.append(edge, edge[-1]) for edge in edges]
    for part, low, high in zip(stack.parts, steps, steps[1:], strict=False):
        axes.fill_between(rank, low, high, step="post", label=part.label, **filling(part))
    top = 1.08 * float(edges[-1].max()) or 1
    axes.set(xlim=(0, count), ylim=(0, top), ylabel="Time per participant (s)")
    axes.set_xlabel(f"{counted(count, 'participant')}, ranked by wall time, slowest first")
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    for share, quartile in zip((0.25, 0.5, 0.75), reversed(quartiles(stack.wall_s)), strict=True):
        label = "median" if share == 0.5 else "slowest quarter above" if share == 0.25 else "fastest quarter below"
        at = share * count
        axes.vlines(at, 0, top, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
        text = f"{label}\n{seconds(quartile)}"
        axes.annotate(text, (at, top), (4, -2), textcoords="offset points", va="top", fontsize=8)


def quartiles(wall_s: Sequence[float]) -> list[float]:
    """Lower quartile, median and upper quartile of wall times, s."""
    return statistics.quantiles(wall_s, n=4, method="inclusive")
