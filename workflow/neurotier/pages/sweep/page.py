"""The sweep on one page, findings first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from neurotier.core.quantities import percent, rate
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, read_table
from neurotier.pages.kit.findings import times_text
from neurotier.pages.kit.html import write_html
from neurotier.pages.kit.workload import draw_workload
from neurotier.pages.sweep.figures import FIGURES, by_set
from neurotier.pages.sweep.heat_map import finding
from neurotier.storage.sweep.medians import requests_text

TEMPLATE = Path(__file__).resolve().parent / "sweep.html.j2"


def write_page(files: Mapping[str, Path], _settings: Settings, page: Path) -> list[str]:
    """Draw the figures and write ``sweep.html``, and give back what it says first; equal tables give equal bytes.

    Parameters
    ----------
    files
        The tables ``points`` and ``headlines``.
    page
        HTML file to write.
    """
    rows, headlines = read_table(files["points"], "sweep"), read_table(files["headlines"], "headlines")
    common = draw_workload(FIGURES, rows, rows, files, page)
    figures = {figure.name: figure for figure in common["figures"]}
    verdicts = [(f"Set {own[0]['set']}", finding(own).sentence) for own in by_set(rows).values()]
    context = {
        "verdicts": verdicts,
        "compared": headlines_text(headlines),
        "headlines": headline_tables(headlines),
        "sections": [
            (f"Tier {own[0]['tier']}, set {own[0]['set']}", [figures[f"heat_map_{part}"], figures[f"lines_{part}"]])
            for part, own in by_set(rows).items()
        ],
    }
    write_html(TEMPLATE, common | context, page)
    return [sentence for _, sentence in verdicts]


def headlines_text(numbers: Sequence[Row]) -> str:
    """How one's own numbers compare with the highest published ones, at best and at worst; empty if none does."""
    known = sorted((row for row in numbers if row["ratio"] is not None), key=lambda row: -row["ratio"])
    return "; ".join(
        f"{row['device']} reaches {times_text(row['ratio'])} times the highest published number for '{row['headline']}'"
        for row in (known if len(known) < 2 else (known[0], known[-1]))
    )


def headline_tables(numbers: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of every headline; the published ones alone where no tier has that setting."""
    tables: dict[str, list[Row]] = {}
    for row in numbers:
        tables.setdefault(row["headline"], []).append(row | {"text": value_text(row["value"], row["unit"])})
    for name, rows in tables.items():
        if all(row["published"] or row["value"] is None for row in rows):
            tables[name] = [row for row in rows if row["published"]]
    return tables


def value_text(value: float | None, unit: str) -> str:
    """A number with its unit.

    >>> value_text(1.005e9, "bytes/s"), value_text(0.05, "share")
    ('1.00 GB/s', '5 %')
    """
    if value is None or unit == "share":
        return percent(value)
    return rate(value) if unit == "bytes/s" else requests_text(value)
