"""Predictions of the incrementation: what is learned of an engine, what there is to do, and what comes of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from bigbrain_blocks import task_of
from configured import settings_at
from neurotier.bigbrain.engines.spark_events import Driver
from neurotier.bigbrain.predictions import Calibration, Prospect, learn
from neurotier.bigbrain.tasks import Block, Task
from neurotier.core.errors import InputError
from neurotier.core.tables import Row
from neurotier.model.machine import PageCache, Processors
from neurotier.model.prediction import FLUID, MODEL_ERROR, PAPER
from neurotier.model.this_machine import Probed, TierFigures
from probed_tiers import tier_figures
from shown_values import shown

MB, GB = 10**6, 10**9
BLOCKS = tuple(Block(f"b{number}", f"/b{number}.nii", "1x1x1", "<u2", 100 * MB, "") for number in range(8))


def figures(kind: str, read: float, write: float) -> TierFigures:
    """A tier whose streams share one bandwidth, bytes/s; a disk's page cache gives 4 GB/s."""
    reads, writes = {1: read, 8: read}, {1: write, 8: write}
    cached = {1: 4.0 * GB, 8: 4.0 * GB} if kind == "block" else reads
    return tier_figures(
        kind,
        reads,
        cached,
        write_bytes_per_s=writes,
        mixed_bytes_per_s={1: 2 / (1 / read + 1 / write)},
        buffered_write_bytes_per_s=cached if kind == "block" else writes,
        single_write_bytes_per_s=write,
    )


def probed(kind: str, read: float, write: float) -> Probed:
    return Probed(figures(kind, read, write), figures(kind, 0.9 * read, 0.9 * write), figures(kind, read, write))


def predicted(tier: str, costs: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0), **keys: Any) -> dict[str, Row]:
    """What each member predicts of two blocks at once, by what the engine costs."""
    probes = {"disk": probed("block", 0.2 * GB, 0.1 * GB), "memory": probed("tmpfs", 4 * GB, 2 * GB)}
    machine, asked = (Processors(8, 8), PageCache(100.0 * GB)), settings_at(bigbrain=keys).bigbrain
    prospect = Prospect(asked, BLOCKS, probes, *machine, "gnu-parallel", tier, 2, Calibration(*costs))
    return {row["member"]: row for row in prospect.rows()}


def record(start_s: float, start_up_s: float, increment_s: float, end_s: float) -> dict[str, Any]:
    """What a block leaves: its process started, it incremented 10 MB, and it was done."""
    begin_s = start_s + start_up_s
    names = ("phase", "start_s", "end_s", "duration_s", "bytes")
    phases = ("start_up", start_s, begin_s, start_up_s, 0), ("increment", begin_s, end_s, increment_s, 10 * MB)
    return {"phases": [dict(zip(names, phase, strict=True)) for phase in phases]}


def task(run: str) -> Task:
    return task_of(Path("/"), BLOCKS[:4], run=run)


def test_what_an_engine_costs_is_learned_from_its_records() -> None:
    records = [record(0.0, 0.2, 0.02, 1.0), record(0.0, 0.4, 0.02, 1.5), record(1.1, 0.2, 0.02, 2.0)]
    learned = learn(task("gnu-parallel/disk/2/0"), records, [], Processors(cores=2, threads=2))
    assert shown(learned, "start_cpu_s gap_s around_s") == "0.2 0.1 0"
    assert learned.increment_cpu_s_per_byte == pytest.approx(2e-9)
    one_core = learn(task("gnu-parallel/disk/2/0"), records, [], Processors(cores=1, threads=1))
    assert one_core.start_cpu_s == 0.1  # two shared a core: half of the time was not theirs
    drivers = [Driver(-5.0, 1.0, "", 2.5)]
    spark = learn(task("spark/disk/2/0"), records, drivers, Processors(cores=2, threads=2))
    assert spark.around_s == pytest.approx(5.5)
    with pytest.raises(InputError, match="run spark/disk/2/0: a calibration left no record"):
        learn(task("spark/disk/2/0"), [], drivers, Processors(cores=2, threads=2))


def test_predictions_add_up() -> None:
    memory = predicted("memory", iterations=2)
    # 1.6 GB are read at 4 GB/s and written at 2 GB/s, by two that share both
    assert memory[FLUID]["predicted_s"] == pytest.approx(1.2, rel=0.02)
    assert memory[PAPER]["predicted_s"] == pytest.approx(1.2)
    assert memory[FLUID]["low_s"] <= memory[FLUID]["predicted_s"] < memory[FLUID]["high_s"]
    slow = predicted("memory", (0.5, 0.25, 1e-9, 3.0), iterations=2)
    # four blocks by each of two: starts, gaps between them, incrementing, and what is around
    by_hand = 1.2 + 4 * 0.5 + 3 * 0.25 + 8 * 0.1 + 3.0
    assert slow[FLUID]["predicted_s"] == pytest.approx(by_hand, rel=0.02)
    assert slow[PAPER]["predicted_s"] == memory[PAPER]["predicted_s"]
    around = [slow[FLUID][end] / slow[FLUID]["predicted_s"] for end in ("low_s", "high_s")]
    assert around[0] < math.exp(-MODEL_ERROR) < math.exp(MODEL_ERROR) < around[1], "the session is as uncertain"


def test_a_disk_is_read_once_and_written_to_memory_unless_flushed() -> None:
    cold, warm, flushed = (
        predicted("disk", iterations=3, **how) for how in ({}, {"cache": "warm"}, {"cache": "warm", "fsync": True})
    )
    # somewhat less, as streams that are not equal read while others write
    assert cold[FLUID]["predicted_s"] == pytest.approx(0.8 / 0.2 + 2 * 0.8 / 4 + 3 * 0.8 / 4, rel=0.06)
    assert warm[FLUID]["predicted_s"] == pytest.approx(6 * 0.8 / 4, rel=0.05)
    assert flushed[FLUID]["predicted_s"] == pytest.approx(3 * 0.8 / 4 + 3 * 0.8 / 0.1, rel=0.05)
    assert cold[PAPER]["predicted_s"] == pytest.approx(36)
