"""NUMA: keep each worker and its memory on one node, so that its data do not cross sockets.

A node counts if it has CPUs and memory that this process may use. Persistent memory that the kernel uses as memory
(KMEM DAX) is a node without CPUs, so no worker is placed there. ``--membind`` is strict: if a node is full, the kernel
kills its workers even though another node has room. The pages of a file, also on a tmpfs mounted without ``mpol``, are
allocated by the policy of the process that writes them, so a block lies on the node of its worker; the original blocks
lie wherever they were made. numactl respects a cpuset (containers, Slurm's cgroups), but not a mere CPU affinity: under
``taskset`` with some CPUs of a node, workers get all CPUs of that node.
"""

from __future__ import annotations

from neurotier.bigbrain.tasks import NONE, Task
from neurotier.storage.calls import require_program
from neurotier.storage.numa import own_nodes

ONE_NODE = "none: one node"
NOTICE = "NUMA: one node, nothing to pin"
FIX = "have numactl on PATH (Debian: apt-get install numactl), or set bigbrain.numa: none"


def pinning(numa: str) -> tuple[str, tuple[int, ...]]:
    """What the setting ``numa`` means on this machine: how a run is pinned, in words, and to which nodes.

    Raises
    ------
    ToolError
        If there are nodes to pin to, but no numactl.
    """
    if numa == NONE:
        return NONE, ()
    nodes = own_nodes()
    if len(nodes) < 2:  # numactl would cost each block a few ms for nothing
        return ONE_NODE, ()
    require_program("numactl", "config key bigbrain.numa", FIX)
    return f"{len(nodes)} nodes", nodes


def node_of(task: Task, name: str) -> int | None:
    """The node of a block's workers, for any engine and iteration; ``None`` if they are not pinned.

    Nodes are assigned round-robin by the block's position among all blocks of the run, regardless of which nodes are
    free or which blocks are left to do: pages that an iteration left in memory are on the node that wrote them, and
    should be read there.
    """
    if not task.nodes:
        return None
    at = next(at for at, block in enumerate(task.blocks) if block.block == name)
    return task.nodes[at % len(task.nodes)]


def prefix(node: int | str | None) -> list[str]:
    """The words before the command of a worker that pin it to a node."""
    return [] if node is None else ["numactl", f"--cpunodebind={node}", f"--membind={node}"]
