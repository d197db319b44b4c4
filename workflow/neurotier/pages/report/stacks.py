"""Stacked times, and below them the sums by phase: a bar per participant, areas of many, or tenths of very many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neurotier.core.quantities import counted, percent, seconds, share_of
from neurotier.core.spread import Spread
from neurotier.pages.kit import plot
from neurotier.pages.kit.hover import hover
from neurotier.pages.kit.lanes import Lane, Panel
from neurotier.pages.kit.spread import quartiles
from neurotier.pages.kit.stacks import Bar, Kind, draw_bars, edges
from neurotier.pages.kit.style import DRAWN_SINGLY, GREY, READABLE_LANES, SLOWEST_DRAWN, WIDTH_IN

BAR_IN = 0.22
TENTHS = 10


@dataclass(frozen=True)
class Stack:
    """One bar: its wall time, s, and how much of it, s, is of each kind."""

    name: str
    wall_s: float
    parts: Sequence[float]

    def bar(self, text: str = "") -> Bar:
        """It as a bar, with a text beside it."""
        return Bar([Spread((part,)) for part in self.parts], text)


def draw_stacks(participants: Sequence[Stack], phases: Sequence[Stack], kinds: Sequence[Kind]) -> plot.Figure:
    """A figure of at least one participant.

    Parameters
    ----------
    participants
        Slowest first; more than 40 are ranked into areas with the quartiles marked, and more than 200 drawn as tenths.
    phases
        Sums over participants.
    kinds
        What the parts are, from the axis outwards.
    """
    many, very_many = (len(participants) > count for count in (READABLE_LANES, DRAWN_SINGLY))
    lanes_in = BAR_IN * (TENTHS if very_many else len(participants)) + 0.7
    heights = [3.4 if many and not very_many else lanes_in, *[2.4] * very_many, BAR_IN * len(phases) + 0.7]
    figure = plot.Figure(figsize=(WIDTH_IN, sum(heights) + 1.1))
    above, *between, below = figure.subplots(len(heights), 1, height_ratios=heights)
    if very_many:
        draw_tenths(above, participants, kinds)
        draw_slowest(between[0], participants[:SLOWEST_DRAWN], kinds)
    elif many:
        draw_ranked(above, participants, kinds)
    else:
        lanes = [Lane(stack.name, stack.bar(seconds(stack.wall_s))) for stack in participants]
        draw_bars(above, Panel("", tuple(lanes)), kinds)
        above.set_xlabel("Time per participant (s); beside the bar: wall time")
    handles = [plot.Patch(label=kind.label, **kind.filling) for kind in kinds]
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
    above.legend(handles=handles, ncols=len(kinds), **place, fontsize=8, handlelength=1.2, columnspacing=1.2)
    total_s = sum(stack.wall_s for stack in phases)
    texts = [f"{percent(share_of(stack.wall_s, total_s))} ({seconds(stack.wall_s)})" for stack in phases]
    lanes = [Lane(stack.name, stack.bar(text)) for stack, text in zip(phases, texts, strict=True)]
    draw_bars(below, Panel("", tuple(lanes)), kinds)
    below.set_xlabel("Sum over participants, by phase (s); beside the bar: share of all wall time")
    return figure


def draw_ranked(axes: plot.Axes, stacks: Sequence[Stack], kinds: Sequence[Kind]) -> None:
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
    axes.yaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    axes.xaxis.set_major_locator(plot.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    labels = ("slowest quarter above", "median", "fastest quarter below")
    for place, label, quartile in zip(
        (0.25, 0.5, 0.75), labels, quartiles([s.wall_s for s in stacks])[::-1], strict=True
    ):
        axes.vlines(place * count, 0, top, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
        text = f"{label}\n{seconds(quartile)}"
        axes.annotate(text, (place * count, top), (4, -2), textcoords="offset points", va="top", fontsize=8)


def note_on_tenths(participants: int) -> str:
    """What the note below a figure adds where not all participants are drawn: a sentence, or nothing."""
    if participants <= DRAWN_SINGLY:
        return ""
    return f" Of more than {DRAWN_SINGLY} participants, tenths and the slowest are drawn; the TSV has everyone."


def tenths(stacks: Sequence[Stack]) -> list[tuple[Stack, str]]:
    """The mean of each tenth of the participants, in the order given, and its wall times in words.

    >>> [(mean.parts, text) for mean, text in tenths([Stack(str(n), n, [n]) for n in range(20, 0, -1)])][:2]
    [([19.5], '19.5 s (19.0 to 20.0 s)'), ([17.5], '17.5 s (17.0 to 18.0 s)')]
    """
    found = []
    for place in range(TENTHS):
        begin, end = (len(stacks) * step // TENTHS for step in (place, place + 1))
        members = stacks[begin:end]
        name = {0: "slowest tenth", TENTHS - 1: "fastest tenth"}.get(place, f"tenth {place + 1}")
        wall_s, *parts = (
            sum(values) / len(members) for values in zip(*((each.wall_s, *each.parts) for each in members), strict=True)
        )
        least, most = (seconds(pick(each.wall_s for each in members)) for pick in (min, max))
        found.append((Stack(name, wall_s, parts), f"{seconds(wall_s)} ({least.removesuffix(' s')} to {most})"))
    return found


def draw_tenths(axes: plot.Axes, stacks: Sequence[Stack], kinds: Sequence[Kind]) -> None:
    """The mean of each tenth of the participants, which are given slowest first."""
    lanes = [Lane(mean.name, mean.bar(text)) for mean, text in tenths(stacks)]
    draw_bars(axes, Panel("", tuple(lanes)), kinds)
    count = counted(len(stacks), "participant")
    axes.set_xlabel(f"Mean time per participant (s), in tenths of {count} by wall time; beside the bar: wall time")


def draw_slowest(axes: plot.Axes, stacks: Sequence[Stack], kinds: Sequence[Kind]) -> None:
    """A column for each of the slowest participants, named under the pointer."""
    bounds, ranks = edges([stack.bar() for stack in stacks]), range(1, len(stacks) + 1)
    for place, kind in enumerate(kinds):
        low, high = bounds[place], bounds[place + 1]
        drawn = axes.bar(ranks, high - low, bottom=low, width=0.8, **kind.filling)
        for patch, stack in zip(drawn, stacks, strict=True):
            patch.set_url(hover(f"{stack.name}, {kind.label}: {seconds(stack.parts[place])}"))
    axes.set(xlim=(0.4, len(stacks) + 0.6), ylim=(0, 1.08 * float(bounds[-1].max()) or 1), ylabel="Time (s)")
    axes.set_xlabel(f"The slowest {len(stacks)}, one by one; their names are in the table of participants")
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    axes.xaxis.set_major_locator(plot.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
