"""Pages: a declaration of verdicts, figures, tables and prose, from which the rule's files and the HTML follow.

A page is one self-contained HTML file. Names and reasons come from datasets and tools, so the template escapes all of
them. Style, script and pictures are inside the file, and a content security policy forbids the browser to fetch
anything.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from neurotier.core.files import write_text
from neurotier.core.installed import ROOT
from neurotier.core.places import Places
from neurotier.core.quantities import cm3, number, percent, rate, seconds, size, three_digits
from neurotier.core.settings import Settings
from neurotier.core.tables import Rows, read_table
from neurotier.pages.kit.chart import NOTHING, Chart

HERE = Path(__file__).resolve().parent


def brief(value_s: float) -> str:
    """A time in words, with short times in ms or µs.

    >>> brief(2.6e-6), brief(-0.00025), brief(31.25)
    ('2.60 µs', '-0.25 ms', '31.2 s')
    """
    scale, unit = (1e6, "µs") if abs(value_s) < 1e-4 else (1e3, "ms")
    return seconds(scale * value_s).replace("s", unit) if 0 < abs(value_s) < 0.01 else seconds(value_s)


WORDS: Mapping[str, Callable[[Any], str]] = {
    "_bytes_per_s": rate,
    "_bytes": size,
    "_per_s": number,
    "_s": brief,
    "_share": percent,
    "_mm3": cm3,
    "cpu_s_per_gb": lambda value: number(value, 2),
    "mean_parallelism": three_digits,
    "ratio": lambda value: number(value, 2),
    "robust_z": lambda value: number(value, 1),
}
"""How to write a cell, by the unit at the end of its column's name."""

HEADS = {
    "account_run_queue_s": "For a core",
    "account_block_io_s": "For storage",
    "flushed_s": "On its device",
    "io_sum_s": "The paper's I/O",
    "equation_one_s": "Eq. (1)",
    "equation_one_ratio": "over measured",
    "fluid_s": "Fluid model",
    "fluid_ratio": "over measured",
    "fs_type": "File system",
    "over": "Tiers",
    "cpu_s_per_gb": "CPU s per GB",
    "operations_per_s": "Operations per second",
}
"""Headings of columns whose names are not clear enough; other headings are the column's name without its unit."""

SHOWN_ROWS = 1000
"""Rows of a table that a page shows at most; all rows are in its files."""

GOOD, BAD, OPEN = "good", "bad", "open"
COMPANION_FILES = ("png", "tsv", "rst")
"""Files written next to the SVG: pixels, the numbers shown, and the caption for Snakemake's report."""


class Verdict(NamedTuple):
    """A sentence at the top of a page, without a full stop, with its kind (good, bad or open), subject and details."""

    text: str
    kind: str = GOOD
    about: str = ""
    more: Sequence[str] = ()


@dataclass(frozen=True)
class Data:
    """What a page is made from: its tables by name (a missing table has no rows), settings, and places."""

    tables: Mapping[str, Rows]
    settings: Any
    places: Any = None

    def __getitem__(self, name: str) -> Rows:
        return self.tables.get(name, [])


@dataclass(frozen=True)
class Section:
    """A heading and its content, each part of which is optional.

    Attributes
    ----------
    heading
        The heading; without one, the section belongs to the previous one.
    text
        Paragraphs separated by empty lines; ``Markup`` is not escaped.
    rows, columns
        A table, and the names of its columns separated by spaces, by default those of the first row. Columns without
        any value are left out, and so is the section if there are no rows.
    items, facts
        A list, and facts by name.
    more
        Any other HTML.
    note
        A note in small print at the end.
    folded
        Title under which the section is folded.
    """

    heading: str = ""
    text: str = ""
    rows: Sequence[Mapping[str, Any]] | None = None
    columns: str = ""
    items: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    more: str = ""
    note: str = ""
    folded: str = ""

    def view(self) -> dict[str, Any]:
        """The section as the template needs it."""
        rows = self.rows or ()
        columns = self.columns.split() or [*next(iter(rows), ())]
        shown = [name for name in columns if any(row[name] not in (None, "") for row in rows)]
        found = [[cell(name, row[name]) for name in shown] for row in rows[:SHOWN_ROWS]]
        more = len(rows) - len(found)
        return vars(self) | {
            "name": anchor(self.heading),
            "paragraphs": [type(self.text)(one) for one in re.split(r"\n\s*\n", dedent(self.text).strip()) if one],
            "heads": [
                {"text": head_of(name), "numeric": any(line[place]["class"] == "n" for line in found)}
                for place, name in enumerate(shown)
            ],
            "cells": found,
            "note": self.note + f" {more:,} more rows are in the tables that are named last." * (more > 0),
            "svg": "",
        }


def head_of(column: str) -> str:
    """The heading of a column.

    >>> head_of("queue_wait_s"), head_of("cpu_share"), head_of("robust_z")
    ('Queue wait', 'CPU', 'Robust z')
    """
    unit = next((end for end in WORDS if end[0] == "_" and column.endswith(end)), "")
    text = column.removesuffix(unit).replace("_", " ").replace("cpu", "CPU")
    return HEADS.get(column, text[:1].upper() + text[1:])


def cell(column: str, value: Any) -> dict[str, Any]:
    """A cell of a table: its text, by the unit of its column, and the number by which it is sorted."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if value is None or isinstance(value, str):
        text = value or ""
        shown = getattr(text, "striptags", text.strip)()  # of links, the visible text
        return {"text": text, "value": None, "class": "wrap" if len(shown) > 24 else ""}
    said = next((said for end, said in WORDS.items() if column.endswith(end)), number)
    return {"text": said(value), "value": value, "class": "n"}


class Figure(NamedTuple):
    """A figure in a page: its heading, and the function that makes its chart from the page's data.

    The function's docstring, which the page shows, says how to read the chart; the files have the function's name. With
    ``parts``, the function draws several charts: ``parts`` maps the settings to the suffix of each chart's file name
    and the suffix of its heading.
    """

    heading: str
    chart: Callable[..., Chart]
    parts: Callable[[Any], Mapping[str, str]] | None = None

    @property
    def reading(self) -> str:
        """How to read the figure."""
        return " ".join((inspect.getdoc(self.chart) or "").split())

    def names(self, settings: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The heading, and the function's further arguments, of each chart by the name of its files."""
        name = self.chart.__name__
        if not self.parts:
            return {name: (self.heading, ())}
        parts = self.parts(settings)
        return {f"{name}_{part}": (f"{self.heading} ({words})", (part,)) for part, words in parts.items()}


Part = Figure | Section | Callable[[Any], Section | Sequence[Section] | None]


@dataclass(frozen=True)
class Page:
    """A page of results, ``<name>.html``.

    Attributes
    ----------
    name, title
        The name of its file; its title, which is also its category in Snakemake's report.
    caption
        What it shows, for Snakemake's report.
    verdicts
        Makes the verdicts at its top from the page's data.
    parts
        Figures, sections, and functions that make sections from the page's data, in order.
    tables
        Its tables: paths in the results folder without ``.tsv``, whose names are those of their schemas. They are
        inputs of its rule.
    subtitle
        Makes the text below the title.
    read
        Reads the page's data, if these are more than its tables.
    folder
        The folder of its figures in the results folder.
    prints_verdicts
        Whether its verdicts are printed on the terminal.
    """

    name: str
    title: str
    caption: str
    verdicts: Callable[[Any], Sequence[Verdict]]
    parts: Sequence[Part]
    tables: Sequence[str]
    subtitle: Callable[[Any], str] = lambda _: ""
    read: Callable[[Places, Settings], Any] | None = None
    folder: str = ""
    prints_verdicts: bool = True

    @property
    def figures(self) -> list[Figure]:
        """Its figures, in order."""
        return [part for part in self.parts if isinstance(part, Figure)]

    def figures_folder(self, results: Path) -> Path:
        """The folder of its figures."""
        return results / (self.folder or f"{self.name}/figures")

    def inputs(self, results: Path) -> dict[str, Path]:
        """The files of its tables."""
        return {Path(table).name: results / f"{table}.tsv" for table in self.tables}

    def outputs(self, results: Path, settings: Settings, report: Callable[..., Any]) -> dict[str, Any]:
        """The output files of its rule: the page and each figure's SVG, with captions, and ``others``."""
        folder = self.figures_folder(results)
        names = [name for figure in self.figures for name in figure.names(settings)]
        files = {name: folder / f"{name}.svg" for name in names} | {"page": results / f"{self.name}.html"}
        # absolute, since Snakemake would look next to the rules; the captions are written with the page
        captions = {name: str((folder / f"{name}.rst").absolute()) for name in files}
        shown = {name: report(path, caption=captions[name], category=self.title) for name, path in files.items()}
        return shown | {
            "others": [folder / f"{name}.{kind}" for name in names for kind in COMPANION_FILES],
            "about": folder / "page.rst",
        }

    def write(self, places: Places, settings: Settings) -> list[str]:
        """Write the figures and the page from the files of a run; return the verdicts as lines for the user."""
        if self.read:
            return self.render(self.read(places, settings), places.results, settings)
        tables = {name: read_table(file, name) for name, file in self.inputs(places.results).items()}
        return self.render(Data(tables, settings, places), places.results, settings)

    def render(self, data: Any, results: Path, settings: Any) -> list[str]:
        """Write the figures and the page from data, as :meth:`write` does; equal data give equal bytes."""
        folder, views, hidden = self.figures_folder(results), list[dict[str, Any]](), dict[str, list[str]]()
        for part in self.parts:
            if not isinstance(part, Figure):
                made = part if isinstance(part, Section) else part(data)
                sections = [made] if isinstance(made, Section) else made or ()
                views += [one.view() for one in sections if one.rows is None or one.rows]
                continue
            for name, (heading, given) in part.names(settings).items():
                chart = part.chart(data, *given)
                svg = chart.save(folder / name)
                write_text(folder / f"{name}.rst", f"{part.reading} {chart.says}.\n")
                if not chart.table:
                    hidden.setdefault(chart.says, []).append(heading)
                    continue
                files = {kind.upper(): link(folder / f"{name}.{kind}", results) for kind in ("svg", "png", "tsv")}
                view = Section(heading, part.reading).view()
                views.append(view | {"name": name, "says": chart.says, "svg": svg, "files": files})
        verdicts = [*self.verdicts(data)] or [Verdict(NOTHING, BAD)]
        write_text(folder / "page.rst", f"{self.caption}\n")
        if hidden:
            items = [f"{', '.join(headings)}: {says}" for says, headings in hidden.items()]
            views.append(Section("Not shown", items=items).view())
        views.append(Section(text=files_text(self.inputs(results).values(), results)).view())
        context = {"verdicts": verdicts, "subtitle": self.subtitle(data), "sections": views}
        write_html(results / f"{self.name}.html", vars(self) | context)
        return [line.removesuffix(".") for verdict in verdicts for line in (verdict.text, *verdict.more)]


def write_html(path: Path, context: Mapping[str, Any]) -> None:
    """Fill the template that all pages share; equal contexts give equal bytes."""
    import jinja2  # imported here, since rules import this module without writing a page

    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["glue"] = glue
    script = (HERE / "page.js").read_text()
    furniture = {
        "style": (HERE / "page.css").read_text(),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    write_text(path, environment.get_template("page.html.j2").render(furniture | dict(context)))


def glue(text: str) -> str:
    """Keep numbers and their units on one line with no-break spaces.

    >>> glue("took 31.2 s of 5 participants")
    'took 31.2\\xa0s of 5 participants'
    """
    return type(text)(re.sub(r"(?<=\d) (?=(?:s|ms|µs|%|h|min|cm³|mm³)(?![A-Za-z]))", "\u00a0", text))


def anchor(heading: str) -> str:
    """The id of a heading.

    >>> anchor("How it is measured")
    'how-it-is-measured'
    """
    return re.sub(r"\W+", "-", heading).lower().strip("-")


def link(path: Path, folder: Path) -> str:
    """The address of a file or folder relative to the page; empty if it does not exist."""
    return quote(os.path.relpath(path, folder)) if path.exists() else ""


def linked(path: Path, folder: Path, text: str) -> str:
    """A text as a link to a file or folder, if that exists."""
    to = link(path, folder)
    return Markup('<a href="{}">{}</a>').format(to, text) if to else text


def files_text(files: Iterable[Path], folder: Path) -> str:
    """A sentence with links to files, and one on how their numbers were measured."""
    links = Markup(", ").join(linked(file, folder, file.name) for file in files)
    how = linked(ROOT / "workflow" / "measures.md", folder, "workflow/measures.md")
    return Markup("All numbers are in {}. How they are measured: {} of neurotier.").format(links, how)
