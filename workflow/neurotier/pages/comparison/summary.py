"""Tables of a comparison: its runs from wherever they are, makespans by condition, paired differences, speed-ups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.spread import spread
from neurotier.core.tables import Row, write_table
from neurotier.pages.comparison.names import condition_cells, difference_cells
from neurotier.pages.comparison.statistics import (
    Difference,
    SpeedUp,
    by_condition,
    family_contrasts,
    left_out,
    paired_differences,
    speed_ups,
)
from neurotier.pages.kit.contrasts import Contrast
from neurotier.published.bids_app import published_runs
from neurotier.run.compared import Compared, campaign_runs, runs_of_results
from neurotier.run.conditions import Condition


def everything_compared(campaign: Path | None, results: Sequence[str], published: str | None) -> Compared:
    """Everything that is to be compared, as far as it is there.

    Parameters
    ----------
    campaign
        Plan of a campaign, whose runs are beside it, if there is one.
    results
        Results folders, each an origin of its own.
    published
        Folder of the published logs, if they are to be compared.
    """
    compared = campaign_runs(campaign) if campaign is not None else Compared()
    for folder in results:
        compared += runs_of_results(Path(folder), origin=folder)
    return compared + published_runs(Path(published)) if published else compared


def write_summary_tables(compared: Compared, folder: Path) -> None:
    """Write ``makespans.tsv``, ``differences.tsv`` and ``speed_ups.tsv``."""
    differences = paired_differences(compared.runs, compared.participants)
    found = family_contrasts(by_condition(compared.runs))
    write_table(folder / "makespans.tsv", "makespans", makespan_rows(compared.runs))
    rows = [difference_row(one, found[one.slower, one.faster]) for one in differences]
    write_table(folder / "differences.tsv", "differences", rows)
    write_table(folder / "speed_ups.tsv", "speed_ups", map(speed_up_row, speed_ups(compared.runs)))


def makespan_rows(runs: Sequence[Row]) -> list[Row]:
    """One row per condition, also where no run of it is valid."""
    groups, excluded = by_condition(runs), [Condition.of(run) for run in left_out(runs)]
    rows = []
    for condition in sorted(groups.keys() | set(excluded)):
        members = groups.get(condition, [])
        makespan = spread(members, "makespan_s")
        medians = {
            "flushed_median_s": "flushed_s",
            "logged_makespan_median_s": "logged_makespan_s",
            "cpu_sum_median_s": "cpu_sum_s",
            "io_sum_median_s": "io_sum_s",
            "mean_parallelism_median": "mean_parallelism",
        }
        rows.append(
            {
                **condition_cells(condition),
                "runs_compared": len(members),
                "runs_left_out": excluded.count(condition),
                "makespan_median_s": makespan and makespan.median,
                "makespan_min_s": makespan and makespan.low,
                "makespan_max_s": makespan and makespan.high,
                **{name: (known := spread(members, column)) and known.median for name, column in medians.items()},
            }
        )
    return rows


def difference_row(difference: Difference, contrast: Contrast) -> Row:
    """One row of ``differences.tsv``."""
    low, high = contrast.ends or (None, None)
    return {
        **difference_cells(difference),
        "nodes": difference.nodes,
        "participants": difference.participants,
        "repetitions": contrast.repetitions,
        "ratio": contrast.ratio,
        "ratio_low": low,
        "ratio_high": high,
    }


def speed_up_row(speed_up: SpeedUp) -> Row:
    """One row of ``speed_ups.tsv``."""
    return {
        **{name: getattr(speed_up.lower, name) for name in ("origin", "tool", "cache", "placement")},
        "lower_parallelism": speed_up.lower.parallelism,
        "higher_parallelism": speed_up.higher.parallelism,
        "ratio_median": speed_up.ratio.median,
        "ratio_min": speed_up.ratio.low,
        "ratio_max": speed_up.ratio.high,
        "ideal": speed_up.ideal,
    }
