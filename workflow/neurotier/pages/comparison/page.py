"""The comparison on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), verdict first."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neurotier.core.settings import ROLES
from neurotier.core.spread import spread
from neurotier.core.tables import Row
from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.comparison.panels import panel_title
from neurotier.pages.comparison.reasons import CAUSES, WAITS, causes_text, signed
from neurotier.pages.comparison.statistics import Family, by_condition, families, left_out
from neurotier.pages.comparison.verdict import FamilyVerdict, judge
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import write_html
from neurotier.pages.kit.minibar import mini_bars
from neurotier.pages.kit.page import link
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
MEDIANS = ("flushed_s", "cpu_sum_s", "io_sum_s", "mean_parallelism", "peak_parallelism")
COLOURS = {"cpu": CPU_COLOUR, "io": IO_COLOUR} | {wait: CAUSE_COLOURS[wait] for wait in WAITS}


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


def family_view(family: FamilyVerdict, shared: Sequence[str]) -> dict[str, Any]:
    """A family with its placements, each with the bar (of one scale) and the words of why it takes longer."""
    bars = mini_bars([one.longer for one in family.placements], COLOURS, signed)
    return {
        "name": family.name,
        "placements": [
            (one, bar, causes_text(one.longer) if one.longer else "")
            for one, bar in zip(family.placements, bars, strict=True)
        ],
        "reasons": [reason for reason in family.reasons if reason not in shared],
    }


def condition_panels(runs: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """The conditions of valid runs, as the figures group them, by what a panel has in common."""
    groups = by_condition(runs)
    panels: dict[Family, list[dict[str, Any]]] = {}
    for family, members in families(groups).items():
        views = [condition_view(condition, groups[condition]) for condition in members]
        panels.setdefault(replace(family, parallelism=0), []).extend(views)
    return {panel_title(family, LONGEST_TITLE): views for family, views in panels.items()}


def condition_view(condition: Condition, runs: Sequence[Row]) -> dict[str, Any]:
    """A condition in the table, from its valid runs."""
    return {
        "condition": condition,
        "tiers": tiers_text(condition, runs[0]),
        "oversubscribed": any(run["oversubscribed"] for run in runs),
        "limits": list(dict.fromkeys(run["limited_by"] for run in runs if run["limited_by"])),
        "makespan": spread(runs, "makespan_s"),
        **{column: (known := spread(runs, column)) and known.median for column in MEDIANS},
    }


def tiers_text(condition: Condition, run: Row) -> str:
    """Which roles are on which tier, as far as is known; empty if all are on the one that names the placement."""
    tiers: dict[str, list[str]] = {}
    for role in ROLES:
        if run[f"{role}_tier"] is not None:
            tiers.setdefault(run[f"{role}_tier"], []).append(role)
    if list(tiers) == [condition.placement]:
        return ""
    return "; ".join(f"{'all' if len(tiers) == 1 else ', '.join(roles)} on {tier}" for tier, roles in tiers.items())
