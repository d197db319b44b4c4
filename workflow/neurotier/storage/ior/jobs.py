"""fio's jobs of a point: every process writes a file of its own, and then reads that of its neighbour."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.storage.access import Access
from neurotier.storage.fio import FioJob
from neurotier.storage.ior.points import Point

FILES = "ior"


def job_of(point: Point, pattern: str, way: Access, nodes: Sequence[int] = ()) -> FioJob:
    """The job that writes, or reads.

    Writing lasts until all is on the device. Whoever reads is another process than the one that wrote, and what the
    page cache has of the file is evicted first.

    Parameters
    ----------
    point
        What to do.
    pattern
        ``write`` or ``read``.
    way
        To the tier's files.
    nodes
        NUMA nodes that processes take turns on; empty to leave them where they are.
    """
    shift = 1 if pattern == "read" else 0
    each = []
    for process in range(point.processes):
        own = [("filename", f"{FILES}.{(process + shift) % point.processes}")]
        if nodes:
            node = nodes[process % len(nodes)]
            own += [("numa_cpu_nodes", str(node)), ("numa_mem_policy", f"bind:{node}")]
        each.append(tuple(own))
    return FioJob(
        name=pattern,
        pattern=pattern,
        block_bytes=point.block_bytes,
        file_bytes=point.file_bytes,
        engine=way.engine,
        direct=way.direct,
        end_fsync=pattern == "write",
        files=FILES,
        each=tuple(each),
        grouped=False,
    )
