"""The section 'Where the time went' of the run report: answers, the slowest participants, bytes and files per tier."""

from __future__ import annotations

from typing import Any

from neurotier.core.quantities import share_of
from neurotier.core.tables import Row
from neurotier.pages.report.answers import Answer, participant_answers, run_answers
from neurotier.pages.report.data import ReportData

SHOWN_RUNS = 3
"""Runs whose answers are shown, newest first: a resumed run leaves participants of several in one results folder."""

SLOWEST = 5
"""How many participants get answers of their own."""

SOURCES = {
    "staging": "counted while copying",
    "growth": "growth of the work folder",
    "page_cache": "container image, new in the page cache",
    "cgroup": "block device, this job alone",
    "device": "block device, all processes",
}
"""How traffic is known, in words; by its column in ``traffic.tsv``."""


def run_views(data: ReportData) -> list[tuple[str, int, list[Answer]]]:
    """The newest runs, each with the number of its participants in these results and its answers."""
    found: dict[str, list[Row]] = {}
    for row in sorted(data.profile, key=lambda row: -float(row["start_s"])):
        found.setdefault(row["run"], []).append(row)
    return [
        (run, len({row["participant"] for row in rows}), run_answers(rows, data.traffic, data.tier_kinds))
        for run, rows in list(found.items())[:SHOWN_RUNS]
    ]


def slow_views(data: ReportData) -> list[dict[str, Any]]:
    """The slowest of several participants; of a single one, all has been said."""
    views = []
    for time in data.times[:SLOWEST] if len(data.times) > 1 else []:
        longest = max(time.phases, key=lambda phase: time.phase(phase, "wall_s"))
        views.append(
            {
                "time": time,
                "cpu_share": share_of(time.cpu_s, time.wall_s),
                "phase": longest,
                "phase_share": share_of(time.phase(longest, "wall_s"), time.wall_s),
                "answers": participant_answers(time, data.traffic, data.tier_kinds),
            }
        )
    return views


def tier_traffic(data: ReportData) -> list[dict[str, Any]]:
    """What moved on each tier, by each way of knowing, over all participant jobs; ``None`` where nothing is known."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(data.traffic, key=lambda row: (row["tier"], list(SOURCES).index(row["traffic_source"]))):
        tier, source = row["tier"], row["traffic_source"]
        about = {"tier": tier, "kind": data.tier_kinds.get(tier), "source": SOURCES[source]}
        sums = found.setdefault((tier, source), about)
        for column in ("read_bytes", "read_files", "written_bytes", "written_files"):
            known = [value for value in (sums.get(column), row[column]) if value is not None]
            sums[column] = sum(known) if known else None
    return list(found.values())
