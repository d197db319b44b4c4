"""What the pages of storage workloads share: figures, where it was measured, and what was not; ``workload.html.j2``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.pages.kit.figures import draw_all, figure_views
from neurotier.pages.kit.html import link
from neurotier.pages.kit.registry import Entry
from neurotier.storage.workload.records import MEASURED


def draw_workload(
    entries: Sequence[Entry],
    tables: Any,
    rows: Sequence[Row],
    files: Mapping[str, Path],
    page: Path,
    version: str = "fio_version",
) -> dict[str, Any]:
    """Draw the figures of a workload, and give back what its template is given of all workloads.

    Parameters
    ----------
    entries, tables
        The figures, and what they are drawn from.
    rows
        The points.
    files
        Files of the tables by name, of which the first lies beside the folder of figures.
    page
        The page, called like the workload.
    version
        Column of the version of the program that measured.
    """
    figures = next(iter(files.values())).parent / "figures"
    draw_all(page.stem, entries, tables, figures)
    return {
        "figures": figure_views(page.stem, entries, tables, figures, page.parent),
        "points": len(rows),
        "rows": [row for row in rows if row["status"] == MEASURED],
        "unmeasured": Counter((row["tier"], row["set"], row["status"]) for row in rows if row["status"] != MEASURED),
        "tiers": tier_views(rows, version),
        "files": {file.name: link(file, page.parent) for file in files.values()},
    }


def tier_views(rows: Sequence[Row], version: str) -> list[dict[str, str]]:
    """What is to be known of each tier: where it is, and what was moved."""
    views = []
    for name in dict.fromkeys(row["tier"] for row in rows):
        own = [row for row in rows if row["tier"] == name]
        hosts = dict.fromkeys(word for row in own if row["status"] == MEASURED for word in row["host"].split())
        read, written = (sum(row[column] or 0 for row in own) for column in ("read_bytes", "write_bytes"))
        views.append(
            {
                "name": name,
                "kind": f"{own[0]['kind']} ({own[0]['fs_type']})",
                "host": f"{', '.join(hosts) or own[0]['host']}, Linux {own[0]['kernel']}",
                "with": ", ".join(sorted({row[version] for row in own if row[version]})),
                "read": size(read),
                "written": size(written),
            }
        )
    return views
