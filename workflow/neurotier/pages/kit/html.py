"""What the pages share: one HTML file that needs nothing else, figures inside it, links that lead somewhere.

Names and reasons come from datasets and tools, so templates escape all of them; style, script and pictures are
inside the file, and a content policy forbids the browser to fetch anything.

For the pages of BigBrain and of the published runs, which are no declarations yet; it goes with the last of them.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from neurotier.core import quantities
from neurotier.core.files import write_text
from neurotier.pages.kit.page import glue, link

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
    shown
        False if there was nothing to draw; the sentence then says why.
    """

    name: str
    heading: str
    reading: str
    sentence: str
    picture: str
    files: list[tuple[str, str]]
    shown: bool = True


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


def embedded(path: Path) -> str:
    """A PNG as a data address."""
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def figure_view(stem: Path, folder: Path, heading: str, reading: str, sentence: str, shown: bool = True) -> FigureView:
    """The figure whose files are ``stem.svg``, ``.png`` and ``.tsv``, on a page in ``folder``."""
    paths = {kind: stem.with_name(f"{stem.name}.{kind.lower()}") for kind in ("SVG", "PNG", "TSV")}
    files = [(kind, address) for kind, path in paths.items() if (address := link(path, folder))]
    return FigureView(stem.name, heading, reading, f"{sentence}.", inline(paths["SVG"]), files, shown)


def inline(path: Path) -> str:
    """A figure's SVG as it stands in a page; empty if it has not been drawn."""
    try:
        _, begin, rest = path.read_text(errors="replace").partition("<svg")
    except FileNotFoundError:
        return ""
    return begin + rest
