"""The walk: every point of a storage workload in turn, those that are there left out, and each kept once measured."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, Generic

from neurotier.core.errors import SettingsError, TierError, ToolError
from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.quantities import clock, counted, percent, seconds, size
from neurotier.core.settings import Settings
from neurotier.core.tables import Row, columns, write_table
from neurotier.core.tiers import Tier
from neurotier.storage.fio import require_fio
from neurotier.storage.workload.points import AnyPoint, Plan
from neurotier.storage.workload.records import MEASURED, Records
from neurotier.storage.workspace import Workspace, claim

REPORT_S = 10.0
"""How often progress is reported."""

FAILED_IN_A_ROW = 3
"""So many points that fail one after the other have a common reason, and the walk ends."""

Say = Callable[[str], None]


class LeftOutError(ToolError):
    """A point cannot be measured here, which is found out as it is tried; the next one may."""


class Workload(ABC, Generic[AnyPoint]):
    """What a storage workload brings; the walk does the rest.

    Parameters
    ----------
    settings, places
        Of the run.

    Attributes
    ----------
    target
        Of Snakemake, section of the configuration, table, and folder on tiers and in the results. Columns of the
        table that a point has as attributes are its own.
    plan_of
        Its points, by that section.
    smaller
        Keys of the configuration that lower the room of a set, named ``{set}``.
    elsewhere
        The tiers are those of other machines, and :meth:`measure` looks after them and their room.
    """

    target: ClassVar[str]
    plan_of: Callable[[Any], Plan[AnyPoint]]
    smaller: ClassVar[str]
    elsewhere: ClassVar[bool] = False

    def __init__(self, settings: Settings, places: Places) -> None:
        self.settings, self.places = settings, places

    def require(self) -> None:
        """Raise :class:`ToolError` if a program is missing."""
        require_fio(f"target {self.target}")

    def room(self, points: list[Any]) -> tuple[int, str]:
        """Bytes that a set's points take of the tier at once, and what takes them, such as ``4 files of 1 GiB``: a file
        of each process, where a workload does not say otherwise."""
        return files_text(max(point.processes for point in points), points[0].file_bytes)

    def prepare(self, workspace: Workspace, points: list[AnyPoint], say: Say) -> dict[AnyPoint, str]:
        """Make ready for the points of a set that are to be measured; why some of them cannot be."""
        return {}

    @abstractmethod
    def measure(self, workspace: Workspace, point: AnyPoint) -> Row:
        """Measure a point: columns of the table, with ``host`` if it is not this one.

        A :class:`ToolError` or :class:`TierError` is noted as the reason why the point failed, and the walk goes on;
        a :class:`LeftOutError` as the reason why it is left out.
        """

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        """The tables of these rows, by name."""
        return {self.target: rows}

    def check_room(self, tier: Tier, set_name: str, room: tuple[int, str], free_bytes: int) -> None:
        """Raise :class:`TierError` if files would take more than their share of what is free on a tier."""
        (needed, text), share = room, getattr(self.settings, self.target).share
        if needed > share * free_bytes:
            raise TierError(
                f"{self.target} set {set_name!r} needs {size(needed)} ({text}), more than {percent(share)} of the"
                f" {size(free_bytes)} that are free",
                where=f"tier {tier.name!r}",
                fix=f"lower {self.smaller.format(set=set_name)}, or raise {self.target}.share",
            )


def files_text(count: int, file_bytes: int) -> tuple[int, str]:
    """Bytes of files of one size, and how many there are.

    >>> files_text(2, 1 << 20)
    (2097152, '2 files of 1 MiB')
    """
    return count * file_bytes, f"{counted(count, 'file')} of {size(file_bytes)}"


def walk(workload: Workload[AnyPoint], say: Say, node_class: str = "") -> dict[str, list[Row]]:
    """Measure what is not there yet; the workload's tables, with all points in the order in which they are planned.

    Parameters
    ----------
    workload
        What is measured.
    say
        Tells the user.
    node_class
        Class of this node, whose points are kept together; empty for this host alone.

    Raises
    ------
    SettingsError
        If there is nothing to measure, or it cannot be measured as it is written.
    TierError
        If a tier is not as it was declared, or too small.
    ToolError
        If a program is missing, one point after the other fails, or no point at all is measured.
    """
    target, settings, places = workload.target, workload.settings, workload.places
    section = getattr(settings, target)
    for key in ("tiers", "sets"):
        if not getattr(section, key, True):
            fix = f"take one of config/examples/{target}*.yaml, or see config/keys.md"
            raise SettingsError("there is nothing to measure", where=f"config key {target}.{key}", fix=fix)
    plan = workload.plan_of(section)
    workload.require()
    begun = []
    for name, sets in plan.items():
        declared = Tier.from_settings(settings.tiers[name])
        if workload.elsewhere:
            workspace = Workspace(target, declared, declared.path)
        else:
            workspace = claim(declared.here(), target, places)
        records = Records(places.workload(target), workspace.tier, declared, node_class)
        for set_name, points in sets.items():
            begun.append((workspace, records, points))
            if not workload.elsewhere and (left := records.missing(points)):
                free_bytes = workspace.tier.usable_bytes()
                workload.check_room(workspace.tier, set_name, workload.room(left), free_bytes)
    missing = [point for _, records, points in begun for point in records.missing(points)]
    written = sum(point.written_bytes for point in missing)
    total = sum(len(points) for _, _, points in begun)
    say(
        f"{total - len(missing)} of {counted(total, 'point')} are there, {len(missing)} to do,"
        f" {duration(sum(point.seconds for point in missing))} at least"
        + (f", up to {size(written)} written" if written else "")
    )
    step = progress(missing, say)
    rows: list[Row] = []
    for workspace, records, points in begun:
        reasons: dict[AnyPoint, str] = {}
        if left := records.missing(points):
            with nullcontext() if workload.elsewhere else workspace.working(places.identity):
                reasons = measure_all(workload, workspace, records, left, say, step)
        for position, point in enumerate(points, start=1):
            row = {name: getattr(point, name, None) for name in columns(target)}
            named = {"set": point.set_name, "position": position, "status": reasons.get(point, MEASURED)}
            kept = {} if point in reasons else read_json(records.file(point))
            rows.append({**row, **named, **records.facts, **kept})
    found = Counter(row["status"] for row in rows)
    if rows and MEASURED not in found:
        why = "; ".join(f"{counted(count, 'point')} {reason}" for reason, count in found.items())
        raise ToolError(f"nothing was measured: {why}", where=f"target {target}")
    return workload.tables(rows)


def write_tables(tables: Mapping[str, list[Row]], files: Mapping[str, str]) -> None:
    """Write tables to files of the same names; cells that are no columns stay in the files of the points."""
    for name, rows in tables.items():
        write_table(Path(files[name]), name, ({column: row.get(column) for column in columns(name)} for row in rows))


def measure_all(
    workload: Workload[AnyPoint],
    workspace: Workspace,
    records: Records,
    points: list[AnyPoint],
    say: Say,
    step: Callable[[AnyPoint], None],
) -> dict[AnyPoint, str]:
    """Measure points, and keep each; those that are not measured, with reasons."""
    reasons = {point: f"left out: {reason}" for point, reason in workload.prepare(workspace, points, say).items()}
    in_a_row = 0
    for point in points:
        try:
            if point not in reasons:
                facts = {"started_s": time.time(), "host": socket.gethostname()}
                write_json(records.file(point), facts | workload.measure(workspace, point))
                in_a_row = 0
        except LeftOutError as error:
            reasons[point] = f"left out: {error}"
        except (ToolError, TierError) as error:
            reasons[point], in_a_row = f"failed: {error}", in_a_row + 1
            if in_a_row == FAILED_IN_A_ROW:
                raise
            say(f"  {error}")
        step(point)
    return reasons


def progress(points: list[AnyPoint], say: Say) -> Callable[[AnyPoint], None]:
    """What counts the points that are measured, and says now and then how long the others will take."""
    begun_s, all_s, reported_s, done = time.monotonic(), sum(point.seconds for point in points), 0.0, list[float]()

    def step(point: AnyPoint) -> None:
        nonlocal reported_s
        done.append(point.seconds)
        now, left = time.monotonic(), len(points) - len(done)
        if now - reported_s >= REPORT_S or not left:
            reported_s = now
            rest_s = (now - begun_s) / sum(done) * (all_s - sum(done))
            say(f"point {len(done)} of {len(points)}" + (f"; about {duration(rest_s)} left" if left else ""))

    return step


def duration(time_s: float) -> str:
    """A time for people.

    >>> duration(75.0), duration(5312.4)
    ('75.0 s', '1 h 28 min 32 s')
    """
    return clock(time_s) or seconds(time_s)
