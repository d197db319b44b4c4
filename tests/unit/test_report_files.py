"""The report on files of the work tier: sums, what one participant had at most, and seconds beside the probe's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurotier.core.tables import columns, write_table
from neurotier.meter.traffic import FILE_KEYS, flow
from neurotier.pages.report.data import ReportData, collect
from neurotier.pages.report.files import TierFiles, tier_files
from neurotier.pages.report.page import write_page
from report_data import make_results, settings_for


def held(participant: str, **files: Any) -> dict[str, Any]:
    """A row of traffic.tsv of somebody's compute phase."""
    given = dict.fromkeys(FILE_KEYS) | {"left_files": 0, "peak_files": 9, "peak_bytes": 90, "file_walks": 0} | files
    row = flow("disk", "growth", written=(7, files["made_files"]), files=given)
    return {"run": "r", "participant": participant, "phase": "compute", **row}


def probe_row(pattern: str, latency_s: float, host: str = "n1") -> dict[str, Any]:
    """A row of probe.tsv, of which the report reads three columns."""
    text = {"tier": "disk", "part": "metadata", "pattern": pattern, "host": host, "latency_mean_s": latency_s}
    return dict.fromkeys(columns("probe")) | text


def test_sums_and_seconds(tmp_path: Path) -> None:
    rows = [
        held("a", made_files=100, removed_files=10, left_files=90, peak_files=95, removal_s=0.5),
        held("b", made_files=20, left_files=20, peak_bytes=4000, removal_s=0.25),
        {"run": "r", "participant": "a", "phase": "stage_in", **flow("disk", "staging", written=(5, 1))},
        {"run": "r", "participant": "a", "phase": "compute", **flow("nfs", "growth", written=(5, 1))},
    ]
    data = ReportData(tmp_path, tmp_path, tmp_path, settings_for(tmp_path), traffic=rows)
    kind = data.tier_kinds["disk"]
    assert tier_files(data) == [TierFiles("disk", kind, 120, 10, 110, 95, 4000, 0.75, None)]
    data.probe.extend([probe_row("create", 0.001), probe_row("create", 0.003, "n2"), probe_row("delete", 0.002)])
    assert tier_files(data)[0].probed_s == 120 * 0.004


def test_the_page_has_them_and_that_of_earlier_tables_does_not(tmp_path: Path) -> None:
    places, settings = make_results(tmp_path, 2)

    def page() -> str:
        write_page(collect(places, settings), tmp_path / "page.html")
        return (tmp_path / "page.html").read_text()

    assert "Files that tools made" not in page()
    table = places.profile / "traffic.tsv"
    write_table(table, "traffic", [held("a", made_files=1234567, left_files=1234567, removal_s=12.5)])
    assert "Files that tools made" in page()
    assert "1,234,567" in page()
    cells = [line.split("\t") for line in table.read_text().splitlines()]
    kept = [place for place, name in enumerate(cells[0]) if name not in FILE_KEYS]
    table.write_text("".join("\t".join(line[place] for place in kept) + "\n" for line in cells))
    assert "Files that tools made" not in page()
    assert "cannot be read" not in page()
