"""The NUMA nodes on which this process can run and has memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

NODES = Path("/sys/devices/system/node")
STATUS = Path("/proc/self/status")
MEMORY = re.compile(r"^Mems_allowed_list:(.*)", re.MULTILINE)
NO_MEMORY = re.compile(r"MemTotal:\s+0 ")


def own_nodes() -> tuple[int, ...]:
    """The nodes that this process can use, in order; empty if the kernel has no NUMA."""
    memory = MEMORY.search(STATUS.read_text())
    return usable_nodes(NODES, os.sched_getaffinity(0), read_list(memory[1]) if memory else None)


def usable_nodes(folder: Path, cpus: set[int], memory: set[int] | None = None) -> tuple[int, ...]:
    """The nodes on which a worker can run and has memory, in order.

    Parameters
    ----------
    folder
        The kernel's folder of nodes; if the kernel has no NUMA, it is missing, and the result is empty.
    cpus
        CPUs that may be used; a node lists only CPUs that are online.
    memory
        Nodes whose memory may be used; ``None`` means all.
    """
    return tuple(
        sorted(
            node
            for place in folder.glob("node[0-9]*")
            for node in [int(place.name.removeprefix("node"))]
            if (memory is None or node in memory)
            and cpus & read_list((place / "cpulist").read_text())
            and not NO_MEMORY.search((place / "meminfo").read_text())
        )
    )


def read_list(text: str) -> set[int]:
    """Read a list of CPUs or nodes in the kernel's notation.

    >>> sorted(read_list("0-2,7"))
    [0, 1, 2, 7]
    """
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}
