"""The figure ``bigbrain_makespans``: makespans, Eq. (1) and the fluid model (the paper's Figures 1a, 3a, 5a to 8a)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.conditions import FLUID, Condition, by_condition, factors
from neurotier.pages.bigbrain.lanes import NO_RUN, image_panels, own, published, range_text, shown
from neurotier.pages.comparison.statistics import is_compared
from neurotier.pages.kit.style import BLUE, VERMILION, empty_figure, house_style, save_figure, state
from neurotier.pages.published.makespans import Measured, draw_lanes, filled_with
from neurotier.published.conditions import ratio_text
from neurotier.published.members import PAPER, Guess, Mark

MARKS = {PAPER: Mark("Eq. (1)", "D", VERMILION), FLUID: Mark("fluid", "^", BLUE)}
CELLS = ("origin", "engine", "tier", "parallelism", "blocks", "iterations", "pairing")
NOTE = (
    "Bar: median over valid repetitions; circle: a repetition; line through a prediction: its interval; axes are"
    " logarithmic, and each has a range of its own. Right: median, and how many times that Eq. (1) says. Factors above:"
    " geometric means."
)
PUBLISHED_NOTE = (
    " Published: Eq. (1) with Table I; the fluid model with speeds fitted to the runs with 25 processes at 40 µm, where"
    " there are any; factors leave those out."
)
INCOMPLETE = " * Some blocks were not written (the SSD was full): their tasks never ended and do not count."


def factors_text(rows: Sequence[Row]) -> str:
    """By how much predictions miss conditions; empty without any.

    >>> factors_text([{"equation_one_ratio": 0.5, "fluid_ratio": 1.2, "fluid_fitted_on": False}])
    'Eq. (1) is off by a factor of 2.00, the fluid model by 1.20 (1 condition)'
    """
    found = factors(rows)
    names = {"equation_one": "Eq. (1)", FLUID: "the fluid model"}
    counts = {name: counted(count, "condition") for name, (_, count) in found.items()}
    alike = len(set(counts.values())) == 1
    told = [
        f"{names[name]} by {ratio_text(factor)}{'' if alike else f' ({counts[name]})'}"
        for name, (factor, _) in found.items()
    ]
    text = ", ".join(told).replace(" by ", " is off by a factor of ", 1)
    return f"{text} ({counts[next(iter(found))]})" if found and alike else text


def makespan_finding(rows: Sequence[Row]) -> str:
    """From which makespan to which, of one's own, and how far predictions are off; without any, of the paper's."""
    known = own(rows)
    if known:
        return "; ".join(filter(None, [range_text(known), factors_text(known)]))
    return f"{NO_RUN}; published ones: {factors_text(published(rows))}" if published(rows) else NO_RUN


def draw_makespans(rows: Sequence[Row], runs: Sequence[Row], stem: Path) -> None:
    """Draw the makespans of all conditions; write SVG, PNG and TSV.

    Parameters
    ----------
    rows
        Rows of ``bigbrain_conditions.tsv``.
    runs
        Runs of all origins, alike.
    stem
        Path of the files, without extension.
    """
    repetitions = valid_runs(runs)

    def measured(row: Row) -> Measured:
        values = [run["makespan_s"] for run in repetitions.get(Condition.of(row), [])]
        return Measured(row["makespan_s"], values, guesses_of(row))

    with house_style():
        panels = filled_with(image_panels(rows, "a"), measured)
        if panels:
            figure = draw_lanes(panels, "median", MARKS, shared=False)
            incomplete = any(row["incomplete_blocks"] for row in shown(rows))
            note = NOTE + PUBLISHED_NOTE * bool(published(rows)) + INCOMPLETE * incomplete
            state(figure, makespan_finding(rows), note)
        else:
            figure = empty_figure(makespan_finding(rows))
        save_figure(figure, stem, table(rows, repetitions))


def valid_runs(runs: Sequence[Row]) -> dict[Condition, list[Row]]:
    """The valid runs of each condition."""
    return by_condition(filter(is_compared, runs))


def guesses_of(row: Row) -> list[Guess]:
    """What is predicted of a condition."""
    found = []
    if row["equation_one_s"]:
        found.append((PAPER, *[row["equation_one_s"]] * 3))
    if row["fluid_s"]:
        ends = (row["fluid_s"] if row[name] is None else row[name] for name in ("fluid_low_s", "fluid_high_s"))
        found.append((FLUID, row["fluid_s"], *ends))
    return found


def table(rows: Sequence[Row], repetitions: dict[Condition, list[Row]]) -> list[Row]:
    """The numbers behind the figure: a row per repetition, and one per prediction."""
    found = []
    for row in shown(rows):
        about = {name: row[name] for name in CELLS}
        for run in repetitions.get(Condition.of(row), []):
            times = {"makespan_s": run["makespan_s"], "low_s": None, "high_s": None}
            found.append({**about, "kind": "measured", "of": f"repetition {run['repetition']}", **times})
        for member, value, low, high in guesses_of(row):
            times = {"makespan_s": value, "low_s": low, "high_s": high}
            of = row["fluid_member"] if member == FLUID else member
            found.append({**about, "kind": "predicted", "of": of, **times})
    return found
