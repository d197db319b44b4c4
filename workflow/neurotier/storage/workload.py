"""The walk: measure the points of a storage workload one by one, and keep each result.

Each result is kept in a small file, so that an interrupted walk resumes where it stopped; points that have a file are
not measured again. A point is identified by what it measures and where: with another class of node, another path,
device or file system of any of its tiers, another file size or duration, it is another point.

The order is random, drawn separately within each repetition (a randomised block design, as in campaigns) from a seed in
the configuration. In the order of the grid, a drift could be mistaken for an effect of the block size: a flash drive's
SLC cache fills up, a cloud disk runs out of burst credits, a device warms up. Tiers are measured one after the other,
because the files of a tier in memory would displace another tier's page cache. Sets are, too, so that their files need
only the room of the largest set.
"""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from neurotier.core.errors import SettingsError, TierError, ToolError
from neurotier.core.files import read_json, read_json_or_empty, write_json
from neurotier.core.places import Places, short_hash
from neurotier.core.quantities import clock, counted, percent, seconds, size
from neurotier.core.settings import Say, Settings
from neurotier.core.tables import Row, Rows, columns, grouped, write_table
from neurotier.core.tiers import Tier, tier_named
from neurotier.storage.fio import require_fio
from neurotier.storage.spread import MEASURED
from neurotier.storage.workspace import Workspace, claim, tier_facts

LEAST_MINUTES = 30

REPORT_S = 10.0
"""How often progress is reported, s."""

LONGEST = 200
"""Characters of a point's description that its file name takes at most; file names are limited to 255 bytes."""

FAILED_IN_A_ROW = 3
"""The walk ends after this many failures in a row, which must have a common reason."""


class Point(Protocol):
    """One measurement: a frozen dataclass, identified by all of its fields together.

    Attributes
    ----------
    set_name
        The set; points of one set are measured together, on files that they may share.
    repetition
        Number of the repetition, from 1.
    seconds
        Least time that it takes, s.
    written_bytes
        Most bytes that it writes; 0 if that depends on its duration.
    """

    __dataclass_fields__: ClassVar[Row]

    @property
    def set_name(self) -> str: ...
    @property
    def repetition(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def written_bytes(self) -> int: ...


AnyPoint = TypeVar("AnyPoint", bound=Point)


def measurement_order(points: list[AnyPoint], seed: int) -> list[AnyPoint]:
    """The points in the order in which they are measured: by repetition, and at random within each repetition."""
    order: list[AnyPoint] = []
    for repetition, block in sorted(grouped((point.repetition, point) for point in points).items()):
        order += [block[place] for place in np.random.default_rng([seed, repetition]).permutation(len(block))]
    return order


class LeftOutError(ToolError):
    """A point that turns out to be impossible to measure here when it is tried; the next one may be possible."""


@dataclass
class Workload(ABC, Generic[AnyPoint]):
    """The parts that each storage workload defines; the walk does the rest.

    Parameters
    ----------
    settings, places
        Those of the run.

    Attributes
    ----------
    target
        Snakemake's target, also the name of the configuration section, the table, and the folder on tiers and in the
        results. A point's attributes fill the table columns of the same names.
    doing
        What it does, in words for the user.
    smaller
        Configuration keys that reduce the space that a set needs; ``{set}`` stands for its name.
    on_other_nodes
        Whether points are measured on other nodes than this one; :meth:`measure` then takes care of the tiers there
        and their free space.
    """

    target: ClassVar[str]
    doing: ClassVar[str]
    smaller: ClassVar[str]
    on_other_nodes: ClassVar[bool] = False

    settings: Settings
    places: Places

    @staticmethod
    @abstractmethod
    def points(section: Any, tier: str) -> Iterable[AnyPoint]:
        """All points of a configuration section that belong to one of its tiers.

        Raises
        ------
        SettingsError
            If something cannot be measured as it is configured.
        """

    @classmethod
    def plan(cls, settings: Settings) -> dict[str, dict[str, list[AnyPoint]]]:
        """The points of every set by tier, in the order in which they are measured, without duplicates."""
        section = getattr(settings, cls.target)
        return {
            tier: {
                name: measurement_order([*dict.fromkeys(some)], section.seed)
                for name, some in grouped((point.set_name, point) for point in cls.points(section, tier)).items()
            }
            for tier in section.tiers
        }

    @classmethod
    def minutes(cls, settings: Settings) -> int:
        """Time to request from a cluster, min: twice that of the points, plus some to lay out files.

        A walk that takes longer resumes where it stopped when it is started again.
        """
        try:
            tiers = cls.plan(settings).values()
        except SettingsError:  # the job itself says why
            return LEAST_MINUTES
        return LEAST_MINUTES + math.ceil(
            2 * sum(point.seconds for sets in tiers for points in sets.values() for point in points) / 60
        )

    def require(self) -> None:
        """Raise :class:`ToolError` if a required program is missing."""
        require_fio(f"target {self.target}")

    def room(self, points: list[Any]) -> tuple[int, str]:
        """Bytes that a set's points occupy on the tier at once, and what occupies them, such as ``4 files of 1 GiB``:
        one file per process, unless a workload overrides this."""
        return files_text(max(point.processes for point in points), points[0].file_bytes)

    def prepare(self, workspace: Workspace, points: list[AnyPoint], say: Say) -> dict[AnyPoint, str]:
        """Prepare for the points of a set that are still to be measured; return why some of them cannot be."""
        return {}

    @abstractmethod
    def measure(self, workspace: Workspace, point: AnyPoint) -> Row:
        """Measure a point; return columns of the table, with ``host`` if it was measured on another machine.

        A :class:`ToolError` or :class:`TierError` is recorded as the reason why the point failed, a
        :class:`LeftOutError` as the reason why it is left out; the walk goes on.
        """

    def tables(self, rows: Rows) -> dict[str, Rows]:
        """The tables made from these rows, by name."""
        return {self.target: rows}

    def check_room(self, tier: Tier, set_name: str, room: tuple[int, str], free_bytes: int) -> None:
        """Raise :class:`TierError` if the files would take more than the allowed share of a tier's free space."""
        (needed, text), share = room, getattr(self.settings, self.target).share
        if needed > share * free_bytes:
            raise TierError(
                f"{self.target} set {set_name!r} needs {size(needed)} ({text}), more than {percent(share)} of the"
                f" {size(free_bytes)} that are free",
                f"tier {tier.name!r}",
                f"lower {self.smaller.format(set=set_name)}, or raise {self.target}.share",
            )


def files_text(count: int, file_bytes: int) -> tuple[int, str]:
    """Total bytes of files of one size, and a text that says how many there are.

    >>> files_text(2, 1 << 20)
    (2097152, '2 files of 1 MiB')
    """
    return count * file_bytes, f"{counted(count, 'file')} of {size(file_bytes)}"


def walk(workload: Workload[AnyPoint], say: Say, node_class: str = "") -> dict[str, Rows]:
    """Measure the points that are still missing; return the workload's tables, with all points in the planned order.

    Parameters
    ----------
    workload
        The workload.
    say
        Prints a line for the user.
    node_class
        Class of this node, which shares its points with all nodes of the class; empty for this host alone.

    Raises
    ------
    SettingsError
        If there is nothing to measure, or it cannot be measured as it is configured.
    TierError
        If a tier is not as declared, or too small.
    ToolError
        If a program is missing, several points in a row fail, or no point at all is measured.
    """
    target, settings, places = workload.target, workload.settings, workload.places
    section = getattr(settings, target)
    for key in ("tiers", "sets"):
        if not getattr(section, key, True):
            fix = f"take one of config/examples/{target}*.yaml, or see config/keys.md"
            raise SettingsError("there is nothing to measure", f"config key {target}.{key}", fix)
    plan, here = workload.plan(settings), os.uname()
    workload.require()
    workspaces = {
        name: Workspace(target, tier, tier.path) if workload.on_other_nodes else claim(tier.here(), target, places)
        for name, sets in plan.items()
        if sets  # a tier has none if no engine keeps anything on it
        for tier in [tier_named(settings, name)]
    }
    # in each cluster job, a tier may have another path, through variables, and a device of another name
    where = {
        name: f"{node_class or f'{here.nodename} {source}'} {tier.kind} {fs_type} {tier_named(settings, name).path}"
        for name, (_, tier, _) in workspaces.items()
        for source, _, fs_type, _ in [tier.mount()]
    }
    begun = []
    for name, workspace in workspaces.items():
        tier, facts = workspace.tier, tier_facts(workspace.tier) | {"kernel": here.release}
        for set_name, points in plan[name].items():
            kept = places.workload(target) / "points" / name
            files = {}
            for point in points:
                text = "_".join(map(str, astuple(point)))
                on = [where[one] for one in getattr(point, "tiers", [name])]
                # the date is that of the last change that made earlier figures incomparable with current ones
                files[point] = kept / f"{text[:LONGEST]}_{short_hash(f'2026-11-30 {text} {on}')}.json"
            left = [point for point in points if not read_json_or_empty(files[point])]
            begun.append((workspace, facts, files, left))
            if left and not workload.on_other_nodes:
                workload.check_room(tier, set_name, workload.room(left), tier.usable_bytes())
    missing = [point for *_, left in begun for point in left]
    written, total = sum(point.written_bytes for point in missing), sum(len(files) for _, _, files, _ in begun)
    say(
        f"{total - len(missing)} of {counted(total, 'point')} are there, {len(missing)} to do,"
        f" {duration(sum(point.seconds for point in missing))} at least"
        + (f", up to {size(written)} written" if written else "")
    )
    step = progress(missing, say)
    rows: Rows = []
    for workspace, facts, files, left in begun:
        reasons: dict[AnyPoint, str] = {}
        if left:
            with nullcontext() if workload.on_other_nodes else workspace.working(places.identity):
                reasons = measure_all(workload, workspace, facts, files, left, say, step)
        for position, (point, file) in enumerate(files.items(), start=1):
            row = {name: getattr(point, name, None) for name in columns(target)}
            named = {"set": point.set_name, "position": position, "status": reasons.get(point, MEASURED)}
            rows.append({**row, **named, **facts, **({} if point in reasons else read_json(file))})
    found = Counter(row["status"] for row in rows)
    if rows and MEASURED not in found:
        why = "; ".join(f"{counted(count, 'point')} {reason}" for reason, count in found.items())
        raise ToolError(f"nothing was measured: {why}", f"target {target}")
    return workload.tables(rows)


def write_tables(tables: Mapping[str, Rows], files: Mapping[str, str]) -> None:
    """Write tables to files of the same names; cells without a column stay in the points' own files."""
    for name, rows in tables.items():
        write_table(Path(files[name]), name, ({column: row.get(column) for column in columns(name)} for row in rows))


def measure_all(
    workload: Workload[AnyPoint],
    workspace: Workspace,
    facts: Row,
    files: Mapping[AnyPoint, Path],
    points: list[AnyPoint],
    say: Say,
    step: Callable[[AnyPoint], None],
) -> dict[AnyPoint, str]:
    """Measure points and keep each with the facts of its tier; return those not measured, with the reasons."""
    reasons = {point: f"left out: {reason}" for point, reason in workload.prepare(workspace, points, say).items()}
    in_a_row = 0
    for point in points:
        try:
            if point not in reasons:
                write_json(files[point], facts | {"started_s": time.time()} | workload.measure(workspace, point))
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
    """A function that counts measured points and now and then reports how long the rest will take."""
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
    """A duration in words.

    >>> duration(75.0), duration(5312.4)
    ('75.0 s', '1 h 28 min 32 s')
    """
    return clock(time_s) or seconds(time_s)
