"""Conditions: what is compared, as a campaign plans it and as the comparison reads it back; and what is fit for it."""

from __future__ import annotations

from collections.abc import Iterable
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


VALID, INVALID = "valid", "invalid: "
"""What a run that is fit for comparison is, and how the reasons of another begin."""


def valid_unless(reasons: Iterable[str], before: str = VALID) -> str:
    """The validity of a run: ``valid`` or, if there are reasons against it, these; ``before`` is what it was so far.

    >>> valid_unless([]), valid_unless(["the machine swapped"], "invalid: 1 participant failed")
    ('valid', 'invalid: 1 participant failed; the machine swapped')
    """
    known = [*([] if before == VALID else [before.removeprefix(INVALID)]), *reasons]
    return f"{INVALID}{'; '.join(known)}" if known else VALID
