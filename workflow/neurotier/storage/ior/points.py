"""The points of an IOR run, each a number of nodes and of processes, pinned or not, and how fio measures them.

Every process writes a file of its own, and then reads that of another. fio reports how long each process took, and its
logs say when each made its first request. So processes on several nodes can be put on one time axis, as far as the
nodes' clocks agree, and the total is computed as in IOR: from the first start to the last end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neurotier.core.errors import ToolError
from neurotier.core.files import Record
from neurotier.core.parallelism import span_s
from neurotier.core.settings import IorSettings
from neurotier.core.tables import grouped
from neurotier.storage.fio import Access, FioJob, FioResult
from neurotier.storage.workspace import Workspace

FIO, IOR = "fio", "ior"
"""The programs that can measure a point."""

FILES = "ior"
PIN = "pin"
"""The set of points whose processes are pinned."""

START_S = 1.0
"""Time that fio takes to start for writing and for reading, s."""

ALLOCATED_S = 5.0
"""Time that Slurm and the nodes take to start if there are several nodes, s."""

FASTEST_BYTES_PER_S = 5e9
"""No node is assumed to be faster than this when the least duration of a run is estimated."""

Span = Record
"""What a process did: ``node`` and ``process``, both from 0; ``start_s`` and ``end_s``, s since 1970 by its node's
clock; and ``bytes``."""


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    set_name
        How processes are pinned: ``none`` or ``pin``.
    processes
        Processes at once on each node.
    file_bytes
        Size of each process's file.
    block_bytes
        Size of a request.
    wants_direct
        Whether to bypass the page cache where possible.
    repetition
        Number of the repetition, from 1.
    nodes
        Number of nodes.
    concurrent
        Number of concurrent benchmarks, each on an equal part of the nodes.
    measured_by
        The program that measures: ``fio`` or ``ior``.
    """

    set_name: str
    processes: int
    file_bytes: int
    block_bytes: int
    wants_direct: bool
    repetition: int
    nodes: int = 1
    concurrent: int = 1
    measured_by: str = FIO

    @property
    def bytes_per_node(self) -> int:
        """Bytes that each node writes and then reads."""
        return self.processes * self.file_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes that all nodes write and then read."""
        return self.nodes * self.bytes_per_node

    @property
    def seconds(self) -> float:
        """Least time that it takes, s."""
        return (ALLOCATED_S if self.nodes > 1 else START_S) + 2 * self.bytes_per_node / FASTEST_BYTES_PER_S


def over_nodes(settings: IorSettings) -> bool:
    """Whether any point needs more than one node."""
    return max(settings.nodes) > 1


def job_of(point: Point, pattern: str, way: Access, numa: Sequence[int] = (), whose: int = 0, own: int = 0) -> FioJob:
    """The fio job that writes or reads on one node.

    Writing lasts until everything is on the device. A file is read by another process than its writer, or on another
    node, and is evicted from the page cache first.

    Parameters
    ----------
    point
        The point.
    pattern
        ``write`` or ``read``.
    way
        How to access the tier's files.
    numa
        NUMA nodes over which to distribute processes; empty not to pin them.
    whose, own
        The node that wrote the files, and this node, both from 0.
    """
    shift, each = int(pattern == "read" and whose == own), []
    for process in range(point.processes):
        options = {"filename": node_file(whose, (process + shift) % point.processes)}
        if numa:
            node = numa[process % len(numa)]
            options |= {"numa_cpu_nodes": str(node), "numa_mem_policy": f"bind:{node}"}
        each.append(options)
    return FioJob(
        name=pattern,
        pattern=pattern,
        block_bytes=point.block_bytes,
        file_bytes=point.file_bytes,
        way=way,
        end_fsync=pattern == "write",
        files=FILES,
        each=each,
    )


def node_file(node: int, process: int) -> str:
    """The name of the file that a process of a node writes; both count from 0."""
    return f"{FILES}.{node}.{process}"


def writer_for(node: int, nodes: int, concurrent: int) -> int:
    """The node whose files a node reads: the next node in the same benchmark. Nodes count from 0.

    Parameters
    ----------
    node, nodes
        The node that reads, and the number of nodes.
    concurrent
        Number of concurrent benchmarks, each on an equal part of the nodes, in order.

    >>> [writer_for(node, 4, 1) for node in range(4)], [writer_for(node, 4, 2) for node in range(4)]
    ([1, 2, 3, 0], [1, 0, 3, 2])
    """
    each = nodes // concurrent
    first = node // each * each
    return first + (node - first + 1) % each


def run_logged(workspace: Workspace, job: FioJob, limit_s: float, node: int = 0) -> tuple[FioResult, list[Span]]:
    """Run a job named ``write`` or ``read`` on a node; return its result, and what each process did.

    Raises
    ------
    ToolError
        If fio fails, or does not log its requests.
    TierError
        If the tier fills up.
    """
    with tempfile.TemporaryDirectory(prefix="neurotier-ior-") as folder:
        logs = {
            "write_lat_log": f"{folder}/{job.name}",
            "log_unix_epoch": "1",
            "disable_clat": "1",  # otherwise there would be three logs
            "disable_slat": "1",
        }
        done, spans = workspace.run(replace(job, options=job.options | logs), limit_s), []
        for process, flow in enumerate(done.writes if job.name == "write" else done.reads):
            start_s = first_request_s(Path(folder, f"{job.name}_lat.{process + 1}.log"))
            span = {"node": node, "process": process, "start_s": start_s, "end_s": start_s + flow.runtime_s}
            spans.append(span | {"bytes": flow.bytes})
        return done, spans


def first_request_s(log: Path) -> float:
    """When the first request in a log was made, s since 1970 (fio 3.29 and later).

    A line has the time when a request was done, ms, and how long the request took, ns.

    Raises
    ------
    ToolError
        If fio wrote no log, or one with another layout.
    """
    try:
        with log.open() as file:
            done_ms, took_ns, *_ = file.readline().split(",")
        return int(done_ms) / 1e3 - int(took_ns) / 1e9
    except (OSError, ValueError):
        raise ToolError("fio did not log when its requests were made", log, "take fio 3.33") from None


def aggregate_rate(spans: Sequence[Span]) -> float:
    """The bandwidth of all processes: all bytes over the time from the first start to the last end, bytes/s.

    >>> aggregate_rate([{"start_s": 10.0, "end_s": 12.0, "bytes": 600}, {"start_s": 11.0, "end_s": 13.0, "bytes": 600}])
    400.0
    """
    time_s = taken_s(spans)
    return sum(span["bytes"] for span in spans) / time_s if time_s else 0.0


def taken_s(spans: Sequence[Span]) -> float:
    """Time from the first start to the last end, s."""
    return span_s([(span["start_s"], span["end_s"]) for span in spans])


def by_nodes(spans: Sequence[Span], count: int) -> list[float]:
    """The bandwidth of each group of ``count`` nodes, in order, bytes/s."""
    return [aggregate_rate(group) for group in grouped((span["node"] // count, span) for span in spans).values()]


def cells_of(pattern: str, spans: Sequence[Span], nodes: int, concurrent: int) -> Record:
    """The bandwidth of all processes of a point, and its details, as cells of the table.

    Parameters
    ----------
    pattern
        ``write`` or ``read``.
    spans
        Those of all processes on all nodes.
    nodes, concurrent
        Those of the point. The bandwidth of each concurrent benchmark is computed separately, and the sum is taken.
    """
    own = by_nodes(spans, 1)
    starts = [span["start_s"] for span in spans]
    return {
        f"{pattern}_bytes_per_s": sum(by_nodes(spans, nodes // concurrent)),
        f"{pattern}_span_s": taken_s(spans),
        f"{pattern}_bytes": sum(span["bytes"] for span in spans),
        f"{pattern}_nodes_bytes_per_s": sum(own),
        f"{pattern}_node_least_bytes_per_s": min(own),
        f"{pattern}_node_most_bytes_per_s": max(own),
        f"{pattern}_start_spread_s": max(starts) - min(starts),
    }
