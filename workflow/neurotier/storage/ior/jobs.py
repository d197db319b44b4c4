"""fio's jobs of a point: every process writes a file of its own, and then reads that of another."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.storage.access import Access
from neurotier.storage.fio import FioJob
from neurotier.storage.ior.points import Point

FILES = "ior"


def job_of(point: Point, pattern: str, way: Access, numa: Sequence[int] = (), whose: int = 0, own: int = 0) -> FioJob:
    """The job that writes, or reads, on one node.

    Writing lasts until all is on the device. Whoever reads is another process than the one that wrote, if not another
    node, and what the page cache has of the file is evicted first.

    Parameters
    ----------
    point
        What to do.
    pattern
        ``write`` or ``read``.
    way
        To the tier's files.
    numa
        NUMA nodes that processes take turns on; empty to leave them where they are.
    whose, own
        The node whose files these are, and this one, from 0.
    """
    shift, each = int(pattern == "read" and whose == own), []
    for process in range(point.processes):
        options = [("filename", node_file(whose, (process + shift) % point.processes))]
        if numa:
            node = numa[process % len(numa)]
            options += [("numa_cpu_nodes", str(node)), ("numa_mem_policy", f"bind:{node}")]
        each.append(tuple(options))
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
    )


def node_file(node: int, process: int) -> str:
    """The file of a process of a node, both from 0."""
    return f"{FILES}.{node}.{process}"


def writer_for(node: int, nodes: int, concurrent: int) -> int:
    """The node whose files a node reads: the next one of its own benchmark, all from 0.

    Parameters
    ----------
    node, nodes
        The node that reads, and how many there are.
    concurrent
        Benchmarks at once, each on as many of the nodes, in order.

    >>> [writer_for(node, 4, 1) for node in range(4)], [writer_for(node, 4, 2) for node in range(4)]
    ([1, 2, 3, 0], [1, 0, 3, 2])
    """
    each = nodes // concurrent
    first = node // each * each
    return first + (node - first + 1) % each
