"""A point over several nodes: written by all from one instant on, and read back by another node than the one that did.

Whether nodes see each other's files is tried and not declared: on a tier that each node has for itself, another process
of the node reads, and the table says so.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex
from typing import Any

from neurotier.core.errors import TierError, ToolError
from neurotier.core.places import Places, short_hash
from neurotier.core.private import remove_empty, remove_private
from neurotier.core.quantities import seconds
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.ior.allocation import Allocation, Cluster, allocated
from neurotier.storage.ior.points import Point
from neurotier.storage.ior.spans import Span, cells_of
from neurotier.storage.ior.walk import OTHER_NODE, OTHER_PROCESS, PIN, SPANS, Ior
from neurotier.storage.workload.walk import LeftOutError, Say, files_text
from neurotier.storage.workspace import Workspace, patience_s

BEFORE_S = 1.0
"""How far ahead the instant is at which all begin; besides, it is as far as an answer takes."""

PATIENCE_S = 60.0
"""How long nodes may take to answer what needs no storage, and longer than their own limit for what does."""

CLOCKS_S = 1.0
"""By how much clocks of nodes may differ."""


class IorOverNodes(Ior):
    """Points of an IOR run over the nodes of a cluster, an allocation for each.

    Parameters
    ----------
    cluster
        How nodes are had.
    settings, places
        Of the run.
    """

    elsewhere = True

    def __init__(self, cluster: Cluster, settings: Settings, places: Places) -> None:
        super().__init__(settings, places)
        self.cluster = cluster

    def require(self) -> None:
        """Nothing here: nodes look for their programs."""

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Nothing: nodes are there point by point."""
        return {}

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Have nodes, write, and read."""
        tier = Tier.from_settings(self.settings.tiers[workspace.tier.name])
        below = Path(short_hash(str(self.places.results.absolute())), token_hex(8))
        limit_s = patience_s(point.written_bytes)
        declared = asdict(tier) | {"path": str(tier.path)}
        plan = {"point": asdict(point), "tier": declared, "below": str(below), "limit_s": limit_s}
        program = [sys.executable, "-m", "neurotier.storage.ior.node", json.dumps(plan)]
        try:
            with allocated(self.cluster, point.nodes, program) as nodes:
                return self.talk(nodes, tier, point, limit_s)
        except BaseException:
            clear(tier, below)
            raise

    def talk(self, nodes: Allocation, tier: Tier, point: Point, limit_s: float) -> Row:
        """Tell the nodes what to do; what came of it.

        Raises
        ------
        LeftOutError
            If nodes have one NUMA node, and nothing to pin to.
        TierError
            If there is too little room.
        ToolError
            If nodes differ, or one fails.
        """
        facts = nodes.begin()
        if point.set_name == PIN and any(each["numa_nodes"] < 2 for each in facts):
            raise LeftOutError("there is one NUMA node on a node, and nothing to pin to")
        for key in ("engine", "direct", "fs_type"):
            if len({each[key] for each in facts}) > 1:
                each_text = ", ".join(f"{each[key]} on {each['host']}" for each in facts)
                raise ToolError(f"nodes differ in {key}: {each_text}", where=f"tier {tier.name!r}")
        asked_s = time.time()
        looks = nodes.ask(PATIENCE_S, do="look")
        ahead_s, spread_s = clocks(looks, asked_s, time.time(), [str(each["host"]) for each in facts])
        shared = is_shared([each["seen"] for each in looks], tier)
        files = point.processes * (point.nodes if shared else 1)
        free_bytes = min(each["usable_bytes"] for each in facts)
        self.check_room(tier, point.set_name, files_text(files, point.file_bytes), free_bytes)
        cells: Row = {}
        cpu_s, spans = 0.0, dict[str, list[Span]]()
        for pattern in ("write", "read"):
            at_s = time.time() + ahead_s + BEFORE_S
            done = nodes.ask(limit_s + PATIENCE_S, do=pattern, at_s=at_s, shared=shared)
            spans[pattern] = [span for each in done for span in each["spans"]]
            cells |= cells_of(pattern, spans[pattern], point.nodes, point.concurrent)
            cells["fio_version"] = done[0]["fio_version"]
            cpu_s += sum(each["cpu_s"] for each in done)
        nodes.send(do="end")
        first = facts[0]
        among = point.nodes // point.concurrent
        return cells | {
            "host": " ".join(str(each["host"]) for each in facts),
            "kernel": " ".join(dict.fromkeys(str(each["kernel"]) for each in facts)),
            "fs_type": first["fs_type"],
            "engine": first["engine"],
            "direct": first["direct"],
            "numa_nodes": first["numa_nodes"] or None,
            "read_by": OTHER_NODE if shared and among > 1 else OTHER_PROCESS,
            "clock_spread_s": spread_s,
            "cpu_s": cpu_s,
            SPANS: spans,
        }


def clear(tier: Tier, below: Path) -> None:
    """Remove what a node that failed has left on a tier that is seen from here, too."""
    if not tier.node and tier.path.is_dir():
        folder = tier.folder(Ior.target) / below
        try:
            remove_private(folder)
            remove_empty(folder.parent)
        except (OSError, TierError):  # the next point clears what is left
            return


def clocks(
    looks: Sequence[dict[str, Any]], asked_s: float, heard_s: float, hosts: Sequence[str]
) -> tuple[float, float]:
    """How far the clock is ahead that is most so, and how far those of nodes are apart, s.

    Clocks are known to half of what an answer takes.

    >>> clocks([{"clock_s": 10.5}, {"clock_s": 10.75}], 10.0, 10.5, ["n1", "n2"])
    (0.5, 0.25)

    Raises
    ------
    ToolError
        If they are further apart than :data:`CLOCKS_S` and what is not known.
    """
    ahead_s = [float(look["clock_s"]) - (asked_s + heard_s) / 2 for look in looks]
    spread_s, unknown_s = max(ahead_s) - min(ahead_s), heard_s - asked_s
    if spread_s > CLOCKS_S + unknown_s:
        fast, slow = (hosts[ahead_s.index(each(ahead_s))] for each in (max, min))
        what = f"the clock of {fast} is {seconds(spread_s)} ahead of that of {slow}, and spans are laid over each other"
        raise ToolError(what, fix="have the nodes' clocks set (NTP, PTP)")
    return max(ahead_s), spread_s


def is_shared(seen: Sequence[Sequence[int]], tier: Tier) -> bool:
    """Whether nodes see each other's files, by whose marks each sees.

    Raises
    ------
    ToolError
        If some do, and others do not.
    """
    everyone, alone = list(range(len(seen))), [[node] for node in range(len(seen))]
    if all(list(each) == everyone for each in seen):
        return True
    if [list(each) for each in seen] != alone:
        raise ToolError("some nodes see each other's files and others do not", where=f"tier {tier.name!r}")
    return False
