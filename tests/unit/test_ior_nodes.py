"""A file per process over several nodes: the programs of the nodes, the talk with them, and what nodes reach together.

The nodes are processes of this machine that a stand-in for srun starts; ``tests/workflow/test_slurm.py`` has the real
one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import workloads
from neurotier.core.errors import ToolError
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.storage.ior.over_nodes import LASTING, IorOverNodes, reason_of
from neurotier.storage.workload import LeftOutError, walk
from support import STAND_INS, processes_in, script, wait_for
from told import told
from workloads import MIB, TINY_IOR, left


class Here:
    """Nodes that are processes of this machine."""

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


def settings_of(folder: Path, tier: dict[str, Any], **section: Any) -> Settings:
    """A configuration that measures one tier over nodes."""
    own = {**TINY_IOR, "nodes": [2], "processes": [2], **section}
    return workloads.settings_of("ior", folder / "results", {"fast": tier}, **own)


def measure(cluster: Here, settings: Settings) -> list[Row]:
    places = Places.from_settings(settings)
    return walk(IorOverNodes(settings, places, cluster), print, "class")["ior"]


@pytest.fixture
def shared(memory: Path) -> dict[str, Any]:
    """A tier that all nodes see."""
    return {"path": str(memory), "kind": "tmpfs"}


def test_on_a_tier_of_the_node_another_process_reads(tmp_path: Path, memory: Path) -> None:
    own = {"path": "$NODE_FOLDER/tier", "kind": "tmpfs", "node": True}
    (row,) = measure(Here(memory), settings_of(tmp_path, own))
    assert told(row, "status read_by write_bytes") == f"measured another process {4 * MIB}"
    assert sorted(path.parent.name for path in memory.glob("*/tier")) == ["n1", "n2"]
    assert not left(memory)


def test_blocks_that_cannot_bypass_the_page_cache_go_through_it_on_nodes_too(tmp_path: Path) -> None:
    own = {"path": "$NODE_FOLDER/tier", "kind": "block", "node": True}
    (row,) = measure(Here(tmp_path), settings_of(tmp_path, own, file_size="1 MB", block_size="1 kB", direct=True))
    assert told(row, "status engine direct") == "measured psync False"


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
        measure(cluster, settings_of(tmp_path, shared, **section))
    assert not left(memory)


def test_nodes_end_when_nobody_is_left(tmp_path: Path, memory: Path, shared: dict[str, Any]) -> None:
    """Nobody's step ends with fio; what it leaves goes when the next point is prepared."""
    tools = fio_that(tmp_path / "tools", f"touch {tmp_path}/runs; exec sleep 1000")
    settings = settings_of(tmp_path, shared)
    if not (walker := os.fork()):
        with suppress(BaseException):
            measure(Here(memory, tools), settings)
        os._exit(0)
    wait_for((tmp_path / "runs").exists)
    os.kill(walker, signal.SIGKILL)
    os.waitpid(walker, 0)
    wait_for(lambda: not processes_in(memory))
    assert left(memory)
    (row,) = measure(Here(memory), settings)
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
