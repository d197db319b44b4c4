"""The readers of the BigBrain logs and of Table I: logs made by hand, the real ones, and broken ones."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from neurotier.bigbrain.conditions import BLOCK_BYTES
from neurotier.published.bigbrain import HEADER, INCREMENT, TASK, WRITE, BlockRun, find_runs, read_run
from neurotier.published.conditions import condition, device_and_mode
from neurotier.published.table_one import find_bandwidths
from published_logs import DISK_BENCH, DRAM_25, SPARK_25, spark_log, task, whole_log, write_log


def test_a_log_of_gnu_parallel(tmp_path: Path) -> None:
    run = read_run(write_log(tmp_path, DRAM_25, whole_log(wave_s=4.0)))
    assert run.condition == condition(40, "gnu-parallel", 25, ("DRAM", "App Direct"))
    assert run.repetition == 0
    assert run.makespan_s == pytest.approx(5 * 4.0)
    assert (run.sum_s(HEADER), run.sum_s(INCREMENT), run.sum_s(WRITE)) == pytest.approx(
        (125 * 0.25, 125 * 1.5, 125 * 2.0)
    )
    assert run.mean_parallelism == pytest.approx(25 * 3.75 / 4)
    assert (len(run.blocks), run.incomplete_blocks, run.missing_blocks) == (125, [], 0)
    assert run.data_bytes == 125 * BLOCK_BYTES[40]
    ended = run.named(TASK)
    assert [phase.block for phase in ended] == [phase.block for phase in run.named(HEADER)]


def test_incomplete_blocks_count_in_the_sums_and_not_in_the_makespan(tmp_path: Path) -> None:
    late = task(3, 100.0, (0.25, 1.0))
    run = read_run(write_log(tmp_path, DRAM_25, task(0, 0.0) + task(1, 1.0) + late))
    assert run.incomplete_blocks == ["bigbrain_0_0_2082.nii"]
    assert (len(run.blocks), run.missing_blocks) == (3, 122)
    assert run.makespan_s == pytest.approx(1.0 + 2.0)
    assert run.span_s == pytest.approx(101.5 - 0.25)
    assert run.sum_s(INCREMENT) == pytest.approx(3.0)


@pytest.mark.parametrize("label", ["tmpfsAD", "localAD"])
def test_a_log_that_lacks_a_block_or_the_end_of_a_task_is_not_whole(tmp_path: Path, label: str) -> None:
    whole = whole_log(wave_s=4.0).splitlines(keepends=True)
    name = DRAM_25.replace("tmpfsAD", label)
    said = {"all": "", "without a block": "1 block is not in the log", "without an end": "1 task without an end"}
    kept = {"all": whole, "without a block": whole[4:], "without an end": whole[:-1]}
    for which, lines in kept.items():
        run = read_run(write_log(tmp_path / which, name, "".join(lines)))
        assert run.invalid_because.startswith(said[which])
        assert bool(run.invalid_because) == bool(said[which])


def test_a_log_of_spark(tmp_path: Path) -> None:
    run = read_run(write_log(tmp_path, SPARK_25, spark_log()))
    assert run.condition == condition(20, "spark", 25, ("Optane", "App Direct"))
    assert (run.makespan_s, run.span_s) == (20.0, 8.0)
    assert (run.sum_s(HEADER), run.sum_s(INCREMENT), run.sum_s(WRITE)) == (8.0, 16.0, 8.0)
    assert run.mean_parallelism == 32 / 20
    assert (run.incomplete_blocks, run.missing_blocks) == ([], 992)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("1-tmpfs_1it_96cpus_40bb-2.out", ("Optane", "Memory mode", 96, 1, 2, "")),
        ("1-isilon_1it_25cpu_40bb-0.out", ("Isilon", "Memory mode", 25, 1, 0, "")),
        (
            "1-localAD_10it_25cpus_120delay_withpc-4.out",
            ("local SSD", "App Direct", 25, 10, 4, "10 iterations, 120delay withpc"),
        ),
        ("1-optane_1it_10cpus_40bb_em-0.out", ("optane", "Memory mode", 10, 1, 0, "em")),
        ("1-newtierAD_1it_7cpus_40bb-0.out", ("newtierAD", "App Direct", 7, 1, 0, "")),
    ],
)
def test_names_tell_conditions(tmp_path: Path, name: str, said: tuple[object, ...]) -> None:
    run = read_run(write_log(tmp_path, name, task(26, 0.0)))
    assert run.resolution_um == 40
    one = run.condition
    assert (*device_and_mode(one), one.parallelism, one.iterations, run.repetition, one.variant) == said


def test_bandwidths(tmp_path: Path) -> None:
    rows = "tmpfsAD,1.5 GB/s,5 GB/s,4 GB/s\ntmpfsAD,2.5 GB/s,6 GB/s,4 GB/s\ntmpfsAD,2.5 GB/s,7 GB/s,4 GB/s\n"
    rows += "isilon,111 MB/s,117 MB/s,3.5 GB/s\n"
    write_log(tmp_path / "system_conf", "ad_diskbench.out", DISK_BENCH + rows)
    (fast, slow), skipped = find_bandwidths(tmp_path)
    assert skipped == []
    assert (fast.device, fast.mode, fast.published) == ("DRAM", "App Direct", (5304.3, 3338.2))
    assert fast.of(statistics.mean) == pytest.approx((6 * 1024, 6.5 / 3 * 1024))
    assert fast.of(statistics.median) == pytest.approx((6 * 1024, 2.5 * 1024))
    assert (slow.device, slow.mode, slow.published) == ("Isilon", "Memory mode", None)
    assert slow.of(statistics.mean) == (117, 111)


@pytest.fixture(scope="module")
def conditions(reference: Path) -> dict[tuple[str, str, int], list[BlockRun]]:
    """The published runs at 40 um by device, mode and processes."""
    found: dict[tuple[str, str, int], list[BlockRun]] = {}
    for run in find_runs(reference)[0]:
        if run.resolution_um == 40:
            found.setdefault((*device_and_mode(run.condition), run.condition.parallelism), []).append(run)
    return found


def test_the_published_makespans(conditions: dict[tuple[str, str, int], list[BlockRun]]) -> None:
    means = {key: round(statistics.mean(run.makespan_s for run in runs), 2) for key, runs in conditions.items()}
    assert means == {
        ("DRAM", "App Direct", 25): 7.63,
        ("DRAM", "App Direct", 96): 5.66,
        ("Optane", "Memory mode", 25): 10.21,
        ("Optane", "Memory mode", 96): 9.09,
        ("Optane", "App Direct", 25): 122.32,
        ("Optane", "App Direct", 96): 96.87,
        ("local SSD", "Memory mode", 25): 246.61,
        ("local SSD", "Memory mode", 96): 251.82,
        ("local SSD", "App Direct", 25): 246.71,
        ("local SSD", "App Direct", 96): 261.87,
        ("Isilon", "Memory mode", 25): 1282.65,
        ("Isilon", "Memory mode", 96): 1356.89,
        ("Isilon", "App Direct", 25): 1215.37,
        ("Isilon", "App Direct", 96): 1352.81,
    }
    parallelism = {
        key[0]: round(statistics.mean(run.mean_parallelism for run in runs), 1)
        for key, runs in conditions.items()
        if key[1:] == ("App Direct", 25)
    }
    assert parallelism == {"DRAM": 17.2, "Optane": 24.0, "local SSD": 24.2, "Isilon": 13.4}


def test_the_ssd_was_full_and_nothing_else(conditions: dict[tuple[str, str, int], list[BlockRun]]) -> None:
    for (device, _, _), runs in conditions.items():
        assert len(runs) == 3
        assert {run.missing_blocks for run in runs} == {0}
        for run in runs:
            assert (5 <= len(run.incomplete_blocks) <= 10) == (device == "local SSD")
            assert len(run.named(TASK)) == 125 - len(run.incomplete_blocks)
