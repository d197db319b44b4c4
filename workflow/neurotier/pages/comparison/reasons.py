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

from neurotier.core.quantities import counted, mean_count, percent, seconds
from neurotier.core.tables import Row
from neurotier.meter.usage import LABELS
from neurotier.pages.comparison.names import PAPER_IO
from neurotier.pages.kit.causes import (
    BLOCK_IO,
    COLD_SHARE,
    COMPUTE_BOUND_SHARE,
    CPU,
    MEMORY_STALL,
    NOTABLE_SHARE,
    OTHER,
    RUN_QUEUE,
    SYSTEM_SHARE,
    UNEXPLAINED,
    WARM_SHARE,
)
from neurotier.pages.kit.findings import between, gathered
from neurotier.run.compared import MEMORY
from neurotier.run.conditions import Condition

Groups = Mapping[Condition, Sequence[Row]]
Runs = Sequence[Row]

CORE_BOUND_SHARE = 0.25
"""From this share of wall time on, spent waiting for a core, runs are called core-bound."""

IDLE_SHARE = 0.2
"""From this share of the slots on, standing empty on average, it is worth a sentence."""

TOLD_SHARE = 0.1
"""From this share of a difference on, a cause of it is named."""

INSEPARABLE = "no node had runs of both, so that nodes and placements cannot be told apart"

USER, SYSTEM = CPU
CAUSES = LABELS | {"cpu": "on a CPU", "io": PAPER_IO}
"""What a difference is divided into."""

WAITS = (RUN_QUEUE, BLOCK_IO, OTHER, MEMORY_STALL, UNEXPLAINED)


def reason_lines(groups: Groups) -> list[str]:
    """What bounds conditions that differ in their placement alone, and what may mislead about them."""
    return [
        *node_lines(groups),
        *bound_lines(groups),
        *cache_lines(groups),
        *idle_lines(groups),
    ]


def bound_lines(groups: Groups) -> list[str]:
    """Shares of wall time on a CPU and in each notable wait, by placement.

    Compute-bound is said on account of user time alone: copying on tmpfs and persistent memory is system time.
    """
    shares = {condition: parts for condition, runs in groups.items() if (parts := cause_shares(runs))}
    if not shares:
        return []
    users = share_by_condition(shares, USER)
    bound = len(users) == len(groups) and min(users.values()) >= COMPUTE_BOUND_SHARE
    on_cpu = share_by_condition(shares, "cpu")
    lines = [f"{'Compute-bound: ' if bound else ''}{by_placement(on_cpu)} of wall time on a CPU"]
    systems = share_by_condition(shares, SYSTEM)
    if max(systems.values(), default=0.0) >= SYSTEM_SHARE:
        lines.append(
            f"{by_placement(systems)} of wall time is system time: copying from and to page cache, tmpfs and persistent"
            " memory is part of it"
        )
    for wait in WAITS:
        waited = share_by_condition(shares, wait)
        if max(map(abs, waited.values()), default=0.0) >= NOTABLE_SHARE:
            core_bound = wait == RUN_QUEUE and max(waited.values()) >= CORE_BOUND_SHARE
            lines.append(f"{'Core-bound: ' if core_bound else ''}{by_placement(waited)} of wall time {LABELS[wait]}")
    unknown = [condition.placement for condition, parts in shares.items() if RUN_QUEUE not in parts]
    if unknown:
        lines.append(
            f"Without an account of the wall time ({', '.join(unknown)}), {PAPER_IO} contains waiting for a core,"
            " and CPU time contains copying in memory"
        )
    return lines


def share_by_condition(shares: Mapping[Condition, Mapping[str, float]], cause: str) -> dict[Condition, float]:
    """Shares of one cause, where it is known."""
    return {condition: parts[cause] for condition, parts in shares.items() if cause in parts}


def by_placement(shares: Mapping[Condition, float]) -> str:
    """Shares with the placements that they are of."""
    return ", ".join(f"{percent(share)} ({condition.placement})" for condition, share in shares.items())


def cause_shares(runs: Sequence[Row]) -> dict[str, float]:
    """Shares of wall time of some runs by cause; empty of no time."""
    wall_s, parts = sum(run["wall_sum_s"] for run in runs), [run_parts(run, accounted(runs)) for run in runs]
    return {cause: sum(one[cause] for one in parts) / wall_s for cause in parts[0]} if wall_s > 0 else {}


def accounted(runs: Sequence[Row]) -> bool:
    """Whether all runs have an account of their wall time."""
    return all(run[sum_of(cause)] is not None for run in runs for cause in (*CPU, RUN_QUEUE, BLOCK_IO, OTHER))


def sum_of(cause: str) -> str:
    """Column of a run that sums a cause.

    >>> sum_of("account_user_s")
    'account_user_sum_s'
    """
    return f"{cause.removesuffix('_s')}_sum_s"


def run_parts(run: Row, with_account: bool) -> dict[str, float]:
    """Wall time of a run by cause, s: ``cpu`` and ``io``, or ``cpu``, of which user and system time, and the waits."""
    if not with_account:
        return {"cpu": run["cpu_sum_s"], "io": run["io_sum_s"]}
    # Stalls for memory and what is unexplained may not be known; the first are then among those asleep.
    parts = {cause: run[sum_of(cause)] or 0.0 for cause in (*CPU, *WAITS)}
    return {"cpu": parts[USER] + parts[SYSTEM], **parts}


def longer_by_cause(fast: Condition, slow: Condition, groups: Groups) -> dict[str, float]:
    """By what a participant job takes longer in one condition than in another, on average over participants and runs.

    Returns
    -------
    dict
        s by cause: ``cpu`` and the waits, or where one of them has no account ``cpu`` and ``io``; below 0 for what it
        takes less of.
    """
    with_account = accounted(groups[fast]) and accounted(groups[slow])
    of_fast, of_slow = (
        [
            {cause: value_s / run["participants"] for cause, value_s in run_parts(run, with_account).items()}
            for run in groups[condition]
            if run["participants"]
        ]
        for condition in (fast, slow)
    )
    if not of_fast or not of_slow:
        return {}
    return {
        cause: statistics.fmean(one[cause] for one in of_slow) - statistics.fmean(one[cause] for one in of_fast)
        for cause in of_slow[0]
        if cause not in CPU
    }


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


def idle_lines(groups: Groups) -> list[str]:
    """How many participant jobs ran on average, where that is much less than was asked for."""
    means = {
        condition: statistics.median(run["mean_parallelism"] for run in runs)
        for condition, runs in groups.items()
        if all(run["mean_parallelism"] is not None for run in runs)
    }
    low = [condition for condition, mean in means.items() if mean <= (1 - IDLE_SHARE) * condition.parallelism]
    if not low:
        return []
    low_means = ", ".join(
        f"{mean_count(means[condition])} of {condition.parallelism:,} ({condition.placement})" for condition in low
    )
    return [
        f"Slots stood empty: mean parallelism {low_means}; launching, or the last jobs alone, is part of the makespan"
    ]


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
