"""Charts: a sentence, the table that it is about, and how to draw it, in one style for all charts.

Colour-blind people can tell the colours apart (Okabe and Ito, 2008, "Color Universal Design"). Files are reproducible
byte for byte: figures are made without ``pyplot``, so that there is no global state and ``savefig`` picks the canvas.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.core.files import without, write_bytes, write_text
from neurotier.core.quantities import percent, rate, seconds, size, three_digits
from neurotier.core.tables import Row, write_plain
from neurotier.pages.kit import plot

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT_GREY = "#595959", "#D9D9D9"
PHASE_COLOURS = {
    "start_up": GREY,
    "stage_in": SKY,
    "container_start": PURPLE,
    "compute": GREEN,
    "stage_out": VERMILION,
    "whole": BLUE,
}


class Unit(NamedTuple):
    """The unit of a table's values: its label on an axis, its size in units of the table, and a value in words."""

    label: str
    scale: float
    words: Callable[[Any], str]


UNITS = {
    "s": Unit("s", 1.0, seconds),
    "bytes": Unit("MiB", float(1 << 20), size),
    "bytes/s": Unit("MB/s", 1e6, rate),
    "share": Unit("%", 0.01, percent),
    "cm³": Unit("cm³", 1.0, "{:,.0f} cm³".format),
    "": Unit("", 1.0, three_digits),
}

WIDTH_IN = 9.6
DPI = 150
TITLE, NOTE = 92, 130
"""Characters in a line of the title, and of the note."""

WIDE = 600
"""A logarithmic axis labels only powers of ten if the ratio of its ends is at least this."""

LAYOUT = ("text", "colour")
"""Columns of a table that are drawn but not written; lists are not written either."""

NOTHING = "Nothing was measured"
HOVER = "hover:"
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "figure.titlesize": 11,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LIGHT_GREY,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.borderaxespad": 0,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "svg.hashsalt": "neurotier",  # without this, ids in the SVG are random
    "svg.fonttype": "path",
    "text.parse_math": False,  # names are plain text, even with dollar signs
}


@dataclass(frozen=True)
class Chart:
    """A figure. This base class shows nothing, and its sentence says why.

    Attributes
    ----------
    says
        What it shows, without a full stop: its title, caption and alternative text.
    table
        The numbers that it shows, written as a TSV next to it, without columns that are only for drawing (``LAYOUT``).
    note
        A note in small print below it.
    """

    says: str
    table: Sequence[Row] = ()
    note: str = ""

    @property
    def around_in(self) -> float:
        """The height of the title and the note, inches."""
        return 0.5 + 0.19 * len(textwrap.wrap(self.says, TITLE)) + 0.14 * len(textwrap.wrap(self.note, NOTE))

    def draw(self) -> plot.Figure:
        """Draw the figure without its title and note."""
        figure = plot.Figure(figsize=(WIDTH_IN, 1.6))
        figure.text(0.5, 0.5, textwrap.fill(self.says, 80), ha="center", va="center", fontsize=12, color=GREY)
        return figure

    def save(self, stem: Path) -> str:
        """Write ``stem.svg``, ``stem.png`` (150 dpi) and ``stem.tsv``; return the SVG for embedding in a page.

        Equal charts give equal bytes. The ``dpi`` of the SVG applies to the parts that are drawn as pixels.
        """
        with house_style():
            figure = self.draw() if self.table else Chart.draw(self)
            if self.table:
                figure.suptitle(textwrap.fill(self.says, TITLE), x=0.012, ha="left", weight="bold")
                figure.supxlabel(textwrap.fill(self.note, NOTE), x=0.012, ha="left", fontsize=8, color=GREY)
            svg, png = io.StringIO(), io.BytesIO()
            figure.savefig(svg, format="svg", dpi=2 * DPI, metadata={"Date": None, "Creator": None})
            plot.rcParams["figure.constrained_layout.use"] = False
            figure.set_layout_engine(None)  # both files use the same layout; with "none", it would be computed twice
            figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
        content = with_own_ids(with_titles(svg.getvalue()), stem.name)
        write_text(stem.with_name(f"{stem.name}.svg"), content)
        write_bytes(stem.with_name(f"{stem.name}.png"), png.getvalue())
        hidden = {name for row in self.table[:1] for name in row if name in LAYOUT or isinstance(row[name], list)}
        written = [without(row, *hidden) for row in self.table]
        write_plain(stem.with_name(f"{stem.name}.tsv"), written)
        return content[content.index("<svg") :]


@contextmanager
def house_style() -> Iterator[None]:
    """Use matplotlib with the settings of :data:`STYLE` within a ``with`` block, and restore its own after it."""
    with plot.rc_context():
        plot.rcdefaults()  # a user's matplotlibrc must not change the figures
        plot.rcParams.update(STYLE)
        yield


def label_powers(axis: plot.Axis) -> None:
    """Label a logarithmic axis at 1, 2 and 5 times the powers of ten, or only at the powers if these are many."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(plot.LogLocator(subs=(1.0, 2.0, 5.0) if high / low < WIDE else (1.0,)))
    axis.set_minor_locator(plot.NullLocator())


def hover(text: str) -> str:
    """An address for ``set_url`` or ``set_urls`` of an artist that should show a text under the pointer.

    matplotlib cannot write titles into an SVG, but it can write an artist's address, which becomes a title when a chart
    is saved.
    """
    return f"{HOVER}{text}"


def with_titles(svg: str) -> str:
    """Turn the addresses made by :func:`hover` into titles.

    >>> with_titles('<a xlink:href="hover:1.5 s" target="_blank"><path/></a>')
    '<g><title>1.5 s</title><path/></g>'
    """
    return re.sub(rf'<a xlink:href="{HOVER}([^"]*)"[^>]*>(.*?)</a>', r"<g><title>\1</title>\2</g>", svg, flags=re.S)


def with_own_ids(svg: str, name: str) -> str:
    """Make the ids of a matplotlib SVG begin with the figure's name, and remove comments and metadata.

    matplotlib gives the same ids to glyphs and groups in every figure, and a page has several figures.

    >>> with_own_ids('<g id="a"><use xlink:href="#a" clip-path="url(#b)"/></g><!-- 2 -->', "gantt")
    '<g id="gantt-a"><use xlink:href="#gantt-a" clip-path="url(#gantt-b)"/></g>'
    """
    prefix = re.sub(r"[^\w-]", "_", name) + "-"
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    places: dict[str, str] = {}  # ids of clip paths are hashes of positions, whose last digits are not reproducible
    svg = re.sub(r'(?<=["#])p[0-9a-f]{10}\b', lambda one: places.setdefault(one[0], f"p{len(places)}"), svg)
    svg = re.sub(r'( id="|xlink:href="#|url\(#)', rf"\1{prefix}", svg)
    return re.sub(r">\s+<", ">\n<", svg)
