"""The walk: every point of a sweep in turn, those that are there left out, and each kept as soon as it is measured."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from neurotier.core.errors import TierError, ToolError
from neurotier.core.files import read_json, write_json
from neurotier.core.kinds import KINDS
from neurotier.core.places import Places
from neurotier.core.private import remove_empty
from neurotier.core.quantities import clock, counted, percent, seconds, size
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.access import Access, find_access
from neurotier.storage.runner import FioRunner, claim
from neurotier.storage.sweep.grid import Point, planned_sets, room_bytes
from neurotier.storage.sweep.records import MEASURED, Records, cells
from neurotier.storage.sweep.ways import direct_sizes, job_of, layout_job, left_out, way_of

STUCK_S = 600.0
"""How much longer than asked for a point may take: what is written must still reach a slow device."""

SLOWEST_BYTES_PER_S = 5e6
"""A device that lays files out more slowly than this is taken to hang."""

REPORT_S = 10.0
"""How often progress is reported."""

FAILED_IN_A_ROW = 3
"""So many points that fail one after the other have a common reason, and the sweep ends."""


@dataclass
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    left, left_s
        Points that were not there when it began, and the time that they are measured for, s.
    say
        Tells the user.
    done, asked_s
        Points that are behind, and the time that they were to be measured for, s.
    begun_s, reported_s
        When it began and when progress was last reported, s of the monotonic clock.
    """

    left: int
    left_s: float
    say: Callable[[str], None]
    done: int = 0
    begun_s: float = field(default_factory=time.monotonic)
    reported_s: float = 0.0
    asked_s: float = 0.0

    def step(self, point: Point) -> None:
        """Count a point, and say now and then how long the others will take."""
        self.done += 1
        self.asked_s += point.seconds
        now = time.monotonic()
        if now - self.reported_s >= REPORT_S or self.done == self.left:
            self.reported_s = now
            rest_s = (now - self.begun_s) / self.asked_s * (self.left_s - self.asked_s)
            about = f"; about {duration(rest_s)} left" if self.done < self.left else ""
            self.say(f"point {self.done} of {self.left}{about}")


def sweep(settings: Settings, places: Places, say: Callable[[str], None], node_class: str = "") -> list[Row]:
    """Measure what is not there yet; the rows of all points, in the order in which they are planned.

    Parameters
    ----------
    settings, places
        What to sweep, and where its points are kept.
    say
        Tells the user.
    node_class
        Class of this node, whose points are kept together; empty for this host alone.

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
    declared = [Tier.from_settings(settings.tiers[name]) for name in settings.sweep.tiers]
    tiers = [tier.here() for tier in declared]
    runners = [claim(tier, "sweep", places) for tier in tiers]
    for tier in tiers:
        for name, points in sets.items():
            check_room(tier, name, points, settings.sweep.share)
    records = [Records.of(places, *both, node_class) for both in zip(tiers, declared, strict=True)]
    planned = [point for points in sets.values() for point in points]
    missing = [point for one in records for point in one.missing(planned)]
    total, least_s = len(records) * len(planned), sum(point.seconds for point in missing)
    there = f"{total - len(missing)} of {counted(total, 'point')} are there"
    say(f"{there}, {len(missing)} to do, {duration(least_s)} at least")
    progress = Progress(len(missing), least_s, say)
    rows: list[Row] = []
    for runner, one in zip(runners, records, strict=True):
        for points in sets.values():
            rows += sweep_set(runner, one, points, places.identity, progress)
        remove_empty(runner.folder.parent)
    return rows


def check_room(tier: Tier, name: str, points: list[Point], share: float) -> None:
    """Raise :class:`TierError` if a set's files would take more than their share of a tier."""
    needed, free = room_bytes(points), tier.usable_bytes()
    if needed > share * free:
        most = max(point.processes for point in points)
        raise TierError(
            f"sweep set {name!r} needs {size(needed)} ({counted(most, 'file')} of {size(points[0].file_bytes)}), more"
            f" than {percent(share)} of the {size(free)} that are free",
            where=f"tier {tier.name!r}",
            fix=f"lower sweep.sets.{name}.file_size or .processes, or raise sweep.share",
        )


def sweep_set(runner: FioRunner, records: Records, points: list[Point], identity: str, progress: Progress) -> list[Row]:
    """Measure the points of a set on a tier that are not there yet; the rows of all."""
    missing = records.missing(points)
    reasons: dict[Point, str] = {}
    if missing:
        with runner.working(identity):
            reasons = measure_all(runner, records, missing, progress)
    return [
        records.row(point, position, reasons[point], {})
        if point in reasons
        else records.row(point, position, MEASURED, read_json(records.file(point)))
        for position, point in enumerate(points, start=1)
    ]


def measure_all(runner: FioRunner, records: Records, points: list[Point], progress: Progress) -> dict[Point, str]:
    """Measure points on files laid out for them, and keep each; those that are not measured, with reasons."""
    tier, folder = runner.tier, runner.folder
    access = find_access(folder, tier.kind)
    direct = direct_sizes(folder, {point.block_bytes for point in points}) if access.direct else set()
    ways = {point: way_of(point, access) for point in points}
    memory_bytes = psutil.virtual_memory().available - (room_bytes(points) if KINDS[tier.kind].takes_memory else 0)
    known = {point: reason for point in points if (reason := left_out(point, ways[point], direct, memory_bytes))}
    reasons = {point: f"left out: {reason}" for point, reason in known.items()}
    possible = [point for point in points if point not in reasons]
    if possible:
        progress.say(f"tier {tier.name}, set {points[0].set_name}: laying out {size(room_bytes(possible))}")
        runner.run(layout_job(possible), STUCK_S + room_bytes(possible) / SLOWEST_BYTES_PER_S)
    in_a_row = 0
    for point in points:
        if point in possible:
            try:
                write_json(records.file(point), measure(runner, point, ways[point]))
                in_a_row = 0
            except (ToolError, TierError) as error:
                reasons[point], in_a_row = f"failed: {error}", in_a_row + 1
                if in_a_row == FAILED_IN_A_ROW:
                    raise
                progress.say(f"  {error}")
        progress.step(point)
    return reasons


def measure(runner: FioRunner, point: Point, way: Access) -> Row:
    """Measure one point."""
    started_s = time.time()
    result = runner.run(job_of(point, way), 2 * point.seconds + STUCK_S)
    host = socket.gethostname()
    return {"engine": way.engine, "direct": way.direct, "started_s": started_s, "host": host, **cells(result)}


def duration(time_s: float) -> str:
    """A time for people.

    >>> duration(75.0), duration(5312.4)
    ('75.0 s', '1 h 28 min 32 s')
    """
    return clock(time_s) or seconds(time_s)
