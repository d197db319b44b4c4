"""The probe on one page: an HTML file that needs nothing else (:mod:`neurotier.pages.kit.html`), findings first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.kit.html import figure_view, link, write_html
from neurotier.pages.probe.figures import findings
from neurotier.pages.probe.one_stream import single
from neurotier.storage.table_one import TABLE_ONE

TEMPLATE = Path(__file__).resolve().parent / "probe.html.j2"
HEADINGS = {"one_stream": "One stream", "concurrency": "Streams at once"}
READINGS = {
    "one_stream": "A bar for each tier; in grey the devices of the published Table I. What one participant job sees.",
    "concurrency": "A panel for each tier, all on the same scales, both logarithmic. What many participant jobs share.",
}
PATTERNS = {
    "random_read": "Random read of 4 KiB",
    "random_write": "Random write of 4 KiB",
    "create": "Create a file",
    "stat": "Look at a file",
    "delete": "Delete a file",
}


def write_probe(rows: Sequence[Row], figures: Path, path: Path) -> None:
    """Write the page; equal rows and figures give equal bytes.

    Parameters
    ----------
    rows
        Rows of ``probe.tsv``.
    figures
        Folder that :func:`neurotier.pages.probe.figures.draw_all` drew into; the table is in the one above it.
    path
        HTML file to write; its links are relative to its folder.
    """
    folder, found = path.parent, findings(rows)
    curves = [row for row in rows if row["part"] == "concurrency"]
    context = {
        "tiers": list({row["tier"]: row for row in curves}.values()),
        "ways": ways(rows),
        "single": single(rows),
        "published": TABLE_ONE,
        "small": [row for row in rows if row["part"] in ("small", "metadata")],
        "patterns": PATTERNS,
        "findings": found,
        "figures": [
            figure_view(figures / name, folder, HEADINGS[name], READINGS[name], found[name]) for name in HEADINGS
        ],
        "table": link(figures.parent / "probe.tsv", folder),
    }
    write_html(TEMPLATE, context, path)


def ways(rows: Sequence[Row]) -> dict[str, str]:
    """How each tier's device was reached: fio's engine, and whether past the page cache."""
    return {
        row["tier"]: f"{row['engine']}, {'direct' if row['direct'] else 'buffered'}"
        for row in rows
        if row["part"] == "concurrency" and row["pattern"] == "read"
    }
