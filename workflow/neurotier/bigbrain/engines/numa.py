"""NUMA: each worker and its memory on one node, so that what it reads, adds to and writes does not cross sockets.

A node counts if it has CPUs and memory that this process may use: persistent memory that the kernel uses as memory
(KMEM DAX) is a node without CPUs, and no place for a worker. ``--membind`` is strict: where a node is full, the kernel
kills its workers though another has room. A file's pages, and those of a tmpfs that was mounted without ``mpol``, are
taken by the policy of the process that writes them, so a block lies on the node of its worker; the blocks that are read
first lie wherever they were made. numactl keeps to a cpuset (containers, Slurm's cgroups), but not to a mere affinity:
under ``taskset`` with some CPUs of a node, workers get all of that node.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from neurotier.bigbrain.tasks import NONE, Task
from neurotier.core.errors import ToolError

PIN = "pin"
ONE_NODE = "none: one node"
NOTICE = "NUMA: one node, nothing to pin"
NODES = Path("/sys/devices/system/node")
STATUS = Path("/proc/self/status")
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
    nodes = usable_nodes(NODES, os.sched_getaffinity(0), allowed_memory())
    if len(nodes) < 2:  # the prefix would cost each block a few ms for nothing
        return ONE_NODE, ()
    check_numactl()
    return f"{len(nodes)} nodes", nodes


def check_numactl() -> None:
    """Raise :class:`ToolError` if there is no numactl."""
    if shutil.which("numactl") is None:
        raise ToolError("numactl is not on PATH", "config key bigbrain.numa", FIX)


def usable_nodes(folder: Path, cpus: set[int], memory: set[int] | None = None) -> tuple[int, ...]:
    """Nodes on which a worker can run and has memory, in order.

    Parameters
    ----------
    folder
        The kernel's folder of nodes; without it, as where the kernel knows no NUMA, there is none.
    cpus
        CPUs that may be used; those of a node are the ones that are online.
    memory
        Nodes whose memory may be used; ``None`` means all.
    """
    nodes = []
    for place in folder.glob("node[0-9]*"):
        node = int(place.name.removeprefix("node"))
        allowed = memory is None or node in memory
        if allowed and cpus & read_list((place / "cpulist").read_text()) and memory_kib(place):
            nodes.append(node)
    return tuple(sorted(nodes))


def allowed_memory() -> set[int] | None:
    """Nodes whose memory this process may use; ``None`` if the kernel does not say."""
    lines = (line.split(":", 1) for line in STATUS.read_text().splitlines())
    return next((read_list(rest) for name, rest in lines if name == "Mems_allowed_list"), None)


def memory_kib(place: Path) -> int:
    """Memory of a node, KiB."""
    words = (line.split() for line in (place / "meminfo").read_text().splitlines())  # Node 0 MemTotal: 6383832 kB
    return next((int(word[3]) for word in words if word[2:3] == ["MemTotal:"]), 0)


def read_list(text: str) -> set[int]:
    """The numbers in the kernel's way of writing lists of CPUs and nodes.

    >>> sorted(read_list("0-2,7"))
    [0, 1, 2, 7]
    """
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def node_of(task: Task, name: str) -> int | None:
    """The node that a block's workers take, whatever the engine and the iteration; ``None`` if they are not pinned.

    By the block's place among all blocks of the run, round-robin, and not by what is free, or left to do after a kill:
    the pages that an iteration left in memory are on the node that wrote them, and are to be read there.
    """
    if not task.nodes:
        return None
    at = next(at for at, block in enumerate(task.blocks) if block.block == name)
    return task.nodes[at % len(task.nodes)]


def prefix(node: int | str | None) -> list[str]:
    """What stands before the command of a worker of a node."""
    return [] if node is None else ["numactl", f"--cpunodebind={node}", f"--membind={node}"]
