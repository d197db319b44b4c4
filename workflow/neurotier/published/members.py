"""Members of the model and how figures mark what they predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from neurotier.core.tables import Row
from neurotier.pages.kit.style import BLUE, GREEN, PURPLE, VERMILION
from neurotier.published.conditions import Condition


@dataclass(frozen=True)
class Mark:
    """How a prediction is drawn."""

    label: str
    marker: str
    colour: str

    def handle(self) -> Line2D:
        """Its line of a legend."""
        return Line2D([], [], linestyle="", marker=self.marker, color=self.colour, markersize=6, label=self.label)


PAPER = "paper"
MARKS = {
    PAPER: Mark("paper: Eq. (1) with Table I", "D", VERMILION),
    "fluid fitted": Mark("fluid, fitted", "^", BLUE),
    "fluid a priori": Mark("fluid, a priori", "s", GREEN),
}

Marks = Mapping[str, Mark]
Guess = tuple[str, float, float, float]
"""A member, the makespan that it predicts, and the lower and upper end of its interval, s."""


def mark_of(member: str, marks: Marks = MARKS) -> Mark:
    """How a member is drawn; one that is not known by its name."""
    return marks.get(member, Mark(member, "P", PURPLE))


def members_of(predictions: Iterable[Row]) -> list[str]:
    """The members that predict something, in order of the marks."""
    found = {row["member"] for row in predictions}
    return [*(member for member in MARKS if member in found), *sorted(found - MARKS.keys())]


def predicted(predictions: Iterable[Row], condition: Condition, equation_one_s: float | None) -> list[Guess]:
    """What each member predicts for a condition: member, makespan, lower and upper end, s.

    The paper's Eq. (1) is taken from the logs where no row has it; variants of a condition have no prediction.
    """
    names = ("resolution_um", "engine", "processes", "device", "mode")
    found = {}
    if equation_one_s is not None:
        found[PAPER] = (equation_one_s, equation_one_s, equation_one_s)
    for row in predictions:
        if not condition.variant and all(row[name] == getattr(condition, name) for name in names):
            ends = (row["predicted_s"] if row[end] is None else row[end] for end in ("low_s", "high_s"))
            found[row["member"]] = (row["predicted_s"], *ends)
    return [(member, *found[member]) for member in [*MARKS, *sorted(found.keys() - MARKS.keys())] if member in found]


def draw_predictions(axes: Axes, lane: int, values: Sequence[Guess], marks: Marks = MARKS) -> None:
    """Markers below a lane's middle, each with a line over its interval."""
    for member, value, low, high in values:
        mark, at = mark_of(member, marks), lane + 0.27
        if high > low:
            axes.plot([low, high], [at, at], color=mark.colour, linewidth=1)
        axes.plot([value], [at], linestyle="", marker=mark.marker, markersize=4.5, color=mark.colour)
