"""The staging on one page, answers first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.kit.workload import not_measured, tier_views
from neurotier.pages.staging import answers
from neurotier.pages.staging.figures import FIGURES, StagingTables
from neurotier.storage.published import STAGING
from neurotier.storage.staging.curves import place_text
from neurotier.storage.workload.records import measured

TEMPLATE = Path(__file__).resolve().parent / "staging.html.j2"


def write_page(tables: StagingTables, files: Sequence[Path], figures: Path, page: Path) -> None:
    """Write ``staging.html``; equal rows and figures give equal bytes.

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
    rows = tables.points
    views = {view.name: view for view in figure_views("staging", FIGURES, tables, figures, page.parent)}
    done = measured(rows)
    context = {
        "questions": [
            ("Do servers help?", views["servers"].sentence),
            ("Is reading hidden by the page cache?", f"{answers.page_cache(rows)}."),
            ("Where does synchronising cost more than it brings?", views["strong_scaling"].sentence),
        ],
        "waiting": f"{answers.waiting(rows)}.",
        "figures": list(views.values()),
        "measured": len(done),
        "points": len(rows),
        "unmeasured": not_measured(rows),
        "tiers": tier_views(rows, "engine_version"),
        "rows": [row | {"place": place_text(row["tier"], row["engine"])} for row in done],
        "published": STAGING,
        "files": {file.name: link(file, page.parent) for file in files},
    }
    write_html(TEMPLATE, context, page)
