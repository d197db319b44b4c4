"""What the pages share: one HTML file that needs nothing else, figures inside it, links that lead somewhere.

Names and reasons come from datasets and tools, so templates escape all of them; style, script and pictures are
inside the file, and a content policy forbids the browser to fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from neurotier.core import quantities
from neurotier.core.files import write_text
from neurotier.pages.kit.svg import inline

HERE = Path(__file__).resolve().parent
FILTERS = (
    *("seconds", "clock", "percent", "share_of", "size", "cm3", "number", "counted", "utc", "mean_count"),
    *("shorten", "rate"),
)


@dataclass(frozen=True)
class FigureView:
    """One figure on a page.

    Attributes
    ----------
    name, heading, reading
        What it is and how to read it.
    sentence
        The finding, which is its title too: here the alternative text.
    picture
        The SVG itself, empty if the figure was not drawn; not escaped.
    files
        Kind and address of the files beside the page.
    """

    name: str
    heading: str
    reading: str
    sentence: str
    picture: str
    files: list[tuple[str, str]]


def write_html(template: Path, context: dict[str, Any], path: Path) -> None:
    """Write a page; equal contexts give equal bytes.

    Parameters
    ----------
    template
        A template that extends ``base.html.j2``.
    context
        What it is given, besides style and script.
    path
        HTML file to write.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in FILTERS:
        environment.filters[name] = getattr(quantities, name)
    environment.filters["glue"] = glue
    script = (HERE / "page.js").read_text()
    furniture = {
        "style": (HERE / "page.css").read_text(),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    write_text(path, environment.get_template(template.name).render(furniture | context))


def glue(text: str) -> str:
    """Keep numbers and their units on one line, by no-break spaces.

    >>> glue("took 31.2 s of 5 participants")
    'took 31.2\\xa0s of 5 participants'
    """
    return re.sub(r"(?<=\d) (?=(?:s|%|h|min|cm³|mm³)(?![A-Za-z]))", "\u00a0", text)


def link(path: Path, folder: Path) -> str:
    """Address of an existing file or folder relative to the page; empty if it is not there."""
    return quote(os.path.relpath(path, folder)) if path.exists() else ""


def embedded(path: Path) -> str:
    """A PNG as a data address."""
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def figure_view(stem: Path, folder: Path, heading: str, reading: str, sentence: str) -> FigureView:
    """The figure whose files are ``stem.svg``, ``.png`` and ``.tsv``, on a page in ``folder``."""
    paths = {kind: stem.with_name(f"{stem.name}.{kind.lower()}") for kind in ("SVG", "PNG", "TSV")}
    files = [(kind, address) for kind, path in paths.items() if (address := link(path, folder))]
    return FigureView(stem.name, heading, reading, f"{sentence}.", inline(paths["SVG"]), files)
