"""What the pages of storage workloads share: where it was measured, and what was not; see ``workload.html.j2``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.storage.workload.records import MEASURED


def tier_views(rows: Sequence[Row], version: str = "fio_version") -> list[dict[str, str]]:
    """What is to be known of each tier: where it is, and what was moved; ``version`` is the column of the program's."""
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


def not_measured(rows: Sequence[Row]) -> Counter[tuple[str, str, str]]:
    """How many points were not, by tier, set and reason."""
    return Counter((row["tier"], row["set"], row["status"]) for row in rows if row["status"] != MEASURED)
