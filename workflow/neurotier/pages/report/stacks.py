"""Stacked times: a bar per participant, or ranked areas of many, and below them the sums by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neurotier.core.quantities import counted, percent, seconds, share_of
from neurotier.core.spread import Spread
from neurotier.pages.kit.lanes import Lane, Panel
from neurotier.pages.kit.spread import quartiles
from neurotier.pages.kit.stacks import Bar, Kind, draw_bars, edges
from neurotier.pages.kit.style import GREY, READABLE_LANES, WIDTH_IN

BAR_IN = 0.22


@dataclass(frozen=True)
class Stack:
    """One bar: its wall time, s, and how much of it, s, is of each kind."""

    name: str
    wall_s: float
    parts: Sequence[float]

    def bar(self, text: str = "") -> Bar:
        """It as a bar, with a text beside it."""
        return Bar([Spread((part,)) for part in self.parts], text)


def draw_stacks(participants: Sequence[Stack], phases: Sequence[Stack], kinds: Sequence[Kind]) -> Figure:
    """A figure of at least one participant.

    Parameters
    ----------
    participants
        Slowest first; more than 40 are ranked into areas with the quartiles marked.
    phases
        Sums over participants.
    kinds
        What the parts are, from the axis outwards.
    """
    many = len(participants) > READABLE_LANES
    upper, lower = 3.4 if many else BAR_IN * len(participants) + 0.7, BAR_IN * len(phases) + 0.7
    figure = Figure(figsize=(WIDTH_IN, upper + lower + 1.1))
    above, below = figure.subplots(2, 1, height_ratios=[upper, lower])
    if many:
        draw_ranked(above, participants, kinds)
    else:
        lanes = [Lane(stack.name, stack.bar(seconds(stack.wall_s))) for stack in participants]
        draw_bars(above, Panel("", tuple(lanes)), kinds)
        above.set_xlabel("Time per participant (s); beside the bar: wall time")
    tight: dict[str, Any] = {"fontsize": 8, "handlelength": 1.2, "columnspacing": 1.2} if len(kinds) > 3 else {}
    handles = [Patch(label=kind.label, **kind.filling) for kind in kinds]
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
    above.legend(handles=handles, ncols=len(kinds), **place, **tight)
    total_s = sum(stack.wall_s for stack in phases)
    texts = [f"{percent(share_of(stack.wall_s, total_s))} ({seconds(stack.wall_s)})" for stack in phases]
    lanes = [Lane(stack.name, stack.bar(text)) for stack, text in zip(phases, texts, strict=True)]
    draw_bars(below, Panel("", tuple(lanes)), kinds)
    below.set_xlabel("Sum over participants, by phase (s); beside the bar: share of all wall time")
    return figure


def draw_ranked(axes: Axes, stacks: Sequence[Stack], kinds: Sequence[Kind]) -> None:
    """All participants in the order given, slowest first, as stacked areas; quartiles as lines."""
    count, bounds = len(stacks), edges([stack.bar() for stack in stacks])
    # one step per participant: areas between ranks would show times that nobody had
    rank, steps = np.arange(count + 1), np.column_stack([bounds, bounds[:, -1]])
    for kind, low, high in zip(kinds, steps, steps[1:], strict=False):
        axes.fill_between(rank, low, high, step="post", **kind.filling)
    top = 1.08 * float(bounds[-1].max()) or 1
    axes.set(xlim=(0, count), ylim=(0, top), ylabel="Time per participant (s)")
    axes.set_xlabel(f"{counted(count, 'participant')}, ranked by wall time, slowest first")
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    labels = ("slowest quarter above", "median", "fastest quarter below")
    for place, label, quartile in zip(
        (0.25, 0.5, 0.75), labels, quartiles([s.wall_s for s in stacks])[::-1], strict=True
    ):
        axes.vlines(place * count, 0, top, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
        text = f"{label}\n{seconds(quartile)}"
        axes.annotate(text, (place * count, top), (4, -2), textcoords="offset points", va="top", fontsize=8)
