"""Points of a storage workload that failed, and are tried again by the next start of the same command."""

from __future__ import annotations

from collections.abc import Collection

from neurotier.core.errors import StateError
from neurotier.core.files import remove_whatever
from neurotier.core.places import Places
from neurotier.core.tables import read_table

WORKLOADS = ("ior",)
"""Those whose points fail for what passes: a node that is down."""


def try_failed_again(places: Places, targets: Collection[str]) -> None:
    """Have the tables made anew in which points of targets have failed; what was measured is kept apart, and stays."""
    for target in WORKLOADS:
        if target in targets and has_failed(places, target):
            remove_whatever(places.workload(target) / f"{target}.tsv")


def has_failed(places: Places, target: str) -> bool:
    """Whether a workload's table lists a point that failed; one that cannot be read is made anew in other ways."""
    try:
        rows = read_table(places.workload(target) / f"{target}.tsv", target, only=("status",))
    except (OSError, StateError):
        return False
    return any(row["status"].startswith("failed") for row in rows)
