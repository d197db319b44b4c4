"""Memory for images: the least of what machine and control groups give."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from configured import settings_at
from neurotier.core import control_groups
from neurotier.core.control_groups import core_limits, memory, usable_cores
from neurotier.core.places import Places
from neurotier.model.this_machine import processors_here
from neurotier.run.needs import Needs


def grouped(folder: Path, membership: str, limits: dict[str, str]) -> list[int]:
    """Limits of a process with such a membership, where cgroups hold such files."""
    for name, text in limits.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")
        for used in ("memory.current", "memory.usage_in_bytes", "memory.stat"):
            file = (folder / name).with_name(used)
            file.write_text(limits.get(str(file.relative_to(folder)), "" if used == "memory.stat" else "0"))
    (folder / "membership").write_text(membership)
    return [limit_bytes for limit_bytes, _ in memory()]


@pytest.fixture(autouse=True)
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(control_groups, "MOUNTED", tmp_path)


@pytest.mark.parametrize(
    ("membership", "limits", "expected"),
    [
        ("0::/jobs/one", {"jobs/memory.max": "9000", "jobs/one/memory.max": "max", "other/memory.max": "1"}, 9000),
        ("0::/docker/4f2a", {"memory.max": "5000"}, 5000),  # the group that a container has as its root
        (
            "7:cpu,cpuacct:/job\n4:memory:/job\n1:name=systemd:/job",
            {"memory/job/memory.limit_in_bytes": "7000", "memory/memory.limit_in_bytes": str(2**63 - 4096)},
            7000,
        ),
    ],
)
def test_limits_of_all_groups_around_a_job_count(
    tmp_path: Path, membership: str, limits: dict[str, str], expected: int
) -> None:
    assert grouped(tmp_path, f"{membership}\n", limits) == [expected]


def test_files_that_only_the_page_cache_has_leave_room(tmp_path: Path) -> None:
    files = {"job/memory.max": "9000", "job/memory.current": "8000", "job/memory.stat": "anon 10\ninactive_file 500"}
    grouped(tmp_path, "0::/job\n", files)
    assert min(left_bytes for _, left_bytes in memory()) == 1500
    grouped(tmp_path, "0::/job\n", files | {"job/memory.current": "9900"})
    assert min(left_bytes for _, left_bytes in memory()) == 0


def test_jobs_share_what_machine_and_groups_allow(tmp_path: Path) -> None:
    settings = settings_at(tmp_path)
    for limit, room_mb in (("1000000000", 950), ("max", int(0.95 * psutil.virtual_memory().total / 10**6))):
        grouped(tmp_path, "0::/job\n", {"job/memory.max": limit})
        assert Needs(settings, Places.from_settings(settings), on_cluster=False).room["mem_mb"] == room_mb


def test_least_quota_of_all_groups_counts(tmp_path: Path) -> None:
    grouped(tmp_path, "0::/jobs/one\n", {"jobs/cpu.max": "150000 100000", "jobs/one/cpu.max": "max 100000"})
    assert list(core_limits()) == [1.5]
    files = {"cpu/job/cpu.cfs_quota_us": "50000", "cpu/job/cpu.cfs_period_us": "100000", "cpu/cpu.cfs_quota_us": "-1"}
    grouped(tmp_path, "7:cpu,cpuacct:/job\n", files)
    assert list(core_limits()) == [0.5]
    assert usable_cores() == 0.5
    assert processors_here(1, others=0.0).threads == 1


ROOM = """
import sys
from pathlib import Path
from neurotier.core.tiers import Tier
Path(sys.argv[1], "cgroup.procs").write_text("0")
print(Tier("tmpfs", Path("/dev/shm"), "tmpfs", None).usable_bytes())
"""


def test_room_in_memory_is_that_of_the_jobs_control_group() -> None:
    """A batch system kills who fills more of /dev/shm than the job was given, however much of it is free."""
    group = Path("/sys/fs/cgroup/memory", f"neurotier-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of version 1 can be made here: {error.strerror}")
    try:
        (group / "memory.limit_in_bytes").write_text(str(256 << 20))
        done = subprocess.run([sys.executable, "-c", ROOM, str(group)], capture_output=True, text=True, check=True)
        assert 128 << 20 < int(done.stdout) <= 256 << 20
    finally:
        group.rmdir()
