"""What claims are judged by: figures of the logs, by condition, as means over repetitions that are no outliers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from neurotier.core.tables import Row
from neurotier.published.bids_app import PARALLELISMS
from neurotier.published.bigbrain import GNU_PARALLEL, BlockRun
from neurotier.published.conditions import condition, steady, tier_of
from neurotier.published.replay import Replay
from neurotier.published.table_one import device_bandwidths, equation_one_s
from neurotier.run.compared import is_compared

Place = tuple[str, str]
"""Device, and mode of Optane."""

DRAM, OPTANE_MEMORY, OPTANE_DIRECT = ("DRAM", "App Direct"), ("Optane", "Memory mode"), ("Optane", "App Direct")
SSD = ("local SSD", "Memory mode"), ("local SSD", "App Direct")
ISILON = ISILON_MEMORY, ISILON_DIRECT = ("Isilon", "Memory mode"), ("Isilon", "App Direct")
OPTANE = OPTANE_MEMORY, OPTANE_DIRECT

SAME = 0.05
"""Figures that differ by less than this share are the same, where the paper gives none."""

Value = TypeVar("Value")


class Case(NamedTuple):
    """A condition that a claim is about."""

    place: Place
    processes: int = 25
    resolution_um: int = 40
    engine: str = GNU_PARALLEL


def name(place: Place) -> str:
    """What figures call a device in a mode."""
    return tier_of(*place)


def named(places: Iterable[Place], *about: Any) -> dict[str, Case]:
    """Devices in their modes by name, each with the rest of a case."""
    return {name(place): Case(place, *about) for place in places}


def modes(places: Iterable[Place], *about: Any) -> dict[str, Case]:
    """The modes of one device by their names, each with the rest of a case."""
    return {place[1]: Case(place, *about) for place in places}


class AbsentError(LookupError):
    """The logs at hand do not hold what a claim is about."""


def known(cases: Mapping[str, Value], figure_of: Callable[[Value], float]) -> dict[str, float]:
    """The figures of the cases that have runs.

    Raises
    ------
    AbsentError
        If none has.
    """
    found, missing = {}, ""
    for label, case in cases.items():
        try:
            found[label] = figure_of(case)
        except AbsentError as error:
            missing = missing or str(error)
    if not found:
        raise AbsentError(missing)
    return found


@dataclass(frozen=True)
class Facts:
    """The figures of a replay; each method raises :class:`AbsentError` where there is no run.

    ``case`` are the parts of a :class:`Case`.
    """

    replay: Replay

    def all_runs(self, *case: Any) -> list[BlockRun]:
        """Every repetition of a condition."""
        asked = Case(*case)
        one = condition(asked.resolution_um, asked.engine, asked.processes, asked.place)
        if one not in self.replay.conditions:
            engine = "Spark" if asked.engine != GNU_PARALLEL else "GNU Parallel"
            about = f"{asked.processes} processes at {asked.resolution_um} µm, {engine}"
            raise AbsentError(f"no run of {one.tier} with {about}")
        return self.replay.conditions[one]

    def runs(self, *case: Any) -> list[BlockRun]:
        """The repetitions of a condition that are no outliers."""
        return steady(self.all_runs(*case))

    def mean(self, measure: str, *case: Any) -> float:
        """Mean of a property over a condition's runs."""
        return statistics.fmean(getattr(run, measure) for run in self.runs(*case))

    def makespan_s(self, *case: Any) -> float:
        """Mean makespan, s."""
        return self.mean("makespan_s", *case)

    def ratios(self, measure: str, over: Mapping[str, Case], under: Case | dict[str, Case]) -> dict[str, float]:
        """A property of cases over that of one other case, or of the one with the same label."""
        base = under if isinstance(under, dict) else dict.fromkeys(over, under)
        return {label: self.mean(measure, *case) / self.mean(measure, *base[label]) for label, case in over.items()}

    def speed_ups(self, places: Iterable[Place], *about: Any) -> dict[str, float]:
        """Makespans with 25 processes over those with 96, of places that have runs."""
        return known(
            {name(place): place for place in places},
            lambda place: self.makespan_s(place, 25, *about) / self.makespan_s(place, 96, *about),
        )

    def over_equation(self, case: Case) -> float:
        """Makespan over Eq. (1)."""
        return self.makespan_s(*case) / self.equation_s(case.place, case.resolution_um)

    def all_over_equation(self, cases: Mapping[str, Case]) -> dict[str, float]:
        """Makespans over Eq. (1)."""
        return {label: self.over_equation(case) for label, case in cases.items()}

    def parallelism(self, *case: Any) -> float:
        """Mean number of blocks in a phase at once; of all repetitions, as the paper has it."""
        return statistics.fmean(run.mean_parallelism for run in self.all_runs(*case))

    def equation_s(self, place: Place, resolution_um: int = 40) -> float:
        """Eq. (1) with Table I, s."""
        return self.equation_with(resolution_um, *device_bandwidths(self.replay.bandwidths)[place[0]])

    def drawn_equation_s(self, place: Place, resolution_um: int = 40) -> float:
        """Eq. (1) with the storage benchmark of the very mode, as the paper draws Memory mode, s."""
        for one in self.replay.bandwidths:
            if (one.device, one.mode) == place:
                return self.equation_with(resolution_um, *one.of(statistics.fmean))
        raise AbsentError(f"no storage benchmark of {place[0]} in {place[1]}")

    def ssd_as_drawn_s(self, resolution_um: int = 40) -> float:
        """Eq. (1) of the SSD as the paper draws it: with DRAM's write bandwidth, s."""
        bandwidths = device_bandwidths(self.replay.bandwidths)
        return self.equation_with(resolution_um, bandwidths["local SSD"][0], bandwidths["DRAM"][1])

    def equation_with(self, resolution_um: int, read_mb_s: float, write_mb_s: float) -> float:
        """Eq. (1) with given bandwidths, s."""
        size = condition(resolution_um, GNU_PARALLEL, 25, OPTANE_DIRECT).block_bytes
        return equation_one_s(size, read_mb_s, write_mb_s)

    @cached_property
    def bids_runs(self) -> dict[tuple[str, int], list[Row]]:
        """Valid runs of the BIDS App example by placement and processes."""
        found: dict[tuple[str, int], list[Row]] = {}
        for row in filter(is_compared, self.replay.bids_app.runs):
            found.setdefault((row["placement"], row["parallelism"]), []).append(row)
        return found

    def bids(self, column: str, placement: str, processes: int) -> float:
        """Mean of a column over the runs of a condition of the BIDS App example."""
        if (placement, processes) not in self.bids_runs:
            raise AbsentError(f"no run of the BIDS App example on {placement} with {processes} processes")
        return statistics.fmean(row[column] for row in self.bids_runs[placement, processes])

    def bids_growth(self, column: str) -> dict[str, float]:
        """Mean of a column with 96 processes over that with 25, by placement."""
        both = self.bids_placements(PARALLELISMS)
        return {one: self.bids(column, one, 96) / self.bids(column, one, 25) for one in both}

    def bids_placements(self, processes: Sequence[int]) -> list[str]:
        """Placements that have runs with all these numbers of processes."""
        found = dict.fromkeys(placement for placement, _ in self.bids_runs)
        return [one for one in found if all((one, number) in self.bids_runs for number in processes)]
