"""Distributions on lanes: where values lie, and their middle."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, BLUE, LIGHT_GREY, hover

READABLE_DOTS = 100
"""Most values that get a dot each."""


def quartiles(values: Sequence[float]) -> list[float]:
    """Lower quartile, median and upper quartile of at least one value."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3


def apart(lane: int, count: int) -> list[float]:
    """Where so many dots of a lane stand, so that equal values are seen: the same places every time."""
    return [lane + 0.2 * math.sin(2.4 * place) for place in range(count)]


def draw_distribution(
    axes: plot.Axes, lane: int, values: Sequence[float], median: float, colour: str, said: Sequence[str] = ()
) -> None:
    """A box of the quartiles, a line from the 5th to the 95th per cent, few values as dots, the median as a diamond.

    What is ``said`` of each value, its dot says under the pointer.
    """
    axes.boxplot(
        [list(values)],
        positions=[lane],
        orientation="horizontal",
        widths=0.6,
        whis=(5, 95),
        showfliers=False,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": LIGHT_GREY, "linewidth": 0},
        medianprops={"linewidth": 0},
        whiskerprops={"color": "#8c8c8c", "linewidth": 1},
        capprops={"linewidth": 0},
    )
    if len(values) <= READABLE_DOTS:
        dots = axes.scatter(values, apart(lane, len(values)), s=9, color=BLUE, alpha=0.6, linewidths=0)
        dots.set_urls([hover(text) for text in said] * 2)  # matplotlib drops the address of a marker that stands alone
    axes.plot([median], [lane], marker="D", markersize=5, color=colour, markeredgecolor=BLACK)


def side_by_side(lane: float, count: int, height: float) -> list[float]:
    """Where dots of a lane stand, one beside the other, so that equal values are seen.

    >>> side_by_side(1, 3, 0.8)
    [0.8, 1.0, 1.2]
    """
    return [lane + height * (place - (count - 1) / 2) / max(4, count) for place in range(count)]
