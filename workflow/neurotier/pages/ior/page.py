"""Files written and read back on one page, findings first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.ior.figures import FIGURES
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.kit.workload import not_measured, tier_views
from neurotier.storage.ior.medians import lines, verdict
from neurotier.storage.ior.published import LIST, NUMBERS, SOURCE
from neurotier.storage.workload.records import MEASURED

TEMPLATE = Path(__file__).resolve().parent / "ior.html.j2"


def write_page(rows: Sequence[Row], table: Path, figures: Path, page: Path) -> list[str]:
    """Write ``ior.html``, and give back what it says first; equal rows and figures give equal bytes.

    Parameters
    ----------
    rows
        Rows of ``ior.tsv``.
    table
        The file ``ior.tsv``, for the link to it.
    figures
        Folder of the figures.
    page
        HTML file to write.
    """
    verdicts = [f"{verdict(name, line)}." for name, line in lines(rows).items()]
    measured = [row for row in rows if row["status"] == MEASURED]
    context = {
        "verdicts": verdicts,
        "figures": figure_views("ior", FIGURES, rows, figures, page.parent),
        "rows": sorted(measured, key=lambda row: (row["tier"], row["set"], row["processes"], row["repetition"])),
        "points": len(rows),
        "tiers": tier_views(rows),
        "unmeasured": not_measured(rows),
        "published": [*NUMBERS, *LIST],
        "source": SOURCE,
        "table": link(table, page.parent),
    }
    write_html(TEMPLATE, context, page)
    return verdicts
