"""The sweep as a workload: files laid out for a set, and every point of its grid measured on them with fio."""

from __future__ import annotations

import psutil

from neurotier.core.kinds import KINDS
from neurotier.core.quantities import size
from neurotier.core.tables import Row
from neurotier.storage.access import Access, find_access
from neurotier.storage.sweep.grid import Point, sweep_plan
from neurotier.storage.sweep.ways import direct_sizes, job_of, layout_job, left_out, way_of
from neurotier.storage.workload.walk import Say, Workload
from neurotier.storage.workspace import Workspace, patience_s


class Sweep(Workload[Point]):
    """Points of a grid, measured on files that the set shares."""

    target = "sweep"
    plan_of = staticmethod(sweep_plan)
    smaller = "sweep.sets.{set}.file_size or .processes"
    ways: dict[Point, Access]

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Find the way to each point, and lay out the files."""
        tier, folder = workspace.tier, workspace.folder
        access = find_access(folder, tier.kind)
        direct = direct_sizes(folder, {point.block_bytes for point in points}) if access.direct else set()
        self.ways = {point: way_of(point, access) for point in points}
        memory_bytes = psutil.virtual_memory().available - self.room(points)[0] * KINDS[tier.kind].takes_memory
        reasons = {point: left_out(point, self.ways[point], direct, memory_bytes) for point in points}
        possible = [point for point in points if not reasons[point]]
        if possible:
            file_bytes = self.room(possible)[0]
            say(f"tier {tier.name}, set {points[0].set_name}: laying out {size(file_bytes)}")
            workspace.run(layout_job(possible), patience_s(file_bytes))
        return {point: reason for point, reason in reasons.items() if reason}

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Measure one point."""
        way = self.ways[point]
        result = workspace.run(job_of(point, way), 2 * point.seconds + patience_s(0))
        return {**vars(way), **result.cells(), "requests_per_s": result.operations_per_s}
