"""Figures and page of a probe: they say what the table says, whatever tiers it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from neurotier.core.tables import Row, columns
from neurotier.pages import probe
from neurotier.pages.kit.page import Data
from page_reader import page_of, read_plain

MB = 1e6
STREAMS = (1, 2, 4, 8, 16, 32, 64, 96)


def measured(tier: str, kind: str, part: str, pattern: str, streams: int, bytes_per_s: float) -> Row:
    """A row of the table, with a range of a tenth."""
    spread = {"bandwidth_low_bytes_per_s": 0.9 * bytes_per_s, "bandwidth_high_bytes_per_s": 1.1 * bytes_per_s}
    about = {"tier": tier, "kind": kind, "fs_type": "ext4", "engine": "psync", "operations_per_s": 10.0}
    point = {"part": part, "pattern": pattern, "streams": streams, "bandwidth_bytes_per_s": bytes_per_s}
    return dict.fromkeys(columns("probe")) | about | point | spread


def probed(tier: str, kind: str, single: float, most: float) -> list[Row]:
    """Rows of a tier that scales from one stream's bandwidth to its most."""
    patterns = {"read": 1.0, "write": 0.6, "mixed": 0.8}
    rows = [measured(tier, kind, "one_stream", name, 1, single * patterns[name]) for name in ("write", "read")]
    if kind != "tmpfs":
        rows.append(measured(tier, kind, "one_stream", "cached_read", 1, 4000 * MB))
        patterns |= {"cached_read": 9.0, "buffered_write": 5.0}
    rows += [measured(tier, kind, "small", name, 1, 0.0) for name in ("random_read", "random_write")]
    costs = {"operation_cpu_s": 1.25e-5, "operation_wait_s": 2e-3, "operation_low_s": 1e-3, "operation_high_s": 3e-3}
    rows += [measured(tier, kind, "files", "make", streams, 0.0) | costs for streams in STREAMS]
    return rows + [
        measured(tier, kind, "concurrency", name, streams, share * min(streams * single, most))
        for name, share in patterns.items()
        for streams in STREAMS
    ]


ROWS = [
    *probed("disk", "block", 500 * MB, 2000 * MB),
    *probed("tmpfs", "tmpfs", 5000 * MB, 500_000 * MB),
    *probed("nfs", "network", 110 * MB, 115 * MB),
]


def test_findings_say_who_is_fastest_and_who_stops() -> None:
    assert probe.concurrency(Data({"probe": ROWS}, None)).says == (
        "tmpfs reads 480 GB/s, 4,174 times as much as nfs; tmpfs gains up to 96 streams; "
        "disk gains up to 4 streams; nfs gains nothing from a second stream"
    )
    writes = [row for row in probe.curves(ROWS) if (row["tier"], row["pattern"]) == ("disk", "write")]
    assert probe.full_at(writes) == 4
    assert probe.one_stream(Data({"probe": ROWS}, None)).says == (
        "With one stream, disk (500 MB/s read, 300 MB/s written) is nearest to the published SSD; "
        "tmpfs (5.00 GB/s read, 3.00 GB/s written) is nearest to the published DRAM; "
        "nfs (110 MB/s read, 66.0 MB/s written) is nearest to the published Isilon"
    )


@pytest.mark.parametrize("rows", [ROWS, probed("alone", "block", 20 * MB, 20 * MB)[:9], []])
def test_figures_have_their_numbers_beside_them(rows: list[Row], tmp_path: Path) -> None:
    page_of("probe", tmp_path, probe=rows)
    shown = read_plain(tmp_path / "probe" / "figures" / "concurrency.tsv")
    expected = [row["bandwidth_bytes_per_s"] for row in rows if row["part"] == "concurrency"]
    assert sorted(float(row["median"]) for row in shown) == pytest.approx(sorted(expected))
