"""The incrementation on one page: HTML that needs nothing else (:mod:`neurotier.pages.kit.html`), verdict first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from neurotier.bigbrain.tasks import SPARK
from neurotier.core.tables import Row
from neurotier.pages.bigbrain.collect import Collected
from neurotier.pages.bigbrain.conditions import Condition
from neurotier.pages.bigbrain.figures import SPARK_FIGURE, figures
from neurotier.pages.bigbrain.lanes import heading_of, image_of
from neurotier.pages.bigbrain.verdict import judge
from neurotier.pages.kit.html import FigureView, figure_view, link, write_html

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
        return Condition.of(self.rows[0]).is_published

    @property
    def incomplete(self) -> bool:
        """Whether any run did not write all blocks."""
        return any(row["incomplete_blocks"] for row in self.rows)


def write_page(collected: Collected, folder: Path, path: Path) -> None:
    """Write the page; equal tables and figures give equal bytes.

    Parameters
    ----------
    collected
        What it is about.
    folder
        Folder of the tables; figures are in ``figures`` below it.
    path
        HTML file to write; its links are relative to its folder.
    """
    panels: dict[str, list[Row]] = {}
    for row in collected.conditions:
        panels.setdefault(f"{image_of(row)}; {heading_of(row)}", []).append(row)
    context = {
        "verdict": judge(collected.conditions, collected.runs),
        "panels": [PanelView(title, rows) for title, rows in panels.items()],
        "figures": list(figure_views(collected, folder / "figures", path.parent)),
        "files": {name: link(folder / name, path.parent) for name in TABLES},
        "published_page": link(path.with_name("published.html"), path.parent),
        "shown_rows": SHOWN_ROWS,
    }
    write_html(TEMPLATE, context, path)


def figure_views(collected: Collected, folder: Path, page_folder: Path) -> Iterator[FigureView]:
    """The figures with their findings and files; that of Spark if it ran."""
    spark = any(run["engine"] == SPARK for run in collected.runs)
    for one in figures(collected):
        if spark or one.name != SPARK_FIGURE:
            yield figure_view(folder / one.name, page_folder, one.heading, one.reading, one.finding)
