"""The comparison on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), verdict first."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.figures import FIGURES, findings
from neurotier.pages.comparison.panels import panel_title
from neurotier.pages.comparison.statistics import Condition, Family, by_condition, families, left_out
from neurotier.pages.comparison.verdict import judge
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.html import FigureView, figure_view, link, write_html

TEMPLATE = Path(__file__).resolve().parent / "comparison.html.j2"
SHOWN_ROWS = 50
"""Longest table on the page; the rest is in the files it links to."""

LONGEST_TITLE = 80
"""Letters of each name in the heading of a table."""

ROLES = ("dataset", "work", "images", "results")
TABLES = ("compared_runs.tsv", "compared_participants.tsv", "compared_bytes.tsv")
HEADINGS = {
    "makespan": "Makespan",
    "cpu_io_sums": "CPU and I/O time",
    "accounts": "Where the wall time went",
    "differences": "Differences by participant",
    "phases": "Time by phase",
    "gantts": "Who ran when",
    "image_start": "Start-up of containers",
    "tier_bytes": "Bytes by tier",
}
READINGS = {
    "makespan": "A bar per condition, a dot per repetition; speed-up beside it. As the published Figure 9.",
    "cpu_io_sums": "Sums over all participant jobs of a run, medians over repetitions. As the published Figure 10.",
    "accounts": "The same sums divided by cause, where the runs have an account of their waits.",
    "differences": "The same participant with two placements: how much longer the slower one took.",
    "phases": "Sums over all participant jobs of a run by phase, medians over repetitions.",
    "gantts": "One small Gantt per run: jobs by phase, one after the other on its lanes.",
    "image_start": "Time until a container was up, by the tier that its image is on.",
    "tier_bytes": "What had to be read from and written to each tier: D of the model.",
}


@dataclass(frozen=True)
class ConditionView:
    """A condition in the table.

    Attributes
    ----------
    condition
        What it is.
    runs
        Its valid runs.
    """

    condition: Condition
    runs: list[Row]

    @property
    def makespan(self) -> Spread | None:
        """Makespans of the repetitions, s."""
        return spread(self.runs, "makespan_s")

    def median(self, column: str) -> float | None:
        """Median of a column over repetitions, as far as it is known."""
        known = [run[column] for run in self.runs if run[column] is not None]
        return statistics.median(known) if known else None

    @property
    def tiers(self) -> str:
        """Which roles are on which tier, as far as is known; empty if all are on the one that names the placement."""
        tiers: dict[str, list[str]] = {}
        for role in ROLES:
            if self.runs[0][f"{role}_tier"] is not None:
                tiers.setdefault(self.runs[0][f"{role}_tier"], []).append(role)
        if len(tiers) == 1:
            (tier,) = tiers
            return "" if tier == self.condition.placement else f"all on {tier}"
        return "; ".join(f"{', '.join(roles)} on {tier}" for tier, roles in tiers.items())

    @property
    def oversubscribed(self) -> bool:
        """Whether any run had more jobs at once than the machine has CPUs."""
        return any(run["oversubscribed"] for run in self.runs)

    @property
    def limits(self) -> list[str]:
        """Why runs stayed below the parallelism asked for, each reason once."""
        return list(dict.fromkeys(run["limited_by"] for run in self.runs if run["limited_by"]))


@dataclass(frozen=True)
class PanelView:
    """Conditions that stand in one table."""

    title: str
    conditions: list[ConditionView]


def write_comparison(
    runs: Sequence[Row],
    participants: Sequence[Row],
    traffic: Sequence[Row],
    figures: Path,
    path: Path,
    lacking: str = "",
) -> None:
    """Write the page; equal rows and figures give equal bytes.

    Parameters
    ----------
    runs, participants, traffic
        Rows of ``compared_runs.tsv``, ``compared_participants.tsv`` and ``compared_bytes.tsv``; any may be empty.
    figures
        Folder of figures; the three tables are in the one above it
        or beside the page.
    path
        HTML file to write; its links are relative to its folder.
    lacking
        What is still to be done of a campaign, if anything: the page is a partial one.
    """
    folder = path.parent
    found = findings(runs, participants, traffic)
    excluded = left_out(runs)
    context = {
        "verdict": judge(runs, participants),
        "runs": runs,
        "lacking": lacking,
        "compared": len(runs) - len(excluded),
        "origins": sorted({run["origin"] for run in runs}),
        "left_out": excluded,
        "oversubscribed": [run for run in runs if run["oversubscribed"] and run not in excluded],
        "panels": condition_panels(runs),
        "logged": logged(runs),
        "figures": [(figure(name, found[name], figures, folder), found[name].shown) for name in FIGURES],
        "files": {name: link(figures.parent / name, folder) or link(folder / name, folder) for name in TABLES},
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, path)


def figure(name: str, finding: Finding, figures: Path, folder: Path) -> FigureView:
    """A figure with its finding and its files."""
    return figure_view(figures / name, folder, HEADINGS[name], READINGS[name], finding.sentence)


def condition_panels(runs: Sequence[Row]) -> list[PanelView]:
    """The conditions of valid runs, as the figures group them."""
    groups = by_condition(runs)
    panels: dict[Family, list[ConditionView]] = {}
    for family, members in families(groups).items():
        views = [ConditionView(condition, groups[condition]) for condition in members]
        panels.setdefault(replace(family, parallelism=0), []).extend(views)
    return [PanelView(panel_title(family, LONGEST_TITLE), views) for family, views in panels.items()]


def logged(runs: Sequence[Row]) -> list[Row]:
    """Runs whose log states a makespan, in order."""
    known = [run for run in runs if run["logged_makespan_s"] is not None]
    return sorted(
        known, key=lambda run: (run["placement"], run["parallelism"] or 0, run["repetition"] or 0, run["run"])
    )
