"""The model: how long it thinks, and how far its members are off on the published runs, where those are at hand."""

from __future__ import annotations

import time

from bench import print_table
from neurotier.model.fluid import simulate
from neurotier.model.machine import Machine, PageCache, Processors, TierSpeed, cache_of
from neurotier.model.workload import Step, Workload
from neurotier.published.predictions import Predictor
from neurotier.published.replay import read_published
from published_logs import REFERENCE

TASKS, WORKERS = 1000, 96
BLOCK_BYTES = 646_461_552
REPETITIONS = 5


def thinking() -> None:
    """Simulate 1,000 blocks of the 20 um image with 96 workers, on a disk with write-back and on memory."""
    memory = TierSpeed(30e9, 30e9, 1.4e9, 1.2e9, unevenness=0.05)
    disk = TierSpeed(0.5e9, 0.24e9, 0.5e9, 0.24e9, unevenness=0.05, write_back=True)
    machine = Machine(Processors(48, 96), PageCache(781e9, 0.1, 0.4), {"disk": disk, cache_of("disk"): memory})
    rows = []
    for tier in ("disk", cache_of("disk")):
        task = (Step("read", "read", BLOCK_BYTES, tier), Step("write", "write", BLOCK_BYTES, tier))
        started_s = time.perf_counter()
        for seed in range(REPETITIONS):
            found = simulate(Workload([task] * TASKS, launch_s=0.5), machine, WORKERS, seed)
        taken_s = (time.perf_counter() - started_s) / REPETITIONS
        rows.append([tier, f"{found.makespan_s:,.0f}", f"{taken_s:.2f}"])
    print_table(f"{TASKS:,} tasks, {WORKERS} workers", ["tier", "predicted makespan, s", "simulation, s"], rows)


def published() -> None:
    """Every prediction beside what was measured."""
    rows = []
    for row in Predictor(read_published(REFERENCE)).predictions():
        of = f"{row['device']}, {row['mode']}"
        span = "" if row["low_s"] is None else f"{row['low_s']:.1f}-{row['high_s']:.1f}"
        measured = ["", ""] if row["ratio"] is None else [f"{row['measured_s']:.1f}", f"{row['ratio']:.2f}"]
        figures = [f"{row['predicted_s']:.1f}", span, *measured]
        rows.append([row["resolution_um"], row["engine"], row["processes"], of, row["member"], *figures])
    header = ["um", "engine", "processes", "on", "member", "predicted, s", "interval", "measured, s", "ratio"]
    print_table("published makespans", header, rows)


if __name__ == "__main__":
    thinking()
    if REFERENCE.is_dir():
        published()
