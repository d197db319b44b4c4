"""Figures of a page: one module each, and one entry in ``pages/<page>/figures.py``.

From the entries the rules read the files to declare, Snakemake's report its captions, and the page its sections. The
module of a figure has the entry's name and three functions, of which the last is optional:

``finding(tables)``
    The :class:`Finding` of the figure, which is its title, too.
``draw(tables, stem)``
    Writes ``stem.svg``, ``stem.png`` and ``stem.tsv``.
``parts(tables)``
    For a figure that is drawn once for each of several parts: what its file is called after the name, to the tables of
    that part.

For the pages of BigBrain and of the published runs, which are no declarations yet; it goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from neurotier.core.files import write_text
from neurotier.pages.kit.findings import Finding
from neurotier.pages.kit.html import FigureView, figure_view
from neurotier.pages.kit.registry import Entry


@dataclass(frozen=True)
class Drawn:
    """A figure with the tables that it is drawn from.

    Attributes
    ----------
    name
        Of its files: that of the entry, and of the part if there are several.
    """

    name: str
    entry: Entry
    module: Any
    tables: Any

    @property
    def finding(self) -> Finding:
        """What it says."""
        found: Finding = self.module.finding(self.tables)
        return found


def figures_of(page: str, entries: Sequence[Entry], tables: Any) -> Iterator[Drawn]:
    """The figures of a page, in order."""
    for entry in entries:
        module = import_module(f"neurotier.pages.{entry.module or f'{page}.{entry.name}'}")
        parts = module.parts(tables) if hasattr(module, "parts") else {"": tables}
        for part, of_part in parts.items():
            yield Drawn("_".join(filter(None, (entry.name, part))), entry, module, of_part)


def draw_all(page: str, entries: Sequence[Entry], tables: Any, folder: Path) -> None:
    """Draw every figure as ``<folder>/<name>.svg``, ``.png`` and ``.tsv``, and write its caption, ``.rst``."""
    for figure in figures_of(page, entries, tables):
        figure.module.draw(figure.tables, folder / figure.name)
        write_text(folder / f"{figure.name}.rst", f"{figure.entry.reading} {figure.finding.sentence}.\n")


def figure_views(page: str, entries: Sequence[Entry], tables: Any, folder: Path, page_folder: Path) -> list[FigureView]:
    """The figures as a page in ``page_folder`` shows them, drawn in ``folder``."""
    views = []
    for figure in figures_of(page, entries, tables):
        about, said = figure.entry, figure.finding
        stem = folder / figure.name
        views.append(figure_view(stem, page_folder, about.heading, about.reading, said.sentence, said.shown))
    return views
