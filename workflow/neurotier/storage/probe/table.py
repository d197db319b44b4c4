"""The table: a row per measurement, medians over the repetitions with their range."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from neurotier.core.spread import Spread
from neurotier.core.tables import Row, columns
from neurotier.core.tiers import Tier
from neurotier.storage.fio import FioResult
from neurotier.storage.probe.measurements import Measurement, Samples
from neurotier.storage.probe.small_files import OPERATIONS, SIZE_BYTES, Measured
from neurotier.storage.workspace import facts_of


def probe_rows(tier: Tier, samples: Samples) -> list[Row]:
    """Rows of ``probe.tsv`` for a tier that was measured on this node now."""
    facts = facts_now(tier)
    return [{**facts, **cells(measurement, results)} for measurement, results in samples.items()]


def facts_now(tier: Tier) -> Row:
    """All columns, with what all rows of a tier have in common."""
    return {
        **dict.fromkeys(columns("probe")),
        **facts_of(tier),
        "device": tier.mount().source,
        "kernel": f"{platform.system()} {platform.release()}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def file_rows(tier: Tier, files: Mapping[int, Sequence[Measured]], fio_version: str) -> list[Row]:
    """Rows for small files: an operation with a number of streams each, medians over the repetitions."""
    facts, rows = facts_now(tier) | {"fio": fio_version, "part": "files", "engine": "calls"}, []
    for streams, repetitions in files.items():
        for pattern in OPERATIONS:
            each = [measured[pattern] for measured in repetitions]
            wall_s = statistics.median(one.wall_s for one in each)
            needed = Spread(tuple(one.cpu_s + one.wait_s for one in each))
            row = {
                "pattern": pattern,
                "direct": False,
                "streams": streams,
                "queue_depth": 1,
                "block_bytes": SIZE_BYTES,
                "file_bytes": SIZE_BYTES,
                "repetitions": len(each),
                **{f"bandwidth_{end}bytes_per_s": 0.0 for end in ("", "low_", "high_")},
                "operations_per_s": streams / wall_s,
                "latency_mean_s": wall_s,
                "operation_cpu_s": statistics.median(one.cpu_s for one in each),
                "operation_wait_s": statistics.median(one.wait_s for one in each),
                "operation_low_s": needed.low,
                "operation_high_s": needed.high,
            }
            rows.append({**facts, **row})
    return rows


def cells(measurement: Measurement, results: Sequence[FioResult]) -> Row:
    """What was measured, and how."""
    job = measurement.job
    bandwidth = Spread(tuple(result.bandwidth_bytes_per_s for result in results))
    return {
        "fio": results[0].fio_version,
        "part": measurement.part,
        "pattern": job.name,
        "engine": job.engine,
        "direct": job.direct,
        "streams": job.streams,
        "queue_depth": job.queue_depth,
        "block_bytes": job.block_bytes,
        "file_bytes": job.file_bytes,
        "repetitions": len(results),
        "bandwidth_bytes_per_s": bandwidth.median,
        "bandwidth_low_bytes_per_s": bandwidth.low,
        "bandwidth_high_bytes_per_s": bandwidth.high,
        "operations_per_s": statistics.median(result.operations_per_s for result in results),
        "latency_mean_s": median(results, lambda result: result.both.latency_mean_s),
        "latency_p99_s": median(results, lambda result: result.both.latency_p99_s),
        "cpu_s_per_byte": median(results, lambda result: result.cpu_s_per_byte),
    }


def median(results: Sequence[FioResult], figure: Callable[[FioResult], float | None]) -> float | None:
    """Median of a figure over the repetitions that have it."""
    known = [value for result in results if (value := figure(result)) is not None]
    return statistics.median(known) if known else None
