"""What the records of participant jobs tell: what each phase took and moved, and what passed between two jobs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neurotier.run.profile import Record

QUANTITIES = ("cpu_s", "wait_s", "read_bytes", "written_bytes", "written_files")


@dataclass(frozen=True)
class Seen:
    """One participant job.

    Attributes
    ----------
    participant, run, host
        Whose it was, when and where.
    size_bytes
        Size of the participant's images, as the index has it.
    phases
        Phase to quantity: CPU time and time asleep, s; bytes read from the tier that the phase reads, bytes and files
        written to the one that it writes to.
    start_s, end_s
        From the birth of its process to the end of its last phase, s since 1970.
    queue_s
        Waiting for a processor, s; ``None`` if the kernel did not tell.
    max_rss_bytes
        Its largest process.
    ready_s
        Since when in its run it could be started, s since 1970.
    get_cpu_s, get_wait_s
        CPU time of the job that saw to its images, and what that waited for but a processor, s; ``None`` without one.
    fetched_files
        How many of them had to be fetched; ``None`` if none is fetched (a plain folder).
    """

    participant: str
    run: str
    host: str
    size_bytes: int
    phases: dict[str, dict[str, float]]
    start_s: float
    end_s: float
    queue_s: float | None
    max_rss_bytes: int
    ready_s: float | None
    get_cpu_s: float | None
    get_wait_s: float | None
    fetched_files: int | None

    @property
    def cpu_s(self) -> float:
        """CPU time of all phases, s."""
        return sum(phase["cpu_s"] for phase in self.phases.values())


def seen_in(record: Record, size_bytes: int, run_started_s: float) -> Seen:
    """What a record tells; a job that was ready before its run began did not wait for an input."""
    rows, ready_s = record["phases"], record.get("ready_s")
    queues = [row["run_queue_s"] for row in rows]
    got = record.get("got") or {}
    return Seen(
        participant=record["participant"],
        run=record["run"],
        host=record["host"],
        size_bytes=size_bytes,
        phases={row["phase"]: quantities(row) for row in rows},
        start_s=min(row["start_s"] for row in rows),
        end_s=max(row["end_s"] for row in rows),
        queue_s=None if None in queues else sum(queues),
        max_rss_bytes=max(row["max_rss_bytes"] for row in rows),
        ready_s=ready_s if ready_s and ready_s >= run_started_s else None,
        get_cpu_s=got.get("cpu_s"),
        get_wait_s=max(0.0, got["wall_s"] - got["cpu_s"] - got["run_queue_s"]) if got else None,
        fetched_files=got.get("fetched_files"),
    )


def quantities(row: Mapping[str, Any]) -> dict[str, float]:
    """What one phase took and moved.

    The compute phase does not count what it reads from the work tier: taken is that it reads its input once. Staging is
    never asleep for itself, but for its tiers.
    """
    exact = [flow for flow in row["traffic"] if flow["traffic_source"] in ("staging", "growth", "page_cache")]
    read = sum(flow["read_bytes"] or 0 for flow in exact)
    return {
        "cpu_s": row["cpu_s"],
        "wait_s": 0.0 if row["phase"].startswith("stage_") else row["account_other_s"] or 0.0,
        "read_bytes": read or (row["input_bytes"] or 0),
        "written_bytes": sum(flow["written_bytes"] or 0 for flow in exact),
        "written_files": sum(flow["written_files"] or 0 for flow in exact),
    }


def gaps_s(seen: Iterable[Seen]) -> list[float]:
    """What passed between the moment when a job could be started in its slot and the birth of its process, s.

    That is Snakemake's way from the end of one job to the start of the next. A slot is free since the latest end, not
    taken by a later job, that came before; without one, the job waited for nothing but its inputs.

    Examples
    --------
    >>> def job(start_s, end_s, ready_s):
    ...     return Seen("sub-1", "r", "h", 1, {}, start_s, end_s, 0.0, 1, ready_s, None, None, None)
    >>> gaps_s([job(10.0, 12.0, 9.75), job(10.0, 13.0, 9.0), job(12.5, 15.0, 9.0), job(16.0, 17.0, 15.5)])
    [0.25, 1.0, 0.5, 0.5]
    """
    gaps = []
    by_run: dict[str, list[Seen]] = {}
    for job in seen:
        by_run.setdefault(job.run, []).append(job)
    for jobs in by_run.values():
        free: list[float] = []
        running: list[float] = []
        for job in sorted(jobs, key=lambda job: job.start_s):
            free += [end for end in running if end <= job.start_s]
            running = [end for end in running if end > job.start_s]
            since = [moment for moment in (free.pop() if free else None, job.ready_s) if moment is not None]
            running.append(job.end_s)
            if since:
                gaps.append(max(job.start_s - max(since), 0.0))
    return gaps


def others_busy(seen: Sequence[Seen], cpus: int, slots: Mapping[str, int]) -> float:
    """How many processes of others were busy: what the jobs' waiting for a processor tells beyond their own number.

    Parameters
    ----------
    slots
        Run to how many jobs could run at once: taken is that they did, if not of these then other jobs of the run.

    Examples
    --------
    Two jobs at once on two processors that wait for one as long as they are on one:

    >>> phases = {"compute": {"cpu_s": 5.0}}
    >>> job = Seen("sub-1", "r", "h", 1, phases, 0.0, 10.0, 5.0, 1, None, None, None, None)
    >>> others_busy([job, job], cpus=2, slots={"r": 2}), others_busy([job], cpus=2, slots={"r": 4})
    (2.0, 0.0)
    """
    found = []
    for job in seen:
        if job.queue_s is not None and job.cpu_s:
            busy = cpus * (job.cpu_s + job.queue_s) / job.cpu_s
            found.append(max(0.0, busy - max(slots[job.run], cpus)))
    return statistics.median(found) if found else 0.0
