"""The comparison on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), verdict first."""

from __future__ import annotations

import statistics
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neurotier.core.settings import ROLES
from neurotier.core.spread import Spread, spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.comparison.panels import panel_title
from neurotier.pages.comparison.reasons import CAUSES, WAITS, causes_text, signed
from neurotier.pages.comparison.statistics import Family, by_condition, families, left_out
from neurotier.pages.comparison.verdict import FamilyVerdict, PlacementVerdict, judge
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.kit.minibar import MiniBar, mini_bars
from neurotier.pages.kit.style import CAUSE_COLOURS, CPU_COLOUR, IO_COLOUR
from neurotier.run.compared import Compared
from neurotier.run.conditions import Condition

TEMPLATE = Path(__file__).resolve().parent / "comparison.html.j2"
SHOWN_ROWS = 50
"""Longest table on the page; the rest is in the files it links to."""

LONGEST_TITLE = 80
"""Letters of each name in the heading of a table."""

OPEN_REASONS = 6
"""With more sentences than that below the table, they are folded."""

TABLES = ("compared_runs.tsv", "compared_participants.tsv", "compared_bytes.tsv")
COLOURS = {"cpu": CPU_COLOUR, "io": IO_COLOUR} | {wait: CAUSE_COLOURS[wait] for wait in WAITS}


@dataclass(frozen=True)
class PlacementView:
    """A placement in the table of by how much, and why.

    Attributes
    ----------
    bar
        What its difference from the fastest consists of; ``None`` for the fastest, and where that is not known.
    causes
        The same in words.
    """

    verdict: PlacementVerdict
    bar: MiniBar | None
    causes: str


@dataclass(frozen=True)
class FamilyView:
    """Conditions that differ in their placement alone: their rows, and the sentences that hold for them alone."""

    name: str
    placements: list[PlacementView]
    reasons: list[str]


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
    def flushed_s(self) -> float | None:
        """Time until everything that a run wrote was on its device, s."""
        return self.median("flushed_s")

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


def write_page(compared: Compared, figures: Path, page: Path, lacking: str = "") -> None:
    """Write ``comparison.html``; equal rows and figures give equal bytes.

    Parameters
    ----------
    compared
        What is compared; any of its tables may be empty.
    figures
        Folder of figures; the tables are in the one above it or beside the page.
    page
        HTML file to write; its links are relative to its folder.
    lacking
        What is still to be done of a campaign, if anything: the page is a partial one.
    """
    runs, folder = compared.runs, page.parent
    excluded, verdict = left_out(runs), judge(runs, compared.participants)
    shared = shared_reasons(verdict.families)
    causes = {cause for family in verdict.families for one in family.placements for cause, s in one.longer.items() if s}
    context = {
        "verdict": verdict,
        "families": [family_view(family, shared) for family in verdict.families],
        "shared_reasons": shared,
        "open_reasons": OPEN_REASONS,
        "keys": colour_keys(causes),
        "runs": runs,
        "lacking": lacking,
        "compared": len(runs) - len(excluded),
        "origins": sorted({run["origin"] for run in runs}),
        "left_out": excluded,
        "oversubscribed": [run for run in runs if run["oversubscribed"] and run not in excluded],
        "panels": condition_panels(runs),
        "logged": [run for run in runs if run["logged_makespan_s"] is not None],
        "figures": figure_views("comparison", FIGURES, compared, figures, folder),
        "files": {name: link(figures.parent / name, folder) or link(folder / name, folder) for name in TABLES},
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, page)


def colour_keys(causes: Container[str]) -> dict[str, str]:
    """What the colours of the bars mean; that of the paper's I/O is storage's, too, where its parts are known.

    >>> colour_keys({"cpu", "io", "account_block_io_s"})
    {'#0072B2': 'on a CPU', '#E69F00': 'I/O as the paper counts it (wall - CPU) or waiting for storage'}
    """
    keys: dict[str, list[str]] = {}
    for cause, colour in COLOURS.items():
        if cause in causes:
            keys.setdefault(colour, []).append(CAUSES[cause])
    return {colour: " or ".join(labels) for colour, labels in keys.items()}


def shared_reasons(verdicts: Sequence[FamilyVerdict]) -> list[str]:
    """Sentences that hold for all conditions, where there are several sets of them."""
    if len(verdicts) < 2:
        return []
    return [reason for reason in verdicts[0].reasons if all(reason in other.reasons for other in verdicts)]


def family_view(family: FamilyVerdict, shared: Sequence[str]) -> FamilyView:
    """The rows of a family, with bars of one scale."""
    bars = mini_bars([one.longer for one in family.placements], COLOURS, signed)
    placements = [
        PlacementView(one, bar if bar.pieces else None, causes_text(one.longer) if one.longer else "")
        for one, bar in zip(family.placements, bars, strict=True)
    ]
    return FamilyView(family.name, placements, [reason for reason in family.reasons if reason not in shared])


def condition_panels(runs: Sequence[Row]) -> list[PanelView]:
    """The conditions of valid runs, as the figures group them."""
    groups = by_condition(runs)
    panels: dict[Family, list[ConditionView]] = {}
    for family, members in families(groups).items():
        views = [ConditionView(condition, groups[condition]) for condition in members]
        panels.setdefault(replace(family, parallelism=0), []).extend(views)
    return [PanelView(panel_title(family, LONGEST_TITLE), views) for family, views in panels.items()]
