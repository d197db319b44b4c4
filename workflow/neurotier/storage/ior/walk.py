"""The IOR run as a workload: all processes write files at the same time, and read back those of their neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from neurotier.core.errors import SettingsError
from neurotier.core.kinds import KINDS
from neurotier.core.quantities import counted
from neurotier.core.settings import IorSettings, Say
from neurotier.core.tables import Row
from neurotier.core.tiers import parse_size
from neurotier.storage.fio import BUFFERED, Access, access_text, find_access, supports_direct
from neurotier.storage.ior.mpi import require_engine, run_ior
from neurotier.storage.ior.points import IOR, PIN, Point, cells_of, job_of, over_nodes, run_logged
from neurotier.storage.numa import own_nodes
from neurotier.storage.workload import Workload
from neurotier.storage.workspace import Workspace, patience_s

SPANS = "spans"
"""Kept with a point in addition to its columns: when each process began and ended."""

OTHER_NODE, OTHER_PROCESS = "another node", "another process"
"""What reads the file that a process wrote."""


class Ior(Workload[Point]):
    """The IOR run on one node."""

    target = "ior"
    doing = "Writing and reading a file per process"
    smaller = "ior.file_size or .processes"
    way = BUFFERED
    numa: tuple[int, ...] = ()

    @staticmethod
    def points(section: IorSettings, _tier: str) -> Iterator[Point]:
        """The points of the grid, the same on each tier, pinned or not."""
        file_bytes = parse_size(section.file_size, "config key ior.file_size")
        block_bytes = parse_size(section.block_size, "config key ior.block_size")
        if not 1 <= block_bytes <= file_bytes or file_bytes % block_bytes:
            fix = "choose an ior.file_size that is a multiple of it"
            raise SettingsError("blocks do not fill a file", "config key ior.block_size", fix)
        if section.engine == IOR and (over_nodes(section) or section.numa != ["none"]):
            what = "IOR itself measures one node, and processes that are not pinned"
            raise SettingsError(what, "config key ior.engine", "take fio for ior.nodes and ior.numa")
        unfit = [count for count in section.concurrent if all(nodes % count for nodes in section.nodes)]
        if unfit:
            what = f"{unfit[0]} benchmarks at once cannot have as many nodes each"
            fix = f"add a multiple of {unfit[0]} to ior.nodes"
            raise SettingsError(what, "config key ior.concurrent", fix)
        axes = section.numa, range(1, section.repetitions + 1), section.nodes, section.concurrent, section.processes
        for numa, repetition, nodes, concurrent, processes in itertools.product(*axes):
            if nodes % concurrent == 0:
                about = numa, processes, file_bytes, block_bytes, section.direct
                yield Point(*about, repetition, nodes, concurrent, section.engine)

    def require(self) -> None:
        """Raise :class:`ToolError` if the measuring program is missing on this machine."""
        require_engine(self.settings.ior.engine, "target ior")

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Find the best way to access the tier's files, and the NUMA nodes to pin to."""
        tier, point = workspace.tier, points[0]
        self.numa = own_nodes() if point.set_name == PIN else ()
        if point.set_name == PIN and len(self.numa) < 2:
            return dict.fromkeys(points, "there is one NUMA node here, and nothing to pin to")
        self.way = BUFFERED
        if point.measured_by == IOR:
            passed = point.wants_direct and KINDS[tier.kind].fio_engines[0][1]
            self.way = Access(IOR, passed and supports_direct(workspace.folder, point.block_bytes))
        elif point.wants_direct:
            self.way = find_access(workspace.folder, tier.kind, point.block_bytes)
        several = [point for point in points if point.nodes > 1]
        say(f"tier {tier.name}: {counted(len(points) - len(several), 'point')}, {access_text(**vars(self.way))}")
        return dict.fromkeys(several, "several nodes need Slurm (--profile profiles/slurm)")

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Write the files of a point and read them back."""
        try:
            moved = [self.move(workspace, point, pattern) for pattern in ("write", "read")]
        finally:
            workspace.remove_files()
        cpu_s = None if point.measured_by == IOR else sum(cells["cpu_s"] for cells in moved)
        about = {"numa_nodes": len(self.numa) or None, "read_by": OTHER_PROCESS, "cpu_s": cpu_s}
        return {**vars(self.way), **moved[0], **moved[1], **about}

    def move(self, workspace: Workspace, point: Point, pattern: str) -> Row:
        """Write or read the files of a point; return cells of the table."""
        limit_s = patience_s(point.written_bytes)
        if point.measured_by == IOR:
            with workspace.noting_full(point.written_bytes):
                return run_ior(point, pattern, self.way.direct, workspace.folder, limit_s)
        done, spans = run_logged(workspace, job_of(point, pattern, self.way, self.numa), limit_s)
        return cells_of(pattern, spans, 1, 1) | {"cpu_s": done.cpu_s, "fio_version": done.fio_version}
