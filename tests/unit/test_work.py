"""Work folders: private, gone afterwards, swept after a kill together with who still works there."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from neurotier.analysis.work import sweep, work_folder
from neurotier.errors import BusyError
from neurotier.files import write_json
from support import PATIENCE_S


def test_folder_is_gone_on_success_and_failure(tmp_path: Path) -> None:
    with work_folder(tmp_path / "work" / "sub-01", "id") as folder:
        (folder / "in").mkdir()
    assert not folder.exists()
    with pytest.raises(ValueError, match="why"), work_folder(tmp_path / "work" / "sub-01", "id"):
        raise ValueError("why")
    assert not folder.exists()


def test_sweep_ends_the_owner_and_those_who_work_there(tmp_path: Path) -> None:
    work = tmp_path / "neurotier-me" / "work" / "abc"
    script = (
        "import sys, time; from pathlib import Path; from neurotier.analysis.work import work_folder\n"
        "with work_folder(Path(sys.argv[1]), 'id'): time.sleep(100)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(work / "sub-01")])
    while not (work / "sub-01" / "owner.json").exists():
        time.sleep(0.05)
    tool = subprocess.Popen(["sleep", "100"], cwd=work / "sub-01")
    bystander = subprocess.Popen(["sleep", "100"], cwd=tmp_path)
    try:
        assert sweep(work, "id") == ["sub-01"]
        owner.wait(timeout=PATIENCE_S)  # psutil has taken their exit codes
        tool.wait(timeout=PATIENCE_S)
        assert bystander.poll() is None
        assert list(tmp_path.iterdir()) == []
    finally:
        bystander.kill()
        bystander.wait()


def test_owner_number_given_to_another_process_is_spared(tmp_path: Path) -> None:
    """Process numbers are used again; the start time tells the new process from the old."""
    other = subprocess.Popen(["sleep", "100"])
    try:
        folder = tmp_path / "work" / "sub-01"
        folder.mkdir(parents=True)
        write_json(folder / "owner.json", {"host": socket.gethostname(), "pid": other.pid, "started_s": 1.0})
        sweep(tmp_path / "work", "id")
        assert not folder.exists()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_folder_of_another_host_is_swept_for_the_same_results_only(tmp_path: Path) -> None:
    """Two hosts may have results of the same path, each on its own disk, and share a work tier."""
    for name, identity in (("ours", "id"), ("theirs", "other")):
        (tmp_path / "work" / name).mkdir(parents=True)
        write_json(tmp_path / "work" / name / "owner.json", {"host": "elsewhere", "pid": 1, "identity": identity})
    assert sweep(tmp_path / "work", "id") == ["ours"]
    with pytest.raises(BusyError, match="in use by another host"), work_folder(tmp_path / "work" / "theirs", "id"):
        pass


def test_tool_below_a_linked_tier_is_found(tmp_path: Path) -> None:
    (tmp_path / "real" / "work" / "sub-01").mkdir(parents=True)
    (tmp_path / "tier").symlink_to("real")
    tool = subprocess.Popen(["sleep", "100"], cwd=tmp_path / "real" / "work" / "sub-01")
    sweep(tmp_path / "tier" / "work", "id")
    assert tool.wait(timeout=PATIENCE_S) is not None
