"""Lines over a number of processes, and how published numbers look beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from neurotier.core.spread import Spread
from neurotier.pages.kit.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

NOTHING = "Nothing was measured"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE)
MARKERS = "os^Dv<"
PUBLISHED: Any = {"color": BLACK, "marker": "*", "markersize": 12, "linestyle": "none", "zorder": 5}


def looks(count: int) -> list[dict[str, Any]]:
    """Colour and mark of each line."""
    places = range(count)
    return [{"color": COLOURS[place % 6], "marker": MARKERS[place % 6], "markersize": 5} for place in places]


def logarithmic(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers at 1 and 3 of each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.9g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_line(axes: Axes, name: str, values: Mapping[int, Spread], unit: float, look: Mapping[str, Any]) -> None:
    """A line with whiskers from least to greatest, in multiples of a unit."""
    middle = [one.median / unit for one in values.values()]
    below = [(one.median - one.low) / unit for one in values.values()]
    above = [(one.high - one.median) / unit for one in values.values()]
    axes.errorbar(list(values), middle, [below, above], label=name, elinewidth=0.8, capsize=2, **look)


def count_axis(axes: Axes, counts: Iterable[int], label: str) -> None:
    """An axis of numbers of processes, in powers of two."""
    ticks = sorted(set(counts))
    axes.set_xscale("log", base=2)
    axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def legend(axes: Axes) -> None:
    """A legend beside the axes, where it covers nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=8)
