"""Sweeps: grid and order, points that are kept, reasons for those left out, figures and page of the same rows."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest
import workloads
from conftest import missing
from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.pages.kit.page import GOOD, OPEN, Data
from neurotier.pages.sweep import verdicts
from neurotier.storage.fio import BUFFERED, Access, supports_direct
from neurotier.storage.sweep.walk import Point, access_for, reason_left_out
from workloads import MIB, TINY_SWEEP

KIB = 1 << 10
DIRECT = Access("libaio", direct=True)


def settings_of(folder: Path, grid: dict[str, Any], **changes: Any) -> Settings:
    """A configuration that sweeps one tier."""
    results = folder.parent / f"{folder.name}-results"
    return workloads.settings_of("sweep", results, {"fast": folder}, sets={"a": grid}, **changes)


def run(settings: Settings, said: list[str] | None = None) -> list[Row]:
    return workloads.run("sweep", settings, ([] if said is None else said).append)["sweep"]


def point(**changes: Any) -> Point:
    usual = Point("a", "read", 4 * KIB, 1, 1, 1, MIB, 1.0, True, "auto")
    return dataclasses.replace(usual, **changes)


@pytest.mark.parametrize(
    ("asked", "best", "way"),
    [
        ({}, DIRECT, DIRECT),
        ({}, BUFFERED, BUFFERED),
        ({"wants_direct": False}, DIRECT, BUFFERED),
        ({"wants_engine": "io_uring"}, DIRECT, Access("io_uring", direct=True)),
        ({"wants_engine": "libaio"}, BUFFERED, Access("libaio", direct=False)),
        ({"wants_engine": "mmap"}, DIRECT, Access("mmap", direct=False)),
    ],
)
def test_way_suits_tier_and_point(asked: dict[str, Any], best: Access, way: Access) -> None:
    assert access_for(point(**asked), best) == way


@pytest.mark.parametrize(
    ("asked", "way", "reason"),
    [
        ({}, DIRECT, ""),
        ({"queue_depth": 128}, DIRECT, ""),
        ({"block_bytes": 256}, BUFFERED, ""),
        ({"block_bytes": 256}, DIRECT, "blocks of 256 bytes cannot bypass the page cache here"),
        ({"queue_depth": 128}, BUFFERED, "psync can have only one request in flight here, not 128"),
        (
            {"queue_depth": 128, "processes": 64, "block_bytes": 16 * MIB},
            DIRECT,
            "the requests under way would take 128 GiB of memory, and 64 GiB are free",
        ),
    ],
)
def test_what_cannot_be_measured_is_left_out(asked: dict[str, Any], way: Access, reason: str) -> None:
    assert reason_left_out(point(**asked), way, {4 * KIB, 16 * MIB}, 64 << 30) == reason


def test_direct_reading_is_tried(tmp_path: Path, memory: Path) -> None:
    """As ``dd`` finds it, whatever the file system."""
    for folder, block_bytes in itertools.product((tmp_path, memory), (100, 4096)):
        (folder / "file").write_bytes(bytes(2 * block_bytes))
        dd = ["dd", f"if={folder}/file", "of=/dev/null", "iflag=direct", f"bs={block_bytes}", "skip=1", "count=1"]
        assert supports_direct(folder, block_bytes) == (subprocess.run(dd, capture_output=True).returncode == 0)
        assert [path.name for path in folder.glob("*") if path.is_file()] == ["file"]


def test_points_that_are_missing_or_damaged_or_of_another_duration_are_measured(memory: Path) -> None:
    grid, said = {**TINY_SWEEP, "patterns": ["read", "mixed"], "queue_depths": [1, 4]}, list[str]()
    settings = settings_of(memory, grid)
    run(settings)
    points = Places.from_settings(settings).workload("sweep") / "points" / "fast"
    *kept, a_folder, empty = sorted(points.iterdir())[:5]
    before = [file.read_text() for file in kept]
    for file in {*points.iterdir()}.difference(kept):
        file.unlink()
    a_folder.mkdir()
    empty.touch()
    rows = run(settings, said)
    assert said[0].startswith("3 of 16 points are there, 13 to do")
    assert [file.read_text() for file in kept] == before
    assert len(list(points.iterdir())) == 8
    assert {one["status"] for one in rows if one["queue_depth"] == 4} == {
        "left out: psync can have only one request in flight here, not 4"
    }
    whole = settings_of(memory, grid | {"queue_depths": [1]}, share=1e-6)
    assert {one["status"] for one in run(whole)} == {"measured"}, "it needs no room"
    run(settings_of(memory, grid | {"seconds": 0.03}))
    assert len(list(points.iterdir())) == 16


def test_points_of_another_file_system_or_device_are_other_points(tmp_path: Path) -> None:
    """Those that are kept say on which kernel they were measured."""
    image, folder = tmp_path / "image", tmp_path / "fast"
    folder.mkdir()
    image.write_bytes(bytes(32 * MIB))
    subprocess.run(["mkfs.ext2", "-q", "-F", image], check=True)
    said = list[str]()
    for file_system, *device in (
        ("ext2", "-oloop", image),
        ("ext4", "-oloop", image),
        ("tmpfs", "one"),
        ("tmpfs", "two"),
    ):
        if subprocess.run(["mount", "-t", file_system, *device, folder], capture_output=True).returncode:
            missing("mounting a file needs root and a loop device")
        try:
            settings = settings_of(folder, {**TINY_SWEEP, "patterns": ["read"]})
            assert {one["fs_type"] for one in run(settings, said)} == {file_system}
            assert said[-1].startswith("point 4 of 4")
            points = Places.from_settings(settings).workload("sweep") / "points" / "fast"
            for file in points.iterdir():
                write_json(file, read_json(file) | {"kernel": "of then"})
            assert {one["kernel"] for one in run(settings, said)} == {"of then"}
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(("repetitions", "kind"), [(1, OPEN), (2, GOOD)])
def test_what_was_measured_once_may_be_chance(memory: Path, repetitions: int, kind: str) -> None:
    rows = run(settings_of(memory, {**TINY_SWEEP, "patterns": ["read"], "repetitions": repetitions}))
    (verdict,) = verdicts(Data({"sweep": rows}, None))
    assert (verdict.kind, "; measured once, so that it may be chance" in verdict.text) == (kind, kind == OPEN)


@pytest.mark.alone
def test_what_is_buffered_is_no_faster_than_its_device(tmp_path: Path) -> None:
    """What is read or written again in the page cache does not count again."""
    grid = {"block_sizes": ["64 KiB"], "processes": [1, 2], "file_size": "8 MiB", "seconds": 1, "direct": False}
    with workloads.throttled(128, 20_000_000, "/dev/shm") as folder:  # others flush the disk
        given = {
            "a": grid | {"patterns": ["randread", "write", "randwrite", "mixed"]},
            "mapped": grid | {"patterns": ["read", "randread"], "engine": "mmap"},
        }
        rows = workloads.run("sweep", workloads.settings_of("sweep", tmp_path, {"fast": folder}, sets=given))["sweep"]
    for row in rows:
        assert row["status"] == "measured"
        assert row["pattern"].endswith("read") or row["write_bytes"] <= row["processes"] * row["file_bytes"]
        # a throttle gives 0.1 s at once
        assert max(row["read_bytes_per_s"], row["write_bytes_per_s"]) < 1.15 * 20e6
