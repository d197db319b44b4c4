"""The table: a row per measurement, medians over the repetitions with their range."""

from __future__ import annotations

import platform
import socket
import statistics
import time
from collections.abc import Callable, Sequence

from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.fio import FioResult
from neurotier.storage.probe.walk import Samples


def probe_rows(tier: Tier, samples: Samples) -> list[Row]:
    """Rows of ``probe.tsv`` for a tier that was measured on this node now."""
    mount = tier.mount()
    about = {
        "tier": tier.name,
        "kind": tier.kind,
        "fs_type": mount.fs_type,
        "device": mount.source,
        "host": socket.gethostname(),
        "kernel": kernel(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    rows = []
    for measurement, results in samples.items():
        job, on_files = measurement.job, measurement.part == "metadata"
        bandwidths = [0.0 if on_files else result.bandwidth_bytes_per_s for result in results]
        latency_s = median(results, lambda result: result.latency_mean_s)
        operations = statistics.median(result.operations_per_s for result in results)
        what = {
            "fio": results[0].fio_version,
            "part": measurement.part,
            "pattern": measurement.pattern,
            "engine": job.engine,
            "direct": job.direct,
            "streams": job.streams,
            "queue_depth": job.queue_depth,
            "block_bytes": job.block_bytes,
            "file_bytes": job.file_bytes,
            "repetitions": len(results),
        }
        figures = {
            "bandwidth_bytes_per_s": statistics.median(bandwidths),
            "bandwidth_low_bytes_per_s": min(bandwidths),
            "bandwidth_high_bytes_per_s": max(bandwidths),
            # fio itself takes longer between operations on files than a fast tier takes for them
            "operations_per_s": 1 / latency_s if on_files and latency_s else operations,
            "latency_mean_s": latency_s,
            "latency_p99_s": median(results, lambda result: result.latency_p99_s),
            "cpu_s_per_byte": None if on_files else median(results, lambda result: result.cpu_s_per_byte),
        }
        rows.append({**about, **what, **figures})
    return rows


def median(results: Sequence[FioResult], figure: Callable[[FioResult], float | None]) -> float | None:
    """Median of a figure over the repetitions that have it."""
    known = [value for result in results if (value := figure(result)) is not None]
    return statistics.median(known) if known else None


def kernel() -> str:
    """Kernel of this node."""
    return f"{platform.system()} {platform.release()}"
