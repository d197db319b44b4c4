"""Which points an IOR run has: so many nodes and processes, each with a file of its own, pinned or not."""

from __future__ import annotations

from dataclasses import dataclass

from neurotier.core.errors import SettingsError
from neurotier.core.settings import IorSettings
from neurotier.core.tiers import parse_size
from neurotier.storage.workload.points import in_order

FIO, IOR = "fio", "ior"
"""What measures a point."""

START_S = 1.0
"""What fio takes to start, write and read."""

ALLOCATED_S = 5.0
"""What Slurm and the nodes take to start besides, if there are several."""

FASTEST_BYTES_PER_S = 5e9
"""No node is thought to be faster when it is said what a run takes at least."""


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
        Size of the file of each.
    block_bytes
        Size of a request.
    wants_direct
        Whether the page cache is bypassed where that can be.
    repetition
        Which repetition, from 1.
    nodes
        Nodes at once.
    concurrent
        Benchmarks at once, each on as many of the nodes.
    measured_by
        What measures: ``fio``, or ``ior``.
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
        """Bytes that each node writes, and as many that it reads."""
        return self.processes * self.file_bytes

    @property
    def bytes(self) -> int:
        """Bytes that are written, and as many that are read."""
        return self.nodes * self.bytes_per_node

    @property
    def seconds(self) -> float:
        """Time that it takes at least, s."""
        return (ALLOCATED_S if self.nodes > 1 else START_S) + 2 * self.bytes_per_node / FASTEST_BYTES_PER_S


def ior_plan(settings: IorSettings) -> dict[str, dict[str, list[Point]]]:
    """The points on every tier, pinned or not, in the order in which they are measured.

    Raises
    ------
    SettingsError
        If a size is none, benchmarks at once divide no number of nodes, or IOR itself is
        to measure what it cannot.
    """
    file_bytes = parse_size(settings.file_size, "config key ior.file_size")
    block_bytes = parse_size(settings.block_size, "config key ior.block_size")
    if not 1 <= block_bytes <= file_bytes or file_bytes % block_bytes:
        fix = "choose an ior.file_size that is a multiple of it"
        raise SettingsError("blocks do not fill a file", where="config key ior.block_size", fix=fix)
    if settings.engine == IOR and (over_nodes(settings) or settings.numa != ["none"]):
        what = "IOR itself measures one node, and processes that are not pinned"
        raise SettingsError(what, where="config key ior.engine", fix="take fio for ior.nodes and ior.numa")
    unfit = [count for count in settings.concurrent if all(nodes % count for nodes in settings.nodes)]
    if unfit:
        what = f"{unfit[0]} benchmarks at once cannot have as many nodes each"
        fix = f"add a multiple of {unfit[0]} to ior.nodes"
        raise SettingsError(what, where="config key ior.concurrent", fix=fix)
    grid = [
        (nodes, concurrent, processes)
        for nodes in settings.nodes
        for concurrent in settings.concurrent
        for processes in settings.processes
        if nodes % concurrent == 0
    ]
    sizes = (file_bytes, block_bytes)
    sets = {
        numa: in_order(
            [
                Point(numa, processes, *sizes, settings.direct, repetition, nodes, concurrent, settings.engine)
                for repetition in range(1, settings.repetitions + 1)
                for nodes, concurrent, processes in grid
            ],
            settings.seed,
        )
        for numa in settings.numa
    }
    return dict.fromkeys(settings.tiers, sets)


def over_nodes(settings: IorSettings) -> bool:
    """Whether any point needs more than one node."""
    return max(settings.nodes) > 1
