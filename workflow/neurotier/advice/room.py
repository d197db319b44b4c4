"""Room: the bytes that a placement needs on each tier at the same time, and whether so many are free."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from neurotier.core.quantities import size
from neurotier.core.tables import Row, grouped
from neurotier.core.tiers import Tier

NEEDING = ("dataset", "work", "results")
"""Roles that need room; container images are small in comparison."""


def free_on(tier: Tier) -> tuple[object, int | None]:
    """A key that identifies the room which a tier may share with others, and its free bytes; ``None`` for a tier that
    each node has for itself.

    Tiers on one file system share its room, unless a tier has a declared capacity, or its folder a quota (the file
    system then reports another size). For tmpfs, the free bytes are at most the available memory, whatever the size of
    the mount.
    """
    if tier.node or not tier.path.is_dir():
        return tier.name, None
    own = tier.capacity_bytes and tier.name
    return (tier.path.stat().st_dev, shutil.disk_usage(tier.path).total, own), tier.usable_bytes()


def room_for(tiers: Mapping[str, str], needed: Mapping[str, int], free: Mapping[str, tuple[object, int | None]]) -> Row:
    """The columns of ``advice.tsv`` that compare what the roles need with what is free on their tiers.

    Parameters
    ----------
    tiers
        The tier of each role.
    needed
        The bytes that each role needs.
    free
        The result of :func:`free_on` for each tier.

    Examples
    --------
    >>> tiers = {"dataset": "tmpfs", "work": "tmpfs", "results": "disk"}
    >>> free = {"disk": (1, 10), "tmpfs": (2, 112 << 30)}
    >>> room_for(tiers, {"dataset": 0, "work": 141 << 30, "results": 5}, free)["reason"]
    'needs 141 GiB (work) on tmpfs, has 112 GiB'
    """
    problems = []
    for roles in grouped((free[tiers[role]][0], role) for role in NEEDING if needed[role]).values():
        total, free_bytes = sum(needed[role] for role in roles), free[tiers[roles[0]]][1]
        if free_bytes is not None and total > free_bytes:
            problems.append(
                f"needs {size(total)} ({' and '.join(roles)}) on"
                f" {' and '.join(dict.fromkeys(tiers[role] for role in roles))}, has {size(free_bytes)}"
            )
    return {
        **{f"{role}_needed_bytes": needed[role] for role in NEEDING},
        **{f"{role}_free_bytes": free[tiers[role]][1] for role in NEEDING},
        "fits": not problems,
        "reason": "; ".join(problems) or None,
    }
