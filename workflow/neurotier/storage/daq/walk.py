"""The DAQ run as a workload: measure how well writers keep up with a fixed rate of data, and check all records.

A record is a block of fio's verification: its header has its position among its writer's records, the seed for that
position, and a checksum of the whole record. The check reads the files in order, and so finds lost, duplicated, swapped
or damaged records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neurotier.core.errors import NeurotierError, SettingsError, TierError, ToolError
from neurotier.core.kinds import KINDS, is_in_memory
from neurotier.core.quantities import counted
from neurotier.core.settings import DaqSettings, Say
from neurotier.core.tables import Row, Rows
from neurotier.core.tiers import parse_size, tier_named
from neurotier.storage.fio import Access, FioJob, FioResult, try_access
from neurotier.storage.workload import Workload, files_text
from neurotier.storage.workspace import Workspace, claim, patience_s

MAGIC = 0xACCA
HEADER: Any = {
    "names": ["magic", "kind", "len", "seed", "offset", "seconds", "nanoseconds"],
    "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u4", "<u4"],
}
"""The beginning of fio 3's ``struct verify_header``."""

SAMPLES, STEPS = 1000, 200
"""Records that are examined in each file at most, and points of a curve."""

Curve = list[tuple[float, float]]
"""Points of time since the start, s, and backlog, bytes."""


def backlog(
    files: Sequence[Path], written: Sequence[int], record_bytes: int, input_bytes_per_s: float, writing_s: float
) -> Curve:
    """The backlog of all writers together: data that have arrived but are not yet written, which a buffer must hold.

    It is empty if fio's records have another layout. Each record says when it was written, since fio's verification
    stores the time in its header. This is more exact than fio's bandwidth logs, which show only time windows in which
    something was written.

    Parameters
    ----------
    files
        The file of each writer.
    written
        Bytes written by each.
    record_bytes
        Size of a record.
    input_bytes_per_s
        Rate at which data arrive for all writers together.
    writing_s
        How long they wrote, s.
    """
    stamps = [read_stamps(*one, record_bytes) for one in zip(files, written, strict=True)]
    known = [one for one in stamps if one]
    if None in stamps:
        return []
    begun_s = min(moments_s[0] for moments_s, _ in known)
    times = np.linspace(0, min(writing_s, max(moments_s[-1] for moments_s, _ in known) - begun_s), STEPS)
    total = sum((np.interp(times + begun_s, *one) for one in known), 0 * times)
    held = np.maximum(0.0, times * input_bytes_per_s - total)
    return list(zip(times.tolist(), held.tolist(), strict=True))


def read_stamps(file: Path, written_bytes: int, record_bytes: int) -> tuple[np.ndarray, np.ndarray] | None:
    """When some of a writer's records were written, s by fio's clock, and the bytes before each, or up to the last."""
    count = written_bytes // record_bytes
    if not count:
        return None
    records = np.memmap(file, np.dtype(HEADER | {"itemsize": record_bytes}), "r", shape=(count,))
    looked = records[[*range(0, count, max(1, count // SAMPLES)), count - 1]]
    if not ((looked["magic"] == MAGIC) & (looked["len"] == record_bytes)).all():
        return None
    return looked["seconds"] + 1e-9 * looked["nanoseconds"], np.append(looked["offset"][:-1], written_bytes)


GB = 1e9
WHILE = "while writing"
CHECKED_TIMES = 2
"""Everything written is read again, which takes at least as long on a tier that reads no faster than it writes."""

LAID_OUT = ("mmap", "libpmem")
"""Engines whose files fio writes once beforehand, since only existing data can be mapped."""

FILES = "daq"
VERIFIED = {"verify": "crc32c", "verify_pattern": "0x6e65", "verify_state_save": "0"}
"""A fixed pattern, since generating random data would take longer than writing it to a fast tier."""


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    set_name
        The engine and, if there are several, the tiers.
    engine
        I/O engine of fio: ``psync``, ``mmap`` or ``libpmem``.
    over
        Names of the tiers over which the writers are distributed, joined by ``+``; usually a single one.
    writers
        Writers at once, each with a file of its own.
    rate_bytes_per_s
        Rate at which each writer receives data.
    record_bytes
        Bytes that it writes at a time.
    repetition
        Number of the repetition, from 1.
    writing_s
        How long they write, s.
    flush_s
        How often each writer flushes to the device, s.
    """

    set_name: str
    engine: str
    over: str
    writers: int
    rate_bytes_per_s: int
    record_bytes: int
    repetition: int
    writing_s: float
    flush_s: float

    @property
    def seconds(self) -> float:
        """Least time that it takes, s, including reading everything again."""
        return CHECKED_TIMES * self.writing_s

    @property
    def way(self) -> Access:
        """How the writers access their files."""
        return Access(self.engine, self.engine == "libpmem")

    @property
    def records(self) -> int:
        """Records that arrive for each writer."""
        return max(1, math.ceil(self.rate_bytes_per_s * self.writing_s / self.record_bytes))

    @property
    def file_bytes(self) -> int:
        """Bytes that arrive for each writer."""
        return self.records * self.record_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes written by all of them; mapped files are also laid out first."""
        return self.writers * self.file_bytes * (2 if self.engine in LAID_OUT else 1)

    @property
    def input_bytes_per_s(self) -> int:
        """Rate at which data arrive for all writers together."""
        return self.writers * self.rate_bytes_per_s

    @property
    def tiers(self) -> list[str]:
        """Tiers over which the writers are distributed."""
        return self.over.split("+")


def write_job(point: Point, folders: Sequence[Path], in_memory: bool) -> FioJob:
    """The fio job of the writers, distributed over the folders; on a device, they flush while they write."""
    options = VERIFIED | {"do_verify": "0", "rate": str(point.rate_bytes_per_s)}
    if not in_memory:
        options["fdatasync"] = str(max(1, round(point.rate_bytes_per_s * point.flush_s / point.record_bytes)))
    return FioJob(
        name=counted(point.writers, "writer"),
        pattern="write",
        block_bytes=point.record_bytes,
        file_bytes=point.file_bytes,
        way=point.way,
        runtime_s=point.writing_s,
        end_fsync=True,
        files=FILES,
        options=options,
        each=[file_options(writer, folders) for writer in range(point.writers)],
    )


def check_job(point: Point, folders: Sequence[Path], written: Sequence[int]) -> FioJob:
    """The fio job that checks the files, given the bytes that each writer has written."""
    # seeds depend on a job's position, so there must also be a job for each writer that wrote nothing
    nothing = {"ioengine": "null", "verify": "0", "size": str(point.record_bytes)}
    return FioJob(
        name="check",
        pattern="read",
        block_bytes=point.record_bytes,
        file_bytes=point.file_bytes,
        options=VERIFIED | {"verify_fatal": "1"},
        each=[
            file_options(writer, folders) | {"size": str(size_bytes)} if size_bytes else nothing
            for writer, size_bytes in enumerate(written)
        ],
    )


def file_of(writer: int, folders: Sequence[Path]) -> Path:
    """A writer's file."""
    return folders[writer % len(folders)] / f"{FILES}.{writer}"


def file_options(writer: int, folders: Sequence[Path]) -> dict[str, str]:
    """A writer's file as fio options, in which a colon is a separator; fio runs in the folder if there is just one."""
    file = file_of(writer, folders)
    return {**({"directory": str(file.parent).replace(":", "\\:")} if len(folders) > 1 else {}), "filename": file.name}


class Daq(Workload[Point]):
    """The DAQ run: writers at a fixed rate."""

    target = "daq"
    doing = "Writing at a fixed rate"
    smaller = "daq.writers, .rate or .seconds"

    @staticmethod
    def points(section: DaqSettings, tier: str) -> Iterator[Point]:
        """Every engine on every tier, and over several tiers together; such points belong to their first tier."""
        rate_bytes_per_s = parse_size(section.rate, "config key daq.rate")
        if rate_bytes_per_s < section.record_bytes:
            fix = "raise daq.rate, which is in bytes per second, or lower daq.record_bytes"
            raise SettingsError("less than a record comes per second", "config key daq.rate", fix)
        for group in section.together:
            if len(set(group)) < 2 or not set(group) <= set(section.tiers):
                where, fix = "config key daq.together", "name two or more of daq.tiers"
                raise SettingsError("at least two tiers of daq.tiers are needed", where, fix)
        groups = [[tier], *(list(dict.fromkeys(group)) for group in section.together if group[0] == tier)]
        axes = groups, section.engines, range(1, section.repetitions + 1), section.writers
        for tiers, engine, repetition, count in itertools.product(*axes):
            set_name = engine if len(tiers) == 1 else "-".join([engine, "over", *tiers])
            about = set_name, engine, "+".join(tiers), count, rate_bytes_per_s, section.record_bytes
            yield Point(*about, repetition, section.seconds, section.flush_s)

    def room(self, points: list[Point]) -> tuple[int, str]:
        """The files of the largest number of writers on one tier."""
        return files_text(max(math.ceil(point.writers / len(point.tiers)) for point in points), points[0].file_bytes)

    def prepare(self, workspace: Workspace, points: list[Point], say: Say) -> dict[Point, str]:
        """Try the engine on every tier of the set."""
        point = points[0]
        say(f"tier {point.over}, engine {point.engine}")
        try:
            with self.workspaces(workspace, point) as several:
                for one in several:
                    kind = one.tier.kind
                    if point.engine == "libpmem" and point.engine not in dict(KINDS[kind].fio_engines):
                        raise TierError(
                            f"libpmem stores to persistent memory, and this is {kind}", f"tier {one.tier.name!r}"
                        )
                    if point.engine == "mmap" and not is_in_memory(kind):
                        raise TierError(
                            f"mmap cannot flush while it writes, as a device needs, and this is {kind}",
                            f"tier {one.tier.name!r}",
                        )
                    if one is not workspace:  # the room there has been checked
                        self.check_room(one.tier, point.set_name, self.room(points), one.tier.usable_bytes())
                    try_access(point.way, one.folder)
        except NeurotierError as error:
            return dict.fromkeys(points, str(error))
        return {}

    @contextmanager
    def workspaces(self, workspace: Workspace, point: Point) -> Iterator[list[Workspace]]:
        """A workspace on each tier of a point; all but the given one are removed on exit."""
        with ExitStack() as stack:
            found = [workspace]
            for name in point.tiers[1:]:
                found.append(claim(tier_named(self.settings, name).here(), self.target, self.places))
                stack.enter_context(found[-1].working(self.places.identity))
            yield found

    def measure(self, workspace: Workspace, point: Point) -> Row:
        """Write records at the rate of the point, and check them."""
        limit_s = patience_s(point.written_bytes)
        in_memory = all(is_in_memory(self.settings.tiers[name].kind) for name in point.tiers)
        with self.workspaces(workspace, point) as several:
            folders = [one.folder for one in several]
            try:
                done = workspace.run(write_job(point, folders, in_memory), limit_s)
                written = [flow.bytes for flow in done.writes]
                checked = 0
                if any(written):
                    checked = workspace.run(check_job(point, folders, written), limit_s).read.operations
                    checked -= written.count(0)  # those of fio's null engine
                files = [file_of(writer, folders) for writer in range(point.writers)]
                curve = backlog(files, written, point.record_bytes, point.input_bytes_per_s, point.writing_s)
            finally:
                workspace.remove_files()
        if checked * point.record_bytes != sum(written):
            lost = counted(sum(written) // point.record_bytes - checked, "record")
            raise ToolError(f"{lost} cannot be read again", f"{counted(point.writers, 'writer')} on {point.over}")
        return cells(done, curve) | {
            "flushed": "in memory" if in_memory else WHILE,
            "records_checked": checked,
            "read_bytes": sum(written),
            "curve": curve,
        }

    def tables(self, rows: Rows) -> dict[str, Rows]:
        """The table of the points, and that of their backlogs over time."""
        backlogs = []
        for row in rows:
            named = {name: row[name] for name in ("tier", "over", "engine", "writers", "repetition")}
            curve = row.pop("curve", [])
            backlogs += [{**named, "time_s": time_s, "backlog_bytes": held} for time_s, held in curve]
            row |= judge_writers(row, row.pop("writer_rates", None), curve, self.settings.daq)
        return {"daq": rows, "backlog": backlogs}


def cells(done: FioResult, curve: Curve) -> Row:
    """What the writers did as cells of the table, along with the rate of each writer."""
    row, writers = done.cells(), [one.bandwidth_bytes_per_s for one in done.writes]
    return {
        **row,
        "throughput_bytes_per_s": row["bandwidth_bytes_per_s"],
        "writer_mean_bytes_per_s": sum(writers) / len(writers),
        "writer_rates": writers,
        "backlog_peak_bytes": max((bytes_ for _, bytes_ in curve), default=None),
        "cpu_s_per_gb": GB * row["cpu_s_per_byte"] if row["cpu_s_per_byte"] else None,
    }


def judge_writers(row: Row, writer_rates: list[float] | None, curve: Curve, settings: DaqSettings) -> Row:
    """How many writers fell behind, and the buffer that they need; not stored, since this depends on the configuration.

    For writers that hold their rate, the deficit is read from the end of the curve, if there is one: fio's durations
    are a few milliseconds longer than requested, which would look like a deficit.
    """
    if writer_rates is None:
        return {}
    flush = settings.flush_s / settings.seconds if row["flushed"] == WHILE else 0.0
    flush = min(flush, settings.tolerance)  # in progress when time is up
    late = sum(rate < (1 - settings.tolerance - flush) * row["rate_bytes_per_s"] for rate in writer_rates)
    behind = row["input_bytes_per_s"] * (1 if late else 1 - flush) - row["throughput_bytes_per_s"]
    if behind > 0 and not late and (end_s := curve[-1][0] if curve else 0.0):
        incomplete = row["writers"] * row["record_bytes"]  # one record of each writer has not fully arrived yet
        behind = (curve[-1][1] - incomplete) / end_s - row["input_bytes_per_s"] * flush
    known = [row["backlog_peak_bytes"]] if row["backlog_peak_bytes"] is not None else []
    if late or behind > 0:  # even if the rate is kept, a small deficit may grow
        known.append(behind * settings.target_s)
    return {"late_writers": late, "buffer_bytes": max(known, default=None)}
