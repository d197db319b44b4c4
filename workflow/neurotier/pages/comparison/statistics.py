"""Statistics of the comparison: conditions, contrasts of their makespans, differences of the same participants.

Only valid runs are compared; the number of those left out is given. Runs are grouped by condition.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from neurotier.core.tables import Row, Rows, gathered
from neurotier.pages.kit.contrasts import Contrast, blocks, contrasts
from neurotier.published.bids_app import published_runs
from neurotier.run.compared import MEMORY, OF_CAMPAIGN, Compared, Condition, campaign_runs, is_compared, runs_of_results

Groups = Mapping[Condition, Sequence[Row]]
"""Valid runs by condition."""

Pair = tuple[Condition, Condition]


def everything_compared(campaign: Path | None, results: Sequence[str], published: str | None) -> Compared:
    """Everything that is to be compared, as far as it exists.

    Parameters
    ----------
    campaign
        Plan of a campaign, with its runs next to it, if there is one.
    results
        Results folders, each an origin of its own.
    published
        Folder of the published logs, if they are to be compared.
    """
    compared = campaign_runs(campaign) if campaign is not None else Compared()
    for folder in results:
        compared += runs_of_results(Path(folder), origin=folder)
    return compared + published_runs(Path(published)) if published else compared


@dataclass(frozen=True)
class Comparison(Compared):
    """What is compared, and what is still to be done of a campaign, if anything."""

    lacking: str = ""

    @cached_property
    def conditions(self) -> dict[Condition, Rows]:
        """Valid runs by condition, in order."""
        return dict(sorted(gathered((Condition.of(run), run) for run in self.runs if is_compared(run)).items()))

    @cached_property
    def contrasts(self) -> dict[Pair, Contrast]:
        """How many times as long the first of every two placements takes; a campaign alone runs them in blocks."""
        found: dict[Pair, Contrast] = {}
        for family, members in families(self.conditions).items():
            found |= contrasts({one: self.conditions[one] for one in members}, family.origin == OF_CAMPAIGN)
        return found

    @cached_property
    def differences(self) -> dict[Pair, dict[str, float]]:
        """By how much each participant takes longer with the slower of two placements than with the faster, s.

        Per participant the mean of the job's wall time over the repetitions in which both placements were run in turn,
        on the same nodes (over all runs where there are none); the median over participants is never below 0. It knows
        nothing of what moved a whole run: that shows between repetitions alone.
        """
        walls_s: dict[tuple[str, str], Counter[str]] = {}
        for row in self.participants:
            walls_s.setdefault(run_key(row), Counter())[row["participant"]] += row["wall_s"]
        found: dict[Pair, dict[str, float]] = {}
        for one, other in self.contrasts:
            if (other, one) not in found:
                sides = set_against(self.conditions[one], self.conditions[other])
                ones, others = (means(walls_s.get(run_key(run), {}) for run in side) for side in sides)
                longer = {name: ones[name] - others[name] for name in sorted(ones.keys() & others.keys())}
                if longer and statistics.median(longer.values()) >= 0:
                    found[one, other] = longer
        return found


def run_key(row: Row) -> tuple[str, str]:
    """What identifies runs in every table of the comparison: origin and name."""
    return row["origin"], row["run"]


def sum_of(cause: str) -> str:
    """Column of a run that sums a cause.

    >>> sum_of("account_user_s")
    'account_user_sum_s'
    """
    return f"{cause.removesuffix('_s')}_sum_s"


def means(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Mean of what each participant has, over the runs that have it."""
    found = gathered(item for run in runs for item in run.items())
    return {name: statistics.fmean(values) for name, values in found.items()}


def set_against(one: Sequence[Row], other: Sequence[Row]) -> list[Sequence[Row]]:
    """Runs of two conditions that are in the same blocks; without blocks, all runs."""
    found = blocks(one, other) if one[0]["origin"] == OF_CAMPAIGN else []
    return [*zip(*found, strict=True)] if found else [one, other]


def inputs_text(cache: str) -> str:
    """Where the inputs were, in words."""
    return "inputs in memory" if cache == MEMORY else f"page cache {cache}"


def families(conditions: Iterable[Condition]) -> dict[Condition, list[Condition]]:
    """Conditions that may be compared with each other, in order, by what they share: a condition without a placement.

    Inputs in memory have no page cache before them: such conditions stand beside those of every cache state.
    """
    groups = gathered((replace(condition, placement=""), condition) for condition in sorted(conditions))
    for family in [family for family in groups if family.cache == MEMORY]:
        others = [other for other in groups if other != family and replace(other, cache=MEMORY) == family]
        for other in others:
            groups[other] += groups[family]
        if others:
            del groups[family]
    return groups
