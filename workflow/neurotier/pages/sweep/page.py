"""The sweep on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), findings first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.pages.kit.html import FigureView, figure_view, link, write_html
from neurotier.pages.sweep.figures import HEADLINES, by_set, findings
from neurotier.pages.sweep.headlines import value_text
from neurotier.storage.sweep.records import MEASURED

TEMPLATE = Path(__file__).resolve().parent / "sweep.html.j2"
READINGS = {
    "heat_map": "A panel per pattern and queue depth, a cell per block size and number of processes, in it the"
    " bandwidth of all processes together. As Figures 2 to 5 of the Optane report.",
    "lines": "Bandwidth and requests per second against block size, a line per number of processes; and bandwidth"
    " against processes, a line per block size. As Figures 2, 3 and 5 of the DUNE paper.",
    HEADLINES: "Numbers that the two papers state in their text, and the reader's own at the same setting.",
}


def write_sweep(rows: Sequence[Row], numbers: Sequence[Row], figures: Path, path: Path) -> None:
    """Write the page; equal rows and figures give equal bytes.

    Parameters
    ----------
    rows, numbers
        Rows of ``sweep.tsv`` and ``headlines.tsv``.
    figures
        Folder that :func:`neurotier.pages.sweep.figures.draw_all` drew into; the tables are in the one above it.
    path
        HTML file to write; its links are relative to its folder.
    """
    folder = path.parent
    found = findings(rows, numbers)

    def view(kind: str, name: str, heading: str) -> FigureView:
        return figure_view(figures / name, folder, heading, READINGS[kind], found[name].sentence)

    groups = by_set(rows)
    sections = [
        (
            f"Tier {tier}, set {name}",
            [
                view("heat_map", f"heat_map_{tier}_{name}", "Bandwidth by block size and processes"),
                view("lines", f"lines_{tier}_{name}", "Bandwidth and requests"),
            ],
        )
        for tier, name in groups
    ]
    context = {
        "tiers": tier_views(rows),
        "verdicts": [(f"Set {name}", found[f"heat_map_{tier}_{name}"].sentence) for tier, name in groups],
        "measured": sum(row["status"] == MEASURED for row in rows),
        "points": len(rows),
        "unmeasured": Counter((row["tier"], row["set"], row["status"]) for row in rows if row["status"] != MEASURED),
        "headlines": headline_tables(numbers),
        "sections": sections,
        "headline_figure": view(HEADLINES, HEADLINES, "Beside published numbers"),
        "compared": found[HEADLINES].shown,
        "files": {name: link(figures.parent / name, folder) for name in ("sweep.tsv", "headlines.tsv")},
    }
    write_html(TEMPLATE, context, path)


def headline_tables(numbers: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of every headline; the published ones alone where no tier has that setting."""
    tables: dict[str, list[Row]] = {}
    for row in numbers:
        tables.setdefault(row["headline"], []).append(row | {"text": value_text(row["value"], row["unit"])})
    for name, rows in tables.items():
        if all(row["published"] or row["value"] is None for row in rows):
            tables[name] = [row for row in rows if row["published"]]
    return tables


def tier_views(rows: Sequence[Row]) -> list[dict[str, str]]:
    """What is to be known of each tier: where it is, and what was moved."""
    views = []
    for name in dict.fromkeys(row["tier"] for row in rows):
        own = [row for row in rows if row["tier"] == name]
        read, written = (sum(row[column] or 0 for row in own) for column in ("read_bytes", "write_bytes"))
        views.append(
            {
                "name": name,
                "kind": f"{own[0]['kind']} ({own[0]['fs_type']})",
                "host": f"{own[0]['host']}, Linux {own[0]['kernel']}",
                "fio": ", ".join(sorted({row["fio_version"] for row in own if row["fio_version"]})),
                "read": size(read),
                "written": size(written),
            }
        )
    return views
