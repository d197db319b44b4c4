"""The probe on one page, findings first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.pages.kit.figures import draw_all, figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.probe.concurrency import curves
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


def write_page(files: Mapping[str, Path], _settings: Settings, page: Path) -> list[str]:
    """Draw the figures and write ``probe.html``, and give back what it says first; equal tables give equal bytes.

    Parameters
    ----------
    files
        The table ``points``.
    page
        HTML file to write.
    """
    rows, figures = read_table(files["points"], "probe"), files["points"].parent / "figures"
    draw_all("probe", FIGURES, rows, figures)
    views = figure_views("probe", FIGURES, rows, figures, page.parent)
    verdicts = [view.sentence.removesuffix(".") for view in reversed(views)]
    context = {
        "tiers": list({row["tier"]: row for row in rows if row["part"] == "concurrency"}.values()),
        "access": {
            row["tier"]: access_text(row["engine"], row["direct"]) for row in curves(rows) if row["pattern"] == "read"
        },
        "single": single(rows),
        "published": TABLE_ONE,
        "small": [row for row in rows if row["part"] in ("small", "metadata")],
        "files": [row for row in rows if row["part"] == "files"],
        "operations": OPERATIONS,
        "figures": views,
        "verdicts": verdicts,
        "table": link(files["points"], page.parent),
    }
    write_html(TEMPLATE, context, page)
    return verdicts
