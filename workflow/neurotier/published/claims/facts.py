"""What claims are judged by: figures of the logs, by condition, as means over repetitions that are no outliers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from neurotier.core.tables import Row
from neurotier.published.bigbrain import GNU_PARALLEL, BlockRun
from neurotier.published.conditions import condition, steady, tier_of
from neurotier.published.replay import Replay
from neurotier.published.table_one import device_bandwidths, equation_one_s
from neurotier.run.compared import is_compared

Place = tuple[str, str]
"""Device, and mode of Optane."""

DRAM, OPTANE_MEMORY, OPTANE_DIRECT = ("DRAM", "App Direct"), ("Optane", "Memory mode"), ("Optane", "App Direct")
SSD_MEMORY, SSD_DIRECT = ("local SSD", "Memory mode"), ("local SSD", "App Direct")
ISILON_MEMORY, ISILON_DIRECT = ("Isilon", "Memory mode"), ("Isilon", "App Direct")
SSD, ISILON = (SSD_MEMORY, SSD_DIRECT), (ISILON_MEMORY, ISILON_DIRECT)

SAME = 0.05
"""Figures that differ by less than this share are the same, where the paper gives none."""


def name(place: Place) -> str:
    """What figures call a device in a mode."""
    return tier_of(*place)


def named(places: Iterable[Place]) -> dict[str, Place]:
    """Devices in their modes by name."""
    return {name(place): place for place in places}


class AbsentError(LookupError):
    """The logs at hand do not hold what a claim is about."""


@dataclass(frozen=True)
class Facts:
    """The figures of a replay; each method raises :class:`AbsentError` where there is no run."""

    replay: Replay

    def all_runs(
        self, place: Place, processes: int, resolution_um: int = 40, engine: str = GNU_PARALLEL
    ) -> list[BlockRun]:
        """Every repetition of a condition."""
        one = condition(resolution_um, engine, processes, place)
        if one not in self.replay.conditions:
            name = "Spark" if engine != GNU_PARALLEL else "GNU Parallel"
            raise AbsentError(f"no run of {one.tier} with {processes} processes at {resolution_um} µm, {name}")
        return self.replay.conditions[one]

    def runs(self, place: Place, processes: int, resolution_um: int = 40, engine: str = GNU_PARALLEL) -> list[BlockRun]:
        """The repetitions of a condition that are no outliers."""
        return steady(self.all_runs(place, processes, resolution_um, engine))

    def mean(
        self,
        measure: Callable[[BlockRun], float],
        place: Place,
        processes: int,
        resolution_um: int = 40,
        engine: str = GNU_PARALLEL,
    ) -> float:
        """Mean of a measure over a condition's runs."""
        return statistics.fmean(map(measure, self.runs(place, processes, resolution_um, engine)))

    def makespan_s(self, place: Place, processes: int, resolution_um: int = 40, engine: str = GNU_PARALLEL) -> float:
        """Mean makespan, s."""
        return self.mean(lambda run: run.makespan_s, place, processes, resolution_um, engine)

    def header_s(self, place: Place, processes: int) -> float:
        """Mean sum of loading headers at 40 um, s."""
        return self.mean(lambda run: run.header_s, place, processes)

    def read_s(self, place: Place, processes: int, resolution_um: int = 40) -> float:
        """Mean sum of reading and incrementing, GNU Parallel, s."""
        return self.mean(lambda run: run.increment_s, place, processes, resolution_um)

    def write_s(self, place: Place, processes: int, resolution_um: int = 40, engine: str = GNU_PARALLEL) -> float:
        """Mean sum of writing, s."""
        return self.mean(lambda run: run.write_s, place, processes, resolution_um, engine)

    def parallelism(self, place: Place, processes: int) -> float:
        """Mean number of blocks in a phase at once, at 40 um; of all repetitions, as the paper has it."""
        return statistics.fmean(run.mean_parallelism for run in self.all_runs(place, processes))

    def speed_up(self, place: Place, resolution_um: int = 40, engine: str = GNU_PARALLEL) -> float:
        """Makespan with 25 processes over that with 96."""
        return self.makespan_s(place, 25, resolution_um, engine) / self.makespan_s(place, 96, resolution_um, engine)

    def equation_s(self, device: str, resolution_um: int = 40) -> float:
        """Eq. (1) with Table I, s."""
        return self.equation_with(resolution_um, *device_bandwidths(self.replay.bandwidths)[device])

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

    def bids_placements(self, processes: Sequence[int]) -> list[str]:
        """Placements that have runs with all these numbers of processes."""
        found = dict.fromkeys(placement for placement, _ in self.bids_runs)
        return [one for one in found if all((one, number) in self.bids_runs for number in processes)]
