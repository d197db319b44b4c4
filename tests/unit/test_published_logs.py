"""The readers of the published logs and of Table I: logs made by hand, the real ones, and broken ones."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from neurotier.bigbrain.conditions import BLOCK_BYTES
from neurotier.model.machine import Processors
from neurotier.pages.comparison.verdict import Comparison, all_compared
from neurotier.published.bids_app import CONDITIONS, published_runs
from neurotier.published.bigbrain import HEADER, INCREMENT, WRITE, read_run
from neurotier.published.conditions import condition
from neurotier.published.table_one import find_bandwidths
from published_logs import DISK_BENCH, DRAM_25, SPARK_25, bids_task, spark_log, task, whole_log, write_log
from shown_values import shown

PHASES = HEADER, INCREMENT, WRITE


def test_a_log_of_gnu_parallel(tmp_path: Path) -> None:
    run = read_run(write_log(tmp_path, DRAM_25, whole_log(wave_s=4.0)))
    assert run.condition == condition(40, "gnu-parallel", 25, "DRAM")
    assert shown(run, "repetition makespan_s mean_parallelism") == f"0 {5 * 4} {25 * 3.75 / 4:.4f}"
    assert [run.sum_s(phase) for phase in PHASES] == pytest.approx([125 * 0.25, 125 * 1.5, 125 * 2.0])
    assert (len(run.blocks), run.incomplete_blocks, run.missing_blocks) == (125, [], 0)
    assert run.data_bytes == 125 * BLOCK_BYTES[40]


def test_incomplete_blocks_count_in_the_sums_and_not_in_the_makespan(tmp_path: Path) -> None:
    late = task(3, 100.0, (0.25, 1.0))
    run = read_run(write_log(tmp_path, DRAM_25, task(0, 0.0) + task(1, 1.0) + late))
    assert run.incomplete_blocks == ["bigbrain_0_0_2082.nii"]
    assert shown(run, "missing_blocks makespan_s span_s") == f"122 {1 + 2} {101.5 - 0.25}"
    assert len(run.blocks) == 3
    assert run.sum_s(INCREMENT) == pytest.approx(3.0)


@pytest.mark.parametrize("label", ["tmpfsAD", "localAD"])
def test_a_log_that_lacks_a_block_or_the_end_of_a_task_is_not_whole(tmp_path: Path, label: str) -> None:
    whole = whole_log(wave_s=4.0).splitlines(keepends=True)
    name = DRAM_25.replace("tmpfsAD", label)
    read = [read_run(write_log(tmp_path, name, "".join(lines))) for lines in (whole, whole[4:], whole[:-1])]
    assert [" ".join(run.invalid_because.split()[:4]) for run in read] == ["", "1 block is not", "1 task without an"]


def test_a_log_of_spark(tmp_path: Path) -> None:
    run = read_run(write_log(tmp_path, SPARK_25, spark_log()))
    assert run.condition == condition(20, "spark", 25, "Optane, App Direct")
    assert shown(run, "makespan_s span_s incomplete_blocks missing_blocks") == "20 8 [] 992"
    assert [run.sum_s(phase) for phase in PHASES] == [8.0, 16.0, 8.0]
    assert run.mean_parallelism == 32 / 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("1-tmpfs_1it_96cpus_40bb-2.out", "Optane, Memory mode 40 96 1 "),
        (
            "1-localAD_10it_25cpus_120delay_withpc-4.out",
            "local SSD, App Direct 40 25 10 10 iterations, 120delay withpc",
        ),
        ("1-newtierAD_1it_7cpus_40bb-0.out", "newtierAD, App Direct 40 7 1 "),
    ],
)
def test_names_tell_conditions(tmp_path: Path, name: str, said: str) -> None:
    run = read_run(write_log(tmp_path, name, task(26, 0.0)))
    assert run.repetition == int(name[-5])
    assert shown(run.condition, "tier resolution_um parallelism iterations variant") == said


def test_bandwidths(tmp_path: Path) -> None:
    rows = "tmpfsAD,1.5 GB/s,5 GB/s,4 GB/s\ntmpfsAD,2.5 GB/s,6 GB/s,4 GB/s\ntmpfsAD,2.5 GB/s,7 GB/s,4 GB/s\n"
    rows += "isilon,111 MB/s,117 MB/s,3.5 GB/s\n"
    write_log(tmp_path / "system_conf", "ad_diskbench.out", DISK_BENCH + rows)
    fast, slow = find_bandwidths(tmp_path, skipped := list[Any]())
    assert skipped == []
    assert shown(fast, "device mode published") == "DRAM App Direct (5304.3, 3338.2)"
    assert fast.means == pytest.approx((6 * 1024, 6.5 / 3 * 1024))
    assert list(map(statistics.median, (fast.read_mb_s, fast.write_mb_s))) == pytest.approx([6 * 1024, 2.5 * 1024])
    assert shown(slow, "device mode published") == "Isilon Memory mode -"
    assert slow.means == (117, 111)


TASKS = [
    # The first to start stands last, as in a log that is in order of its tasks' ends.
    bids_task("NYU_1_0025001", "17:00:10", "17:01:10"),
    bids_task("NYU_1_0025002", "17:01:10", "17:02:10"),
    bids_task("NYU_1_0025003", "17:00:00", "17:02:00", **{"real time": "2m0.000s"}),
]


def log(folder: Path, tasks: Any) -> None:
    """A run's folder."""
    write_log(folder, "tasks.json", tasks if isinstance(tasks, str) else json.dumps({"tasks": tasks}))
    write_log(folder, "makespan_seconds", "99\n")


@pytest.mark.parametrize("inside", [".", "bids-app-example", "experiments/bids-app-example"])
def test_a_small_log(tmp_path: Path, inside: str) -> None:
    log(tmp_path / inside / "in-mem-4", TASKS)
    log(tmp_path / inside / "logs-of-nobody", TASKS)
    published = published_runs(tmp_path)
    assert all_compared(None, [], str(tmp_path)) == published
    (run,) = published.runs
    assert run["start_s"] == 1567544400.0  # 21:00 UTC
    assert shown(run, "run placement cache valid participants failed") == "in-mem-4 Optane Memory mode memory valid 3 0"
    assert shown(run, "peak_parallelism parallelism makespan_s logged_makespan_s") == "2 25 130 99"
    assert shown(run, "wall_sum_s cpu_sum_s io_sum_s") == "240.5 105 135.5"
    assert run["mean_parallelism"] == pytest.approx(240 / 130)
    first = published.participants[0]
    assert shown(first, "participant phase wall_s cpu_s io_s") == "NYU_1_0025001 whole 60.25 35 25.25"
    assert first["end_s"] - first["start_s"] == 60
    assert published.traffic == []


def test_beside_a_whole_log_one_of_a_failed_task_and_a_broken_one_are_invalid_runs(tmp_path: Path) -> None:
    failed = bids_task("NYU_1_0025004", "16:00:00", "18:00:00", **{"Exit code": "1", "real time": ""})
    for number, tasks in enumerate((TASKS, [*TASKS, failed], '{"tasks": [{'), 1):
        log(tmp_path / f"disk-{number}", tasks)
    published = published_runs(tmp_path)
    whole, incomplete, broken = published.runs
    assert shown(incomplete, "valid participants failed makespan_s") == "invalid: 1 participant failed 3 1 130"
    assert shown(broken, "run makespan_s participants") == "disk-3 - 0"
    assert re.match(r"invalid: tasks.json .*not a whole log", broken["valid"])
    assert [row["run"] for row in published.participants] == ["disk-1"] * 3 + ["disk-2"] * 3
    assert list(Comparison(published.runs).conditions.values()) == [[whole]]


def test_the_published_runs(reference: Path) -> None:
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
        (condition.placement, condition.parallelism): round(fmean(run["makespan_s"] for run in runs))
        for condition, runs in Comparison(published.runs).conditions.items()
    }
    memory, disk = (CONDITIONS[name][0] for name in ("in-mem", "disk"))
    assert means == {(memory, 25): 2502, (memory, 96): 1081, (disk, 25): 2688, (disk, 96): 1253}


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
