"""The advice on one page, the recommendation first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.advice.room import NEEDING
from neurotier.advice.words import advices, interval
from neurotier.core.tables import Row
from neurotier.pages.advice.figures import FIGURES
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html

TEMPLATE = Path(__file__).resolve().parent / "advice.html.j2"


def write_page(rows: Sequence[Row], basis: Sequence[str], table: Path, figures: Path, page: Path) -> None:
    """Write ``advice.html``; equal advice gives equal bytes.

    Parameters
    ----------
    rows
        Rows of ``advice.tsv``.
    basis
        What they rest on, in sentences.
    table
        The file ``advice.tsv``, for the link to it.
    figures
        Folder of the figures.
    page
        HTML file to write.
    """
    (figure,) = figure_views("advice", FIGURES, rows, figures, page.parent)
    context = {
        "rows": rows,
        "advices": advices(list(rows)),
        "basis": basis,
        "intervals": [interval(row) for row in rows],
        "roles": NEEDING,
        "figure": figure,
        "probe": link(page.parent / "probe.html", page.parent),
        "table": link(table, page.parent),
    }
    write_html(TEMPLATE, context, page)
