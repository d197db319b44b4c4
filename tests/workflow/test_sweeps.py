"""The target ``sweep``: from nothing to its page, and not again what is there."""

from __future__ import annotations

from typing import Any

from support import Project


def test_a_sweep_is_measured_once(project: Project) -> None:
    grid: dict[str, Any] = {
        "block_sizes": ["4 KiB", "64 KiB"],
        "processes": [1, 2],
        "patterns": ["read"],
        "file_size": "1 MiB",
    }
    grid["seconds"] = 0.02
    sweep = {"tiers": ["tmpfs"], "sets": {"small": grid}}
    ended = project.succeeds("sweep", *project.configure(sweep=sweep))
    assert ended.lines("0 of 4 points are there, 4 to do"), ended.output
    assert ended.lines("Report: results/sweep.html")
    first = project.table("sweep/sweep.tsv")
    assert [row["status"] for row in first] == ["measured"] * 4
    assert (project.results / "sweep" / "figures" / "heat_map_tmpfs_small.svg").exists()
    grid["block_sizes"].append("128 KiB")
    ended = project.snakemake("sweep", *project.configure(sweep=sweep))
    assert ended.lines("4 of 6 points are there, 2 to do"), ended.output
    again = {(row["block_bytes"], row["processes"]): row["started_s"] for row in project.table("sweep/sweep.tsv")}
    assert all(again[row["block_bytes"], row["processes"]] == row["started_s"] for row in first)
