"""Writers at a fixed rate on one page, findings first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.quantities import percent, seconds
from neurotier.pages.daq.figures import FIGURES, DaqTables
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.kit.workload import not_measured, tier_views
from neurotier.storage.daq.holding import answer, lines, most_held
from neurotier.storage.published import DAQ
from neurotier.storage.workload.records import MEASURED

TEMPLATE = Path(__file__).resolve().parent / "daq.html.j2"


def write_page(tables: DaqTables, files: Sequence[Path], figures: Path, page: Path) -> list[str]:
    """Write ``daq.html``, and give back what it says first; equal rows and figures give equal bytes.

    Parameters
    ----------
    tables
        What was measured.
    files
        The tables' files, for the links to them.
    figures
        Folder of the figures.
    page
        HTML file to write.
    """
    rows, target_s = tables.points, tables.settings.target_s
    found = lines(rows)
    verdicts = [(answer(name, line, target_s), most_held(line) > 0) for name, line in found.items()]
    measured = [row for row in rows if row["status"] == MEASURED]
    context = {
        "verdicts": verdicts,
        "figures": figure_views("daq", FIGURES, tables, figures, page.parent),
        "rows": sorted(measured, key=lambda row: (row["over"], row["engine"], row["writers"], row["repetition"])),
        "points": len(rows),
        "target": seconds(target_s),
        "tolerance": percent(tables.settings.tolerance),
        "tiers": tier_views(rows),
        "unmeasured": not_measured(rows),
        "published": DAQ,
        "source": DAQ[0].source,
        "files": {file.name: link(file, page.parent) for file in files},
    }
    write_html(TEMPLATE, context, page)
    return [f"{sentence}." for sentence, _ in verdicts]
