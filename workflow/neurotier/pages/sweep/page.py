"""The sweep on one page, findings first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.kit.workload import not_measured, tier_views
from neurotier.pages.sweep.figures import FIGURES, HEADLINES, SweepTables, by_set
from neurotier.pages.sweep.headlines import finding, value_text
from neurotier.storage.workload.records import MEASURED

TEMPLATE = Path(__file__).resolve().parent / "sweep.html.j2"


def write_page(tables: SweepTables, files: Sequence[Path], figures: Path, page: Path) -> None:
    """Write ``sweep.html``; equal rows and figures give equal bytes.

    Parameters
    ----------
    tables
        What was measured.
    files
        The tables' files, for the links to them.
    figures
        Folder of the figures.
    page
        HTML file to write.
    """
    views = {view.name: view for view in figure_views("sweep", FIGURES, tables, figures, page.parent)}
    rows = tables.points
    sets = {part: of_set.points[0] for part, of_set in by_set(tables).items()}
    context = {
        "tiers": tier_views(rows),
        "verdicts": [(f"Set {first['set']}", views[f"heat_map_{part}"].sentence) for part, first in sets.items()],
        "measured": sum(row["status"] == MEASURED for row in rows),
        "points": len(rows),
        "unmeasured": not_measured(rows),
        "headlines": headline_tables(tables.headlines),
        "sections": [
            (f"Tier {first['tier']}, set {first['set']}", [views[f"heat_map_{part}"], views[f"lines_{part}"]])
            for part, first in sets.items()
        ],
        "headline_figure": views[HEADLINES],
        "compared": finding(tables).shown,
        "files": {file.name: link(file, page.parent) for file in files},
    }
    write_html(TEMPLATE, context, page)


def headline_tables(numbers: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of every headline; the published ones alone where no tier has that setting."""
    tables: dict[str, list[Row]] = {}
    for row in numbers:
        tables.setdefault(row["headline"], []).append(row | {"text": value_text(row["value"], row["unit"])})
    for name, rows in tables.items():
        if all(row["published"] or row["value"] is None for row in rows):
            tables[name] = [row for row in rows if row["published"]]
    return tables
