"""Findings: what the tables say, summed per participant and put into one sentence per figure.

Titles of figures, sentences of the page and alternative texts all come from here, so they cannot disagree.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from neurotier.core.quantities import cm3, counted, mean_count, number, percent, seconds, share_of, shorten
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.report.causes import CPU, sum_causes, why_no_account

PHASES = ("start_up", "stage_in", "container_start", "compute", "stage_out", "whole")
"""Parts of a participant job in their order; of a published job only the whole is known."""
NONE_FINISHED = "no participant finished"
NO_ACCOUNT = "Where the time went is not known"
NO_MASK = "no brain mask was made"
LONGEST_NAME = 60
NOTED_SHARE, NOTED_CAUSES = 0.005, 3
"""A title names so many causes after the largest, none below this share of the wall time."""


@dataclass
class ParticipantTime:
    """Times of one participant job, summed over its phases.

    Attributes
    ----------
    participant, run
        Participant's folder in the dataset; run in which the job ran.
    wall_s, cpu_s, io_s
        Sums over the phases, s; ``io_s`` is wall - CPU and below 0 for tools that use several cores.
    start_s, end_s
        First start and last end of a phase, s since 1970-01-01 UTC.
    phases
        The rows of ``profile.tsv``, by phase; or of ``compared_participants.tsv``, which tell nothing of memory and
        staged bytes.
    """

    participant: str
    run: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    io_s: float = 0.0
    start_s: float = float("inf")
    end_s: float = float("-inf")
    max_rss_bytes: int = 0
    staged_bytes: int = 0
    phases: dict[str, Row] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add one phase."""
        self.wall_s += row["wall_s"]
        self.cpu_s += row["cpu_s"]
        self.io_s += row["io_s"]
        self.start_s = min(self.start_s, row["start_s"])
        self.end_s = max(self.end_s, row["end_s"])
        self.max_rss_bytes = max(self.max_rss_bytes, row.get("max_rss_bytes", 0))
        self.staged_bytes += row.get("staged_bytes") or 0
        self.phases[row["phase"]] = row

    def phase(self, name: str, column: str) -> float:
        """A column of one phase; 0 for a phase that the job did not have."""
        return float(self.phases[name][column]) if name in self.phases else 0.0

    @property
    def duration_s(self) -> float:
        """Time from the job's first start to its last end, s."""
        return self.end_s - self.start_s


def participant_times(profile: Iterable[Row]) -> list[ParticipantTime]:
    """The participant jobs of a profile table, slowest first."""
    times: dict[tuple[str, str], ParticipantTime] = {}
    for row in profile:
        key = (row["run"], row["participant"])
        times.setdefault(key, ParticipantTime(row["participant"], row["run"])).add(row)
    return sorted(times.values(), key=lambda time: (-time.wall_s, time.participant))


def last_run(profile: Sequence[Row], runs: Sequence[Row]) -> str | None:
    """The run that the run table ends with; without such a table, the one that started a phase last."""
    if runs:
        return str(runs[-1]["run"])
    return str(max(profile, key=lambda row: float(row["start_s"]))["run"]) if profile else None


def present_phases(times: Iterable[ParticipantTime]) -> list[str]:
    """The phases that any participant job had, in their order."""
    found = {phase for time in times for phase in time.phases}
    return [phase for phase in PHASES if phase in found]


def running_jobs(times: Sequence[ParticipantTime]) -> tuple[list[float], list[int]]:
    """Number of participant jobs running, as a step function.

    Returns
    -------
    tuple
        Times of change, s since 1970-01-01 UTC, and the number from that time on; both of the same length.

    Examples
    --------
    >>> first = ParticipantTime("sub-1", "r", start_s=0.0, end_s=2.0)
    >>> running_jobs([first, ParticipantTime("sub-2", "r", start_s=1.0, end_s=2.0)])
    ([0.0, 1.0, 2.0], [1, 2, 0])
    """
    change: dict[float, int] = {}
    for time in times:
        change[time.start_s] = change.get(time.start_s, 0) + 1
        change[time.end_s] = change.get(time.end_s, 0) - 1
    at, count, running = sorted(change), [], 0
    for moment in at:
        running += change[moment]
        count.append(running)
    return at, count


def slots(times: Sequence[ParticipantTime]) -> list[int]:
    """A lane for each job such that no two jobs overlap in one: the lowest lane free at its start.

    Parameters
    ----------
    times
        Jobs in the order of their starts.

    Returns
    -------
    list
        Lane of each job, from 0; as many lanes as the peak parallelism.
    """
    lanes: list[int] = []
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    for time in times:
        while busy and busy[0][0] <= time.start_s:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        lanes.append(lane)
        heapq.heappush(busy, (time.end_s, lane))
    return lanes


def summarise(times: Sequence[ParticipantTime]) -> Row:
    """Makespan, mean and peak parallelism of one run's jobs, named as in ``runs.tsv``, where that table is missing."""
    makespan = max(time.end_s for time in times) - min(time.start_s for time in times)
    return {
        "participants": len(times),
        "makespan_s": makespan,
        "mean_parallelism": sum(time.duration_s for time in times) / makespan if makespan else float(len(times)),
        "peak_parallelism": max(1, *running_jobs(times)[1]),
    }


def cpu_io_finding(times: Sequence[ParticipantTime]) -> str:
    """What CPU and I/O time share, and who was slowest."""
    if not times:
        return NONE_FINISHED
    slowest = times[0]
    name = shorten(slowest.participant, LONGEST_NAME)
    whom = name if len(times) == 1 else counted(len(times), "participant")
    wall = sum(time.wall_s for time in times)
    cpu = share_of(sum(time.cpu_s for time in times), wall)
    io = share_of(sum(time.io_s for time in times), wall)
    if cpu is None or io is None:
        return f"No time was measured for {whom}"
    if cpu > 1:
        share = f"CPU time is {percent(cpu)} of the wall time of {whom} (several cores at once)"
    elif cpu >= 0.5:
        share = f"CPU takes {percent(cpu)} of the time of {whom}"
    else:
        share = f"I/O takes {percent(io)} of the time of {whom}"
    if len(times) == 1:
        return f"{share}, which took {seconds(slowest.wall_s)}"
    return f"{share}; the slowest, {name}, took {seconds(slowest.wall_s)}"


def accounted(times: Iterable[ParticipantTime]) -> list[ParticipantTime]:
    """Those with an account of the wall time of at least one phase."""
    return [time for time in times if sum_causes(time.phases.values()).made]


def account_finding(times: Sequence[ParticipantTime]) -> str:
    """The causes that took most of the wall time of all who have an account, largest first."""
    if not times:
        return NONE_FINISHED
    known = accounted(times)
    if not known:
        return f"{NO_ACCOUNT}: {why_no_account(row for time in times for row in time.phases.values())}"
    causes = sum_causes(row for time in known for row in time.phases.values())
    whom = shorten(known[0].participant, LONGEST_NAME) if len(known) == 1 else counted(len(known), "participant")
    if causes.wall_s <= 0:
        return f"No time was measured for {whom}"
    shares = {LABELS[cause]: causes.share_of(cause) for cause in LABELS if cause not in CPU}
    shares |= {"on a CPU": causes.cpu_s / causes.wall_s}
    (first, most), *others = sorted(shares.items(), key=lambda item: -item[1])
    text = f"{causes.about}{percent(most)} of the time of {whom} {first}"
    told = [f"{percent(share)} {name}" for name, share in others if share >= NOTED_SHARE][:NOTED_CAUSES]
    return ", ".join([text[:1].upper() + text[1:], *told])


def gantt_finding(run: Row | None) -> str:
    """How long a run took and how many participants ran at a time; ``run`` is a row of ``runs.tsv``."""
    if run is None or not run["participants"]:
        return NONE_FINISHED
    peak = int(run["peak_parallelism"])
    parallel = (
        "one at a time"
        if peak == 1
        else f"{mean_count(run['mean_parallelism'])} at a time on average, {peak:,} at most"
    )
    done = counted(run["participants"], "participant")
    return f"Makespan {seconds(run['makespan_s'])} for {done}, {parallel}"


def brain_volume_finding(group: Sequence[Row]) -> str:
    """Mean and spread of the brain volumes, and how many stand out."""
    volumes = [float(row["brain_volume_mm3"]) for row in group]
    if not volumes:
        return NO_MASK
    if len(volumes) == 1:
        return f"Brain volume of the one image is {cm3(volumes[0])}"
    outliers = sum(bool(row["outlier"]) for row in group)
    stand_out = (
        "none stands out" if not outliers else f"{number(outliers)} {'stands' if outliers == 1 else 'stand'} out"
    )
    mean, deviation = statistics.fmean(volumes), statistics.stdev(volumes)
    spread = f"{number(mean * 1e-3)} ± {cm3(deviation)}"
    return f"Brain volume is {spread} (mean ± SD of {counted(len(volumes), 'image')}); {stand_out}"
