"""Writers at a fixed rate: what a disk of known speed holds, lost records, figures and page of the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import ToolError
from neurotier.core.tiers import Tier, find_mount
from neurotier.storage.daq.holding import lines, most_held
from neurotier.storage.daq.walk import Point, check_job, judged, write_job
from neurotier.storage.workspace import Workspace
from page_reader import page_of
from workloads import left, run, settings_of, throttled

RECORD = 5568
DISK_BYTES_PER_S = 20_000_000
"""What it takes of the writers."""

OVERHEAD = 1.05
"""ext4 writes 2 to 5 % more: inodes, its journal, and blocks that a record ends in twice."""


@pytest.mark.alone
def test_a_slow_disk_holds_the_writers_that_it_can(tmp_path: Path) -> None:
    """At 20 MB/s these are five; the backlog of the others grows as fast as what comes exceeds what is written."""
    with throttled(512, round(OVERHEAD * DISK_BYTES_PER_S), "/dev/shm") as folder:  # others flush the disk
        section: dict[str, Any] = {"writers": [5, 6, 8], "rate": "4 MB", "seconds": 6}
        settings = settings_of("daq", tmp_path, {"slow": folder}, **section)
        rows, backlog = run("daq", settings).values()
        assert not left(folder), "files stayed on the tier"
    assert [row["status"] for row in rows] == ["measured"] * 3
    by_writers = {row["writers"]: row for row in rows}
    assert by_writers[5]["late_writers"] == 0
    assert by_writers[5]["writer_mean_bytes_per_s"] == pytest.approx(4e6, rel=0.05)
    for writers in (6, 8):
        row = by_writers[writers]
        assert row["late_writers"] > 0
        assert row["throughput_bytes_per_s"] == pytest.approx(DISK_BYTES_PER_S, rel=0.1)
        too_much = writers * 4_000_000 - DISK_BYTES_PER_S
        assert row["buffer_bytes"] / settings.daq.target_s == pytest.approx(too_much, abs=0.1 * DISK_BYTES_PER_S)
    assert min(row["records_checked"] for row in rows) > 0
    assert most_held(lines(rows)["slow, psync"]) == 5
    assert max(row["backlog_bytes"] for row in backlog if row["writers"] == 8) == by_writers[8]["backlog_peak_bytes"]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda data: data[RECORD : 2 * RECORD] + data[:RECORD] + data[2 * RECORD :], "bad header offset"),
        (
            lambda data: data[: RECORD + 2000] + b"x" + data[RECORD + 2001 :],
            "crc32c: verify failed at file daq.1 offset 5568",
        ),
        (lambda data: data[:RECORD] + data[2 * RECORD :], "bad magic"),
    ],
    ids=["exchanged", "damaged", "lost"],
)
def test_a_record_that_is_not_as_it_was_written_is_found(
    tmp_path: Path, spoil: Callable[[bytes], bytes], reason: str
) -> None:
    point = Point("psync", "psync", "disk", 2, 2_000_000, RECORD, 1, 0.1, 0.1)
    workspace = Workspace("daq", Tier("disk", tmp_path, "block", None), tmp_path)
    done = workspace.run(write_job(point, [tmp_path], in_memory=True), 60)
    written = [flow.bytes for flow in done.writes]
    workspace.run(check_job(point, [tmp_path], written), 60)
    workspace.run(check_job(point, [tmp_path], [0, written[1]]), 60)
    file = tmp_path / "daq.1"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(ToolError, match=reason):
        workspace.run(check_job(point, [tmp_path], written), 60)


@pytest.mark.parametrize(
    ("reached", "peak_bytes", "late", "buffer_bytes"),
    [(1.0, None, 0, None), (0.91, 50.0, 0, 50.0), (0.89, 50.0, 1, 11_000.0), (0.5, None, 1, 50_000.0)],
)
def test_buffer_is_told_where_it_is_known_and_a_rare_flush_excuses_little(
    tmp_path: Path, reached: float, peak_bytes: float | None, late: int, buffer_bytes: float | None
) -> None:
    settings = settings_of("daq", tmp_path, {"disk": tmp_path}, seconds=2, flush_s=5, target_s=100, tolerance=0.05).daq
    row = {"flushed": "while writing", "rate_bytes_per_s": 1000, "input_bytes_per_s": 1000}
    row |= {"throughput_bytes_per_s": reached * 1000, "backlog_peak_bytes": peak_bytes}
    judgement = judged(row, [reached * 1000], settings)
    assert judgement["late_writers"] == late
    assert judgement["buffer_bytes"] == (None if buffer_bytes is None else pytest.approx(buffer_bytes))


def test_writers_that_go_to_a_disk_among_others_flush(tmp_path: Path, memory: Path) -> None:
    section: dict[str, Any] = {"writers": [2], "rate": "2 MB", "seconds": 0.2, "together": [["fast", "disk"]]}
    disk = {"path": str(tmp_path), "kind": find_mount(tmp_path).kind}
    rows = run("daq", settings_of("daq", tmp_path / "results", {"fast": memory, "disk": disk}, **section))["daq"]
    flushed = {row["over"]: row["flushed"] for row in rows}
    assert flushed == {"fast": "in memory", "disk": "while writing", "fast+disk": "while writing"}


def test_writers_are_dealt_out_over_tiers(tmp_path: Path, memory: Path, mount_tmpfs: Callable[..., Path]) -> None:
    """Every engine that a tier has; one that it has not is listed."""
    other = mount_tmpfs(tmp_path / "with: colon", "size=16m")
    section: dict[str, Any] = {
        "writers": [2],
        "rate": "2 MB",
        "seconds": 0.2,
        "together": [["a", "b"]],
        "engines": ["psync", "mmap", "libpmem"],
    }
    settings = settings_of("daq", tmp_path / "results", {"a": memory, "b": other}, **section)
    rows = run("daq", settings)["daq"]
    assert {row["status"] for row in rows if row["engine"] == "libpmem"} == {
        f"left out: tier {name!r}: libpmem stores to persistent memory, and this is tmpfs" for name in "ab"
    }
    done = [row for row in rows if row["status"] == "measured"]
    over_each = itertools.product(("a", "b", "a+b"), ("psync", "mmap"))
    assert {(row["over"], row["engine"]) for row in done} == {*over_each}
    assert all(row["records_checked"] > 0 for row in done)
    assert len(rows) == 9
    unknown = {"late_writers": 0, "backlog_peak_bytes": None, "buffer_bytes": None}
    sentences, _ = page_of("daq", tmp_path, settings, daq=[row | unknown for row in done], backlog=[])
    assert sum("which buffer 2 writers need cannot be told" in sentence for sentence in sentences) == len(done)
    assert not left(memory) + left(other)
