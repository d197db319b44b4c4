"""The section 'Where the time went' of the run report: answers, the slowest participants, bytes and files per tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neurotier.core.tables import Row
from neurotier.pages.report.answers import Answer, run_answers, slowest_answers
from neurotier.pages.report.data import ReportData
from neurotier.pages.report.files import TierFiles, tier_files
from neurotier.pages.report.times import ParticipantTime

SHOWN_RUNS = 3
"""Runs whose answers are shown, newest first: a resumed run leaves participants of several in one results folder."""

SOURCES = {
    "staging": "counted while copying",
    "growth": "growth of the work folder",
    "page_cache": "container image, new in the page cache",
    "cgroup": "block device, this job alone",
    "device": "block device, all processes",
}
"""How traffic is known, in words; by its column in ``traffic.tsv``."""

AMOUNTS = ("read_bytes", "read_files", "written_bytes", "written_files")


@dataclass(frozen=True)
class RunView:
    """What there is to say of one run; ``participants`` are those of its jobs that are in these results."""

    run: str
    participants: int
    answers: list[Answer]


@dataclass(frozen=True)
class SlowView:
    """One of the slowest participants."""

    time: ParticipantTime
    cpu_share: float | None
    longest_phase: str
    phase_share: float | None
    answers: list[Answer]


@dataclass(frozen=True)
class TierTraffic:
    """What moved on one tier, by one way of knowing, over all participant jobs; ``None`` where nothing is known."""

    tier: str
    kind: str
    source: str
    read_bytes: int | None
    read_files: int | None
    written_bytes: int | None
    written_files: int | None


@dataclass(frozen=True)
class WhereView:
    """The whole section."""

    runs: list[RunView]
    slowest: list[SlowView]
    traffic: list[TierTraffic]
    files: list[TierFiles]


def where_view(data: ReportData, times: Sequence[ParticipantTime]) -> WhereView:
    """The section from the tables; ``times`` are all participant jobs, slowest first."""
    return WhereView(run_views(data), slow_views(data, times), tier_traffic(data), tier_files(data))


def run_views(data: ReportData) -> list[RunView]:
    """The answers of the newest runs."""
    begun: dict[str, float] = {}
    for row in data.profile:
        begun[row["run"]] = max(row["start_s"], begun.get(row["run"], row["start_s"]))
    views = []
    for run in sorted(begun, key=lambda run: -begun[run])[:SHOWN_RUNS]:
        rows = [row for row in data.profile if row["run"] == run]
        participants = len({row["participant"] for row in rows})
        views.append(RunView(run, participants, run_answers(rows, data.traffic, data.tier_kinds)))
    return views


def slow_views(data: ReportData, times: Sequence[ParticipantTime]) -> list[SlowView]:
    """The slowest of several participants; of a single one, all has been said."""
    if len(times) < 2:
        return []
    views = []
    for time, answers in slowest_answers(times, data.traffic, data.tier_kinds):
        longest = max(time.phases, key=lambda phase: time.phase(phase, "wall_s"))
        cpu_share, phase_share = (
            part_s / time.wall_s if time.wall_s > 0 else None for part_s in (time.cpu_s, time.phase(longest, "wall_s"))
        )
        views.append(SlowView(time, cpu_share, longest, phase_share, answers))
    return views


def tier_traffic(data: ReportData) -> list[TierTraffic]:
    """Sums over ``traffic.tsv`` by tier and by how they are known."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in data.traffic:
        groups.setdefault((row["tier"], row["traffic_source"]), []).append(row)
    found = []
    for (tier, source), rows in sorted(groups.items(), key=lambda item: (item[0][0], list(SOURCES).index(item[0][1]))):
        known = {key: [row[key] for row in rows if row[key] is not None] for key in AMOUNTS}
        amounts = {key: sum(values) if values else None for key, values in known.items()}
        found.append(TierTraffic(tier, data.tier_kinds.get(tier, ""), SOURCES[source], **amounts))
    return found
