"""The walk: every point of a storage workload in turn, those that are there left out, and each kept once measured."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, Generic

from neurotier.core.errors import TierError, ToolError
from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.private import remove_empty
from neurotier.core.quantities import clock, counted, percent, seconds, size
from neurotier.core.settings import Settings
from neurotier.core.tables import Row
from neurotier.core.tiers import Tier
from neurotier.storage.workload.points import AnyPoint, Point
from neurotier.storage.workload.records import MEASURED, Records
from neurotier.storage.workspace import Workspace, claim

REPORT_S = 10.0
"""How often progress is reported."""

FAILED_IN_A_ROW = 3
"""So many points that fail one after the other have a common reason, and the walk ends."""

Say = Callable[[str], None]
Plan = Mapping[str, Mapping[str, list[AnyPoint]]]
"""The points of every set on every tier, in the order in which they are measured."""


class LeftOutError(ToolError):
    """A point cannot be measured here, which is found out as it is tried; the next one may."""


class Workload(ABC, Generic[AnyPoint]):
    """What a storage workload brings; the walk does the rest.

    Attributes
    ----------
    target
        Of Snakemake, section of the configuration, table, and folder on tiers and in the results.
    asked
        Fields of a point that are columns of the table.
    results
        Columns that :meth:`measure` fills; empty for what was not measured.
    elsewhere
        The tiers are those of other machines, and :meth:`measure` looks after them and their room.
    """

    target: ClassVar[str]
    asked: ClassVar[tuple[str, ...]]
    results: ClassVar[tuple[str, ...]]
    elsewhere: ClassVar[bool] = False

    @abstractmethod
    def room_bytes(self, points: list[AnyPoint]) -> int:
        """Bytes that a set's points take of the tier at once."""

    @abstractmethod
    def room_text(self, points: list[AnyPoint]) -> str:
        """What takes them, such as ``4 files of 1 GiB``."""

    @abstractmethod
    def smaller(self, set_name: str) -> str:
        """What lowers them: keys of the configuration, as in ``lower KEY or KEY``."""

    def written_bytes(self, point: AnyPoint) -> int | None:
        """Bytes that a point writes; ``None`` if its time decides."""
        return None

    def prepare(self, workspace: Workspace, points: list[AnyPoint], say: Say) -> dict[AnyPoint, str]:
        """Make ready for the points of a set that are to be measured; why some of them cannot be."""
        return {}

    @abstractmethod
    def measure(self, workspace: Workspace, point: AnyPoint) -> Row:
        """Measure a point: values of :attr:`results`, and ``host`` if it is not this one.

        A :class:`ToolError` or :class:`TierError` is noted as the reason why the point failed, and the walk goes on;
        a :class:`LeftOutError` as the reason why it is left out.
        """


@dataclass
class Progress:
    """How far a walk is.

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
    say: Say
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


def walk(
    workload: Workload[AnyPoint],
    plan: Plan[AnyPoint],
    settings: Settings,
    places: Places,
    say: Say,
    node_class: str = "",
) -> list[Row]:
    """Measure what is not there yet; the rows of all points, in the order in which they are planned.

    Parameters
    ----------
    workload
        What is measured.
    plan
        Its points by tier and set.
    settings, places
        Where the tiers are, and where the points are kept.
    say
        Tells the user.
    node_class
        Class of this node, whose points are kept together; empty for this host alone.

    Raises
    ------
    TierError
        If a tier is not as it was declared, or too small.
    ToolError
        If one point after the other fails.
    """
    declared = [Tier.from_settings(settings.tiers[name]) for name in plan]
    if workload.elsewhere:
        tiers, workspaces = declared, [Workspace(workload.target, tier, tier.path) for tier in declared]
    else:
        tiers = [tier.here() for tier in declared]
        workspaces = [claim(tier, workload.target, places) for tier in tiers]
    folder = places.workload(workload.target)
    records = [Records.of(folder, *both, node_class) for both in zip(tiers, declared, strict=True)]
    if not workload.elsewhere:
        share: float = getattr(settings, workload.target).share
        for tier, one in zip(tiers, records, strict=True):
            for name, points in plan[tier.name].items():
                if left := one.missing(points):
                    check_room(workload, tier, name, left, share)
    planned = {one.tier.name: [point for points in plan[one.tier.name].values() for point in points] for one in records}
    missing = [point for one in records for point in one.missing(planned[one.tier.name])]
    say(beforehand(workload, missing, sum(map(len, planned.values()))))
    progress = Progress(len(missing), sum(point.seconds for point in missing), say)
    rows: list[Row] = []
    for workspace, one in zip(workspaces, records, strict=True):
        for points in plan[one.tier.name].values():
            rows += walk_set(workload, workspace, one, points, places.identity, progress)
        if not workload.elsewhere:
            remove_empty(workspace.folder.parent)
    return rows


def beforehand(workload: Workload[AnyPoint], missing: list[AnyPoint], total: int) -> str:
    """How many points are there, and what the others take."""
    least_s = sum(point.seconds for point in missing)
    written = [workload.written_bytes(point) for point in missing]
    known = [each for each in written if each is not None]
    bytes_text = f", up to {size(sum(known))} written" if known else ""
    there = f"{total - len(missing)} of {counted(total, 'point')} are there"
    return f"{there}, {len(missing)} to do, {duration(least_s)} at least{bytes_text}"


def check_room(workload: Workload[AnyPoint], tier: Tier, name: str, points: list[AnyPoint], share: float) -> None:
    """Raise :class:`TierError` if a set's files would take more than their share of a tier."""
    needed, free = workload.room_bytes(points), tier.usable_bytes()
    if needed > share * free:
        target = workload.target
        raise TierError(
            f"{target} set {name!r} needs {size(needed)} ({workload.room_text(points)}), more than {percent(share)} of"
            f" the {size(free)} that are free",
            where=f"tier {tier.name!r}",
            fix=f"{workload.smaller(name)}, or raise {target}.share",
        )


def walk_set(
    workload: Workload[AnyPoint],
    workspace: Workspace,
    records: Records,
    points: list[AnyPoint],
    identity: str,
    progress: Progress,
) -> list[Row]:
    """Measure the points of a set on a tier that are not there yet; the rows of all."""
    missing = records.missing(points)
    reasons: dict[AnyPoint, str] = {}
    if missing:
        with nullcontext() if workload.elsewhere else workspace.working(identity):
            reasons = measure_all(workload, workspace, records, missing, progress)
    rows = []
    for position, point in enumerate(points, start=1):
        cells = {} if point in reasons else read_json(records.file(point))
        asked = {name: getattr(point, name) for name in workload.asked}
        named = {"set": point.set_name, "position": position, "status": reasons.get(point, MEASURED)}
        rows.append({**dict.fromkeys(workload.results), **named, **asked, **records.facts, **cells})
    return rows


def measure_all(
    workload: Workload[AnyPoint], workspace: Workspace, records: Records, points: list[AnyPoint], progress: Progress
) -> dict[AnyPoint, str]:
    """Measure points, and keep each; those that are not measured, with reasons."""
    known = workload.prepare(workspace, points, progress.say)
    reasons = {point: f"left out: {reason}" for point, reason in known.items()}
    in_a_row = 0
    for point in points:
        if point not in known:
            try:
                write_json(records.file(point), workload.measure(workspace, point))
                in_a_row = 0
            except LeftOutError as error:
                reasons[point] = f"left out: {error}"
            except (ToolError, TierError) as error:
                reasons[point], in_a_row = f"failed: {error}", in_a_row + 1
                if in_a_row == FAILED_IN_A_ROW:
                    raise
                progress.say(f"  {error}")
        progress.step(point)
    return reasons


def duration(time_s: float) -> str:
    """A time for people.

    >>> duration(75.0), duration(5312.4)
    ('75.0 s', '1 h 28 min 32 s')
    """
    return clock(time_s) or seconds(time_s)
