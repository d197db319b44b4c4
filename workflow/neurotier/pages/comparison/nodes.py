"""Nodes as a blocking factor: a slow node must not be taken for a slow tier.

Runs of a campaign may be on several nodes of a cluster, if its job was stopped and went on elsewhere. Two conditions
are then set against each other node by node, on the nodes that had both. Where no node had both, the placement's part
and the node's cannot be told apart, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from neurotier.core.quantities import counted
from neurotier.core.tables import Row
from neurotier.run.conditions import Condition

INSEPARABLE = "no node had runs of both, so that nodes and placements cannot be told apart"

Groups = Mapping[Condition, Sequence[Row]]
Runs = Sequence[Row]


def by_nodes(runs: Runs) -> dict[str | None, list[Row]]:
    """Runs by the nodes that they were on: ``None`` where that is not known, as of published logs."""
    groups: dict[str | None, list[Row]] = {}
    for run in runs:
        groups.setdefault(run["nodes"], []).append(run)
    return groups


def inseparable(one: Runs, other: Runs) -> bool:
    """Whether no node had runs of both."""
    return by_nodes(one).keys().isdisjoint(by_nodes(other))


def node_lines(groups: Groups) -> list[str]:
    """Which runs were on which node, if there are several, and what that means for differences; else nothing."""
    everywhere = by_nodes([run for runs in groups.values() for run in runs])
    if len(everywhere) < 2:
        return []
    where = "; ".join(f"{condition.placement} on {nodes_text(runs)}" for condition, runs in groups.items())
    lines = [f"Runs were on different nodes: {where}"]
    pairs = [inseparable(*pair) for pair in combinations(groups.values(), 2)]
    apart = sum(pairs)
    if pairs and apart < len(pairs):
        lines.append("Differences are taken between runs of one node; makespans are of all runs")
    if apart:
        of = "" if len(pairs) == 1 else f" (so of {apart} of {counted(len(pairs), 'pair')} of placements)"
        lines.append(f"{INSEPARABLE[:1].upper()}{INSEPARABLE[1:]}{of}")
    return lines


def nodes_text(runs: Runs) -> str:
    """The nodes of some runs, with how many they had.

    >>> nodes_text([{"nodes": "n1"}, {"nodes": "n2"}, {"nodes": "n1"}]), nodes_text([{"nodes": None}])
    ('n1 (2 runs), n2 (1 run)', 'an unknown node (1 run)')
    """
    return ", ".join(
        f"{nodes or 'an unknown node'} ({counted(len(found), 'run')})" for nodes, found in by_nodes(runs).items()
    )
