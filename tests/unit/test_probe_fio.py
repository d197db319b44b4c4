"""fio by its wrapper: real jobs of a few MiB, its reasons when it fails, and nobody left behind when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from neurotier.core.errors import ToolError
from neurotier.storage.fio import FioJob, run_fio
from support import processes_in, wait_for, while_running

MIB = 1 << 20
ALONE = """
import sys
from pathlib import Path
from neurotier.storage.fio import FioJob, run_fio
run_fio(FioJob("long", "write", 4096, 1 << 20, streams=2, runtime_s=60, repeat=True), Path(sys.argv[1]), 90)
"""


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, memory_folder: Path) -> Path:
    """A folder on disk, and one in memory."""
    return tmp_path if request.param == "disk" else memory_folder


def test_a_job_says_what_it_moved(folder: Path) -> None:
    written = run_fio(FioJob("w", "write", MIB, 32 * MIB, streams=2, end_fsync=True, fresh=True), folder, 60)
    assert (written.write.bytes, written.write.operations, written.read.bytes) == (64 * MIB, 64, 0)
    assert sorted(file.stat().st_size for file in folder.iterdir()) == [32 * MIB] * 2
    assert 0 < written.cells()["cpu_s_per_byte"] < 1e-7
    assert written.fio_version.startswith("fio-")
    read = run_fio(FioJob("r", "read", MIB, 32 * MIB, streams=2), folder, 60)
    assert (read.read.bytes, read.write.bytes) == (64 * MIB, 0)
    assert 0 < read.read.latencies_s["latency_mean_s"] <= read.read.latencies_s["latency_p99_s"] * 2


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (FioJob("w", "write", 4096, MIB, engine="nosuch"), "nosuch"),
        (FioJob("w", "write", 100, MIB, engine="libaio", direct=True), "Invalid argument"),
    ],
)
def test_what_fio_refuses_is_one_line(tmp_path: Path, job: FioJob, line: str) -> None:
    with pytest.raises(ToolError) as raised:
        run_fio(job, tmp_path, 60)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="fio did not end within 1 s"):
        run_fio(FioJob("w", "write", 4096, MIB, streams=2, runtime_s=60, repeat=True), tmp_path, 1)
    assert processes_in(tmp_path) == []


def test_fio_ends_with_who_started_it(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ALONE, str(tmp_path)])
    wait_for(lambda: len(processes_in(tmp_path)) >= 3, while_running(process))  # fio and its two streams
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not processes_in(tmp_path))
