"""Conditions of the published BigBrain runs: what is repeated, in which figure of the paper, and what is missing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neurotier.bigbrain.image import BLOCKS
from neurotier.core.quantities import number
from neurotier.core.tables import Row
from neurotier.published.bigbrain import APP_DIRECT, GNU_PARALLEL, MEMORY_MODE, SPARK, BlockRun

ENGINES = {GNU_PARALLEL: "GNU Parallel", SPARK: "Spark"}
"""What people call the engines."""

FIGURES = {
    (40, GNU_PARALLEL, 25): 1,
    (40, GNU_PARALLEL, 96): 3,
    (20, GNU_PARALLEL, 25): 5,
    (20, SPARK, 25): 6,
    (20, GNU_PARALLEL, 96): 7,
    (20, SPARK, 96): 8,
}
"""The paper's figure (a: makespan, b: phase sums) by resolution (um), engine and processes."""

PLACES = (
    ("DRAM", APP_DIRECT),
    ("Optane", MEMORY_MODE),
    ("Optane", APP_DIRECT),
    ("local SSD", MEMORY_MODE),
    ("local SSD", APP_DIRECT),
    ("Isilon", MEMORY_MODE),
    ("Isilon", APP_DIRECT),
)
"""Devices and modes, in the order of the paper's figures."""

LARGE_PLACES = tuple(place for place in PLACES if place[0] in ("Optane", "Isilon"))
"""Those that held the image at 20 um."""

STALLED = 1.5
"""A repetition that takes so many times the middle one is shown apart."""

LATER = "_redo"
"""A folder named so holds runs that were made again: the paper's figures show these."""


@dataclass(frozen=True)
class Condition:
    """What repetitions have in common; ``variant`` is empty for those of the paper's figures."""

    resolution_um: int
    engine: str
    processes: int
    device: str
    mode: str
    variant: str = ""

    @property
    def place(self) -> str:
        """Device and mode; there is DRAM in one mode alone.

        >>> Condition(40, "spark", 25, "Optane", "Memory mode").place
        'Optane, Memory mode'
        """
        return self.device if self.device == "DRAM" else f"{self.device}, {self.mode}"

    @property
    def panel(self) -> tuple[int, str, int]:
        """What conditions must share to be compared: resolution (um), engine, processes."""
        return self.resolution_um, self.engine, self.processes

    @property
    def name(self) -> str:
        """All of it in words."""
        told = [f"{self.resolution_um} µm", ENGINES[self.engine], f"{self.processes} processes", self.place]
        return ", ".join([*told, self.variant] if self.variant else told)


def by_condition(runs: Iterable[BlockRun]) -> dict[Condition, list[BlockRun]]:
    """Whole runs by condition, in the order of the paper's figures; the first repetition first.

    What was made again takes the place of what was there before, which becomes a variant.
    """
    whole = [run for run in runs if run.is_whole]
    again = {condition_of(run) for run in whole if run.path.parent.name.endswith(LATER)}
    found: dict[Condition, list[BlockRun]] = {}
    for run in whole:
        condition = condition_of(run)
        folder = run.path.parent.name
        if condition in again and not folder.endswith(LATER):
            condition = condition_of(run, f"in {folder}")
        found.setdefault(condition, []).append(run)
    return dict(sorted(found.items(), key=lambda item: order(item[0])))


def condition_of(run: BlockRun, further: str = "") -> Condition:
    """The condition of a run; ``further`` adds to its variant."""
    several = f"{run.iterations} iterations" if run.iterations != 1 else ""
    variant = ", ".join(filter(None, (several, run.variant, further)))
    return Condition(run.resolution_um, run.engine, run.processes, run.device, run.mode, variant)


def order(condition: Condition) -> tuple[object, ...]:
    """Place of a condition among others: by panel, then as the paper's figures."""
    place = (condition.device, condition.mode)
    known = PLACES.index(place) if place in PLACES else len(PLACES)
    about = (-condition.resolution_um, condition.engine, condition.processes)
    return (*about, known, *place, condition.variant)


def panels(conditions: Iterable[Condition]) -> dict[tuple[int, str, int], list[Condition]]:
    """Conditions of the paper's figures by panel."""
    found: dict[tuple[int, str, int], list[Condition]] = {}
    for condition in conditions:
        if not condition.variant:
            found.setdefault(condition.panel, []).append(condition)
    return found


def panel_title(panel: tuple[int, str, int], part: str = "") -> str:
    """What the conditions of a panel have in common, and the figure of the paper.

    >>> panel_title((40, "gnu-parallel", 25), "a")
    'GNU Parallel, 25 processes (Figure 1a of the paper)'
    """
    number = FIGURES.get(panel)
    figure = f" (Figure {number}{part} of the paper)" if number else ""
    return f"{ENGINES[panel[1]]}, {panel[2]} processes{figure}"


def absent(conditions: Iterable[Condition]) -> dict[int, list[str]]:
    """Conditions of the paper's figures that are not there: figure to devices and modes; none of one, ``all``."""
    known = set(conditions)
    found: dict[int, list[str]] = {}
    for panel, figure in FIGURES.items():
        expected = [Condition(*panel, *place) for place in (PLACES if panel[0] == 40 else LARGE_PLACES)]
        missing = [condition.place for condition in expected if condition not in known]
        if missing:
            found[figure] = ["all"] if len(missing) == len(expected) else missing
    return found


def mean(runs: Sequence[BlockRun], measure: str) -> float:
    """Mean of a property over repetitions, as the paper has it."""
    return statistics.fmean(float(getattr(run, measure)) for run in runs)


def is_stalled(run: BlockRun, members: Sequence[BlockRun]) -> bool:
    """Whether a repetition took much longer than the middle one: something stood still."""
    return run.makespan_s > STALLED * statistics.median(one.makespan_s for one in members)


def incomplete_text(runs: Sequence[BlockRun]) -> str:
    """How many blocks the repetitions did not write; empty if they wrote all."""
    counts = [len(run.incomplete_blocks) + run.missing_blocks for run in runs]
    low, high = min(counts), max(counts)
    some = f"{low}" if low == high else f"{low} to {high}"
    return f"{some} of {BLOCKS[runs[0].resolution_um]:,} blocks not written" if high else ""


def off_factor(ratios: Iterable[float]) -> float | None:
    """Geometric mean of the factors by which ratios miss 1, either way; ``None`` of none.

    >>> off_factor([2.0, 0.5])
    2.0
    """
    logarithms = [abs(math.log(ratio)) for ratio in ratios]
    return math.exp(statistics.fmean(logarithms)) if logarithms else None


def ratio_text(ratio: float) -> str:
    """A ratio with three significant digits.

    >>> ratio_text(0.468), ratio_text(5.153), ratio_text(239.6)
    ('0.47', '5.15', '240')
    """
    return number(ratio, 2 if ratio < 9.995 else 1 if ratio < 99.95 else 0)


def cells(condition: Condition) -> Row:
    """A condition as the first cells of a row."""
    names = ("resolution_um", "engine", "processes", "device", "mode", "variant")
    return {name: getattr(condition, name) for name in names}
