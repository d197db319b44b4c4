"""The probe on one page, findings first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.probe.figures import FIGURES
from neurotier.pages.probe.one_stream import single
from neurotier.storage.fio import access_text
from neurotier.storage.table_one import TABLE_ONE

TEMPLATE = Path(__file__).resolve().parent / "probe.html.j2"
OPERATIONS = {
    "random_read": "Random read of 4 KiB",
    "random_write": "Random write of 4 KiB",
    "create": "Create a file",
    "stat": "Look at a file",
    "delete": "Delete a file",
    "make": "Make a file of 4 KiB",
    "look": "Look at it",
    "remove": "Remove it",
}


def write_page(rows: Sequence[Row], table: Path, figures: Path, page: Path) -> None:
    """Write ``probe.html``; equal rows and figures give equal bytes.

    Parameters
    ----------
    rows
        Rows of ``probe.tsv``.
    table
        The file ``probe.tsv``, for the link to it.
    figures
        Folder of the figures.
    page
        HTML file to write.
    """
    views = figure_views("probe", FIGURES, rows, figures, page.parent)
    curves = [row for row in rows if row["part"] == "concurrency"]
    context = {
        "tiers": list({row["tier"]: row for row in curves}.values()),
        "access": {
            row["tier"]: access_text(row["engine"], row["direct"]) for row in curves if row["pattern"] == "read"
        },
        "single": single(rows),
        "published": TABLE_ONE,
        "small": [row for row in rows if row["part"] in ("small", "metadata")],
        "files": [row for row in rows if row["part"] == "files"],
        "operations": OPERATIONS,
        "figures": views,
        "verdicts": [view.sentence for view in reversed(views)],
        "table": link(table, page.parent),
    }
    write_html(TEMPLATE, context, page)
