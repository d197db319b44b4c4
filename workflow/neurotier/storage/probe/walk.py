"""The walk of the probe: measure everything about a tier once per repetition, so that a slow drift shows as a range.

Most measurements are fio jobs. The table has one row per measurement, with the median and range over the repetitions.
"""

from __future__ import annotations

import platform
import statistics
import time
from dataclasses import dataclass, field, replace

from neurotier.core.errors import ToolError
from neurotier.core.kinds import is_in_memory
from neurotier.core.places import Places
from neurotier.core.quantities import counted, seconds, size
from neurotier.core.settings import ProbeSettings, Say
from neurotier.core.tables import Row, Rows, columns
from neurotier.core.tiers import Tier
from neurotier.storage.fio import Access, FioJob, find_access, require_fio
from neurotier.storage.probe.plan import BLOCK_BYTES, SMALLEST_BYTES, Effort, effort_for, levels
from neurotier.storage.probe.small_files import SIZE_BYTES, measure_files
from neurotier.storage.spread import Spread
from neurotier.storage.workspace import Workspace, claim, tier_facts

FILES = "files"
CALLS = Access("calls", direct=False)

DEEP = 32
"""Queue depth of small requests, in addition to 1."""

PATIENCE = 3.0
"""How many planned slices a job may take that ends with its files instead of with its slice."""


@dataclass(frozen=True)
class Measurement(FioJob):
    """A row of the table before it is measured: a fio job named for its pattern, and the ``part`` of the probe.

    In part :data:`FILES`, it describes what neurotier's own processes do.
    """

    part: str = ""


Samples = dict[Measurement, Rows]
"""The figures of each measurement, one row per repetition."""


def one_stream(kind: str, file_bytes: int) -> list[Measurement]:
    """One stream, as with ``dd``: a write with a flush, a read from the device, and a read from the page cache."""
    read = Measurement("read", "read", BLOCK_BYTES, file_bytes, files="one", part="one_stream")
    write = replace(read, name="write", pattern="write", end_fsync=True, fresh=True)
    cached = [] if is_in_memory(kind) else [replace(read, name="cached_read", options={"invalidate": "0"})]
    return [write, read, *cached]


def small(access: Access, kind: str, file_bytes: int, slice_s: float) -> list[Measurement]:
    """Small random requests, one and many at a time, on the file of one stream.

    Buffered writes are flushed one by one, since they would otherwise only reach the page cache.
    """
    read = Measurement(
        name="random_read",
        pattern="randread",
        block_bytes=SIZE_BYTES,
        file_bytes=file_bytes,
        way=access,
        runtime_s=slice_s,
        repeat=True,
        files="one",
        part="small",
    )
    flushed = {} if access.direct or is_in_memory(kind) else {"sync": "1"}
    both = read, replace(read, name="random_write", pattern="randwrite", options=flushed)
    return [replace(each, queue_depth=depth) for each in both for depth in ((1, DEEP) if access.queues else (1,))]


def concurrency(access: Access, kind: str, streams: int, file_bytes: int, slice_s: float) -> list[Measurement]:
    """Simultaneous streams: writes, reads and a mix of both on the device, and on the page cache if there is one.

    All streams should run at the same time, though some start later. So files are read repeatedly until the slice is
    over, unless the data would then come from the page cache.
    """
    buffered = Measurement(
        name="write",
        pattern="write",
        block_bytes=BLOCK_BYTES,
        file_bytes=file_bytes,
        streams=streams,
        runtime_s=PATIENCE * slice_s,
        files="curve",
        part="concurrency",
    )
    past = replace(buffered, way=access)
    again = replace(past, runtime_s=slice_s, repeat=True) if access.direct or is_in_memory(kind) else past
    measurements = [
        replace(past, end_fsync=True, fresh=True),
        replace(again, name="read", pattern="read"),
        replace(again, name="mixed", pattern="rw", end_fsync=True),
    ]
    if not is_in_memory(kind):
        again = replace(buffered, name="cached_read", pattern="read", runtime_s=slice_s, repeat=True)
        cached = replace(again, options={"pre_read": "1"})
        measurements += [cached, replace(buffered, name="buffered_write", fresh=True)]
    return measurements


TIMEOUT_S = 60.0
"""How much longer than planned a job may take before the device is considered to hang, s."""

SPREADS = {"bandwidth_{}bytes_per_s": "bandwidth_bytes_per_s", "operation_{}s": "operation_s"}
"""Columns for the least and greatest value over the repetitions, and the figure that they describe."""


def probe_tier(
    tier: Tier,
    settings: ProbeSettings,
    streams: int,
    places: Places,
    say: Say,
    tell: Say,
) -> Rows:
    """Measure one tier on this node and return the rows of its table.

    Parameters
    ----------
    tier
        The tier as it is on this node (:meth:`Tier.here`).
    settings
        Limits of the probe.
    streams
        Most streams at once.
    places
        Those of the results folder that the probe belongs to.
    say
        Prints a line for the user.
    tell
        Reports progress before each measurement.

    Raises
    ------
    ToolError
        If there is no fio, or it fails.
    TierError
        If the tier is not as declared, has no room, or fills up during the probe.
    """
    require_fio("target probe")
    workspace = claim(tier, "probe", places)
    with workspace.working(places.identity):
        effort = effort_for(tier, settings, streams)
        limits = f"up to {counted(effort.streams, 'stream')}, at most {size(effort.room_bytes)}"
        say(f"Probing tier {tier.name} ({tier.path}): {limits}, within {seconds(effort.time_s)}")
        rows = probe_rows(tier, Walk(workspace, effort, tell).run())
    least, asked = min(row["repetitions"] for row in rows), effort.repetitions
    if least < asked:
        say(f"  {least} of {counted(asked, 'repetition')} in that time; raise probe.time_s for more")
    return rows


@dataclass
class Walk:
    """A probe in progress.

    Parameters
    ----------
    workspace
        The workspace in which its jobs run.
    effort
        Limits of the probe.
    tell
        Reports progress.
    """

    workspace: Workspace
    effort: Effort
    tell: Say
    samples: Samples = field(default_factory=dict)
    began_s: float = field(default_factory=time.monotonic)

    def run(self) -> Samples:
        """Measure everything, and repeat it while there is time; raises the errors of :meth:`Workspace.run`."""
        groups = self.first_repetition(find_access(self.workspace.folder, self.workspace.tier.kind))
        for done in range(1, self.effort.repetitions):
            if (time.monotonic() - self.began_s) * (done + 1) / done > self.effort.time_s:
                break
            for group in groups:
                self.measure(group)
            self.measure_files()
        return self.samples

    def first_repetition(self, access: Access) -> list[list[Measurement]]:
        """Measure everything once, with sizes chosen by what was measured so far; return the measurements, in groups.

        Small files are measured first, in between and last: their cost may depend on what was recently removed there,
        even by the probe itself, and that shows as a range.
        """
        effort, kind, slice_s = self.effort, self.workspace.tier.kind, self.effort.slice_s
        self.measure_files()
        rate = rate_of(self.measured(concurrency(access, kind, 1, SMALLEST_BYTES, slice_s)[:2]))
        alone = effort.stream_bytes(1, rate)
        groups = [[*one_stream(kind, alone), *small(access, kind, alone, slice_s)]]
        self.measure(groups[0])
        self.measure_files()
        for streams in levels(effort.streams):
            group = concurrency(access, kind, streams, effort.stream_bytes(streams, rate), slice_s)
            groups.append(group)
            rate = max(rate, rate_of(self.measure(group)))
        self.measure_files()
        return groups

    def measure(self, group: list[Measurement]) -> Rows:
        """Measure a group, and keep and return the figures of each measurement."""
        rows = self.measured(group)
        for each, row in zip(group, rows, strict=True):
            self.samples.setdefault(each, []).append(row)
        return rows

    def measured(self, group: list[Measurement]) -> Rows:
        """The figures of a group, measured on files of its own, which are then removed."""
        try:
            return [self.measure_one(each) for each in group]
        finally:
            self.workspace.remove_files()

    def measure_files(self) -> None:
        """Measure small files with each number of streams."""
        tier, folder, slice_s = self.workspace.tier.name, self.workspace.folder, self.effort.slice_s
        for streams in levels(self.effort.streams):
            self.tell(f"small files by {counted(streams, 'stream')}")
            for name, row in measure_files(tier, folder, streams, slice_s, TIMEOUT_S + 10 * slice_s).items():
                each = Measurement(name, name, SIZE_BYTES, SIZE_BYTES, streams, way=CALLS, part=FILES)
                self.samples.setdefault(each, []).append(row)

    def measure_one(self, job: FioJob) -> Row:
        """Run a fio job and return its figures."""
        self.tell(f"{job.name}, after {seconds(time.monotonic() - self.began_s)} of some {seconds(self.effort.time_s)}")
        row = self.workspace.run(job, TIMEOUT_S + 10 * self.effort.slice_s).cells() | {"name": job.name}
        if not row["operations_per_s"]:
            raise ToolError(f"{job.name} did nothing within {job.runtime_s} s", f"tier {self.workspace.tier.name!r}")
        return row


def rate_of(rows: Rows) -> float:
    """The lower of the bandwidths to and from the device, bytes/s."""
    return min(float(row["bandwidth_bytes_per_s"]) for row in rows if row["name"] in ("read", "write"))


def probe_rows(tier: Tier, samples: Samples) -> Rows:
    """The rows of ``probe.tsv`` for a tier just measured on this node, with small files last."""
    facts = {
        **dict.fromkeys(columns("probe")),
        **tier_facts(tier),
        "device": tier.mount().source,
        "kernel": f"{platform.system()} {platform.release()}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "fio": next(results[0]["fio_version"] for each, results in samples.items() if each.part != FILES),
    }
    return [facts | cells(*each) for each in sorted(samples.items(), key=lambda one: one[0].part == FILES)]


def cells(measurement: Measurement, results: Rows) -> Row:
    """A measurement and its results as cells of the table."""
    row = {name: getattr(measurement, name) for name in columns("probe") if hasattr(measurement, name)}
    row |= vars(measurement.way) | {"pattern": measurement.name, "repetitions": len(results)}
    for name in results[0].keys() & set(columns("probe")):
        known = [result[name] for result in results if result[name] is not None]
        row[name] = statistics.median(known) if known else None
    for name, figure in SPREADS.items():
        if figure in results[0]:
            spread = Spread.of(results, figure)
            row |= {name.format("low_"): spread.low, name.format("high_"): spread.high}
    return row
