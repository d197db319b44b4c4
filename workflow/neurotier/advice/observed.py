"""Participant jobs as their records have them: what each phase took and moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neurotier.run.profile_tables import Record

QUANTITIES = ("cpu_s", "wait_s", "read_bytes", "read_files", "written_bytes", "written_files", "made_files")

BETWEEN = "between"
"""What a job does between its phases, as if it were one: it starts the process of each, looks at files, makes and
removes its work folder. All that time counts as work of a processor."""


@dataclass(frozen=True)
class ObservedJob:
    """A participant job that has been run.

    Attributes
    ----------
    participant, run
        Participant and run.
    size_bytes
        Size of the participant's images by the index.
    phases
        Phase, and :data:`BETWEEN`, to its quantities: CPU time and time asleep, s; bytes and files read from the tier
        that the phase reads, and written to the tier that it writes; files that its work folder was seen to hold.
    start_s, end_s
        Start of its process and end of its last phase, s since 1970.
    queue_s
        Time spent waiting for a processor, s; ``None`` where the kernel does not account it.
    max_rss_bytes
        Peak memory of its largest process.
    get_cpu_s, get_wait_s
        CPU time of the job that fetched its images, and that job's other time but for waiting for a processor, s;
        ``None`` if there was no such job.
    fetched_files
        Files that had to be fetched; ``None`` for a plain folder, whose files are in place.
    work_tier
        Tier of its work folder; empty if it is not known.
    """

    participant: str
    run: str
    size_bytes: int
    phases: dict[str, dict[str, float]]
    start_s: float
    end_s: float
    queue_s: float | None
    max_rss_bytes: int
    get_cpu_s: float | None = None
    get_wait_s: float | None = None
    fetched_files: int | None = None
    work_tier: str = ""

    @property
    def cpu_s(self) -> float:
        """CPU time of all phases, s."""
        return sum(phase["cpu_s"] for phase in self.phases.values())

    @property
    def queueing(self) -> float:
        """How many times as long as with a processor of its own it took to compute."""
        return 1 + (self.queue_s or 0.0) / self.cpu_s if self.cpu_s else 1.0


def observe(record: Record, size_bytes: int) -> ObservedJob:
    """A job from its record."""
    rows = record["phases"]
    start_s, end_s = min(row["start_s"] for row in rows), max(row["end_s"] for row in rows)
    between_s = max(0.0, end_s - start_s - record["slot_wait_s"] - sum(row["end_s"] - row["start_s"] for row in rows))
    queues, got = [row["run_queue_s"] for row in rows], record.get("got") or {}
    job = ObservedJob(
        participant=record["participant"],
        run=record["run"],
        size_bytes=size_bytes,
        phases={row["phase"]: quantities(row) for row in rows},
        start_s=start_s,
        end_s=end_s,
        queue_s=None if None in queues else sum(queues),
        max_rss_bytes=max(row["max_rss_bytes"] for row in rows),
        get_cpu_s=got.get("cpu_s"),
        get_wait_s=max(0.0, got["wall_s"] - got["cpu_s"] - got["run_queue_s"]) if got else None,
        fetched_files=got.get("fetched_files"),
        work_tier=record.get("work_tier") or "",
    )
    job.phases[BETWEEN] = dict.fromkeys(QUANTITIES, 0.0) | {"cpu_s": between_s / job.queueing}
    return job


def quantities(row: Mapping[str, Any]) -> dict[str, float]:
    """The quantities of one phase.

    What the compute phase reads from the work tier is not measured; it is assumed to read its input once. Staging that
    sleeps waits for its tiers, which the model accounts for by their speeds.
    """
    exact = [flow for flow in row["traffic"] if flow["traffic_source"] in ("staging", "growth", "page_cache")]
    read = sum(flow["read_bytes"] or 0 for flow in exact)
    return {
        "cpu_s": row["cpu_s"],
        "wait_s": 0.0 if row["phase"].startswith("stage_") else row["account_other_s"] or 0.0,
        "read_bytes": read or (row["input_bytes"] or 0),
        "read_files": sum(flow["read_files"] or 0 for flow in exact),
        "written_bytes": sum(flow["written_bytes"] or 0 for flow in exact),
        "written_files": sum(flow["written_files"] or 0 for flow in exact),
        "made_files": sum(flow["made_files"] or 0 for flow in exact if flow["traffic_source"] == "growth"),
    }
