"""Memory for images: the least of what machine, cgroups and Slurm give."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from neurotier.analysis.memory import LEAST_BYTES, cgroup_limits, memory_for_images


def grouped(folder: Path, membership: str, limits: dict[str, str]) -> list[int]:
    """Limits of a process with such a membership, where cgroups hold such files."""
    for name, text in limits.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")
    (folder / "membership").write_text(membership)
    return list(cgroup_limits(folder / "membership", folder))


def test_limits_of_all_groups_around_a_job_count(tmp_path: Path) -> None:
    limits = {"jobs/memory.max": "9000", "jobs/one/memory.max": "max", "other/memory.max": "1"}
    assert grouped(tmp_path, "0::/jobs/one\n", limits) == [9000]


def test_group_that_a_container_has_as_its_root_counts(tmp_path: Path) -> None:
    assert grouped(tmp_path, "0::/docker/4f2a\n", {"memory.max": "5000"}) == [5000]


def test_groups_of_the_first_version_count(tmp_path: Path) -> None:
    membership = "7:cpu,cpuacct:/job\n4:memory:/job\n1:name=systemd:/job\n"
    limits = {"memory/job/memory.limit_in_bytes": "7000", "memory/memory.limit_in_bytes": str(2**63 - 4096)}
    assert grouped(tmp_path, membership, limits) == [7000, 2**63 - 4096]


def test_no_cgroups_no_limits(tmp_path: Path) -> None:
    assert list(cgroup_limits(tmp_path / "nowhere", tmp_path)) == []


def test_this_machine_has_no_more_than_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    assert 0 < memory_for_images() <= max(LEAST_BYTES, psutil.virtual_memory().total)


def test_slurm_job_has_what_it_was_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "100")
    assert memory_for_images() == 100 << 20


@pytest.mark.parametrize("granted", ["0", "", "many"])
def test_slurm_job_that_was_granted_the_node_has_what_is_there(monkeypatch: pytest.MonkeyPatch, granted: str) -> None:
    monkeypatch.setenv("SLURM_MEM_PER_NODE", granted)
    assert memory_for_images() > 100 << 20
