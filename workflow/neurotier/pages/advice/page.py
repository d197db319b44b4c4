"""The advice on one page, the recommendation first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neurotier.advice.room import NEEDING
from neurotier.advice.words import advices, interval
from neurotier.core.files import read_json
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.pages.advice.figures import FIGURES
from neurotier.pages.kit.figures import draw_all, figure_views
from neurotier.pages.kit.html import link, write_html

TEMPLATE = Path(__file__).resolve().parent / "advice.html.j2"


def write_page(files: Mapping[str, Path], _settings: Settings, page: Path) -> list[str]:
    """Draw the figures and write ``advice.html``; equal advice gives equal bytes.

    Parameters
    ----------
    files
        The table ``table``, and what it rests on, ``basis``.
    page
        HTML file to write.
    """
    rows, figures = read_table(files["table"], "advice"), files["table"].parent / "figures"
    draw_all("advice", FIGURES, rows, figures)
    (figure,) = figure_views("advice", FIGURES, rows, figures, page.parent)
    context = {
        "rows": rows,
        "advices": advices(rows),
        "basis": read_json(files["basis"]),
        "intervals": [interval(row) for row in rows],
        "roles": NEEDING,
        "figure": figure,
        "probe": link(page.parent / "probe.html", page.parent),
        "files": {name: link(file, page.parent) for name, file in files.items()},
    }
    write_html(TEMPLATE, context, page)
    return []
