"""A run on a cluster: its jobs and nodes, what they granted, and what was used of that."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from neurotier.core.quantities import counted, first_of, percent, seconds
from neurotier.core.tables import Row
from neurotier.pages.report.times import ParticipantTime

CLOCKS_S = 3.0
"""By how much the clocks of a node and of the scheduler may differ; the latter's times are whole seconds."""


@dataclass(frozen=True)
class Cluster:
    """A run on a cluster.

    Attributes
    ----------
    jobs
        The starts of its jobs that had participants: rows of ``jobs.tsv``, in order of time.
    times
        Its participant jobs that succeeded.
    """

    jobs: Sequence[Row]
    times: Sequence[ParticipantTime]

    @cached_property
    def started(self) -> list[Row]:
        """Those that began, in order of time."""
        began = [row for row in self.jobs if row["started_s"] is not None]
        return sorted(began, key=lambda row: float(row["started_s"]))

    @cached_property
    def node_of(self) -> dict[str, str]:
        """Node of each participant: that of the latest start of a job with it that began before it did."""
        began_s = {time.participant: time.start_s for time in self.times}
        return {
            name: row["node"]
            for row in self.started
            for name in (row["members"] or "").split()
            if row["node"] and name in began_s and row["started_s"] <= began_s[name] + CLOCKS_S
        }

    @cached_property
    def nodes(self) -> list[str]:
        """Nodes that ran a job, by name."""
        return sorted({row["node"] for row in self.jobs if row["node"]})

    @cached_property
    def walls_s(self) -> dict[str, list[float]]:
        """Wall times of the participants of each node that has any."""
        found: dict[str, list[float]] = {node: [] for node in self.nodes}
        for time in self.times:
            if time.participant in self.node_of:
                found[self.node_of[time.participant]].append(time.wall_s)
        return {node: walls_s for node, walls_s in found.items() if walls_s}

    @property
    def peak_slots(self) -> int:
        """Most participants at a time that the CPUs granted had room for; 0 if that is not known."""
        spans = [(row["started_s"], row["ended_s"] or math.inf, slots_of(row)) for row in self.started]
        at_once = (sum(slots for start_s, end_s, slots in spans if start_s <= at_s < end_s) for at_s, *_ in spans)
        return int(max(at_once, default=0))

    @property
    def again(self) -> list[Row]:
        """Starts of work that had been started before."""
        return [row for row in self.jobs if row["attempt"] > 1]


def slots_of(row: Row) -> float:
    """How many participants a job has CPUs for at once; 0 if it has not said."""
    if not row["slots"]:
        return 0
    needed, cpus = row["needed_cpus"], row["cpus"]
    return float(row["slots"] if not needed or not cpus else min(row["slots"], row["slots"] * cpus // needed))


def nodes_line(cluster: Cluster) -> str:
    """How long participants took on the nodes, in a sentence without a full stop."""
    if len(cluster.nodes) == 1:
        return f"All participants ran on one node, {cluster.nodes[0]}"
    medians_s = {node: statistics.median(walls_s) for node, walls_s in cluster.walls_s.items()}
    if not medians_s:
        return "It is not known which participant ran on which node"
    *_, slow = fast, *_ = sorted(medians_s, key=medians_s.__getitem__)
    return f"The median participant took {seconds(medians_s[fast])} on {fast} to {seconds(medians_s[slow])} on {slow}"


def cluster_lines(cluster: Cluster) -> list[str]:
    """What there is to say of a run's jobs and nodes, each without a full stop."""
    jobs, nodes = {row["job"] for row in cluster.jobs}, cluster.nodes
    lines = [
        f"{counted(len(cluster.times), 'participant')} in {counted(len(jobs), 'job')} on {counted(len(nodes), 'node')}"
        + (f": {first_of(nodes, 8)}" if nodes else "")
    ]
    if waits := [(row["queue_wait_s"], row["job"]) for row in cluster.jobs if row["queue_wait_s"] is not None]:
        median, (longest_s, job) = seconds(statistics.median(wait_s for wait_s, _ in waits)), max(waits)
        lines.append(f"Jobs waited in the queue for {median} (median), at most for {seconds(longest_s)} (job {job})")
    else:
        lines.append("How long jobs waited in the queue is not known")
    again = f"Started again: {counted(len(cluster.again), 'job')}, each a row below"
    lines.append(again if cluster.again else "No job was started again")
    if failed := [row for row in cluster.jobs if row["node_at_fault"]]:
        nodes_at_fault = first_of(sorted({row["node"] for row in failed}), 8)
        what = "a tier was full or missing there, or there was no container engine"
        lines.append(f"Failed because of the node, {nodes_at_fault}: {counted(len(failed), 'job')}; {what}")
    if cluster.started and all(row["cpus"] and row["elapsed_s"] for row in cluster.started):
        used_s, held_s = (
            sum(time.cpu_s for time in cluster.times),
            sum(row["cpus"] * row["elapsed_s"] for row in cluster.started),
        )
        lines.append(
            f"The jobs held {held_s / 3600:.3g} CPU-hours, of which participants used {used_s / 3600:.3g}"
            f" ({percent(used_s / held_s)}); the rest are starts of Snakemake, waits, and idle CPUs"
        )
    else:
        lines.append("How many CPU-hours the jobs held is not known")
    lines.append(nodes_line(cluster))
    if reasons := dict.fromkeys(row["reason"] for row in cluster.jobs if row["reason"]):
        lines.append(f"What only Slurm's accounting knows is missing: {'; '.join(reasons)}")
    return lines
