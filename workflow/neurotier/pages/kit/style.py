"""Colours of phases and causes, and how figures of pages without a declaration are written."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from neurotier.core.files import write_bytes, write_text
from neurotier.core.tables import write_plain
from neurotier.pages.kit import plot
from neurotier.pages.kit.chart import (
    CAUSE_COLOURS,
    CPU_COLOUR,
    DPI,
    GREY,
    IO_COLOUR,
    PHASE_COLOURS,
    WIDTH_IN,
    house_style,
    with_own_ids,
    with_titles,
)
from neurotier.pages.kit.findings import Finding

__all__ = ["CAUSE_COLOURS", "CPU_COLOUR", "IO_COLOUR", "PHASE_COLOURS"]


def set_title(figure: plot.Figure, title: str, note: str = "") -> None:
    """Put the finding above a figure and, in small letters, a note below it."""
    figure.suptitle(textwrap.fill(title, 92), x=0.012, ha="left", weight="bold")
    if note:
        figure.supxlabel(textwrap.fill(note, 130), x=0.012, ha="left", fontsize=8, color=GREY)


def empty_figure(message: str) -> plot.Figure:
    """A figure that says why there is nothing to show."""
    figure = plot.Figure(figsize=(WIDTH_IN, 1.6))
    figure.text(0.5, 0.5, textwrap.fill(message, 80), ha="center", va="center", fontsize=12, color=GREY)
    return figure


def write_figure(
    stem: Path, finding: Finding, rows: Iterable[Mapping[str, Any]], draw: Callable[[], plot.Figure], note: str = ""
) -> None:
    """Draw a figure with its finding above it and a note below, or why there is nothing to show, and save it.

    Parameters
    ----------
    stem
        Path of the files, without extension.
    finding
        What it says, and whether there is something to draw.
    rows
        The numbers that it shows.
    draw
        Makes the figure; it is called only if there is something to draw.
    note
        How to read it.
    """
    with house_style():
        figure = draw() if finding.shown else empty_figure(finding.sentence)
        if finding.shown:
            set_title(figure, finding.sentence, note)
        save_figure(figure, stem, rows)


def save_figure(figure: plot.Figure, stem: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a figure as ``stem.svg`` and ``stem.png`` (150 dpi), and the numbers it shows as ``stem.tsv``.

    Equal figures give equal bytes: no date, no version of matplotlib, no random ids. Call it within
    :func:`house_style`. The resolution of the SVG is that of what is drawn as pixels in it. Parts of the
    figure say on hover what :func:`neurotier.pages.kit.chart.hover` gives them.
    """
    import matplotlib

    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", dpi=2 * DPI, metadata={"Date": None, "Creator": None})
    with matplotlib.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)  # both have the one layout; "none" would have it drawn twice all the same
    figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    content = with_own_ids(with_titles(svg.getvalue()), stem.name)
    write_text(stem.with_name(f"{stem.name}.svg"), content)
    write_bytes(stem.with_name(f"{stem.name}.png"), png.getvalue())
    write_plain(stem.with_name(f"{stem.name}.tsv"), rows)
