"""The DAQ run as a workload: writers at a fixed rate, what they held, and a check of every record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from neurotier.core.errors import NeurotierError, TierError, ToolError
from neurotier.core.kinds import KINDS, is_in_memory
from neurotier.core.quantities import counted
from neurotier.core.settings import DaqSettings
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.access import Access, attempt
from neurotier.storage.daq.backlog import Curve, read_curve, slope
from neurotier.storage.daq.jobs import check_job, file_of, flushes, write_job
from neurotier.storage.daq.points import Point, daq_plan
from neurotier.storage.fio import FioResult
from neurotier.storage.workload.walk import Say, Workload, files_text
from neurotier.storage.workspace import Workspace, claim, patience_s

GB = 1e9
WHILE = "while writing"


class Daq(Workload[Point]):
    """Points of a DAQ run."""

    target = "daq"
    plan_of = staticmethod(daq_plan)
    smaller = "daq.writers, .rate or .seconds"

    def room(self, points: list[Point]) -> tuple[int, str]:
        """The files of the most writers on one tier."""
        return files_text(max(math.ceil(point.writers / len(point.tiers)) for point in points), points[0].file_bytes)

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Try the engine on every tier of the set."""
        point = points[0]
        say(f"tier {point.over}, engine {point.engine}")
        try:
            with self.folders(workspace, point) as folders:
                for name, folder in folders.items():
                    self.check_tier(Tier.from_settings(self.settings.tiers[name]).here(), points)
                    attempt(Access(point.engine, point.engine == "libpmem"), folder)
        except NeurotierError as error:
            return dict.fromkeys(points, str(error))
        return {}

    def check_tier(self, tier: Tier, points: list[Point]) -> None:
        """Raise :class:`TierError` if an engine would not be what it is called on a tier, or has no room there."""
        engine, where = points[0].engine, f"tier {tier.name!r}"
        if engine == "libpmem" and engine not in dict(KINDS[tier.kind].fio_engines):
            raise TierError(f"libpmem stores to persistent memory, and this is {tier.kind}", where=where)
        if tier.name != points[0].tiers[0]:  # that of the first has been looked at
            self.check_room(tier, points[0].set_name, self.room(points), tier.usable_bytes())

    @contextmanager
    def folders(self, workspace: Workspace, point: Point) -> Iterator[dict[str, Path]]:
        """A folder on each tier of a point, by its name; but for the workspace's own, they are gone afterwards."""
        with ExitStack() as stack:
            found = {workspace.tier.name: workspace.folder}
            for name in point.tiers[1:]:
                other = claim(Tier.from_settings(self.settings.tiers[name]).here(), self.target, self.places)
                stack.enter_context(other.working(self.places.identity))
                found[name] = other.folder
            yield found

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Write, and check what was written."""
        limit_s = patience_s(point.written_bytes)
        in_memory = is_in_memory(workspace.tier.kind)
        with self.folders(workspace, point) as named:
            folders = list(named.values())
            try:
                done = workspace.run(write_job(point, folders, in_memory), limit_s)
                written = [flow.bytes for flow in done.writes]
                checked = 0
                if any(written):
                    read = workspace.run(check_job(point, folders, written), limit_s).read
                    checked = read.operations - written.count(0)  # without those of fio's null engine
                files = [file_of(writer, folders) for writer in range(point.writers)]
                curve = read_curve(point, files, written)
            finally:
                workspace.remove_files()
        if checked * point.record_bytes != sum(written):
            lost = counted(sum(written) // point.record_bytes - checked, "record")
            raise ToolError(f"{lost} cannot be read again", where=f"{point.writers} writers on {point.over}")
        flushed = flushes(point.engine, in_memory)
        curve = curve if flushed or in_memory else []  # what a mapped file holds may not be on the device yet
        facts = {
            "flushed": WHILE if flushed else "in memory" if in_memory else "at the end",
            "records_checked": checked,
            "read_bytes": sum(written),
            "curve": curve,
        }
        return cells(done, curve) | facts

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        """The points, and their backlogs over time."""
        backlogs = []
        for row in rows:
            named = {name: row[name] for name in ("tier", "over", "engine", "writers", "repetition")}
            backlogs += [{**named, "time_s": time_s, "backlog_bytes": held} for time_s, held in row.pop("curve", [])]
            row |= judged(row, row.pop("writer_rates", None), self.settings.daq)
        return {"daq": rows, "backlog": backlogs}


def cells(done: FioResult, curve: Curve) -> Row:
    """What the writers did, as cells of the table, and the rate of each."""
    writers = [one.bandwidth_bytes_per_s for one in done.writes]
    return {
        **done.cells(),
        "throughput_bytes_per_s": done.bandwidth_bytes_per_s,
        "writer_mean_bytes_per_s": sum(writers) / len(writers),
        "writer_least_bytes_per_s": min(writers),
        "writer_rates": writers,
        "backlog_peak_bytes": max((bytes_ for _, bytes_ in curve), default=None),
        "backlog_slope_bytes_per_s": slope(curve),
        "records_written": done.write.operations,
        "cpu_s_per_gb": GB * done.cpu_s_per_byte if done.cpu_s_per_byte else None,
    }


def judged(row: Row, writer_rates: list[float] | None, settings: DaqSettings) -> Row:
    """How many writers fell behind, and the buffer that they need; what the configuration decides is kept nowhere."""
    if writer_rates is None:
        return {}
    under_way = settings.flush_s / settings.seconds if row["flushed"] == WHILE else 0.0  # of a flush when time is up
    least = (1 - settings.tolerance - under_way) * row["rate_bytes_per_s"]
    late = sum(rate < least for rate in writer_rates)
    deficit = row["input_bytes_per_s"] - row["throughput_bytes_per_s"] if late else 0.0
    return {"late_writers": late, "buffer_bytes": max(row["backlog_peak_bytes"] or 0.0, deficit * settings.target_s)}
