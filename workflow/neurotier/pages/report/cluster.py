"""A run on a cluster: its jobs and nodes, what they granted, and what was used of that.

Jobs are the starts of cluster jobs that had participants, rows of ``jobs.tsv``.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from neurotier.core.quantities import counted, first_of, percent, seconds
from neurotier.core.tables import Row, Rows, gathered

CLOCKS_S = 3.0
"""By how much the clocks of a node and of the scheduler may differ; the latter's times are whole seconds."""


def started(jobs: Iterable[Row]) -> Rows:
    """Jobs that began, in order of time."""
    return sorted((row for row in jobs if row["started_s"] is not None), key=lambda row: float(row["started_s"]))


def node_of(jobs: Iterable[Row], participants: Iterable[Row]) -> dict[str, str]:
    """Node of each participant: that of the latest start of a job with it that began before it did."""
    began_s = {row["participant"]: row["start_s"] for row in participants}
    return {
        name: row["node"]
        for row in started(jobs)
        for name in (row["members"] or "").split()
        if row["node"] and name in began_s and row["started_s"] <= began_s[name] + CLOCKS_S
    }


def nodes_of(jobs: Iterable[Row]) -> list[str]:
    """Nodes that ran a job, by name."""
    return sorted({row["node"] for row in jobs if row["node"]})


def by_node(participants: Iterable[Row]) -> dict[str, Rows]:
    """Participant jobs of each node that has any, as far as that is known."""
    return gathered(sorted(((row["node"], row) for row in participants if row["node"]), key=lambda item: item[0]))


def nodes_line(jobs: Sequence[Row], participants: Iterable[Row]) -> str:
    """How long participants took on the nodes, in a sentence without a full stop."""
    nodes = nodes_of(jobs)
    if len(nodes) == 1:
        return f"All participants ran on one node, {nodes[0]}"
    medians_s = {node: statistics.median(row["wall_s"] for row in rows) for node, rows in by_node(participants).items()}
    if not medians_s:
        return "It is not known which participant ran on which node"
    *_, slow = fast, *_ = sorted(medians_s, key=medians_s.__getitem__)
    return f"The median participant took {seconds(medians_s[fast])} on {fast} to {seconds(medians_s[slow])} on {slow}"


def cluster_lines(jobs: Sequence[Row], participants: Sequence[Row]) -> list[str]:
    """What there is to say about a run's jobs and nodes, each line without a full stop."""
    nodes, began = nodes_of(jobs), started(jobs)
    lines = [
        f"{counted(len(participants), 'participant')} in {counted(len({row['job'] for row in jobs}), 'job')} on"
        f" {counted(len(nodes), 'node')}" + (f": {first_of(nodes, 8)}" if nodes else "")
    ]
    if waits := [(row["queue_wait_s"], row["job"]) for row in jobs if row["queue_wait_s"] is not None]:
        median, (longest_s, job) = seconds(statistics.median(wait_s for wait_s, _ in waits)), max(waits)
        lines.append(f"Jobs waited in the queue for {median} (median), at most for {seconds(longest_s)} (job {job})")
    else:
        lines.append("How long jobs waited in the queue is not known")
    if failed := [row for row in jobs if row["fault_of_node"]]:
        whys = dict.fromkeys(f"{row['node']}: {row['fault_of_node']}" for row in failed)
        lines.append(f"{counted(len(failed), 'job')} failed because of the node: {first_of([*whys])}")
    if began and all(row["cpus"] and row["elapsed_s"] for row in began):
        used_s = sum(row["cpu_s"] for row in participants)
        held_s = sum(row["cpus"] * row["elapsed_s"] for row in began)
        lines.append(
            f"The jobs held {held_s / 3600:.3g} CPU-hours, of which participants used {used_s / 3600:.3g}"
            f" ({percent(used_s / held_s)}); the rest are starts of Snakemake, waits, and idle CPUs"
        )
    else:
        lines.append("How many CPU-hours the jobs held is not known")
    if reasons := dict.fromkeys(row["reason"] for row in jobs if row["reason"]):
        lines.append(f"What only Slurm's accounting knows is missing: {'; '.join(reasons)}")
    return lines
