"""The reader of the published logs: hand-written ones with a known truth, the real ones, and broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from neurotier.model.machine import Processors
from neurotier.pages.comparison.statistics import Comparison, everything_compared
from neurotier.published.bids_app import CONDITIONS, published_runs
from neurotier.run.compared import read_comparison_tables, write_comparison_tables
from neurotier.storage.spread import spread


def entry(name: str, start: str, end: str, **changes: str) -> dict[str, str]:
    times = {"user time": "0m30.500s", "real time": "1m0.250s", "system time": "0m4.500s"}
    days = {"Start": f"Tue Sep  3 {start} EDT 2019", "Finish": f"Tue Sep  3 {end} EDT 2019"}
    return {**days, "Name": name, "Exit code": "0", **times, **changes}


TASKS = [
    # The first to start stands last, as in a log that is in order of its tasks' ends.
    entry("NYU_1_0025001", "17:00:10", "17:01:10"),
    entry("NYU_1_0025002", "17:01:10", "17:02:10"),
    entry("NYU_1_0025003", "17:00:00", "17:02:00", **{"real time": "2m0.000s"}),
]


def log(folder: Path, tasks: Any, makespan: str | None = "99\n") -> Path:
    """A run's folder."""
    folder.mkdir(parents=True)
    file = folder / "tasks.json"
    file.write_text(tasks if isinstance(tasks, str) else json.dumps({"tasks": tasks}))
    if makespan is not None:
        (folder / "makespan_seconds").write_text(makespan)
    return file


@pytest.mark.parametrize("inside", [".", "bids-app-example", "experiments/bids-app-example"])
def test_a_small_log(tmp_path: Path, inside: str) -> None:
    log(tmp_path / inside / "in-mem-4", TASKS)
    log(tmp_path / inside / "logs-of-nobody", TASKS)
    published = published_runs(tmp_path)
    assert everything_compared(None, [], str(tmp_path)) == published
    (run,) = published.runs
    assert (run["run"], run["placement"], run["cache"], run["valid"]) == (
        "in-mem-4",
        "Optane Memory mode",
        "memory",
        "valid",
    )
    assert (run["participants"], run["failed"], run["peak_parallelism"], run["parallelism"]) == (3, 0, 2, 25)
    assert (run["makespan_s"], run["logged_makespan_s"]) == (130.0, 99.0)
    assert run["start_s"] == 1567544400.0  # 21:00 UTC
    assert (run["wall_sum_s"], run["cpu_sum_s"], run["io_sum_s"]) == (240.5, 105.0, 135.5)
    assert run["mean_parallelism"] == pytest.approx(240 / 130)
    first = published.participants[0]
    assert (first["participant"], first["phase"], first["end_s"] - first["start_s"]) == ("NYU_1_0025001", "whole", 60)
    assert (first["wall_s"], first["cpu_s"], first["io_s"]) == (60.25, 35.0, 25.25)
    assert published.traffic == []


def test_failed_tasks_make_a_run_invalid(tmp_path: Path) -> None:
    failed = entry("NYU_1_0025004", "16:00:00", "18:00:00", **{"Exit code": "1", "real time": ""})
    log(tmp_path / "disk-1", [*TASKS, failed])
    published = published_runs(tmp_path)
    (run,) = published.runs
    assert (run["valid"], run["participants"], run["failed"]) == ("invalid: 1 participant failed", 3, 1)
    assert run["makespan_s"] == 130.0
    assert len(published.participants) == 3
    assert Comparison(published.runs).conditions == {}


WHOLE = json.dumps({"tasks": TASKS})


def test_beside_a_whole_log_a_broken_one_is_an_invalid_run(tmp_path: Path) -> None:
    log(tmp_path / "disk-1", TASKS)
    log(tmp_path / "disk-2", WHOLE[: len(WHOLE) // 2])
    published = published_runs(tmp_path)
    whole, broken = published.runs
    assert whole["valid"] == "valid"
    assert (broken["run"], broken["makespan_s"], broken["participants"]) == ("disk-2", None, 0)
    assert broken["valid"].startswith("invalid: tasks.json ")
    assert "no whole log" in broken["valid"]
    assert {row["run"] for row in published.participants} == {"disk-1"}
    (condition,) = Comparison(published.runs).conditions
    assert condition.placement == whole["placement"]


def test_the_published_runs(reference: Path, tmp_path: Path) -> None:
    published = published_runs(reference)
    assert {(run["participants"], run["failed"], run["valid"]) for run in published.runs} == {(685, 0, "valid")}
    assert {run["peak_parallelism"] for run in published.runs} == {25, 96}
    for run in published.runs:
        jobs = [row for row in published.participants if row["run"] == run["run"]]
        first, *_, last = sorted(jobs, key=lambda row: row["participant"].lower())
        assert run["logged_makespan_s"] == last["end_s"] - first["start_s"], "how the published figure came about"
        number = int(run["run"].rpartition("-")[2])
        assert (run["parallelism"], run["repetition"]) == (96 if number <= 3 else 25, (number - 1) % 3 + 1)
    means = {
        (condition.placement, condition.parallelism): sum(run["makespan_s"] for run in runs) / len(runs)
        for condition, runs in Comparison(published.runs).conditions.items()
    }
    memory, disk = (CONDITIONS[name][0] for name in ("in-mem", "disk"))
    expected = {(memory, 25): 2502, (memory, 96): 1081, (disk, 25): 2688, (disk, 96): 1253}
    assert {key: round(value) for key, value in means.items()} == expected
    for (_, faster), longer in Comparison(published.runs, published.participants).differences.items():
        assert (faster.placement, len(longer)) == (memory, 685)
    write_comparison_tables(published, tmp_path)
    back = read_comparison_tables(tmp_path)
    assert spread(back.runs, "makespan_s") == spread(published.runs, "makespan_s")
    assert len(back.participants) == 12 * 685


def test_two_threads_on_a_core_achieve_what_the_published_runs_show(reference: Path) -> None:
    """CPU time of a task with 96 at once, on 48 cores of two threads, over that with 25, which have a core each.

    On these tiers it grows by 1.42 and 1.45; on those of which no logs are at hand, by the paper, from 1.28 on.
    """
    cpu_s: dict[tuple[str, int], list[float]] = {}
    for run in published_runs(reference).runs:
        cpu_s.setdefault((run["placement"], run["parallelism"]), []).append(run["cpu_sum_s"] / run["participants"])
    growth = [fmean(cpu_s[name, 96]) / fmean(cpu_s[name, 25]) for name in ("Optane Memory mode", "local SSD")]
    assert growth == pytest.approx([1.454, 1.424], abs=0.001)
    machine = Processors(48, 96)
    assert machine.speed(25) == 1
    assert 1 / machine.speed(96) == pytest.approx(fmean([1.28, max(growth)]), abs=0.01)
