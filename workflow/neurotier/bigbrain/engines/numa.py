"""NUMA: each worker and its memory on one node, so that what it reads, adds to and writes does not cross sockets.

A node counts if it has CPUs and memory that this process may use: persistent memory that the kernel uses as memory
(KMEM DAX) is a node without CPUs, and no place for a worker. ``--membind`` is strict: where a node is full, the kernel
kills its workers though another has room. A file's pages, and those of a tmpfs that was mounted without ``mpol``, are
taken by the policy of the process that writes them, so a block lies on the node of its worker; the blocks that are read
first lie wherever they were made. numactl keeps to a cpuset (containers, Slurm's cgroups), but not to a mere affinity:
under ``taskset`` with some CPUs of a node, workers get all of that node.
"""

from __future__ import annotations

from neurotier.bigbrain.tasks import NONE, Task
from neurotier.storage.calls import require_program
from neurotier.storage.numa import own_nodes

ONE_NODE = "none: one node"
NOTICE = "NUMA: one node, nothing to pin"
FIX = "have numactl on PATH (Debian: apt-get install numactl), or set bigbrain.numa: none"


def pinning(numa: str) -> tuple[str, tuple[int, ...]]:
    """What the configuration's ``numa`` comes to on this machine: how a run is pinned, in words, and to which nodes.

    Raises
    ------
    ToolError
        If there are nodes to pin to, but no numactl.
    """
    if numa == NONE:
        return NONE, ()
    nodes = own_nodes()
    if len(nodes) < 2:  # the prefix would cost each block a few ms for nothing
        return ONE_NODE, ()
    require_program("numactl", "config key bigbrain.numa", FIX)
    return f"{len(nodes)} nodes", nodes


def node_of(task: Task, name: str) -> int | None:
    """The node that a block's workers take, whatever the engine and the iteration; ``None`` if they are not pinned.

    By the block's place among all blocks of the run, round-robin, not by what is free, or left to do after a kill: the
    pages that an iteration left in memory are on the node that wrote them, and should be read there.
    """
    if not task.nodes:
        return None
    at = next(at for at, block in enumerate(task.blocks) if block.block == name)
    return task.nodes[at % len(task.nodes)]


def prefix(node: int | str | None) -> list[str]:
    """What precedes the command of a worker of a node."""
    return [] if node is None else ["numactl", f"--cpunodebind={node}", f"--membind={node}"]
