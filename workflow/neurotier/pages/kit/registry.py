"""The registry of figures: what the rules declare, before anything is drawn.

It imports neither matplotlib nor a template engine: the rules ask it for names whenever Snakemake starts.

For the pages of BigBrain and of the published runs, which are no declarations yet; it goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = ("png", "tsv", "rst")
"""What is written beside the SVG: pixels, the numbers that are shown, and the caption for Snakemake's report."""


@dataclass(frozen=True)
class Entry:
    """A figure in the registry of its page.

    Attributes
    ----------
    name
        Of its files and, without more, of its module in the page's room.
    heading, reading
        What it is and how to read it.
    module
        Module of a figure that another page has, too, below :mod:`neurotier.pages`, such as ``comparison.makespan``.
    """

    name: str
    heading: str
    reading: str
    module: str = ""


def outputs(entries: Iterable[Entry], folder: Path, report: Callable[..., Any], category: str) -> dict[str, Any]:
    """The files of figures as outputs of a rule: each SVG by its name, with its caption, and ``others``.

    Parameters
    ----------
    entries
        Figures, each named like its files.
    folder
        Where they are drawn.
    report
        Snakemake's ``report``.
    category
        Where they stand in Snakemake's report.
    """
    names = [entry.name for entry in entries]
    files: dict[str, Any] = {"others": [folder / f"{name}.{kind}" for name in names for kind in FILES]}
    for name in names:
        # Snakemake looks for captions beside the rules; this one is written when the figure is drawn.
        caption = (folder / f"{name}.rst").absolute()
        files[name] = report(folder / f"{name}.svg", caption=str(caption), category=category)
    return files
