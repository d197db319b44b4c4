"""Times of participant jobs, summed over the phases of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from neurotier.core.parallelism import PHASES
from neurotier.core.tables import Row

NONE_FINISHED = "no participant finished"


@dataclass(slots=True)
class ParticipantTime:
    """Times of one participant job, summed over its phases.

    Attributes
    ----------
    participant, run
        Participant's folder in the dataset; run in which the job ran.
    wall_s, cpu_s
        Sums over the phases, s.
    start_s, end_s
        First start and last end of a phase, s since 1970-01-01 UTC.
    phases
        The rows of ``profile.tsv``, by phase.
    """

    participant: str
    run: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    start_s: float = float("inf")
    end_s: float = float("-inf")
    max_rss_bytes: int = 0
    staged_bytes: int = 0
    phases: dict[str, Row] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add one phase."""
        self.wall_s += row["wall_s"]
        self.cpu_s += row["cpu_s"]
        self.start_s = min(self.start_s, row["start_s"])
        self.end_s = max(self.end_s, row["end_s"])
        self.max_rss_bytes = max(self.max_rss_bytes, row["max_rss_bytes"])
        self.staged_bytes += row["staged_bytes"] or 0
        self.phases[row["phase"]] = row

    def phase(self, name: str, column: str) -> float:
        """A column of one phase; 0 for a phase that the job did not have."""
        return float(self.phases[name][column]) if name in self.phases else 0.0

    def waited_s(self, cause: str) -> float | None:
        """Wall time that went into a cause by the account, s; ``None`` if no phase knows it."""
        known = [row[f"account_{cause}_s"] for row in self.phases.values() if row[f"account_{cause}_s"] is not None]
        return sum(known) if known else None

    @property
    def accounted(self) -> bool:
        """Whether at least one phase has an account of its wall time."""
        return any(row["account"] is not None for row in self.phases.values())


def participant_times(profile: Iterable[Row]) -> list[ParticipantTime]:
    """The participant jobs of a profile table, slowest first."""
    times: dict[tuple[str, str], ParticipantTime] = {}
    for row in profile:
        key = (row["run"], row["participant"])
        times.setdefault(key, ParticipantTime(row["participant"], row["run"])).add(row)
    return sorted(times.values(), key=lambda time: (-time.wall_s, time.participant))


def present_phases(times: Iterable[ParticipantTime]) -> list[str]:
    """The phases that any participant job had, in their order."""
    found = {phase for time in times for phase in time.phases}
    return [phase for phase in PHASES if phase in found]
