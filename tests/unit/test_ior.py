"""A file per process: bandwidths, neighbours that read; and IOR itself, by the stand-ins of ``stand_ins/mpi``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import ToolError
from neurotier.core.processes import marked
from neurotier.core.tables import Row
from neurotier.pages.ior import verdicts
from neurotier.pages.kit.page import OPEN, Data, Verdict
from neurotier.storage.fio import BUFFERED, run_fio
from neurotier.storage.ior.medians import READ, Line, fastest, late_text
from neurotier.storage.ior.mpi import read_summary, run_ior
from neurotier.storage.ior.points import Point, job_of
from neurotier.storage.numa import own_nodes
from neurotier.storage.spread import Spread
from support import STAND_INS
from workloads import MIB, TINY_IOR, left, run, settings_of, throttled

POINT = Point("none", 2, MIB, 65536, False, 1)


def measured(results: Path, tier: Path, **section: Any) -> list[Row]:
    return run("ior", settings_of("ior", results, {"fast": tier}, **section))["ior"]


@pytest.mark.alone
def test_a_slow_disk_gives_what_it_can(tmp_path: Path) -> None:
    """However many processes: all bytes over the whole time are 20 MB/s, and no cache answers who reads."""
    with throttled(128, 20_000_000, "/dev/shm") as folder:  # others flush the disk
        rows = measured(tmp_path, folder, processes=[1, 4], file_size="8 MiB", direct=False)
        assert not left(folder)
    for row in rows:
        assert row["status"] == "measured"
        for way in ("write", "read"):
            assert row[f"{way}_bytes"] == row["processes"] * 8 * MIB
            assert row[f"{way}_bytes_per_s"] == pytest.approx(20e6, rel=0.15)


def test_blocks_that_cannot_bypass_the_page_cache_go_through_it(tmp_path: Path) -> None:
    """As with IOR itself; fio alone would fail with 'Invalid argument', and after three such points all tiers."""
    asked: dict[str, Any] = {"processes": [1], "file_size": "1 MB", "block_size": "1 kB", "direct": True}
    (row,) = measured(tmp_path / "results", tmp_path, **asked)
    assert (row["status"], row["engine"], row["direct"]) == ("measured", "psync", False)


def test_files_are_read_by_neighbours() -> None:
    """By turns on the NUMA nodes, if they are pinned."""
    point = Point("none", 3, MIB, 4096, False, 1)
    files = {way: [dict(each)["filename"] for each in job_of(point, way, BUFFERED).each] for way in ("write", "read")}
    assert files == {"write": ["ior.0.0", "ior.0.1", "ior.0.2"], "read": ["ior.0.1", "ior.0.2", "ior.0.0"]}
    pinned = [dict(each) for each in job_of(point, "write", BUFFERED, (0, 2)).each]
    assert [each["numa_cpu_nodes"] for each in pinned] == ["0", "2", "0"]
    assert pinned[1]["numa_mem_policy"] == "bind:2"


def test_fewer_processes_are_faster_for_sure_only_by_three_repetitions() -> None:
    def line(*few: float) -> Line:
        return {2: {READ: Spread(few)}, 4: {READ: Spread(tuple(one / 2 for one in few))}}

    assert [fastest(line(*[8.0] * count), READ) for count in (1, 2, 3)] == [(2, False), (2, False), (2, True)]


def test_processes_that_begin_too_far_apart_are_told_of(tmp_path: Path, memory: Path) -> None:
    """On one node, too: what all of them reach is then told by their starts. IOR itself does not tell when."""
    (row,) = measured(tmp_path, memory, **TINY_IOR | {"processes": [2]})
    apart = row | {"write_span_s": 0.02, "write_start_spread_s": 0.005, "read_start_spread_s": 0.0}
    assert verdicts(Data({"ior": [apart]}, None))[1:] == [
        Verdict(
            "In 1 of 2 measurements, processes began apart, or clocks differed, by up to 25 % of the time:"
            " larger files (ior.file_size) would tell what all of them reach together",
            OPEN,
        )
    ]
    assert not late_text([apart | {"write_span_s": 0.2}, apart | {"write_start_spread_s": None}])


def test_processes_are_pinned_by_fio(tmp_path: Path, memory: Path) -> None:
    """Where there is one node alone, points that are to be pinned are listed as left out."""
    done = run_fio(job_of(POINT, "write", BUFFERED, own_nodes()), tmp_path, 60)
    assert [flow.bytes for flow in done.writes] == [MIB, MIB]
    rows = measured(tmp_path / "results", memory, **TINY_IOR, numa=["none", "pin"])
    found = {(row["set"], row["status"], row["numa_nodes"]) for row in rows}
    one = ("pin", "left out: there is one NUMA node here, and nothing to pin to", None)
    several = ("pin", "measured", len(own_nodes()))
    assert found == {("none", "measured", None), one if len(own_nodes()) < 2 else several}
    assert not left(memory)


MARK = "NEUROTIER_TEST_OF_IOR"


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """On PATH; none of their processes, which have a mark, is left afterwards."""
    monkeypatch.setenv("PATH", f"{STAND_INS / 'mpi'}:{os.environ['PATH']}")
    monkeypatch.setenv(MARK, str(tmp_path))
    yield
    assert not marked(MARK, [str(tmp_path)])


@pytest.mark.parametrize(
    ("manner", "line"),
    [
        ("table", "ior: Max Write: 2143.22 MiB/sec (2247.33 MB/sec), and no summary; take IOR 3.3 or later"),
        ("cut", "the summary of ior is not IOR's JSON; take IOR 3.3 or later"),
        ("old", "the summary of ior lacks 'xsizeMiB'; take IOR 3.3 or later"),
        ("die", "ior: mpirun noticed that process rank 1 exited on signal 9."),
    ],
)
def test_a_broken_ior_fails_its_point(
    tmp_path: Path, memory: Path, stand_ins: None, monkeypatch: pytest.MonkeyPatch, manner: str, line: str
) -> None:
    monkeypatch.setenv("IOR_STAND_IN", manner)
    point = r"\Atarget ior: nothing was measured: 1 point failed: write \(ior, 2 processes\) in \S+: "
    with pytest.raises(ToolError, match=rf"{point}{re.escape(line)}.*\Z"):
        measured(tmp_path / "results", memory, **TINY_IOR | {"engine": "ior", "processes": [2]})
    assert not left(memory)


def test_a_hanging_ior_is_ended(tmp_path: Path, stand_ins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOR_STAND_IN", "hang")
    with pytest.raises(ToolError, match=r"^write \(ior, 2 processes\) in .*: mpirun did not end within 1 s$"):
        run_ior(POINT, "write", False, tmp_path, 1.0)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({"numTasks": 1}, "ior ran with 1 of 2 processes; have the mpirun of the MPI that IOR was built with on PATH"),
        ({"xsizeMiB": 1.5}, "ior moved 1572864 of 2097152 bytes"),
        ({"bwMeanMIB": "fast"}, "the summary of ior is not IOR's JSON; take IOR 3.3 or later"),
        ({"bwMeanMIB": float("nan")}, "ior says that it took 1.0 s at nan MiB/s"),
        ({"operation": "read"}, "the summary of ior is not IOR's JSON; take IOR 3.3 or later"),
        ({"xsizeMiB": None}, "the summary of ior is not IOR's JSON; take IOR 3.3 or later"),
    ],
)
def test_a_summary_that_cannot_be_is_refused(found: dict[str, Any], line: str) -> None:
    """Two processes without MPI between them, as of an IOR built with another one, are among these."""
    good = {"operation": "write", "numTasks": 2, "xsizeMiB": 2.0, "MeanTime": 1.0, "bwMeanMIB": 2.0}
    done = read_summary(json.dumps({"Version": "3.3.0", "summary": [good]}), POINT, "write", "w")
    assert tuple(done.values()) == (2 * MIB, 1.0, 2 * MIB, "3.3.0")
    with pytest.raises(ToolError) as raised:
        read_summary(json.dumps({"Version": "3.3.0", "summary": [good | found]}), POINT, "write", "w")
    assert str(raised.value) == f"w: {line}"
    for text in ("", "[]", "{}", '{"summary": 3}', '{"summary": [3]}', "[" * 100_000):
        with pytest.raises(ToolError, match=r"^w: the summary of ior (is not IOR's JSON|lacks 'summary'); "):
            read_summary(text, POINT, "write", "w")
