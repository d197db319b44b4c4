"""The IOR run as a workload: files written by all processes at once, and read back by their neighbours."""

from __future__ import annotations

from neurotier.core.kinds import KINDS
from neurotier.core.places import Places
from neurotier.core.quantities import counted
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.storage.access import BUFFERED, Access, find_access, takes_direct
from neurotier.storage.fio import access_text
from neurotier.storage.ior.jobs import job_of
from neurotier.storage.ior.mpi import require_engine, run_ior
from neurotier.storage.ior.points import IOR, Point, ior_plan
from neurotier.storage.ior.spans import cells_of, run_logged
from neurotier.storage.numa import own_nodes
from neurotier.storage.workload.walk import Say, Workload
from neurotier.storage.workspace import Workspace, patience_s

PIN = "pin"

SPANS = "spans"
"""What is kept of a point and is no column: when each process began and ended."""

OTHER_NODE, OTHER_PROCESS = "another node", "another process"
"""Who reads what a process has written."""


class Ior(Workload[Point]):
    """Points of an IOR run."""

    target = "ior"
    plan_of = staticmethod(ior_plan)
    smaller = "ior.file_size or .processes"
    way = BUFFERED
    numa: tuple[int, ...] = ()

    def require(self) -> None:
        """The program that measures, here."""
        require_engine(self.settings.ior.engine, "target ior")

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Find the way to the tier's files, and the NUMA nodes to pin to."""
        pinned, direct = points[0].set_name == PIN, points[0].wants_direct
        self.numa = own_nodes() if pinned else ()
        if pinned and len(self.numa) < 2:
            return dict.fromkeys(points, "there is one NUMA node here, and nothing to pin to")
        several = [point for point in points if point.nodes > 1]
        self.way = find_access(workspace.folder, workspace.tier.kind) if direct else BUFFERED
        way = access_text(self.way.engine, self.way.direct)
        say(f"tier {workspace.tier.name}: {counted(len(points) - len(several), 'point')}, {way}")
        return dict.fromkeys(several, "several nodes are had from Slurm alone (--profile profiles/slurm)")

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Write, and read."""
        way = {"engine": self.way.engine, "direct": self.way.direct, "numa_nodes": len(self.numa) or None}
        row: Row = {**way, "read_by": OTHER_PROCESS, "cpu_s": 0.0}
        try:
            for pattern in ("write", "read"):
                job = job_of(point, pattern, self.way, self.numa)
                done, spans = run_logged(workspace, job, patience_s(point.written_bytes))
                row |= cells_of(pattern, spans, 1, 1) | {"fio_version": done.fio_version}
                row["cpu_s"] += done.cpu_s
        finally:
            workspace.remove_files()
        return row


class IorItself(Ior):
    """The same, measured by IOR itself (:mod:`neurotier.storage.ior.mpi`)."""

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Find out whether the page cache can be passed, if that is asked for."""
        passed = any(direct for _, direct in KINDS[workspace.tier.kind].fio_engines)
        direct = points[0].wants_direct and passed and takes_direct(workspace.folder, points[0].block_bytes)
        self.way = Access(IOR, direct)
        say(f"tier {workspace.tier.name}: {counted(len(points), 'point')}, {access_text(IOR, direct)}")
        return {}

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Write, and read."""
        limit_s = patience_s(point.written_bytes)
        row: Row = {"engine": IOR, "direct": self.way.direct, "read_by": OTHER_PROCESS}
        try:
            for pattern in ("write", "read"):
                with workspace.noting_full(point.written_bytes):
                    row |= run_ior(point, pattern, self.way.direct, workspace.folder, limit_s)
        finally:
            workspace.remove_files()
        return row


def ior_here(settings: Settings, places: Places) -> Ior:
    """The IOR run of this machine, by the program that the configuration names."""
    return (IorItself if settings.ior.engine == IOR else Ior)(settings, places)
