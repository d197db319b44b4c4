"""A file per process: bandwidths of a disk of known speed, neighbours that read, figures and page of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import workloads
from neurotier.core.tables import Row
from neurotier.storage.fio import BUFFERED, run_fio
from neurotier.storage.ior.points import Point, job_of
from neurotier.storage.numa import own_nodes
from workloads import MIB, TINY_IOR, left, settings_of, throttled


def run(results: Path, tier: Path, **section: Any) -> list[Row]:
    return workloads.run("ior", settings_of("ior", results, {"fast": tier}, **section))["ior"]


@pytest.mark.alone
def test_a_slow_disk_gives_what_it_can(tmp_path: Path) -> None:
    """However many processes: all bytes over the whole time are 20 MB/s, and no cache answers who reads."""
    with throttled(128, 20_000_000, "/dev/shm") as folder:  # others flush the disk
        rows = run(tmp_path, folder, processes=[1, 4], file_size="8 MiB", direct=False)
        assert not left(folder)
    for row in rows:
        assert row["status"] == "measured"
        for way in ("write", "read"):
            assert row[f"{way}_bytes"] == row["processes"] * 8 * MIB
            assert row[f"{way}_bytes_per_s"] == pytest.approx(20e6, rel=0.15)


def test_files_are_read_by_neighbours() -> None:
    """By turns on the NUMA nodes, if they are pinned."""
    point = Point("none", 3, MIB, 4096, False, 1)
    files = {way: [dict(each)["filename"] for each in job_of(point, way, BUFFERED).each] for way in ("write", "read")}
    assert files == {"write": ["ior.0.0", "ior.0.1", "ior.0.2"], "read": ["ior.0.1", "ior.0.2", "ior.0.0"]}
    pinned = [dict(each) for each in job_of(point, "write", BUFFERED, (0, 2)).each]
    assert [each["numa_cpu_nodes"] for each in pinned] == ["0", "2", "0"]
    assert pinned[1]["numa_mem_policy"] == "bind:2"


def test_processes_are_pinned_by_fio(tmp_path: Path, memory: Path) -> None:
    """Where there is one node alone, points that are to be pinned are listed as left out."""
    done = run_fio(job_of(Point("pin", 2, MIB, 65536, False, 1), "write", BUFFERED, own_nodes()), tmp_path, 60)
    assert [flow.bytes for flow in done.writes] == [MIB, MIB]
    rows = run(tmp_path / "results", memory, **TINY_IOR, numa=["none", "pin"])
    found = {(row["set"], row["status"], row["numa_nodes"]) for row in rows}
    one = ("pin", "left out: there is one NUMA node here, and nothing to pin to", None)
    several = ("pin", "measured", len(own_nodes()))
    assert found == {("none", "measured", None), one if len(own_nodes()) < 2 else several}
    assert not left(memory)
