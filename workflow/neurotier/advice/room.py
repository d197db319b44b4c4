"""Room: the bytes that a placement needs on each tier at the same time, and whether they are free."""

from __future__ import annotations

from collections.abc import Mapping

from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier

NEEDING = ("dataset", "work", "results")
"""Roles that need room; container images are small in comparison."""


def free_on(tier: Tier) -> int | None:
    """Free bytes of a tier; for tmpfs at most the available memory, whatever the size of its mount."""
    if tier.node or not tier.path.is_dir():
        return None
    return tier.usable_bytes()


def room_for(tiers: Mapping[str, str], needed: Mapping[str, int], free: Mapping[str, int | None]) -> Row:
    """The columns of ``advice.tsv`` that compare what the roles need with what is free on their tiers.

    Parameters
    ----------
    tiers
        Role to tier.
    needed
        Role to bytes.
    free
        Tier to bytes; ``None`` for a tier that each node has for itself.

    Examples
    --------
    >>> tiers = {"dataset": "disk", "work": "tmpfs", "results": "disk"}
    >>> room_for(tiers, {"dataset": 0, "work": 141 << 30, "results": 5}, {"disk": 10, "tmpfs": 112 << 30})["reason"]
    'needs 141 GiB (work) on tmpfs, has 112 GiB'
    """
    problems = []
    for tier in dict.fromkeys(tiers[role] for role in NEEDING):
        roles = {role: needed[role] for role in NEEDING if tiers[role] == tier and needed[role]}
        free_bytes = free[tier]
        if free_bytes is not None and sum(roles.values()) > free_bytes:
            problems.append(
                f"needs {size(sum(roles.values()))} ({' and '.join(roles)}) on {tier}, has {size(free_bytes)}"
            )
    return {
        **{f"{role}_needed_bytes": needed[role] for role in NEEDING},
        **{f"{role}_free_bytes": free[tiers[role]] for role in NEEDING},
        "fits": not problems,
        "reason": "; ".join(problems) or None,
    }
