"""Reasons: why one placement took longer than another, as far as the sums of the runs tell; plain sentences.

A condition has an account of its wall time if all its runs have one; without it only CPU time is known, and I/O as the
paper counts it (wall - CPU), of which waiting for a core is part.

Nodes are a blocking factor: a slow node must not be taken for a slow tier. Runs of a campaign may be on several nodes
of a cluster, if its job was stopped and went on elsewhere. Two conditions are then set against each other on the nodes
that had both. Where no node had both, the placement's part and the node's cannot be told apart, and that is said.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations

from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.names import PAPER_IO
from neurotier.pages.kit.causes import BLOCK_IO, COLD_SHARE, CPU, OTHER, RUN_QUEUE, WARM_SHARE
from neurotier.pages.kit.findings import between, gathered
from neurotier.run.compared import MEMORY, Condition

Groups = Mapping[Condition, Sequence[Row]]
Runs = Sequence[Row]

TOLD_SHARE = 0.1
"""From this share of a difference on, a cause of it is named."""

INSEPARABLE = "no node had runs of both, so that nodes and placements cannot be told apart"

CAUSES = LABELS | {"cpu": "on a CPU", "io": PAPER_IO}
"""What a difference is divided into."""


def reason_lines(groups: Groups) -> list[str]:
    """What may mislead about conditions that differ in their placement alone; where their time went, a figure shows."""
    return [*node_lines(groups), *cache_lines(groups)]


def accounted(runs: Sequence[Row]) -> bool:
    """Whether all runs have an account of their wall time."""
    return all(run[sum_of(cause)] is not None for run in runs for cause in (*CPU, RUN_QUEUE, BLOCK_IO, OTHER))


def sum_of(cause: str) -> str:
    """Column of a run that sums a cause.

    >>> sum_of("account_user_s")
    'account_user_sum_s'
    """
    return f"{cause.removesuffix('_s')}_sum_s"


def longer_by_cause(fast: Runs, slow: Runs) -> dict[str, float]:
    """By what a participant job takes longer in some runs than in others, on average over participants and runs.

    Returns
    -------
    dict
        s by cause: ``cpu`` and the waits, or where one of them has no account ``cpu`` and ``io``; below 0 for what it
        takes less of. Stalls for memory that are not known are among those asleep.
    """
    columns = {"cpu": ["cpu_sum_s"], "io": ["io_sum_s"]}
    if accounted(fast) and accounted(slow):
        columns = {"cpu": [sum_of(cause) for cause in CPU]} | {one: [sum_of(one)] for one in LABELS if one not in CPU}
    means = [
        [
            statistics.fmean(sum(run[column] or 0.0 for column in of) / run["participants"] for run in known)
            for of in columns.values()
        ]
        for runs in (slow, fast)
        if (known := [run for run in runs if run["participants"]])
    ]
    return {cause: longer - less for cause, longer, less in zip(columns, *means, strict=True)} if len(means) > 1 else {}


def causes_text(longer: Mapping[str, float]) -> str:
    """A difference in words, with signs, its greatest parts first.

    >>> causes_text({"cpu": -1.0, "io": 11.0})
    '10.0 s longer: +11.0 s I/O as the paper counts it (wall - CPU), -1.00 s on a CPU'
    """
    total_s = sum(longer.values())
    if total_s <= 0:
        return "no longer; the makespans differ by how the jobs filled them"
    mentioned = [cause for cause in longer if abs(longer[cause]) >= TOLD_SHARE * total_s]
    parts = (signed(cause, longer[cause]) for cause in sorted(mentioned, key=lambda cause: -abs(longer[cause])))
    return f"{seconds(total_s)} longer: {', '.join(parts)}"


def signed(cause: str, longer_s: float) -> str:
    """A part of a difference.

    >>> signed("cpu", 2.0)
    '+2.00 s on a CPU'
    """
    return f"{'+' if longer_s > 0 else ''}{seconds(longer_s)} {CAUSES[cause]}"


def cache_lines(groups: Groups) -> list[str]:
    """What the page cache had of the inputs, for tiers that it stands before."""
    placements_of_sentence: dict[str, list[str]] = {}
    for condition, runs in groups.items():
        if condition.cache == MEMORY:
            continue
        known = [run["input_resident_before"] for run in runs if run["input_resident_before"] is not None]
        if not known:
            sentence = "Whether the inputs were in the page cache is not known of {}"
        else:
            share = between(known, percent)
            if min(known) >= WARM_SHARE:
                sentence = f"Page cache: it held the inputs of {{}} ({share}); reading them from their tier is not part"
                sentence += " of these times"
            elif max(known) > COLD_SHARE:
                sentence = f"Page cache: it held {share} of the inputs of {{}} before the runs"
            else:
                continue
        placements_of_sentence.setdefault(sentence, []).append(condition.placement)
    return [sentence.format(", ".join(placements)) for sentence, placements in placements_of_sentence.items()]


def by_nodes(runs: Runs) -> dict[str | None, list[Row]]:
    """Runs by the nodes that they were on: ``None`` where that is not known, as of published logs."""
    return gathered((run["nodes"], run) for run in runs)


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
