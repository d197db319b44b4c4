"""Measure what it costs to make, look at and remove a small file, with one stream and with many.

fio's metadata engines report only the total time of a call, on empty files. The model needs its components: CPU time,
which competes for processors, and waiting for the tier, which does not; waiting for a processor is neither. So
neurotier's own processes do what pipelines do: each makes files of 4 KiB in a folder of its own, looks at each, and
removes them. All processes start each of these three operations together.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

from neurotier.core.errors import TierError, ToolError, one_line
from neurotier.core.files import FULL
from neurotier.core.parallelism import span_s
from neurotier.core.processes import end_with_parent
from neurotier.core.tables import Row
from neurotier.meter.tree import queued_s
from neurotier.storage.calls import run_call

OPERATIONS = ("make", "look", "remove")
"""What is done with each file, in this order. The prediction adds the costs of these three (``file_costs`` in
:mod:`neurotier.model.this_machine`)."""

FILES, FILES_OF_EACH = 500, 100
"""Number of files of all streams together, or of each stream if that makes more; fewer if the time slice or the room
does not suffice. It is small, since some file systems (ext4 without a journal) slow down after files are removed, even
the probe's own."""

LEAST_FILES = 20
"""A tier with room for fewer files counts as full."""

INODE_SHARE = 0.1
"""Share of a tier's free inodes that all streams together may use; the space has been checked before."""

SIZE_BYTES = 4096

Measured = dict[str, Row]
"""Cells of the table by operation."""


def measure_files(tier: str, folder: Path, streams: int, slice_s: float, timeout_s: float) -> Measured:
    """Make, look at and remove small files with ``streams`` streams at once.

    Parameters
    ----------
    tier
        Name of the tier, for errors.
    folder
        The folder in which each stream makes, and finally removes, a folder of its own.
    streams
        Number of processes.
    slice_s
        How long each may make files, s.
    timeout_s
        End them after this time, s.

    Raises
    ------
    TierError
        If the tier is full or out of inodes.
    ToolError
        If the processes do not end, or fail for another reason.
    """
    words = [sys.executable, "-m", __name__, str(folder), str(streams), str(slice_s)]
    done = run_call(words, Path(), timeout_s, f"tier {tier!r}, small files")
    if done.returncode in FULL:
        raise TierError(
            f"had no room, or no inodes, for {LEAST_FILES * streams} small files",
            f"tier {tier!r}",
            "make room, or lower probe.streams",
        )
    if done.returncode != 0:
        raise ToolError(one_line(done.stderr.strip()) or str(done.returncode), f"tier {tier!r}, small files")
    return dict(json.loads(done.stdout))


def resource_times() -> tuple[float, float, float]:
    """Clock time, and this process's CPU time and time spent waiting for a processor so far, s."""
    return time.perf_counter(), time.process_time(), queued_s()


def make_files(files: int, slice_s: float) -> int:
    """Make files in the working folder until there are enough or time or room runs out; return how many were made."""
    made, data, deadline_s = 0, bytes(SIZE_BYTES), time.monotonic() + slice_s
    try:
        while made < files and (not made or time.monotonic() < deadline_s):
            file = os.open(f"f{made}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            made += 1
            try:
                os.write(file, data)
            finally:
                os.close(file)
    except OSError as error:
        if error.errno not in FULL or made < LEAST_FILES:
            raise
    return made


def run_stream(folder: str, files: int, slice_s: float, together: Barrier, results: SimpleQueue[Any]) -> None:
    """Run a stream in a folder of its own, and report the number of files and their cost for each operation."""
    end_with_parent()
    made, took = 0, {}
    try:
        os.mkdir(folder, 0o700)
        os.chdir(folder)
        for name in OPERATIONS:
            call = os.lstat if name == "look" else os.unlink
            together.wait()
            begin = resource_times()
            if name == "make":
                made = make_files(files, slice_s)
            else:
                for number in range(made):
                    call(f"f{number}")
            took[name] = [made, begin[0], *(last - first for last, first in zip(resource_times(), begin, strict=True))]
        results.put(took)
    except BrokenBarrierError:  # another stream reports why
        results.put(None)
    except OSError as error:
        together.abort()
        results.put(error)
    finally:
        os.chdir("..")
        shutil.rmtree(folder, ignore_errors=True)


def run_streams(folder: str, streams: int, slice_s: float) -> Measured:
    """Run streams in step with each other and return the cost of each operation.

    Raises
    ------
    OSError
        If a stream failed.
    """
    files, context = files_of_each(streams, os.statvfs(folder).f_favail), multiprocessing.get_context("fork")
    together, results = context.Barrier(streams), context.SimpleQueue()
    folders = [os.path.abspath(f"{folder}/files.{number}") for number in range(streams)]
    workers = [context.Process(target=run_stream, args=(own, files, slice_s, together, results)) for own in folders]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    for one in found:
        if isinstance(one, OSError):
            raise one
    return {name: mean_of([one[name] for one in found]) for name in OPERATIONS}


def files_of_each(streams: int, free_inodes: int) -> int:
    """How many files each stream makes at most; file systems that create inodes on demand report 0 free inodes.

    >>> files_of_each(2, 0), files_of_each(96, 1_000_000), files_of_each(2, 3_000), files_of_each(2, 50)
    (250, 100, 150, 20)
    """
    files = max(FILES // streams, FILES_OF_EACH)
    return max(LEAST_FILES, min(files, int(INODE_SHARE * free_inodes) // streams)) if free_inodes else files


def mean_of(streams: Sequence[Sequence[float]]) -> Row:
    """Means over the files of all streams, as cells of the table.

    Each stream is given as its number of files and its start, clock time, CPU time and time waiting for a processor,
    s. CPU time includes the loop in this module (some 2 us per file). What remains of the clock time after CPU time and
    waiting for a processor is waiting for the tier or its locks; ``operation_s`` is that plus CPU time, without waiting
    for a processor. ``operations_per_s`` counts from the first start to the last end: streams that take turns on one
    processor are not faster together.

    >>> measured = mean_of([[4, 1.0, 2.0, 0.5, 0.5], [12, 3.0, 2.0, 0.5, 0.5]])
    >>> measured["operation_wait_s"], measured["operations_per_s"]
    (0.125, 4.0)
    """
    files, _, wall_s, cpu_s, queue_s = map(sum, zip(*streams, strict=True))
    wait_s = max(0.0, wall_s - cpu_s - queue_s)
    return {
        "bandwidth_bytes_per_s": 0.0,
        "operations_per_s": files / span_s([(begin_s, begin_s + took_s) for _, begin_s, took_s, *_ in streams]),
        "latency_mean_s": wall_s / files,
        "operation_cpu_s": cpu_s / files,
        "operation_wait_s": wait_s / files,
        "operation_s": (cpu_s + wait_s) / files,
    }


def main() -> None:
    folder, streams, slice_s = sys.argv[1:]
    try:
        measured = run_streams(folder, int(streams), float(slice_s))
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        sys.exit(error.errno if error.errno in FULL else 1)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
