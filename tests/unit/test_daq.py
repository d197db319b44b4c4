"""Writers at a fixed rate: what a disk of known speed holds, lost records, figures and page of the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from neurotier.core.errors import ToolError
from neurotier.core.tiers import Tier
from neurotier.storage.daq.sustained import lines, most_held, summary
from neurotier.storage.daq.walk import HEADER, MAGIC, Point, backlog, check_job, judge_writers, write_job
from neurotier.storage.workspace import Workspace
from page_reader import page_of
from shown_values import shown
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
        settings = settings_of("daq", tmp_path, {"slow": folder}, writers=[5, 6, 8], rate="4 MB", seconds=6)
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
        ("exchanged", "bad header offset"),
        ("damaged", "crc32c: verify failed at file daq.1 offset 5568"),
        ("lost", "bad magic"),
    ],
)
def test_a_record_that_is_not_as_it_was_written_is_found(tmp_path: Path, spoil: str, reason: str) -> None:
    point = Point("psync", "psync", "disk", 2, 2_000_000, RECORD, 1, 0.1, 0.1)
    workspace = Workspace("daq", Tier("disk", tmp_path, "block", None), tmp_path)
    done = workspace.run(write_job(point, [tmp_path], in_memory=True), 60)
    written = [flow.bytes for flow in done.writes]
    workspace.run(check_job(point, [tmp_path], written), 60)
    workspace.run(check_job(point, [tmp_path], [0, written[1]]), 60)
    file = tmp_path / "daq.1"
    with file.open("rb") as records:
        first, second, others = records.read(RECORD), records.read(RECORD), records.read()
    damaged = second[:2000] + b"x" + second[2001:]
    file.write_bytes({"exchanged": second + first, "damaged": first + damaged, "lost": first}[spoil] + others)
    with pytest.raises(ToolError, match=reason):
        workspace.run(check_job(point, [tmp_path], written), 60)


@pytest.mark.parametrize(
    ("reached", "peak_bytes", "left_bytes", "expected"),
    [
        (1.0, None, None, "0 -"),
        (0.99, 50.0, None, "0 50"),
        (0.91, 50.0, None, "0 4000"),
        (0.91, 50.0, 100.0, "0 50"),  # what fio took longer is no deficit
        (0.92, 150.0, 150.0, "0 2000"),
        (0.92, 105.0, 105.0, "0 105"),  # a flush and a record of each writer were still to come
        (0.89, 50.0, 50.0, "1 11000"),
        (0.5, None, None, "1 50000"),
    ],
)
def test_buffer_is_told_where_it_is_known_and_a_rare_flush_excuses_little(
    tmp_path: Path, reached: float, peak_bytes: float | None, left_bytes: float | None, expected: str
) -> None:
    settings = settings_of("daq", tmp_path, {"disk": tmp_path}, seconds=2, flush_s=5, target_s=100, tolerance=0.05).daq
    row = {"flushed": "while writing", "rate_bytes_per_s": 1000, "input_bytes_per_s": 1000, "writers": 2}
    row |= {"record_bytes": 5, "throughput_bytes_per_s": reached * 1000, "backlog_peak_bytes": peak_bytes}
    curve = [] if left_bytes is None else [(2.0, left_bytes)]
    assert shown(judge_writers(row, [reached * 1000], curve, settings), "late_writers buffer_bytes") == expected


def test_writers_that_keep_up_need_no_more_at_their_end_than_before(tmp_path: Path) -> None:
    """The last record counts, although not every record is looked at, and a writer that ended before the others."""
    counts, rate = {tmp_path / "daq.0": 10_775, tmp_path / "daq.1": 10_770}, 20e6
    for file, count in counts.items():
        records = np.zeros(count, np.dtype(HEADER | {"itemsize": RECORD}))
        records["magic"], records["len"] = MAGIC, RECORD
        records["offset"] = np.arange(count) * RECORD
        records["seconds"], records["nanoseconds"] = np.divmod(records["offset"] / rate * 1e9, 1e9)
        records.tofile(file)
    curve = backlog([*counts], [count * RECORD for count in counts.values()], RECORD, 2 * rate, 3.0)
    assert max(held for _, held in curve) < (5 + 2) * RECORD


def test_writers_whose_point_failed_are_not_called_tried() -> None:
    """As where the tier filled up: whether it holds as many is not known."""
    about = {"over": "disk", "engine": "psync", "rate_bytes_per_s": 10, "late_writers": 0, "buffer_bytes": 0}
    of_one = {"writer_mean_bytes_per_s": 10, "throughput_bytes_per_s": 10, "input_bytes_per_s": 10}
    rows = [{"status": "measured", "writers": 1} | about | of_one, {"status": "failed: full", "writers": 4} | about]
    ((name, line),) = lines(rows).items()
    assert summary(name, line, 100).startswith("disk, psync holds 1 writer at 10.0 B/s, the most that were measured; ")


SHORT: dict[str, Any] = {"writers": [2], "rate": "2 MB", "seconds": 0.2}


def test_writers_that_go_to_a_disk_among_others_flush(tmp_path: Path, memory: Path) -> None:
    tiers = {"fast": memory, "disk": tmp_path}
    asked = {"together": [["fast", "disk"]], "engines": ["psync", "mmap"], **SHORT}
    rows = run("daq", settings_of("daq", tmp_path / "results", tiers, **asked))["daq"]
    flushed = {(row["over"], row["engine"]): row["flushed"] for row in rows if row["status"] == "measured"}
    assert flushed == {
        ("fast", "psync"): "in memory",
        ("fast", "mmap"): "in memory",
        ("disk", "psync"): "while writing",
        ("fast+disk", "psync"): "while writing",
    }
    # what they hold would be judged by one flush at the end, which a device of five times their rate does not hold
    unfit = "left out: tier 'disk': mmap cannot flush while it writes, as a device needs, and this is block"
    assert [row["status"] for row in rows if row["flushed"] is None] == [unfit] * 2


def test_points_over_tiers_of_which_another_one_was_moved_are_other_points(tmp_path: Path, memory: Path) -> None:
    """However long the tiers' names are, of which a point's file has all."""
    first, second = (f"module-of-persistent-memory-on-socket-0-slot-{number}-{'x' * 40}" for number in (1, 2))
    said = list[str]()
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        tiers = {first: memory, second: tmp_path / place}
        settings = settings_of("daq", tmp_path / "results", tiers, together=[[first, second]], **SHORT)
        rows = run("daq", settings, said.append)["daq"]
        assert {row["status"] for row in rows} == {"measured"}
    assert [line[:38] for line in said if "there" in line] == [
        "0 of 3 points are there, 3 to do, 1.20",
        "1 of 3 points are there, 2 to do, 0.80",
    ]


def test_writers_are_dealt_out_over_tiers(tmp_path: Path, memory: Path, mount_tmpfs: Callable[..., Path]) -> None:
    """Every engine that a tier has; one that it has not is listed."""
    other = mount_tmpfs(tmp_path / "with: colon", "size=16m")
    asked = {"together": [["a", "b"]], "engines": ["psync", "mmap", "libpmem"], **SHORT}
    settings = settings_of("daq", tmp_path / "results", {"a": memory, "b": other}, **asked)
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
    sentences, reader = page_of("daq", tmp_path, settings, daq=[row | unknown for row in done], backlog=[])
    assert "Bytes that writers on several tiers read and wrote are listed with the first of these tiers." in reader.text
    assert sum("the buffer that 2 writers need is unknown" in sentence for sentence in sentences) == len(done)
    assert not left(memory) + left(other)
