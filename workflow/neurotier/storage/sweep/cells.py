"""What fio measured at a point, as cells of the table."""

from __future__ import annotations

from neurotier.core.tables import Row
from neurotier.storage.fio import FioResult


def cells(result: FioResult) -> Row:
    """The columns that fio fills."""
    return {
        "bandwidth_bytes_per_s": result.bandwidth_bytes_per_s,
        "read_bytes_per_s": result.read.bandwidth_bytes_per_s,
        "write_bytes_per_s": result.write.bandwidth_bytes_per_s,
        "requests_per_s": result.operations_per_s,
        "latency_mean_s": result.latency_mean_s,
        "latency_p99_s": result.latency_p99_s,
        "runtime_s": result.runtime_s,
        "read_bytes": result.read.bytes,
        "write_bytes": result.write.bytes,
        "cpu_s": result.cpu_user_s + result.cpu_system_s,
        "fio_version": result.fio_version,
    }
