"""Target ``probe``: from nothing to the page, kept until it is asked for again, refused where it cannot be done."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Project

SMALL = {"streams": 1, "file_mib": 16, "time_s": 2, "repetitions": 1}


def test_probe(project: Project, memory_folder: Path) -> None:
    """A tier on disk and one in memory; the second start has nothing to do, unless a setting was changed."""
    tiers = {"tmpfs": memory_folder}
    project.succeeds("probe", probe={**SMALL, "tiers": ["local", "tmpfs"]}, tiers=tiers).says(
        "With one stream, local (", "Report: results/probe.html"
    )
    rows = project.table("probe/probe.tsv")
    assert [row["pattern"] for row in rows if row["tier"] == "local" and row["part"] == "concurrency"] == [
        *("write", "read", "mixed", "cached_read", "buffered_write")
    ]
    small = [row for row in rows if row["tier"] == "local" and row["part"] == "files"]
    assert [row["pattern"] for row in small] == ["make", "look", "remove"]
    assert all(float(row["operation_cpu_s"]) > 0 for row in small)
    assert {row["fs_type"] for row in rows if row["tier"] == "tmpfs"} == {"tmpfs"}
    for row in rows:
        low, middle, high = (float(row[f"bandwidth_{part}bytes_per_s"]) for part in ("low_", "", "high_"))
        assert low <= middle <= high
        moved = float(row["operations_per_s"]) * int(row["block_bytes"])
        assert middle == (0 if row["part"] == "files" else pytest.approx(moved, rel=0.05)), row
    assert "What the tiers can do" in project.page("probe")
    assert not list(project.folder.glob("neurotier-*/probe"))
    assert not list(memory_folder.iterdir())

    def planned(*more: str) -> list[str]:
        """Tiers that would be probed."""
        lines = project.snakemake("probe", "--dry-run", *more).lines("Probing tier ")
        return sorted(line.split()[-1] for line in lines)

    assert planned() == []
    assert planned("--forcerun", "probe_tier") == ["local", "tmpfs"]
    project.configure(probe={**SMALL, "tiers": ["local", "tmpfs"], "file_mib": 17}, tiers=tiers)
    assert planned() == ["local", "tmpfs"]


def test_what_cannot_be_probed_is_said_in_a_line_each(project: Project) -> None:
    tiers = {
        "gone": project.folder / "nowhere",
        "small": {"path": ".", "kind": "block", "capacity": "20 MiB"},
        "wrong": {"path": "/dev/shm", "kind": "network"},
    }
    ended = project.fails("probe", tiers=tiers, probe={**SMALL, "tiers": list(tiers)})
    ended.says(
        "neurotier: tier 'gone': its path",
        "neurotier: tier 'small': a probe with 1 stream needs 16 MiB, and it may take 2 MiB (10 % of",
        "neurotier: tier 'wrong': declared as 'network', but /dev/shm is on tmpfs",
    )
