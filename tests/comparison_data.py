"""Synthetic tables of a comparison: a campaign of tiers and parallelisms, and published runs; invented numbers."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from comparison_rows import run_row
from neurotier.core.tables import Row

START_S = 1795236000.0
CAUSES = {"user": 0.80, "system": 0.05, "run_queue": 0.03, "block_io": 0.08, "memory_stall": 0.0, "other": 0.03}
PARTS = {"start_up": 0.3, "stage_in": 1.5, "container_start": 0.25, "compute": 12.0, "stage_out": 0.4}
"""Phases of a job and their typical wall times on a tier of slowness 1, s."""

Tables = tuple[list[Row], list[Row], list[Row]]


def make_run(run: Row, participants: int, parts: dict[str, float], seed: int) -> tuple[Row, list[Row]]:
    """Jobs on the slots that a run asked for, and the run with their sums."""
    source = np.random.default_rng(seed)
    free = [START_S + 0.1 * slot for slot in range(run["parallelism"])]
    rows = []
    for number in range(participants):
        clock = heapq.heappop(free)
        for phase, typical_s in parts.items():
            wall_s = round(float(typical_s * source.lognormal(0.0, 0.25)), 3)
            times = {"start_s": clock, "end_s": clock + wall_s, "wall_s": wall_s, "cpu_s": 0.85 * wall_s}
            about = {"origin": run["origin"], "run": run["run"], "participant": f"sub-{number:03d}", "phase": phase}
            rows.append(about | times | {"io_s": 0.15 * wall_s})
            clock += wall_s
        heapq.heappush(free, clock + 0.05)
    makespan_s = max(row["end_s"] for row in rows) - min(row["start_s"] for row in rows)
    wall_s, cpu_s, io_s = (sum(row[column] for row in rows) for column in ("wall_s", "cpu_s", "io_s"))
    sums = {"wall_sum_s": wall_s, "cpu_sum_s": cpu_s, "io_sum_s": io_s, "participants": participants}
    parallel = {"mean_parallelism": wall_s / makespan_s, "peak_parallelism": min(participants, run["parallelism"])}
    return run | {"makespan_s": makespan_s, "start_s": START_S} | sums | parallel, rows


def campaign(
    slowness: dict[str, float],
    parallelisms: tuple[int, ...] = (2, 4),
    repetitions: int = 2,
    participants: int = 12,
    **changes: Any,
) -> Tables:
    """Runs of a campaign: placements with how much slower than 1 their tier moves data."""
    runs, jobs, traffic = [], [], []
    for seed, (placement, parallelism, repetition) in enumerate(
        (placement, parallelism, repetition)
        for placement in slowness
        for parallelism in parallelisms
        for repetition in range(1, repetitions + 1)
    ):
        slow = slowness[placement]
        name = f"{placement}-{parallelism}-{repetition}"
        about = {"tool": "bet", "parallelism": parallelism, "repetition": repetition}
        tiers = dict.fromkeys(("dataset_tier", "work_tier", "images_tier", "results_tier"), placement)
        parts = {phase: time_s * (1 if phase == "compute" else slow) for phase, time_s in PARTS.items()}
        run, rows = make_run(run_row(name, placement, None, **about | tiers), participants, parts, seed)
        account = {f"account_{cause}_sum_s": share * run["wall_sum_s"] for cause, share in CAUSES.items()}
        account["residual_sum_s"] = run["wall_sum_s"] - sum(account.values())
        runs.append(run | account | {"container_start_median_s": 0.25 * slow} | changes)
        jobs += [row | {key: changes[key] for key in ("origin", "run") if key in changes} for row in rows]
        moved = {"read_bytes": participants * 9_000_000, "written_bytes": participants * 4_000_000}
        where = {"origin": runs[-1]["origin"], "run": runs[-1]["run"]}
        traffic.append({**where, "tier": placement, **moved})
        traffic.append({**where, "tier": "results", "read_bytes": None, "written_bytes": participants * 2_000_000})
    return runs, jobs, traffic


def published(participants: int = 685, repetitions: int = 3) -> Tables:
    """Published runs: whole jobs, no account, a logged makespan that is off."""
    runs, jobs = [], []
    for seed, (placement, parallelism, repetition) in enumerate(
        (placement, parallelism, repetition)
        for placement in ("in-mem", "disk")
        for parallelism in (25, 96)
        for repetition in range(1, repetitions + 1)
    ):
        about: Row = {"origin": "published", "tool": "bids-app-example", "oversubscribed": None}
        about |= {"cache": "memory" if placement == "in-mem" else "as found", "repetition": repetition}
        row = run_row(f"{placement}-{seed}", placement, None, parallelism=parallelism, **about)
        wall_s = 88.0 * (1.1 if placement == "disk" else 1.0) * (1.6 if parallelism == 96 else 1.0)
        run, rows = make_run(row, participants, {"whole": wall_s}, seed)
        runs.append(run | {"logged_makespan_s": run["makespan_s"] - 7.0})
        jobs += rows
    return runs, jobs, []


def together(*tables: Tables) -> Tables:
    """The rows of several comparisons in one."""
    runs, jobs, traffic = ([row for table in tables for row in table[place]] for place in range(3))
    return runs, jobs, traffic
