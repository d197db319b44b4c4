"""The incrementation on one page: HTML that needs nothing else (:mod:`neurotier.pages.kit.html`), verdict first."""

from __future__ import annotations

from pathlib import Path

from neurotier.bigbrain.conditions import ORIGIN
from neurotier.bigbrain.tasks import SPARK
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.figures import FIGURES
from neurotier.pages.bigbrain.figures import SPARK as SPARK_FIGURE
from neurotier.pages.bigbrain.names import heading_of, image_of
from neurotier.pages.bigbrain.tables import Tables
from neurotier.pages.bigbrain.verdict import Verdict, judge
from neurotier.pages.kit.figures import draw_all, figure_views
from neurotier.pages.kit.html import write_html
from neurotier.pages.kit.page import link

TEMPLATE = Path(__file__).resolve().parent / "bigbrain.html.j2"
SHOWN_ROWS = 50
"""Longest list on the page; the rest is in the files it links to."""

TABLES = tuple(f"bigbrain_{name}.tsv" for name in ("conditions", "runs", "phases", "spark", "predictions"))


def write_page(tables: Tables, folder: Path, page: Path) -> Verdict:
    """Draw the figures and write ``bigbrain.html``, and give back what it says; equal tables give equal bytes.

    Parameters
    ----------
    tables
        What it is about.
    folder
        Folder of the tables, which it links to, and in it of the figures.
    page
        HTML file to write.
    """
    figures, verdict = folder / "figures", judge(tables.conditions, tables.own_runs)
    draw_all("bigbrain", FIGURES, tables, figures)
    panels: dict[str, list[Row]] = {}
    for row in tables.conditions:
        panels.setdefault(f"{image_of(row)}; {heading_of(row)}", []).append(row)
    ran = any(run["engine"] == SPARK for run in tables.own_runs)
    entries = [entry for entry in FIGURES if ran or entry is not SPARK_FIGURE]
    context = {
        "verdict": verdict,
        "panels": panels,
        "origin": ORIGIN,
        "figures": figure_views("bigbrain", entries, tables, figures, page.parent),
        "files": {name: link(folder / name, page.parent) for name in TABLES},
        "published_page": link(page.with_name("published.html"), page.parent),
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, page)
    return verdict
