"""Spark beside GNU parallel on the same blocks: makespans, their ratio, and the parts of Spark's time.

Spark runs on this machine's threads (``local[2]``) and on a standalone cluster of two workers on loopback, in both
pairings; every run is a program of its own, so that the start of its JVM counts. GNU parallel starts a process per
block. Makespans are those of ``bigbrain_runs.tsv``, parts those of ``bigbrain_spark.tsv``.

    python tests/benchmarks/bigbrain_spark.py [FOLDER ON A TIER, else /dev/shm]
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import print_table, spread
from bigbrain_blocks import make, plan_of, task_of
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.spark_events import DRIVER, DRIVER_PARTS, TASK_PARTS, TASKS, drivers_of, spark_rows
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import PUBLISHED, STREAMING, Block, Task
from spark_cluster import OPTIONS, spark_cluster
from support import ENVIRONMENT

AT_ONCE, REPETITIONS = 2, 3
BLOCKS, SCALE = 8, 0.5  # of 80 MB
MEMORY = {"spark.driver.memory": "3g", "spark.executor.memory": "3g"}
"""In the published pairing each block passes through the JVM, whole and more than once."""

START = """
import json, sys
from pathlib import Path
from neurotier.bigbrain.engines.spark import run_spark
plan, logs, master, options = sys.argv[1:]
run_spark(Path(plan), Path(logs), master, json.loads(options))
"""

Engine = Callable[[Path, Path], object]
"""Increments the blocks of a plan, its logs in a folder."""

Parts = dict[tuple[str, str], float]
"""Whose time, and which part of it, to s."""


def with_spark(master: str, more: Mapping[str, str]) -> Engine:
    """The engine ``spark``, in a process of its own."""

    def run(plan: Path, logs: Path) -> None:
        command = [sys.executable, "-c", START, str(plan), str(logs), master, json.dumps({**MEMORY, **more})]
        done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr[-3000:])

    return run


def measure(engine: Engine, task: Task, folder: Path, check: bool) -> tuple[float, Parts]:
    """Makespan of one run, s, and the parts of Spark's time; what it wrote is gone afterwards."""
    plan = plan_of(task)
    engine(plan, folder / "logs")
    if check:
        assert all(one.equal for one in check_task(task, lambda _: None))
    records, drivers = records_of(task), drivers_of(folder)
    finished: dict[str, Any] = {"driver": asdict(drivers[-1]) | {"garbage_s": []}} if drivers else {}
    makespan_s = run_row(task, records, {}, finished)["makespan_s"]
    parts = {(row["of"], row["part"]): row["sum_s"] for row in spark_rows(task, drivers, records)}
    shutil.rmtree(folder)
    return makespan_s, parts


def main() -> None:
    tier = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir=tier) as name:
        folder = Path(name)
        blocks = make(folder, count=BLOCKS, scale=SCALE)
        with spark_cluster(folder / "cluster", workers=AT_ONCE) as url:
            engines = {
                "GNU parallel": run_gnu_parallel,
                f"Spark, local[{AT_ONCE}]": with_spark("local", {}),
                f"Spark, {AT_ONCE} workers": with_spark(url, OPTIONS),
            }
            runs_by_condition = {
                (pairing, engine): runs
                for pairing in (STREAMING, PUBLISHED)
                for engine, runs in measure_all(engines, pairing, blocks, folder).items()
            }
    report(
        runs_by_condition,
        f"{BLOCKS} blocks of {blocks[0].bytes / 1e6:.0f} MB on {tier}",
    )


def measure_all(
    engines: Mapping[str, Engine], pairing: str, blocks: tuple[Block, ...], folder: Path
) -> dict[str, list[tuple[float, Parts]]]:
    """Every engine in turn, several times."""
    runs_by_engine: dict[str, list[tuple[float, Parts]]] = {engine: [] for engine in engines}
    for repetition in range(REPETITIONS):
        for name, engine in engines.items():
            place = folder / "run"
            word = "gnu-parallel" if engine is run_gnu_parallel else "spark"
            task = task_of(place, blocks, run=f"{word}/disk/{AT_ONCE}/1", pairing=pairing)
            runs_by_engine[name].append(measure(engine, task, place, check=repetition == 0))
    return runs_by_engine


def report(runs_by_condition: Mapping[tuple[str, str], list[tuple[float, Parts]]], workload: str) -> None:
    """Print both tables."""
    medians = {
        condition: statistics.median(wall_s for wall_s, _ in runs) for condition, runs in runs_by_condition.items()
    }
    print_table(
        f"{workload}, {AT_ONCE} at once, medians of {REPETITIONS}",
        ("pairing", "engine", "makespan (s)", "times GNU parallel's"),
        [
            (*condition, spread([wall_s for wall_s, _ in runs]), f"{medians[condition] / medians[base]:.2f}")
            for condition, runs in runs_by_condition.items()
            for base in [(condition[0], "GNU parallel")]
        ],
    )
    spark = [condition for condition, runs in runs_by_condition.items() if runs[0][1]]
    names = [(DRIVER, part) for part in DRIVER_PARTS] + [(TASKS, part) for part in TASK_PARTS]
    print_table(
        "Parts of Spark's time (s): wall time of the driver, sums over tasks",
        ("of", "part", *(f"{engine}, {pairing}" for pairing, engine in spark)),
        [
            (
                *name,
                *(
                    f"{statistics.median(parts[name] for _, parts in runs_by_condition[condition]):.3f}"
                    for condition in spark
                ),
            )
            for name in names
        ],
    )


if __name__ == "__main__":
    main()
