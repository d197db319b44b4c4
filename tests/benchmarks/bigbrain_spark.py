"""Spark beside GNU parallel on the same blocks in memory: makespans, their ratio, and the parts of Spark's time.

Spark runs on this machine's threads (``local[2]``) and on a standalone cluster of two workers on loopback, in both
pairings; every run is a program of its own, so that the start of its JVM counts.
"""

from __future__ import annotations

import statistics
from typing import Any

from bench import print_table, scratch_project, spread
from spark_cluster import OPTIONS, spark_cluster

AT_ONCE, REPETITIONS = 2, 3
BLOCKS = {"count": 8, "scale": 0.5, "iterations": 1, "tiers": ["tmpfs"]}  # of 80 MB
MEMORY = {"spark.driver.memory": "3g", "spark.executor.memory": "3g"}
"""In the published pairing each block passes through the JVM, whole and more than once."""


def main() -> None:
    rows: list[list[str]] = []
    parts: dict[tuple[str, str], list[str]] = {}
    columns = []
    with scratch_project() as project, spark_cluster(project.folder / "cluster", workers=AT_ONCE) as url:
        ways: dict[str, dict[str, Any]] = {
            "GNU parallel": {"engines": ["gnu-parallel"]},
            f"Spark, local[{AT_ONCE}]": {"engines": ["spark"], "spark_options": MEMORY},
            f"Spark, {AT_ONCE} workers": {
                "engines": ["spark"],
                "spark_master": url,
                "spark_options": {**MEMORY, **OPTIONS},
            },
        }
        for pairing in ("streaming", "published"):
            medians_s: list[float] = []
            for number, (name, way) in enumerate(ways.items()):
                more = {"parallelism": [AT_ONCE], "repetitions": REPETITIONS, "pairing": pairing, "predict": False}
                results = f"results/{pairing}-{number}"
                arguments = project.configure(bigbrain={**BLOCKS, **more, **way}, results=results)
                project.succeeds(f"{results}/bigbrain/bigbrain_runs.tsv", *arguments)
                tables = f"{pairing}-{number}/bigbrain"
                makespans_s = [float(run["makespan_s"]) for run in project.table(f"{tables}/bigbrain_runs.tsv")]
                medians_s.append(statistics.median(makespans_s))
                rows.append([pairing, name, spread(makespans_s), f"{medians_s[-1] / medians_s[0]:.2f}"])
                if number:
                    columns.append(f"{name}, {pairing}")
                    times_s: dict[tuple[str, str], list[float]] = {}
                    for row in project.table(f"{tables}/bigbrain_spark.tsv"):
                        times_s.setdefault((row["of"], row["part"]), []).append(float(row["sum_s"]))
                    for part, each_s in times_s.items():
                        parts.setdefault(part, []).append(f"{statistics.median(each_s):.3f}")
    what = f"{BLOCKS['count']} blocks of 80 MB in memory, {AT_ONCE} at once, medians of {REPETITIONS}"
    print_table(what, ["pairing", "engine", "makespan (s)", "times GNU parallel's"], rows)
    head = ["of", "part", *columns]
    print_table(
        "Parts of Spark's time (s): wall time of the driver, sums over tasks",
        head,
        [[*p, *v] for p, v in parts.items()],
    )
