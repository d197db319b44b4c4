"""Causes: wall time summed by what it was spent on, from the accounts that the meter made of each phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from neurotier.core.tables import Row
from neurotier.meter.usage import ACCOUNT, LABELS

CPU = ("account_user_s", "account_system_s")
RUN_QUEUE, BLOCK_IO, MEMORY_STALL, OTHER = ACCOUNT[2:]
UNEXPLAINED = "residual_s"
PAPER_IO = "I/O as the paper counts it (wall - CPU)"

SWITCH = "as root: sysctl kernel.task_delayacct=1"
"""What to do about a kernel that accounts no waits."""

COMPUTE_BOUND_SHARE = 0.75
"""From this share of wall time on, spent on a CPU but not on moving data, a run is called compute-bound."""

NOTABLE_SHARE = 0.05
"""From this share of wall time on, a cause of waiting is worth a sentence."""


@dataclass(frozen=True)
class Causes:
    """Wall time of some phases by cause.

    Attributes
    ----------
    wall_s
        Sum of the wall times, s.
    parts
        Sums of the columns of the account, s. Their sum and the unexplained part make the wall time.
    unaccounted_s
        Wall time of phases that have no account; it is part of what is unexplained, s.
    made
        How the accounts were made: some of ``exact``, ``scaled``, ``sampled``; empty if no phase has one.
    memory_known
        Whether stalls for memory are known of all phases; those that are not known are among ``asleep``.
    """

    wall_s: float
    parts: dict[str, float]
    unaccounted_s: float
    made: frozenset[str]
    memory_known: bool

    @property
    def unexplained_s(self) -> float:
        """Wall time less all causes, s; below 0 where the causes exceed it."""
        return self.wall_s - sum(self.parts.values())

    @property
    def cpu_s(self) -> float:
        """Wall time on a CPU, s."""
        return sum(self.parts[cause] for cause in CPU)

    @property
    def about(self) -> str:
        """``about`` and a space where sampling had a part in the figures, else nothing."""
        return "about " if "sampled" in self.made else ""

    def seconds_of(self, cause: str) -> float:
        """Wall time of one cause, s."""
        return self.unexplained_s if cause == UNEXPLAINED else self.parts[cause]

    def share_of(self, cause: str) -> float:
        """Share of the wall time; 0 of no time."""
        return self.seconds_of(cause) / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def ranked(self) -> list[tuple[str, float]]:
        """What the wall time was spent on, in words, and its share of it, largest first; user and system are one."""
        shares = {LABELS[cause]: self.share_of(cause) for cause in LABELS if cause not in CPU}
        shares["on a CPU"] = sum(self.share_of(cause) for cause in CPU)
        return sorted(shares.items(), key=lambda item: -item[1])


def sum_causes(rows: Iterable[Row]) -> Causes:
    """Sum the accounts of some rows of ``profile.tsv``; the time of rows without one is unexplained."""
    rows = list(rows)
    accounted = [row for row in rows if row["account"] is not None]
    return Causes(
        wall_s=sum(row["wall_s"] for row in rows),
        parts={cause: sum(row[cause] or 0.0 for row in accounted) for cause in ACCOUNT},
        unaccounted_s=sum(row["wall_s"] for row in rows if row["account"] is None),
        made=frozenset(row["account"] for row in accounted),
        memory_known=all(row[MEMORY_STALL] is not None for row in accounted),
    )


def why_no_account(rows: Iterable[Row]) -> str:
    """Why rows have no account of their waits, and what can be done."""
    rows = list(rows)
    if any(row["memory_stall_s"] is not None and row["block_io_s"] is None for row in rows):
        return "the kernel's figures of waiting for storage were not credible"
    if any(row["left_behind"] for row in rows):
        return "processes outlived the phase, and their seconds lie outside its wall time"
    if any(row["run_queue_s"] is not None for row in rows):
        return f"the kernel accounts no waits for storage and memory; {SWITCH}"
    return f"the kernel accounts no waits, or its records were lost; {SWITCH}"
