"""fio's jobs of a point: every process writes a file of its own, and then reads that of another."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.storage.access import Access
from neurotier.storage.fio import FioJob
from neurotier.storage.ior.points import Point

FILES = "ior"


def job_of(point: Point, pattern: str, way: Access, nodes: Sequence[int] = ()) -> FioJob:
    """The job that writes, or reads, on one node.

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
    return fio_job(point, pattern, way, [f"{FILES}.{place}" for place in shifted(point.processes, shift)], nodes)


def job_among_nodes(point: Point, pattern: str, way: Access, nodes: Sequence[int], whose: int, own: int) -> FioJob:
    """The job of one node of several; what it reads, another node has written, or another of its processes.

    Parameters
    ----------
    point, pattern, way, nodes
        As in :func:`job_of`.
    whose
        The node, from 0, whose files these are.
    own
        This node, from 0.
    """
    shift = 1 if pattern == "read" and whose == own else 0
    names = [node_file(whose, place) for place in shifted(point.processes, shift)]
    return fio_job(point, pattern, way, names, nodes)


def node_file(node: int, process: int) -> str:
    """The file of a process of a node among several, both from 0."""
    return f"{FILES}.{node}.{process}"


def shifted(count: int, shift: int) -> list[int]:
    """Numbers from 0, each exchanged for the one that is so many further on, in a ring.

    >>> shifted(3, 1)
    [1, 2, 0]
    """
    return [(place + shift) % count for place in range(count)]


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


def fio_job(point: Point, pattern: str, way: Access, names: Sequence[str], nodes: Sequence[int]) -> FioJob:
    """fio's job with a process for each of some files."""
    each = []
    for process, name in enumerate(names):
        own = [("filename", name)]
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
    )
