"""Stacked bars: what times or bytes consist of, on the lanes of panels.

For the pages of BigBrain and of the published runs, which are no declarations yet; it goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neurotier.core.quantities import MISSING, seconds
from neurotier.core.spread import Spread
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import hover
from neurotier.pages.kit.lanes import Panel, annotate_lane, draw_legend, label_lanes, panel_axes
from neurotier.pages.kit.marks import Kind

Words = Callable[[float], str]


@dataclass(frozen=True)
class Bar:
    """A stacked bar: a spread for each kind, ``None`` where it is not known, and what is written beside it.

    Medians are drawn, and those below 0 as 0.
    """

    parts: Sequence[Spread | None]
    text: str = ""

    def medians(self) -> list[float]:
        """The parts' medians; 0 for what is not known."""
        return [part.median if part is not None else 0.0 for part in self.parts]


def edges(bars: Sequence[Bar]) -> np.ndarray:
    """Where each part of every bar begins and, last, where the bars end; shape ``(parts + 1, bars)``."""
    lengths = np.asarray([[0.0, *bar.medians()] for bar in bars])
    return np.cumsum(np.maximum(0.0, lengths), axis=1).T


def draw_stacked(
    panels: Sequence[Panel[Bar]],
    kinds: Sequence[Kind],
    label: str,
    scale: float = 1.0,
    ranges: bool = False,
    words: Words = seconds,
) -> plot.Figure:
    """A figure of stacked bars.

    Parameters
    ----------
    panels
        At least one, each with at least one bar.
    kinds
        The parts of every bar, from the axis outwards.
    label
        Of the axis.
    scale
        Size of the axis' unit in that of the values.
    ranges
        Draw a line from the least to the greatest value of every part.
    words
        How a value is said under the pointer.
    """
    figure, (legend, *all_axes) = panel_axes(panels, legend=True)
    for axes, panel in zip(all_axes, panels, strict=True):
        draw_bars(axes, panel, kinds, scale, ranges, words)
        axes.set_xlabel(label)
    draw_legend(legend, [plot.Patch(label=kind.label, **kind.filling) for kind in kinds])
    return figure


def draw_bars(
    axes: plot.Axes,
    panel: Panel[Bar],
    kinds: Sequence[Kind],
    scale: float = 1.0,
    ranges: bool = False,
    words: Words = seconds,
) -> None:
    """The bars of one panel; see :func:`draw_stacked`."""
    lanes, bars = zip(*panel.filled(), strict=True)
    bounds = edges(bars) / scale
    longest = bounds[-1]
    for place, kind in enumerate(kinds):
        parts = [bar.parts[place] for bar in bars]
        look = dict(kind.filling)
        if ranges:
            spans = [(part.median - part.low, part.high - part.median) if part else (0.0, 0.0) for part in parts]
            look |= {"xerr": np.transpose(spans) / scale, "error_kw": {"elinewidth": 1.2, "capsize": 2}}
            longest = np.maximum(longest, bounds[place + 1] + look["xerr"][1])
        left, right = bounds[place], bounds[place + 1]
        drawn = axes.barh(lanes, right - left, left=left, height=0.72, **look)
        for patch, lane, part in zip(drawn, lanes, parts, strict=True):
            value = words(part.median) if part is not None else MISSING
            patch.set_url(hover(f"{panel.lanes[lane].label}, {kind.label}: {value}"))
    label_lanes(axes, panel)
    axes.set_xlim(0, 1.02 * float(longest.max()) or 1)
    axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,.10g}"))
    for lane, bar in zip(lanes, bars, strict=True):
        annotate_lane(axes, lane, bar.text)
