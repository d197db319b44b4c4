"""Advice for several nodes of a class: the makespan of a placement, and from how many on a shared tier is the limit.

So many nodes have so many times the processors, the page cache and the tiers that are each node's own. What a tier that
they share gives to several of them, the probe of one node does not tell: the prediction takes it to give all of them
together what one node got with as many streams, the lower end of the interval as much to each node. Besides, the
interval is as wide as that for one node. One job at a time is on a node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from neurotier.advice.predict import Inputs, workload
from neurotier.advice.situation import Situation
from neurotier.advice.table import at_parallelism
from neurotier.advice.words import interval, limit_text
from neurotier.advice.workload import Storage
from neurotier.core.kinds import KINDS
from neurotier.core.quantities import counted
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.core.tiers import SHARED_ROLES
from neurotier.model.fluid import SimulatedRun, simulate
from neurotier.model.machine import Machine, TierSpeed
from neurotier.model.this_machine import machine_of

MOST_NODES = 64
"""More nodes are not predicted: what one node tells of so many is too little."""


@dataclass(frozen=True)
class Nodes:
    """A placement on any number of nodes.

    Attributes
    ----------
    inputs
        As for one node.
    storage
        The placement.
    at_once
        Participants at once on each node.
    shared
        Tiers that all nodes share.
    """

    inputs: Inputs
    storage: Storage
    at_once: int
    shared: Collection[str]

    @property
    def most(self) -> int:
        """Nodes beyond which some would have nothing to do, or are too many to predict."""
        jobs, computing = self.inputs.jobs, self.inputs.computing or len(self.inputs.participants)
        at_once_at_most = sum(min(len(parts), computing) for parts in jobs) if jobs else len(self.inputs.participants)
        return min(MOST_NODES, -(-at_once_at_most // self.at_once))

    def machine(self, nodes: int, each_its_own: bool) -> Machine:
        """So many nodes as one machine; if ``each_its_own``, shared tiers give each node what they give to one."""
        one, figures = self.inputs.processors, {name: probe.usual for name, probe in self.inputs.probes.items()}
        processors = replace(one, cores=nodes * one.cores, threads=nodes * one.threads, others=nodes * one.others)
        page_cache = self.inputs.page_cache
        page_cache = replace(page_cache, available_bytes=nodes * page_cache.available_bytes)
        own = machine_of(figures, self.at_once, processors, page_cache)
        common = machine_of(figures, nodes * self.at_once, processors, page_cache)
        common_tiers = set() if each_its_own else set(self.shared)
        tiers = {
            name: common.tiers[name] if name in common_tiers else times(tier, nodes) for name, tier in own.tiers.items()
        }
        return replace(own, tiers=tiers)

    def simulate(self, nodes: int, each_its_own: bool = False) -> SimulatedRun:
        """The run on so many nodes."""
        slots = nodes * self.at_once
        own = {name: self.at_once for name in self.inputs.probes if each_its_own or name not in self.shared}
        load = workload(self.inputs, self.storage, slots, self.inputs.participants, own=own)
        return simulate(load, self.machine(nodes, each_its_own), slots)

    def is_limited_by_shared(self, run: SimulatedRun) -> bool:
        """Whether most of the jobs' time goes by what a shared tier gives to all."""
        ways = ("{} read", "{} write", "small files on {}")
        return run.limit in {way.format(tier) for tier in self.shared for way in ways}

    def limited_from(self, runs: Mapping[int, SimulatedRun]) -> int | None:
        """The least number of nodes with which a shared tier is the limit; ``None`` if it is with none of those given.

        Parameters
        ----------
        runs
            Simulated runs by their number of nodes, in ascending order.
        """
        limited = [nodes for nodes, run in runs.items() if self.is_limited_by_shared(run)]
        if not limited:
            return None
        above = limited[0]
        below = max((nodes for nodes in runs if nodes < above), default=above - 1)
        while above - below > 1:
            between = (below + above) // 2
            if self.is_limited_by_shared(self.simulate(between)):
                above = between
            else:
                below = between
        return above


def times(tier: TierSpeed, nodes: int) -> TierSpeed:
    """A tier of each node's own: together they give so many times as much, and a stream what it gets from one."""
    return replace(
        tier,
        read_bytes_per_s=nodes * tier.read_bytes_per_s,
        write_bytes_per_s=nodes * tier.write_bytes_per_s,
        files_per_s=nodes * tier.files_per_s,
    )


def numbers_of_nodes(most: int) -> list[int]:
    """Numbers of nodes to predict: each twice the one before, and the greatest.

    >>> numbers_of_nodes(11), numbers_of_nodes(1)
    ([1, 2, 4, 8, 11], [1])
    """
    doubled = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*doubled, max(1, most)]


def shared_tiers(settings: Settings, checked: Sequence[Row]) -> set[str]:
    """Tiers that all nodes share: by the check, or, where that cannot tell, by kind and use.

    Parameters
    ----------
    checked
        Rows of ``check.tsv``.
    """
    held = {settings.placement[role] for role in SHARED_ROLES}
    return {
        row["tier"]
        for row in checked
        if (KINDS[row["kind"]].remote or row["tier"] in held if row["shared"] is None else row["shared"])
    }


def node_rows(situation: Situation, inputs: Inputs, advised: Sequence[Row], limits: Mapping[str, int]) -> list[Row]:
    """Rows of ``nodes.tsv``: each row of ``advice.tsv`` on one node and more.

    Parameters
    ----------
    situation
        With a check of a node.
    inputs, limits
        As for :func:`neurotier.advice.table.advice_rows`.
    advised
        What that gave.
    """
    checked = [row for table in situation.checks for row in read_table(table, "check")]
    shared, candidates = shared_tiers(situation.settings, checked), {one.name: one for one in situation.candidates}
    rows = []
    for row in advised:
        candidate = candidates[row["placement"]]
        own, at_once = at_parallelism(situation, inputs, row["parallelism"], limits)
        used = shared & set(candidate.tiers.values()) & own.probes.keys()
        rows += rows_of(Nodes(own, situation.storage(candidate, row["cache"], own), at_once, used), row)
    return rows


def rows_of(placed: Nodes, row: Row) -> list[Row]:
    """Rows of ``nodes.tsv`` for a row of ``advice.tsv``."""
    runs = {nodes: placed.simulate(nodes) for nodes in numbers_of_nodes(placed.most)}
    limited_from = placed.limited_from(runs)
    lower, upper = (row[end] / row["predicted_s"] if row["predicted_s"] else 1.0 for end in ("low_s", "high_s"))
    # for one node, runs that differ by chance were simulated
    by_chance = row["predicted_s"] / runs[1].makespan_s if runs[1].makespan_s else 1.0
    made = []
    for nodes, run in runs.items():
        least_s = min(run.makespan_s, placed.simulate(nodes, each_its_own=True).makespan_s)
        made.append(
            {
                **{name: row[name] for name in ("placement", "in_use", "cache", "participants")},
                "nodes": nodes,
                "parallelism": placed.at_once,
                "predicted_s": run.makespan_s * by_chance,
                "low_s": least_s * by_chance * lower,
                "high_s": run.makespan_s * by_chance * upper,
                "limit": limit_text(run.limit, nodes * placed.at_once, nodes * placed.inputs.processors.threads),
                "limit_share": run.limits[run.limit],
                "shared_tiers": " ".join(sorted(placed.shared)) or None,
                "shared_limit_from": limited_from,
            }
        )
    return made


def node_advices(rows: Sequence[Row]) -> list[str]:
    """What to expect of more nodes, a sentence for each placement and state of the page cache; no full stops."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["placement"], row["cache"]), []).append(row)
    several = len({cache for _, cache in groups}) > 1
    return [
        f"{placement}{f', cache {cache}' if several else ''}: {sentence_of(members)}"
        for (placement, cache), members in groups.items()
        if len(members) > 1
    ]


def sentence_of(rows: Sequence[Row]) -> str:
    """What is predicted of one placement on one node, and on as many as there is work for."""
    ends = (rows[0], rows[-1])
    times_ = ", ".join(f"{interval(row)} on {counted(row['nodes'], 'node')}" for row in ends)
    limited_from, shared = rows[0]["shared_limit_from"], rows[0]["shared_tiers"]
    if not shared:
        return f"{times_}; no tier is shared"
    if limited_from is None:
        return f"{times_}; {shared.replace(' ', ', ')}, which they share, is not the limit of so many"
    limit = next(row["limit"] for row in rows if row["nodes"] >= limited_from)
    return f"{times_}; from {counted(limited_from, 'node')} on, {limit}, which they share, is the limit"


def node_basis(rows: Sequence[Row]) -> list[str]:
    """What figures for several nodes rest on, in sentences without full stops."""
    if not any(row["nodes"] > 1 for row in rows):
        return []
    text = (
        "Several nodes, one job on each, have been predicted from one, and never tried: they have so many times its"
        " processors, page cache and own tiers. What a shared tier gives to several was not measured: the prediction"
        " takes it to give all together what one node got, the lower end of the interval as much to each; besides, the"
        " interval is as wide as that for one node"
    )
    return [text]
