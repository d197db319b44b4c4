"""Conditions: what is compared, as a campaign plans it and as the comparison reads it back from its tables."""

from __future__ import annotations

from dataclasses import dataclass

from neurotier.core.tables import Row

CAMPAIGN = "campaign"
"""Origin of the runs of a campaign."""


@dataclass(frozen=True, order=True)
class Condition:
    """What repetitions have in common.

    Attributes
    ----------
    origin
        Where the runs are from; conditions are compared within one origin only.
    parallelism
        Participant jobs asked to run at once; of a run that was not asked, the most there were.
    """

    origin: str
    tool: str
    cache: str
    parallelism: int
    placement: str

    @classmethod
    def of(cls, run: Row) -> Condition:
        """The condition of a row of ``compared_runs.tsv``."""
        asked = run["parallelism"]
        parallelism = run["peak_parallelism"] if asked is None else asked
        return cls(run["origin"], run["tool"], run["cache"], parallelism, run["placement"])

    def __str__(self) -> str:
        return f"{self.placement}, {self.parallelism} at once, cache {self.cache}, {self.tool}"
