"""Writers at a fixed rate on one page, findings first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neurotier.core.quantities import percent, seconds
from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.pages.daq.figures import FIGURES, DaqTables
from neurotier.pages.kit.counts import NOTHING
from neurotier.pages.kit.html import write_html
from neurotier.pages.kit.workload import draw_workload
from neurotier.storage.daq.holding import answer, lines, most_held
from neurotier.storage.published import DAQ

TEMPLATE = Path(__file__).resolve().parent / "daq.html.j2"
ORDER = ("over", "engine", "writers", "repetition")


def write_page(files: Mapping[str, Path], settings: Settings, page: Path) -> list[str]:
    """Draw the figures and write ``daq.html``, and give back what it says first; equal tables give equal bytes.

    Parameters
    ----------
    files
        The tables ``points`` and ``backlog``.
    settings
        What the points are judged by.
    page
        HTML file to write.
    """
    rows, judged = read_table(files["points"], "daq"), settings.daq
    tables = DaqTables(rows, read_table(files["backlog"], "backlog"), judged)
    verdicts = [(answer(name, line, judged.target_s), most_held(line) > 0) for name, line in lines(rows).items()]
    common = draw_workload(FIGURES, tables, rows, files, page)
    context = {
        "verdicts": verdicts,
        "rows": sorted(common["rows"], key=lambda row: [row[name] for name in ORDER]),
        "target": seconds(judged.target_s),
        "tolerance": percent(judged.tolerance),
        "published": DAQ,
        "source": DAQ[0].source,
    }
    write_html(TEMPLATE, common | context, page)
    return [sentence for sentence, _ in verdicts] or [NOTHING]
