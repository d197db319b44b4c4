"""The profile and the group stage: sums that can be checked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from neurotier.group import group_rows, summary
from neurotier.places import Places
from neurotier.profile import profile_rows, run_rows
from neurotier.tables import read_table, write_table


def record(participant: str, start_s: float, run: str = "r1", voxels: int = 1000) -> dict[str, Any]:
    """A job of 2 s: 0.5 s stage_in, 1 s compute with 0.8 s CPU, 0.5 s stage_out."""
    phases = []
    for phase, begin, wall_s, user_s in (("stage_in", 0, 0.5, 0), ("compute", 0.5, 1, 0.8), ("stage_out", 1.5, 0.5, 0)):
        usage = {"start_s": start_s + begin, "end_s": start_s + begin + wall_s, "wall_s": wall_s, "user_s": user_s}
        exact = {"system_s": 0.0, "max_rss_bytes": 1, "block_in_bytes": 0, "block_out_bytes": 0, "source": "wait4"}
        phases.append({"phase": phase, **usage, **exact, "left_behind": 0, "staged_bytes": None})
    image = {
        "image": f"{participant}_T1w.nii.gz",
        "mask": "m",
        "session": None,
        "run": None,
        "brain_voxels": voxels,
        "voxel_volume_mm3": 2.0,
    }
    names = {"participant": participant, "run": run, "host": "h", "tool": "noop", "work_tier": "local"}
    return names | {"phases": phases, "images": [image]}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path, tmp_path / "d", tmp_path / "w", tmp_path / "i")
    places.runs.mkdir(parents=True)
    return places


def test_cpu_and_io_add_up_to_wall(places: Places) -> None:
    rows = profile_rows([record("NYU/sub-01", 100.0)])
    assert [(row["cpu_s"], row["io_s"]) for row in rows] == [(0, 0.5), (0.8, pytest.approx(0.2)), (0, 0.5)]
    write_table(places.profile / "profile.tsv", "profile", rows)
    assert read_table(places.profile / "profile.tsv", "profile")[1]["site"] == "NYU"


def test_makespan_and_parallelism(places: Places) -> None:
    """Jobs of 2 s from 100, 101 and 104 s: makespan 6 s, 6 job seconds, two at once for 1 s."""
    rows = profile_rows([record("a/sub-1", 100.0), record("a/sub-2", 101.0), record("a/sub-3", 104.0)])
    (run,) = run_rows(places, rows, [])
    assert (run["makespan_s"], run["mean_parallelism"], run["peak_parallelism"]) == (6.0, 1.0, 2)
    assert (run["wall_sum_s"], run["cpu_sum_s"], run["participants"]) == (6.0, pytest.approx(2.4), 3)


def test_runs_of_one_results_folder_are_apart(places: Places) -> None:
    rows = profile_rows([record("sub-1", 100.0, "r1"), record("sub-2", 5000.0, "r2")])
    assert [run["makespan_s"] for run in run_rows(places, rows, [])] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("facts", "failures", "validity"),
    [
        (None, [], "invalid: no facts of the run were recorded"),
        ({}, [], "invalid: no facts of the run were recorded"),
        ({"ended_s": 1}, [], "valid"),
        ({"cores": 2}, [], "invalid: the run was interrupted"),
        ({"ended_s": 1}, [{"run": "r1"}], "invalid: 1 participant failed"),
        ({"ended_s": 1, "swap_out_bytes": 4096}, [{"run": "r0"}], "invalid: the machine swapped"),
    ],
)
def test_validity(places: Places, facts: dict[str, Any] | None, failures: list[dict[str, Any]], validity: str) -> None:
    if facts is not None:
        (places.runs / "r1.json").write_text(json.dumps(facts))
    (run,) = run_rows(places, profile_rows([record("sub-1", 100.0)]), failures)
    assert run["valid"] == validity


def test_group_mean_spread_and_outliers(places: Places) -> None:
    voxels = [1000, 1010, 1020, 1030, 1040, 3000]
    rows = group_rows([record(f"sub-{number}", 0.0, voxels=count) for number, count in enumerate(voxels)])
    write_table(places.group / "group.tsv", "group", rows)
    found = summary(rows)
    assert found["mean_brain_voxels"] == sum(voxels) / 6
    assert found["mean_brain_volume_mm3"] == sum(voxels) / 3
    assert found["outliers"] == ["sub-5_T1w.nii.gz"]


def test_group_without_images_is_empty(places: Places) -> None:
    write_table(places.group / "group.tsv", "group", group_rows([]))
    assert read_table(places.group / "group.tsv", "group") == []
    assert summary([])["mean_brain_volume_mm3"] is None
