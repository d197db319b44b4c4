"""Files written and read back on one page, findings first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.core.tables import Row
from neurotier.pages.ior.figures import FIGURES
from neurotier.pages.kit.figures import figure_views
from neurotier.pages.kit.html import link, write_html
from neurotier.pages.kit.workload import not_measured, tier_views
from neurotier.storage.ior import scaling
from neurotier.storage.ior.medians import lines, verdict
from neurotier.storage.ior.points import IOR
from neurotier.storage.ior.scaling import at_once_text, curves, late_text
from neurotier.storage.published import IOR_LIST, IOR_NODE, IOR_NODES
from neurotier.storage.workload.records import MEASURED

ORDER = ("tier", "set", "nodes", "concurrent", "processes", "repetition")
TEMPLATE = Path(__file__).resolve().parent / "ior.html.j2"


def write_page(rows: Sequence[Row], table: Path, figures: Path, page: Path) -> list[str]:
    """Write ``ior.html``, and give back what it says first; equal rows and figures give equal bytes.

    Parameters
    ----------
    rows
        Rows of ``ior.tsv``.
    table
        The file ``ior.tsv``, for the link to it.
    figures
        Folder of the figures.
    page
        HTML file to write.
    """
    over_nodes = curves(rows)
    alone = {name: line for name, line in lines(rows).items() if name not in over_nodes}
    verdicts = [f"{scaling.verdict(name, each)}." for name, each in over_nodes.items()]
    verdicts += [f"{verdict(name, line)}." for name, line in alone.items()]
    verdicts += [f"{sentence}." for sentence in [*at_once_text(rows), *late_text(rows)]]
    measured = [row for row in rows if row["status"] == MEASURED]
    by_ior = any(row["engine"] == IOR for row in measured)
    context = {
        "verdicts": verdicts,
        "figures": figure_views("ior", FIGURES, rows, figures, page.parent),
        "rows": sorted(measured, key=lambda row: [row[name] for name in ORDER]),
        "points": len(rows),
        "over_nodes": any(row["nodes"] > 1 for row in rows),
        "tiers": tier_views(rows, "ior_version" if by_ior else "fio_version"),
        "by_ior": by_ior,
        "program": "IOR" if by_ior else "fio",
        "unmeasured": not_measured(rows),
        "published": [*(IOR_NODES if over_nodes else ()), *IOR_NODE, *IOR_LIST],
        "source": IOR_LIST[0].source,
        "table": link(table, page.parent),
    }
    write_html(TEMPLATE, context, page)
    return verdicts
