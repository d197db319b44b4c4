"""Run fio: build its command line, read its JSON, report errors in one line, and find a tier's engine by trial.

fio runs each stream as a process, as participant jobs are, and each leads a session of its own.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.core.errors import ToolError, one_line
from neurotier.core.files import opened
from neurotier.core.kinds import KINDS
from neurotier.core.tables import Row, grouped
from neurotier.meter.residency import resident_share
from neurotier.storage.calls import failure_reason, require_program, run_call

INSTALL = "install it (Debian, Ubuntu: apt install fio; conda: conda-forge's fio)"

STREAM_LOST = "got signal="
"""fio's error if a stream was killed, for example for lack of memory; fio then often waits forever, or exits with 0."""

MIB = 1 << 20
BLOCK_BYTES = MIB // 16
TRIAL_TIMEOUT_S = 60.0

LATENCIES = {
    "latency_mean_s": "mean",
    "latency_p50_s": "50.000000",
    "latency_p99_s": "99.000000",
    "latency_p999_s": "99.900000",
    "latency_max_s": "max",
}
"""Table columns, and fio's name for each."""


@dataclass(frozen=True)
class Access:
    """A way to access files: fio's engine, and whether it bypasses the page cache."""

    engine: str
    direct: bool

    @property
    def queues(self) -> bool:
        """Whether a stream can have several requests in flight."""
        return self.engine in ("libaio", "io_uring")


BUFFERED = Access("psync", direct=False)
"""How ordinary programs, and ``dd``, read and write."""


@dataclass(frozen=True)
class FioJob:
    """One run of fio, which first evicts its files from the page cache, so that reads are cold.

    Attributes
    ----------
    name
        Its name in messages.
    pattern
        ``read``, ``write``, ``randread``, ``randwrite``, ``rw`` or ``randrw`` (the last two: half and half).
    block_bytes
        Size of a request.
    file_bytes
        Size of each stream's file.
    streams
        Processes, each with a file of its own (``numjobs``).
    queue_depth
        Requests that each stream has in flight; 1 for engines without a queue.
    way
        How the files are accessed.
    runtime_s
        Stop after this time, s, even if the files are not finished; ``None`` for no limit.
    repeat
        Start the files over until ``runtime_s`` has passed.
    end_fsync
        Flush to the device at the end, within the measured time.
    fresh
        Remove the files first, so that space is allocated while writing, as ordinary programs do.
    files
        Prefix of the file names; jobs with the same prefix and folder share their files.
    options
        Further options of fio, by name.
    each
        Options of each stream, if they differ; each stream is then a separate fio job with its own report, and
        ``streams`` stays 1.
    """

    name: str
    pattern: str
    block_bytes: int
    file_bytes: int
    streams: int = 1
    queue_depth: int = 1
    way: Access = BUFFERED
    runtime_s: float | None = None
    repeat: bool = False
    end_fsync: bool = False
    fresh: bool = False
    files: str = "data"
    options: dict[str, str] = field(default_factory=dict, hash=False)
    each: Sequence[Mapping[str, str]] = ()

    def command(self) -> list[str]:
        """The command line, to be run in the folder of the files."""
        options: dict[str, str | int] = {
            "name": "global" if self.each else self.name,
            "rw": self.pattern,
            "bs": self.block_bytes,
            "size": self.file_bytes,
            "numjobs": self.streams,
            "iodepth": self.queue_depth,
            "ioengine": self.way.engine,
            "direct": int(self.way.direct),
            "end_fsync": int(self.end_fsync),
            "filename_format": f"{self.files}.$jobnum.$filenum",
            "lat_percentiles": 1,
            "fallocate": "none",  # otherwise the space would be allocated before the writes
        }
        if self.runtime_s is not None:
            options |= {"runtime": f"{max(1, round(1000 * self.runtime_s))}ms", "time_based": int(self.repeat)}
        options |= self.options
        words = ["fio", "--output-format=json", "--eta=never", "--disk_util=0", "--exitall_on_error=1"]
        words += ["--group_reporting=1"] * (not self.each)
        words += [f"--{name}={value}" for name, value in options.items()]
        for place, own in enumerate(self.each):
            words += [f"--name={self.name}.{place}", *(f"--{name}={value}" for name, value in own.items())]
        return words


@dataclass(frozen=True)
class Flow:
    """Data moved in one direction by one or several streams.

    Attributes
    ----------
    bytes, operations
        Bytes moved, and number of requests.
    runtime_s
        Time of the stream that took longest, s.
    latencies_s
        Time from submitting a request to its completion, by column: ``latency_mean_s``, ``latency_p50_s``,
        ``latency_p99_s``, ``latency_p999_s`` and ``latency_max_s``, as far as fio reports them. With several streams,
        each percentile is that of the slowest stream.
    """

    bytes: int = 0
    operations: int = 0
    runtime_s: float = 0.0
    latencies_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Bytes/s over the time of the stream that took longest."""
        return self.bytes / self.runtime_s if self.runtime_s else 0.0


@dataclass(frozen=True)
class FioResult:
    """What fio measured.

    Attributes
    ----------
    reads, writes
        One flow per stream, in order, or a single flow if fio reported the streams together.
    cpu_s
        User and system CPU time of all streams, s, without that of the kernel's write-back threads.
    fio_version
        For example ``fio-3.33``.
    """

    reads: tuple[Flow, ...]
    writes: tuple[Flow, ...]
    cpu_s: float
    fio_version: str

    @property
    def read(self) -> Flow:
        """What all streams read."""
        return combined(self.reads)

    @property
    def write(self) -> Flow:
        """What all streams wrote."""
        return combined(self.writes)

    def cells(self) -> Row:
        """All figures under the names of table columns, of which each table takes its own. The rates of both
        directions are added, each over its own time."""
        both, ways = combined([*self.reads, *self.writes]), {"read": self.read, "write": self.write}
        return {
            **dict.fromkeys(LATENCIES),
            **both.latencies_s,
            "runtime_s": both.runtime_s,
            "bandwidth_bytes_per_s": sum(flow.bandwidth_bytes_per_s for flow in ways.values()),
            "operations_per_s": sum(flow.operations / (flow.runtime_s or 1.0) for flow in ways.values()),
            "cpu_s": self.cpu_s,
            "cpu_s_per_byte": self.cpu_s / both.bytes if both.bytes else None,
            "fio_version": self.fio_version,
            **{f"{way}_bytes": flow.bytes for way, flow in ways.items()},
            **{f"{way}_bytes_per_s": flow.bandwidth_bytes_per_s for way, flow in ways.items()},
        }


def require_fio(where: str) -> None:
    """Raise :class:`ToolError` if there is no fio; ``where`` says what needs it."""
    require_program("fio", where, INSTALL)


def run_fio(job: FioJob, folder: Path, timeout_s: float) -> FioResult:
    """Run a job on files in ``folder``, which stay there.

    Parameters
    ----------
    job
        What to do.
    folder
        A folder that belongs to the caller; see :func:`neurotier.core.private.work_folder`.
    timeout_s
        End it after this time, s, so that a device that hangs does not hang this process.

    Raises
    ------
    ToolError
        If fio fails, with the reason that it gives, or does not end.
    """
    if job.fresh:
        for file in folder.glob(f"{job.files}.*"):
            file.unlink()
    where = f"{job.name} ({access_text(**vars(job.way))}) in {folder}"
    done = run_call(job.command(), folder, timeout_s, where, lost=STREAM_LOST)
    report = find_json(done.stdout)
    is_sound = done.returncode == 0 and STREAM_LOST not in done.stderr
    if not is_sound or not report["jobs"] or any(one.get("error") for one in report["jobs"]):
        raise ToolError(f"fio: {reason(done.stdout, done.stderr, done.returncode)}", where)
    if job.each:
        report["jobs"].sort(key=lambda one: int(one["jobname"].rpartition(".")[2]))  # fio does not keep the order
    return read_report(report)


def access_text(engine: str, direct: bool) -> str:
    """fio's engine for accessing files, and whether it bypasses the page cache.

    >>> access_text("libaio", True), access_text("psync", False)
    ('libaio, direct', 'psync, buffered')
    """
    return f"{engine}, {'direct' if direct else 'buffered'}"


def find_json(text: str) -> Row:
    """The report in fio's output, which may have other text before and after it; without one, a report with no jobs.

    >>> find_json('note: both iodepth >= 1 and synchronous I/O engine\\n{"jobs": []}\\n'), find_json("fio: {no")
    ({'jobs': []}, {'jobs': []})
    """
    start = text.find("{")
    while start >= 0:
        with suppress(ValueError):
            report, _ = json.JSONDecoder().raw_decode(text, start)
            if "jobs" in report:
                return dict(report)
        start = text.find("{", start + 1)
    return {"jobs": []}


def reason(output: str, errors: str, exit_code: int) -> str:
    """Why fio failed, in its own words.

    >>> reason("", "fio: pid=7, err=28/file:filesetup.c:240, func=write, error=No space left on device", 1)
    'No space left on device'
    >>> reason("", "verify: bad magic header 0, wanted acca at file daq.0 offset 5568, length 5568 (requested", 1)
    'verify: bad magic header 0, wanted acca at file daq.0 offset 5568'
    """
    lines = [line.strip() for line in f"{errors}\n{output.partition('{')[0]}".splitlines() if line.strip()]
    for line in lines:
        # fio's error= text says nothing about a mismatch found by verification
        if line.startswith("verify: ") or ": verify failed" in line:
            return one_line(line.partition(", length")[0])
        if match := re.search(r"error=(.+)$", line):
            return one_line(match[1])
        if STREAM_LOST in line:
            number = line.partition(STREAM_LOST)[2]
            return f"a stream was killed by signal {number}" + " (out of memory?)" * (number == "9")
    said = [line.removeprefix("fio: ") for line in lines if line.startswith("fio:")] or lines
    return failure_reason(said[0] if said else "", exit_code)


def read_report(report: Row) -> FioResult:
    """Read the figures from fio's JSON."""
    jobs = report["jobs"]
    reads, writes = (tuple(read_flow(job[way]) for job in jobs) for way in ("read", "write"))
    # fio sums a job's runtime over its streams, and its percentages refer to that sum
    cpu_s = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000 for job in jobs)
    return FioResult(reads, writes, cpu_s, str(report.get("fio version", "")))


def read_flow(data: Row) -> Flow:
    """Read one direction of a job from fio's JSON."""
    if not data["total_ios"]:
        return Flow()
    known = data["lat_ns"] | data["lat_ns"].get("percentile", {})
    latencies_s = {name: 1e-9 * known[key] for name, key in LATENCIES.items() if key in known}
    return Flow(data["io_bytes"], data["total_ios"], data["runtime"] / 1000, latencies_s)


def combined(flows: Sequence[Flow]) -> Flow:
    """Combine several flows into one."""
    moved = [flow for flow in flows if flow.operations]
    if not moved:
        return Flow()
    operations = sum(flow.operations for flow in moved)
    slowest_s = grouped(one for flow in moved for one in flow.latencies_s.items())
    mean_s = sum(flow.latencies_s["latency_mean_s"] * flow.operations for flow in moved) / operations
    latencies_s = {name: max(each) for name, each in slowest_s.items()} | {"latency_mean_s": mean_s}
    return Flow(sum(flow.bytes for flow in moved), operations, max(flow.runtime_s for flow in moved), latencies_s)


def find_access(folder: Path, kind: str, block_bytes: int = BLOCK_BYTES) -> Access:
    """The best way to access files that the file system and this fio support with blocks of this size.

    Raises
    ------
    ToolError
        If not even buffered files can be written, with the reason that fio gives.
    """
    *better, last = (Access(engine, direct) for engine, direct in KINDS[kind].fio_engines)
    for way in better:
        try:
            try_access(way, folder, block_bytes)
        except ToolError:
            continue
        return way
    try_access(last, folder, block_bytes)
    return last


def try_access(way: Access, folder: Path, block_bytes: int = BLOCK_BYTES) -> None:
    """Try to write and read a MiB; a file system that accepts ``O_DIRECT`` may still go through the page cache."""
    try:
        for pattern in ("write", "read"):
            job = FioJob("trial", pattern, block_bytes, max(MIB, block_bytes), way=way, files="trial")
            run_fio(job, folder, TRIAL_TIMEOUT_S)
        if way.direct and resident_share(folder.glob("trial.*")) == 1:  # btrfs keeps some blocks
            raise ToolError("the page cache is not bypassed", folder)
    finally:
        for file in folder.glob("trial.*"):
            file.unlink()


def supports_direct(folder: Path, block_bytes: int) -> bool:
    """Whether a file in ``folder`` can be read in blocks of this size bypassing the page cache.

    This tries one read: a file system may open files with ``O_DIRECT`` and yet fail to read them, and the smallest
    possible block depends on the device. The read starts one block into the file, which fails unless a block is a
    whole number of sectors.
    """
    file = folder / "direct"
    file.write_bytes(bytes(2 * block_bytes))
    try:
        # a page-aligned buffer, like fio's
        with opened(file, os.O_RDONLY | os.O_DIRECT) as handle, mmap.mmap(-1, block_bytes) as buffer:
            return os.preadv(handle, [buffer], block_bytes) == block_bytes
    except OSError:
        return False
    finally:
        file.unlink()
