"""The sweep as a workload: files laid out for a set, and every point of its grid measured on them with fio."""

from __future__ import annotations

import socket
import time
from typing import ClassVar

import psutil

from neurotier.core.kinds import KINDS
from neurotier.core.places import Places
from neurotier.core.quantities import counted, size
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.storage.access import Access, find_access
from neurotier.storage.fio import require_fio
from neurotier.storage.sweep.cells import cells
from neurotier.storage.sweep.grid import Point, planned_sets, room_bytes
from neurotier.storage.sweep.ways import direct_sizes, job_of, layout_job, left_out, way_of
from neurotier.storage.workload.walk import Say, Workload, walk
from neurotier.storage.workspace import Workspace

STUCK_S = 600.0
"""How much longer than asked for a point may take: what is written must still reach a slow device."""

SLOWEST_BYTES_PER_S = 5e6
"""A device that lays files out more slowly than this is taken to hang."""


class Sweep(Workload[Point]):
    """Points of a grid, measured on files that the set shares."""

    target = "sweep"
    asked = ("pattern", "block_bytes", "processes", "queue_depth", "repetition", "file_bytes")
    results: ClassVar[tuple[str, ...]] = (
        *("engine", "direct", "bandwidth_bytes_per_s", "read_bytes_per_s", "write_bytes_per_s", "requests_per_s"),
        *("latency_mean_s", "latency_p99_s", "runtime_s", "read_bytes", "write_bytes", "cpu_s", "started_s"),
        "fio_version",
    )

    def __init__(self) -> None:
        self.ways: dict[Point, Access] = {}

    def room_bytes(self, points: list[Point]) -> int:
        """The files of all processes."""
        return room_bytes(points)

    def room_text(self, points: list[Point]) -> str:
        """How many, of which size."""
        most = max(point.processes for point in points)
        return f"{counted(most, 'file')} of {size(points[0].file_bytes)}"

    def smaller(self, set_name: str) -> str:
        """The keys that both depend on."""
        return f"lower sweep.sets.{set_name}.file_size or .processes"

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Find the way to each point, and lay out the files."""
        tier, folder = workspace.tier, workspace.folder
        access = find_access(folder, tier.kind)
        direct = direct_sizes(folder, {point.block_bytes for point in points}) if access.direct else set()
        self.ways = {point: way_of(point, access) for point in points}
        memory_bytes = psutil.virtual_memory().available - (room_bytes(points) if KINDS[tier.kind].takes_memory else 0)
        reasons = {point: left_out(point, self.ways[point], direct, memory_bytes) for point in points}
        possible = [point for point in points if not reasons[point]]
        if possible:
            say(f"tier {tier.name}, set {points[0].set_name}: laying out {size(room_bytes(possible))}")
            workspace.run(layout_job(possible), STUCK_S + room_bytes(possible) / SLOWEST_BYTES_PER_S)
        return {point: reason for point, reason in reasons.items() if reason}

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Measure one point."""
        way, started_s = self.ways[point], time.time()
        result = workspace.run(job_of(point, way), 2 * point.seconds + STUCK_S)
        host = socket.gethostname()
        return {"engine": way.engine, "direct": way.direct, "started_s": started_s, "host": host, **cells(result)}


def sweep(settings: Settings, places: Places, say: Say, node_class: str = "") -> list[Row]:
    """Measure what is not there yet; the rows of all points (:func:`neurotier.storage.workload.walk.walk`).

    Raises
    ------
    SettingsError
        If there is nothing to sweep, or it cannot be swept as it is written.
    TierError
        If a tier is not as it was declared, or too small.
    ToolError
        If there is no fio, or one point after the other fails.
    """
    sets = planned_sets(settings.sweep)
    require_fio("target sweep")
    return walk(Sweep(), dict.fromkeys(settings.sweep.tiers, sets), settings, places, say, node_class)
