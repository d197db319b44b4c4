"""How figures mark what members of the model predict, and what axes of times are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neurotier.core.quantities import seconds
from neurotier.model.prediction import FLUID, MEASURED, PAPER, Prediction
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import BLACK, PURPLE, VERMILION, hover


@dataclass(frozen=True)
class Mark:
    """How a prediction is drawn."""

    label: str
    marker: str
    colour: str

    def handle(self) -> plot.Line2D:
        """Its line of a legend."""
        return plot.Line2D([], [], linestyle="", marker=self.marker, color=self.colour, markersize=6, label=self.label)


MARKS = {
    PAPER: Mark("Eq. (1)", "D", VERMILION),
    FLUID: Mark("fluid", "v", PURPLE),
    MEASURED: Mark("fluid, measured", "o", BLACK),
}

WIDE = 300
"""From this ratio of its ends on, an axis has a label for each power of ten alone."""


def in_order(members: Iterable[str]) -> list[str]:
    """Members of the model, each once, in order of the marks."""
    found = set(members)
    return [member for member in MARKS if member in found]


def draw_predictions(axes: plot.Axes, lane: int, label: str, predictions: Mapping[str, Prediction]) -> None:
    """Markers below the middle of a lane that has a label, each with a line over its interval."""
    for member, one in predictions.items():
        mark, at = MARKS[member], lane + 0.27
        if one.high_s > one.low_s:
            axes.plot([one.low_s, one.high_s], [at, at], color=mark.colour, linewidth=1)
        (point,) = axes.plot(
            [one.makespan_s], [at], linestyle="", marker=mark.marker, markersize=4.5, color=mark.colour
        )
        point.set_url(hover(f"{label}, {mark.label}: {seconds(one.makespan_s)}"))


def logarithmic(axes: plot.Axes) -> None:
    """A logarithmic axis from a little below the least to a little above the greatest value that is drawn."""
    low, high = axes.dataLim.minposx, axes.dataLim.xmax
    axes.set_xscale("log")
    axes.set_xlim(low / 1.4, high * 1.4)
    axes.xaxis.set_major_locator(plot.LogLocator(subs=(1, 2, 5) if high / low < WIDE else (1,)))
    axes.xaxis.set_major_formatter(plot.StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_formatter(plot.NullFormatter())
