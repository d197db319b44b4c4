"""Files written and read back on one page, findings first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neurotier.core.settings import Settings
from neurotier.core.tables import read_table
from neurotier.pages.ior.figures import FIGURES
from neurotier.pages.kit.counts import NOTHING
from neurotier.pages.kit.html import write_html
from neurotier.pages.kit.workload import draw_workload
from neurotier.storage.ior import scaling
from neurotier.storage.ior.medians import lines, verdict
from neurotier.storage.ior.points import IOR
from neurotier.storage.ior.scaling import at_once_text, curves, late_text
from neurotier.storage.published import IOR_LIST, IOR_NODE, IOR_NODES
from neurotier.storage.workload.records import MEASURED

ORDER = ("tier", "set", "nodes", "concurrent", "processes", "repetition")
TEMPLATE = Path(__file__).resolve().parent / "ior.html.j2"


def write_page(files: Mapping[str, Path], _settings: Settings, page: Path) -> list[str]:
    """Draw the figures and write ``ior.html``, and give back what it says first; equal tables give equal bytes.

    Parameters
    ----------
    files
        The table ``points``.
    page
        HTML file to write.
    """
    rows = read_table(files["points"], "ior")
    over_nodes = curves(rows)
    verdicts = [scaling.verdict(name, each) for name, each in over_nodes.items()]
    verdicts += [verdict(name, line) for name, line in lines(rows).items() if name not in over_nodes]
    verdicts += [*at_once_text(rows), *late_text(rows)]
    by_ior = any((row["engine"], row["status"]) == (IOR, MEASURED) for row in rows)
    common = draw_workload(FIGURES, rows, rows, files, page, "ior_version" if by_ior else "fio_version")
    context = {
        "verdicts": verdicts,
        "rows": sorted(common["rows"], key=lambda row: [row[name] for name in ORDER]),
        "over_nodes": any(row["nodes"] > 1 for row in rows),
        "by_ior": by_ior,
        "program": "IOR" if by_ior else "fio",
        "published": [*(IOR_NODES if over_nodes else ()), *IOR_NODE, *IOR_LIST],
        "source": IOR_LIST[0].source,
    }
    write_html(TEMPLATE, common | context, page)
    return verdicts or [NOTHING]
