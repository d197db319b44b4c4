"""Targets that analyse nobody: ``probe``, ``check`` and ``published``."""

from __future__ import annotations

from pathlib import Path

import pytest
from published_logs import write_checkout
from support import Project

SMALL = {"streams": 1, "file_mib": 16, "time_s": 2, "repetitions": 1}


def test_a_probe_is_kept_until_it_is_asked_for_again(project: Project, memory_folder: Path) -> None:
    """A tier on disk and one in memory; the second start has nothing to do, unless a setting was changed."""
    tiers = {"tmpfs": memory_folder}
    project.succeeds("probe", probe={**SMALL, "tiers": ["local", "tmpfs"]}, tiers=tiers).says(
        "With one stream, local (", "Report: results/probe.html"
    )
    table = "probe/probe.tsv"
    patterns = ["write", "read", "mixed", "cached_read", "buffered_write"]
    assert project.columns("pattern", table, tier="local", part="concurrency") == patterns
    assert project.columns("pattern", table, tier="local", part="files") == ["make", "look", "remove"]
    assert all(float(cpu_s) > 0 for cpu_s in project.columns("operation_cpu_s", table, tier="local", part="files"))
    assert set(project.columns("fs_type", table, tier="tmpfs")) == {"tmpfs"}
    for row in project.table(table):
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


def test_check_has_a_table_of_the_tiers_at_every_start_and_a_line_for_each_that_a_run_would_miss(
    project: Project,
) -> None:
    gone = {"gone": project.folder / "nowhere"}
    ended = project.succeeds("check", cores=0, tiers=gone)
    (head,) = ended.lines("tier   in use")
    assert head.split() == ["tier", "in", "use", "kind", "there", "writable", "shared", "room", "path"]
    ended.says("gone   no ")

    ended = project.fails("check", tiers=gone, placement={"work": "gone"})
    (line,) = ended.lines("neurotier: tier 'gone': ")
    path = f"its path {project.folder}/nowhere"
    assert f"{path} is not an existing folder, or may not be entered; mount it, or correct tiers.gone.path" in line
    (table,) = (project.results / "check").glob("*.tsv")
    rows = project.table(f"check/{table.name}")
    assert [row["tier"] for row in rows if row["in_use"] == "true" and row["problem"] != "n/a"] == ["gone"]

    (project.folder / "nowhere").mkdir()
    project.succeeds("check", tiers=gone, placement={"work": "gone"})  # what was found before is not believed
    assert not list(project.folder.glob("neurotier-*/*"))
    assert not list((project.folder / "nowhere").iterdir())


def test_a_checkout_is_replayed(project: Project) -> None:
    """Tables, figures and page; no dataset is made and nothing is analysed for it."""
    write_checkout(project.folder / "checkout")
    project.succeeds("published", "--config", "published=checkout").says(
        "Replayed from raw logs: 8 BigBrain runs, 1 BIDS App run"
    )
    runs = project.table("published/published_runs.tsv")
    assert len(runs) == 8
    assert {row["device"] for row in runs} == {"DRAM", "Optane", "local SSD", "Isilon"}
    page = project.page("published")
    assert "The published experiment, replayed" in page
    figures = project.results / "published/figures"
    drawn = (figures / "bigbrain_makespans.tsv").read_text()
    assert all(member in drawn for member in ("paper", "fluid measured")), drawn
    assert (figures / "bigbrain_makespans.svg").exists()
    assert not (figures / "gantt_20um_25.tsv").read_text(), "there is no such run, and the page says so"
    assert "No valid run of the incrementation" in page
    assert not (project.results / "index").exists()
