"""A run on a cluster: its jobs and nodes, what they granted, and what was used of that."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from neurotier.core.kinds import KINDS
from neurotier.core.quantities import counted, first_of, percent, seconds
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.pages.report.times import ParticipantTime

CLOCKS_S = 3.0
"""By how much the clocks of a node and of the scheduler may differ; the latter's times are whole seconds."""

COMPARABLE = 5
"""A node is judged by at least so many participants of its own, and of others."""

CLEARLY_OFF = 1.2
"""By what factor a node's median must differ from that of the others to be told of."""

CHANCE = 0.01
"""How often chance alone may make any node of a run look different (Mann-Whitney, shared among the nodes)."""

SECONDS_PER_HOUR = 3600


Steps = tuple[list[float], list[float]]
"""A step function: times of change, s since 1970, and the value from each on."""


@dataclass(frozen=True)
class NodeTimes:
    """Wall times of the participants of a node, s; at least one."""

    node: str
    wall_s: list[float]

    @property
    def median_s(self) -> float:
        """The median."""
        return statistics.median(self.wall_s)


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

    @classmethod
    def of(cls, jobs: Sequence[Row], times: Sequence[ParticipantTime], run: str | None) -> Cluster | None:
        """Of the tables of several runs; ``None`` if the run was on one machine."""
        mine = [row for row in jobs if row["run"] == run and row["batch"] is not None]
        return cls(mine, [time for time in times if time.run == run]) if mine else None

    @cached_property
    def node_of(self) -> dict[str, str]:
        """Node of each participant: that of the latest start of a job with it that began before it did."""
        held: dict[str, list[Row]] = {}
        for row in self.jobs:
            for name in (row["members"] or "").split():
                held.setdefault(name, []).append(row)
        found = {}
        for time in self.times:
            rows = [row for row in held.get(time.participant, []) if row["node"] and row["started_s"] is not None]
            before = [row for row in rows if row["started_s"] <= time.start_s + CLOCKS_S]
            if before:
                found[time.participant] = str(max(before, key=lambda row: float(row["started_s"]))["node"])
        return found

    @cached_property
    def nodes(self) -> list[str]:
        """Nodes that ran a job, by name, numbers by their size."""
        return sorted({str(row["node"]) for row in self.jobs if row["node"]}, key=natural)

    @cached_property
    def by_node(self) -> list[NodeTimes]:
        """Wall times of the participants of each node that has any."""
        times = {node: NodeTimes(node, []) for node in self.nodes}
        for time in self.times:
            node = self.node_of.get(time.participant)
            if node is not None:
                times[node].wall_s.append(time.wall_s)
        return [found for found in times.values() if found.wall_s]

    @cached_property
    def granted(self) -> Steps:
        """Participants that the CPUs granted had room for."""
        return steps(
            [(row["started_s"], row["ended_s"], slots_of(row)) for row in self.jobs if row["started_s"] is not None]
        )

    @cached_property
    def asked(self) -> Steps:
        """The same with jobs that waited in the queue."""
        known = [(row["submitted_s"] or row["started_s"], row["ended_s"], slots_of(row)) for row in self.jobs]
        return steps([(start_s, end_s, slots) for start_s, end_s, slots in known if start_s is not None])

    @property
    def peak_slots(self) -> int | None:
        """Most slots granted at a time, if that is known."""
        return int(max(self.granted[1])) if self.granted[1] else None

    @property
    def waits_s(self) -> list[tuple[float, Row]]:
        """How long each start waited in the queue, where that is known, longest first."""
        known = [(row["queue_wait_s"], row) for row in self.jobs if row["queue_wait_s"] is not None]
        return sorted(known, key=lambda one: -one[0])

    @property
    def again(self) -> list[Row]:
        """Starts of work that had been started before."""
        return [row for row in self.jobs if row["attempt"] > 1]

    @property
    def reason(self) -> str | None:
        """Why the accounting says nothing of all jobs or some, said once."""
        reasons = dict.fromkeys(row["reason"] for row in self.jobs if row["reason"])
        return "; ".join(reasons) or None

    @property
    def held_s(self) -> float | None:
        """CPU seconds that the jobs held; ``None`` unless it is known of all that began."""
        began = [row for row in self.jobs if row["started_s"] is not None]
        if not began or any(row["cpus"] is None or row["elapsed_s"] is None for row in began):
            return None
        return float(sum(row["cpus"] * row["elapsed_s"] for row in began))

    @property
    def used_s(self) -> float:
        """CPU seconds of the participants that succeeded."""
        return sum(time.cpu_s for time in self.times)

    @property
    def efficiency(self) -> float | None:
        """Share of the CPU seconds held that participants used."""
        held_s = self.held_s
        return self.used_s / held_s if held_s else None

    @cached_property
    def standing_out(self) -> list[tuple[NodeTimes, float]]:
        """Nodes whose participants took clearly longer or shorter than those of the others, with the ratio."""
        judged = [found for found in self.by_node if len(found.wall_s) >= COMPARABLE]
        found = []
        for node in judged:
            others_s = [wall_s for other in self.by_node if other is not node for wall_s in other.wall_s]
            if len(others_s) < COMPARABLE or statistics.median(others_s) <= 0:
                continue
            ratio = node.median_s / statistics.median(others_s)
            if not 1 / CLEARLY_OFF < ratio < CLEARLY_OFF and differ(node.wall_s, others_s) < CHANCE / len(judged):
                found.append((node, ratio))
        return found


def differ(one_s: Sequence[float], other_s: Sequence[float]) -> float:
    """How often chance alone makes two groups of times so different."""
    from scipy.stats import mannwhitneyu  # it takes a second to load, and few who need this module need it

    return float(mannwhitneyu(one_s, other_s).pvalue)


def natural(name: str) -> list[tuple[int, int | str]]:
    """What sorts names by the numbers in them.

    >>> sorted(["n10", "n9", "gpu1"], key=natural)
    ['gpu1', 'n9', 'n10']
    """
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.findall(r"\d+|\D+", name)]


def slots_of(row: Row) -> float:
    """How many participants a job has CPUs for at once; 0 if it has not said."""
    if not row["slots"]:
        return 0
    needed, cpus = row["needed_cpus"], row["cpus"]
    return float(row["slots"] if not needed or not cpus else min(row["slots"], row["slots"] * cpus // needed))


def steps(spans: Sequence[tuple[float, float | None, float]]) -> Steps:
    """The sum of what lasts from a start to an end, as a step function; without an end it lasts until the last of all.

    >>> steps([(0.0, 4.0, 2), (1.0, None, 1)])
    ([0.0, 1.0, 4.0], [2, 3, 0])
    """
    last_s = max((end_s if end_s is not None else start_s for start_s, end_s, _ in spans), default=0.0)
    changes: dict[float, float] = {}
    for start_s, end_s, amount in spans:
        stop_s = last_s if end_s is None else end_s
        changes[start_s] = changes.get(start_s, 0) + amount
        changes[stop_s] = changes.get(stop_s, 0) - amount
    at = sorted(changes)
    return at, list(accumulate(changes[moment] for moment in at))


def node_verdict(cluster: Cluster) -> str:
    """Whether a node stands out, in a sentence without a full stop."""
    if len(cluster.nodes) == 1:
        return f"All participants ran on one node, {cluster.nodes[0]}"
    if cluster.standing_out:
        return "; ".join(
            f"Node {node.node} is {'slow' if ratio > 1 else 'fast'}: its median of {seconds(node.median_s)} is"
            f" {ratio:.2f} times that of the others"
            for node, ratio in cluster.standing_out
        )
    medians = [node.median_s for node in cluster.by_node]
    if not medians:
        return "It is not known which participant ran on which node"
    between = f"medians of {seconds(min(medians)).removesuffix(' s')} to {seconds(max(medians))}"
    if sum(len(node.wall_s) >= COMPARABLE for node in cluster.by_node) < len(cluster.by_node):
        return f"Too few participants per node to tell whether one is slow ({between})"
    return f"No node is clearly slower or faster than the others ({between})"


def restarts(cluster: Cluster) -> list[str]:
    """Each batch that was started again, as which job, and why."""
    lines = []
    for row in cluster.again:
        before = [one for one in cluster.jobs if one["batch"] == row["batch"] and one["attempt"] < row["attempt"]]
        last = before[-1] if before else None
        why = f" after {last['state'] or 'an end nobody tells of'}" if last else ""
        where = f" on {last['node']}" if last and last["node"] else ""
        lines.append(f"batch {row['batch']} as job {row['job']}{why}{where}")
    return lines


def wait_words(cluster: Cluster) -> str:
    """How long jobs waited in the queue, in a sentence without a full stop."""
    waits = cluster.waits_s
    if not waits:
        return "How long jobs waited in the queue is not known"
    middle = statistics.median(wait_s for wait_s, _ in waits)
    longest_s, row = waits[0]
    if len(waits) == 1:
        return f"The job waited in the queue for {seconds(longest_s)}"
    longest = f"at most for {seconds(longest_s)} (job {row['job']})"
    return f"Jobs waited in the queue for {seconds(middle)} (median), {longest}"


def shared_words(settings: Settings, tiers: Mapping[str, Mapping[str, object]]) -> str:
    """Which tiers the nodes shared, and which each had for itself, in a sentence without a full stop."""
    own, shared, unsure = list[str](), list[str](), list[str]()
    among_all = {facts.get("name") for role, facts in tiers.items() if role != "work"}
    for role, facts in tiers.items():
        name, kind = str(facts.get("name")), str(facts.get("kind"))
        tier = settings.tiers.get(name)
        is_own = (tier is not None and tier.node) or (kind in KINDS and KINDS[kind].in_memory)
        is_shared = role != "work" or name in among_all or (kind in KINDS and KINDS[kind].remote)
        if role != "images" or settings.image:
            (own if is_own else shared if is_shared else unsure).append(f"{role} ({name})")
    lines = [f"All nodes shared {', '.join(shared)}"] if shared else []
    lines += [f"each had its own {', '.join(own)}"] if own else []
    lines += [f"whether they shared {', '.join(unsure)} is not known (node: true would say so)"] if unsure else []
    return "; ".join(lines)


def cluster_lines(cluster: Cluster, settings: Settings, tiers: Mapping[str, Mapping[str, object]]) -> list[str]:
    """What there is to say of a run's jobs and nodes, each without a full stop."""
    numbers = {row["job"] for row in cluster.jobs}
    lines = [
        f"{counted(len(cluster.times), 'participant')} in {counted(len(numbers), 'job')} on"
        f" {counted(len(cluster.nodes), 'node')}" + (f": {first_of(cluster.nodes, 8)}" if cluster.nodes else "")
    ]
    lines.append(wait_words(cluster))
    again = restarts(cluster)
    lines.append("Started again: " + "; ".join(again[:5]) if again else "No job was started again")
    if len(again) > 5:
        lines[-1] += f"; and {len(again) - 5} more"
    held_s = cluster.held_s
    if held_s:
        hours = [f"{value / SECONDS_PER_HOUR:.3g}" for value in (held_s, cluster.used_s)]
        lines.append(
            f"The jobs held {hours[0]} CPU-hours, of which participants used {hours[1]}"
            f" ({percent(cluster.efficiency)}); the rest are starts of Snakemake, waits, and idle CPUs"
        )
    else:
        lines.append("How many CPU-hours the jobs held is not known")
    lines.append(node_verdict(cluster))
    if tiers:
        lines.append(shared_words(settings, tiers))
    if cluster.reason:
        lines.append(f"What only Slurm's accounting knows is missing: {cluster.reason}")
    return lines
