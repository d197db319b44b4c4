"""A file per process, on one node or several: bandwidths, who reads, what fails; and IOR itself, by stand-ins."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from neurotier.core.errors import ToolError
from neurotier.core.places import Places
from neurotier.core.processes import marked
from neurotier.core.tables import Row
from neurotier.pages.ior import verdicts
from neurotier.pages.kit.page import OPEN, Data, Verdict
from neurotier.storage.fio import BUFFERED, run_fio
from neurotier.storage.ior.medians import READ, Line, fastest, late_text
from neurotier.storage.ior.mpi import read_summary, run_ior
from neurotier.storage.ior.over_nodes import LASTING, IorOverNodes, reason_of
from neurotier.storage.ior.points import Point, job_of
from neurotier.storage.numa import own_nodes
from neurotier.storage.spread import Spread
from neurotier.storage.workload import LeftOutError, walk
from shown_values import shown
from support import STAND_INS, processes_in, script, wait_for
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
    asked: dict[str, Any] = {"processes": [2], "file_size": "1 MB", "block_size": "1 kB", "direct": True}
    of_nodes = {"path": "$NODE_FOLDER/tier", "kind": "block", "node": True}
    (here,) = measured(tmp_path / "results", tmp_path, **asked)
    (on_nodes,) = over_nodes(Here(tmp_path), tmp_path / "results", of_nodes, **asked)
    for row in (here, on_nodes):
        assert shown(row, "status engine direct") == "measured psync False"


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


def test_processes_that_begin_too_far_apart_are_named(tmp_path: Path, memory: Path) -> None:
    """On one node, too: their starts say what all of them reach at once. IOR itself does not say when it starts."""
    (row,) = measured(tmp_path, memory, **TINY_IOR | {"processes": [2]})
    apart = row | {"write_span_s": 0.02, "write_start_spread_s": 0.005, "read_start_spread_s": 0.0}
    assert verdicts(Data({"ior": [apart]}, None))[1:] == [
        Verdict(
            "In 1 of 2 measurements, processes began apart, or clocks differed, by up to 25 % of the time:"
            " larger files (ior.file_size) would show what all of them reach together",
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


class Here:
    """Nodes that are processes of this machine, started by a stand-in for srun; ``workflow/test_slurm.py`` has the real
    one.
    """

    def __init__(self, folder: Path, path: str = "") -> None:
        path = os.pathsep.join(filter(None, [path, os.environ["PATH"]]))
        self.environment = {**os.environ, "NODE_FOLDER": str(folder), "PATH": path}

    def allocation(self, nodes: int) -> list[str]:
        return ["sh", "-c", "echo 1; exec cat"]

    def step(self, job: str, nodes: int, program: Sequence[str]) -> list[str]:
        return [str(STAND_INS / "cluster" / "srun"), f"--ntasks={nodes}", *program]

    def waits_for(self) -> str:
        return "None"

    def end(self) -> None:
        """Nothing but the nodes' own programs has to end."""


def over_nodes(cluster: Here, results: Path, tier: dict[str, Any], **section: Any) -> list[Row]:
    """What is measured of a tier over nodes."""
    own = {**TINY_IOR, "nodes": [2], "processes": [2], **section}
    settings = settings_of("ior", results, {"fast": tier}, **own)
    return walk(IorOverNodes(settings, Places.from_settings(settings), cluster), print, "class")["ior"]


@pytest.fixture
def shared(memory: Path) -> dict[str, Any]:
    """A tier that all nodes see."""
    return {"path": str(memory), "kind": "tmpfs"}


def test_on_a_tier_of_the_node_another_process_reads(tmp_path: Path, memory: Path) -> None:
    own = {"path": "$NODE_FOLDER/tier", "kind": "tmpfs", "node": True}
    (row,) = over_nodes(Here(memory), tmp_path, own)
    assert shown(row, "status read_by write_bytes") == f"measured another process {4 * MIB}"
    assert sorted(path.parent.name for path in memory.glob("*/tier")) == ["n1", "n2"]
    assert not left(memory)


FIO = """# The real fio, but on the second node, which does something else.
if [ "$SLURM_PROCID" = 1 ]; then {instead}; fi
exec {fio} "$@"
"""


WRITTEN = '[ "$(stat --format %s ior.0.1 2>/dev/null)" = 1048576 ]'
TAKES_A_FILE = f"case $* in *rw=write*) until {WRITTEN}; do sleep 0.05; done; rm ior.0.1;; esac"
"""Removes what the first node has written."""


def fio_that(folder: Path, instead: str) -> str:
    """A folder for PATH whose fio does something else on the second node."""
    return str(script(folder / "fio", FIO.format(fio=shutil.which("fio"), instead=instead)).parent)


@pytest.mark.parametrize(
    ("section", "instead", "line"),
    [
        ({}, "echo 'fio: pid=1, error=Remote I/O error' >&2; exit 1", "Remote I/O error (on "),
        ({}, "kill -9 $PPID; exit 1", "step write: Slurm: n2: task 1: ended with 9"),
        ({}, TAKES_A_FILE, "does not see all that node 1 has written; see how"),
        ({"file_size": "40 MiB"}, "exit 1", "ior set 'none' needs 160 MiB (4 files of 40 MiB), more than 50 % of the "),
        ({"numa": ["pin"]}, "exit 1", "left out: "),
    ],
)
def test_what_goes_wrong_on_a_node_fails_the_point_in_a_line(
    tmp_path: Path, memory: Path, shared: dict[str, Any], section: dict[str, Any], instead: str, line: str
) -> None:
    """Nothing is left on the tier; as no other point was to be measured, the target fails with the reason."""
    cluster = Here(memory, fio_that(tmp_path / "tools", instead))
    with pytest.raises(ToolError, match=rf"\A.*{re.escape(line)}.*\Z"):
        over_nodes(cluster, tmp_path, shared, **section)
    assert not left(memory)


def test_nodes_end_when_nobody_is_left(tmp_path: Path, memory: Path, shared: dict[str, Any]) -> None:
    """Nobody's step ends with fio; what it leaves goes when the next point is prepared."""
    tools = fio_that(tmp_path / "tools", f"touch {tmp_path}/runs; exec sleep 1000")
    if not (walker := os.fork()):
        with suppress(BaseException):
            over_nodes(Here(memory, tools), tmp_path, shared)
        os._exit(0)
    wait_for((tmp_path / "runs").exists)
    os.kill(walker, signal.SIGKILL)
    os.waitpid(walker, 0)
    wait_for(lambda: not processes_in(memory))
    assert left(memory)
    (row,) = over_nodes(Here(memory), tmp_path, shared)
    assert row["status"] == "measured"
    assert not left(memory)


@pytest.mark.parametrize(
    ("reason", "is_in_vain"),
    [
        ("PartitionNodeLimit", True),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-4]", True),
        ("ReqNodeNotAvail, May be reserved for other job", False),
        ("ReqNodeNotAvail, Reserved for maintenance", False),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", False),
    ],
)
def test_a_point_waits_for_nodes_that_are_reserved(reason: str, is_in_vain: bool) -> None:
    """In words of Slurm 24.11."""
    assert bool(LASTING.search(reason)) == is_in_vain


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            ["0: slurmstepd-n1: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-23T07:18:28 DUE TO TIME LIMIT ***"],
            "step write: it took longer than its allocation; give rule run_ior a longer runtime",
        ),
        (
            [
                "srun: error: Memory specification can not be satisfied",
                "srun: error: Unable to allocate resources: Requested node configuration is not available",
            ],
            "step write: Slurm: Memory specification can not be satisfied; Unable to",
        ),
        (
            ["srun: error: Unable to allocate resources: Required partition not available (inactive or drain)"],
            "step write: Slurm: Unable to allocate resources: Required partition",
        ),
        (
            ["srun: forcing job termination", "srun: Job has been cancelled"],
            "step write: its allocation was cancelled",
        ),
        (
            ["srun: unrecognized option '--requeue'", 'Try "srun --help"'],
            "step write: Slurm: srun: unrecognized option",
        ),
        ([], "step write: Slurm: it said nothing"),
    ],
)
def test_why_an_allocation_ended_is_said_in_a_line(said: list[str], line: str) -> None:
    """In words that Slurm 22.05 was heard to say."""
    error = reason_of("\n".join(said), "step write")
    assert str(error).startswith(line)
    assert isinstance(error, LeftOutError) == ("Memory specification" in line)
