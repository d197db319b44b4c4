"""Causes: wall time summed by what it was spent on, from the meter's account of each phase."""

from __future__ import annotations

from collections.abc import Iterable

from neurotier.core.quantities import share_of
from neurotier.core.tables import Row
from neurotier.meter.usage import ACCOUNT, LABELS
from neurotier.pages.kit.chart import BLUE, LIGHT_GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from neurotier.pages.kit.marks import Kind

CPU = ("account_user_s", "account_system_s")
RUN_QUEUE, BLOCK_IO, MEMORY_STALL, OTHER = ACCOUNT[2:]
UNEXPLAINED = "residual_s"
COLOURS = (BLUE, SKY, YELLOW, ORANGE, VERMILION, PURPLE, LIGHT_GREY)
CAUSES = {
    cause: Kind(label, colour, cause == UNEXPLAINED)
    for (cause, label), colour in zip(LABELS.items(), COLOURS, strict=True)
}
"""How bars show each cause."""

PAPER_IO = "I/O as the paper counts it (wall - CPU)"

SWITCH = "as root: sysctl kernel.task_delayacct=1"
"""Advice for a kernel that does not account for waits."""

COMPUTE_BOUND_SHARE = 0.75
"""A run is called compute-bound if at least this share of its wall time is CPU time outside the moving of data."""

NOTABLE_SHARE = 0.05
"""A cause of waiting gets a sentence if it has at least this share of the wall time."""


Causes = dict[str, float]
"""The wall time of some phases, ``wall_s``, and its parts: the columns of the account, and the unexplained rest."""


def sum_causes(rows: Iterable[Row]) -> Causes:
    """Sum the accounts of some rows of ``profile.tsv``, s; the time of rows without an account is unexplained.

    If the causes exceed the wall time, the unexplained part is negative.
    """
    rows = list(rows)
    accounted = [row for row in rows if row["account"] is not None]
    wall_s = sum(row["wall_s"] for row in rows)
    parts = {cause: sum(row[cause] or 0.0 for row in accounted) for cause in ACCOUNT}
    return {"wall_s": wall_s} | parts | {UNEXPLAINED: wall_s - sum(parts.values())}


def share_of_wall(causes: Causes, *names: str) -> float:
    """The share of some causes in the wall time; 0 if there is no wall time."""
    return share_of(sum(causes[name] for name in names), causes["wall_s"]) or 0.0


def ranked(causes: Causes) -> list[tuple[str, float]]:
    """The causes in words with their shares of the wall time, largest first; user and system time count as one."""
    shares = {LABELS[cause]: share_of_wall(causes, cause) for cause in LABELS if cause not in CPU}
    shares["on a CPU"] = share_of_wall(causes, *CPU)
    return sorted(shares.items(), key=lambda item: -item[1])


def about(rows: Iterable[Row]) -> str:
    """``"about "`` if an account is partly from sampling, else an empty string."""
    return "about " if any(row["account"] == "sampled" for row in rows) else ""


def why_no_account(rows: Iterable[Row]) -> str:
    """Why rows have no account of their waits, and what the user can do about it."""
    rows = list(rows)
    if any(row["memory_stall_s"] is not None and row["block_io_s"] is None for row in rows):
        return "the kernel's figures of waiting for storage were not credible"
    if any(row["left_behind"] for row in rows):
        return "processes outlived the phase, and their seconds lie outside its wall time"
    if any(row["run_queue_s"] is not None for row in rows):
        return f"the kernel does not account for waits for storage and memory; {SWITCH}"
    return f"the kernel does not account for waits, or its records were lost; {SWITCH}"
