"""Times of participant jobs, summed over the phases of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from neurotier.core.parallelism import PHASES
from neurotier.core.tables import Row

NONE_FINISHED = "no participant finished"


@dataclass(frozen=True)
class ParticipantTime:
    """One participant job: its folder in the dataset, the run, and its rows of ``profile.tsv`` by phase.

    Times are sums over the phases, s; start and end in s since 1970-01-01 UTC.
    """

    participant: str
    run: str
    phases: dict[str, Row] = field(default_factory=dict)

    def total(self, column: str) -> float:
        """Sum of what is known of a column."""
        return float(sum(row[column] or 0 for row in self.phases.values()))

    @cached_property
    def wall_s(self) -> float:
        """Wall time."""
        return self.total("wall_s")

    @property
    def cpu_s(self) -> float:
        """CPU time."""
        return self.total("cpu_s")

    @cached_property
    def start_s(self) -> float:
        """First start of a phase."""
        return min(float(row["start_s"]) for row in self.phases.values())

    @property
    def end_s(self) -> float:
        """Last end of a phase."""
        return max(float(row["end_s"]) for row in self.phases.values())

    def phase(self, name: str, column: str) -> float:
        """A column of one phase; 0 for a phase that the job did not have."""
        return float(self.phases[name][column]) if name in self.phases else 0.0

    def spent_s(self, *causes: str) -> float | None:
        """Wall time that went into some causes by the account; ``None`` if no phase knows it."""
        columns = [f"account_{cause}_s" for cause in causes]
        known = any(row[column] is not None for row in self.phases.values() for column in columns)
        return sum(map(self.total, columns)) if known else None

    @property
    def accounted(self) -> bool:
        """Whether at least one phase has an account of its wall time."""
        return any(row["account"] is not None for row in self.phases.values())


def participant_times(profile: Iterable[Row]) -> list[ParticipantTime]:
    """The participant jobs of a profile table, slowest first."""
    times: dict[tuple[str, str], ParticipantTime] = {}
    for row in profile:
        key = (row["participant"], row["run"])
        times.setdefault(key, ParticipantTime(*key)).phases[row["phase"]] = row
    return sorted(times.values(), key=lambda time: (-time.wall_s, time.participant))


def present_phases(times: Iterable[ParticipantTime]) -> list[str]:
    """The phases that any participant job had, in their order."""
    found = {phase for time in times for phase in time.phases}
    return [phase for phase in PHASES if phase in found]
