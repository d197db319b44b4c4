"""The incrementation on one page: HTML that needs nothing else (:mod:`neurotier.pages.kit.html`), verdict first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.bigbrain.tasks import SPARK
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.figures import FIGURES
from neurotier.pages.bigbrain.figures import SPARK as SPARK_FIGURE
from neurotier.pages.bigbrain.names import heading_of, image_of
from neurotier.pages.bigbrain.tables import Tables
from neurotier.pages.bigbrain.verdict import Verdict
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html

TEMPLATE = Path(__file__).resolve().parent / "bigbrain.html.j2"
SHOWN_ROWS = 50
"""Longest list on the page; the rest is in the files it links to."""

TABLES = tuple(f"bigbrain_{name}.tsv" for name in ("conditions", "runs", "phases", "spark", "predictions"))


@dataclass(frozen=True)
class PanelView:
    """Conditions in one table: of one origin, image and parallelism, published ones of one engine, too."""

    title: str
    rows: list[Row]

    @property
    def is_published(self) -> bool:
        """Whether the paper measured them."""
        return IncrementCondition.of(self.rows[0]).is_published

    @property
    def incomplete(self) -> bool:
        """Whether any run did not write all blocks."""
        return any(row["incomplete_blocks"] for row in self.rows)


def write_page(tables: Tables, verdict: Verdict, folder: Path, figures: Path, page: Path) -> None:
    """Write ``bigbrain.html``; equal tables and figures give equal bytes.

    Parameters
    ----------
    tables
        What it is about.
    verdict
        What they say.
    folder, figures
        Folders of the tables and of the figures, which it links to.
    page
        HTML file to write.
    """
    panels: dict[str, list[Row]] = {}
    for row in tables.conditions:
        panels.setdefault(f"{image_of(row)}; {heading_of(row)}", []).append(row)
    ran = any(run["engine"] == SPARK for run in tables.own_runs)
    entries = [entry for entry in FIGURES if ran or entry is not SPARK_FIGURE]
    context = {
        "verdict": verdict,
        "panels": [PanelView(title, rows) for title, rows in panels.items()],
        "figures": figure_views("bigbrain", entries, tables, figures, page.parent),
        "files": {name: link(folder / name, page.parent) for name in TABLES},
        "published_page": link(page.with_name("published.html"), page.parent),
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, page)
