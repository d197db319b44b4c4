"""The advice on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), the advice first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.advice.room import NEEDING
from neurotier.advice.words import advices, interval
from neurotier.core.places import Places
from neurotier.core.tables import Row
from neurotier.pages.advice.figure import makespans_finding
from neurotier.pages.kit.html import figure_view, link, write_html

TEMPLATE = Path(__file__).resolve().parent / "advice.html.j2"
READING = "A bar for each placement. Where intervals overlap, the difference does not matter."


def write_page(rows: Sequence[Row], basis: Sequence[str], places: Places) -> None:
    """Write ``advice.html``; equal advice gives equal bytes.

    Parameters
    ----------
    rows
        Rows of ``advice.tsv``.
    basis
        What they rest on, in sentences.
    """
    path = places.results / "advice.html"
    figure = figure_view(
        places.advice_figures / "advised", path.parent, "Predicted makespans", READING, makespans_finding(rows)
    )
    context = {
        "rows": rows,
        "advices": advices(list(rows)),
        "basis": basis,
        "intervals": [interval(row) for row in rows],
        "roles": NEEDING,
        "figure": figure,
        "probe": link(places.results / "probe.html", path.parent),
        "table": link(places.advice / "advice.tsv", path.parent),
    }
    write_html(TEMPLATE, context, path)
