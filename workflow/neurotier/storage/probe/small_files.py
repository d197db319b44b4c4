"""Small files: the cost of making one, looking at it and removing it, with one stream and with many.

fio's engines for metadata report the time of a call, on empty files. A model needs its components: CPU time, which
competes for processors, and waiting for the tier, which does not; waiting for a processor is neither. So processes of
our own do what pipelines do: each makes files of 4 KiB in a folder of its own, looks at each, and removes them. Between
these three, all processes wait for each other.
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

FILES, FILES_OF_EACH = 500, 100
"""Files of all streams together, or of each if that is more; fewer if a slice or the room does not suffice. Not many,
since some file systems (ext4 without a journal) slow down after removals, a probe's own included."""

LEAST_FILES = 20
"""With fewer, a tier counts as full."""

INODE_SHARE = 0.1
"""Share of a tier's free inodes that all streams may take together; the room in bytes has been checked before."""

SIZE_BYTES = 4096

Measured = dict[str, Row]
"""The operations by name, as cells of the table."""


def measure_files(tier: str, folder: Path, streams: int, slice_s: float, timeout_s: float) -> Measured:
    """Make, look at and remove small files with ``streams`` streams at once.

    Parameters
    ----------
    tier
        Name of the tier, for errors.
    folder
        Where the streams make their folders, which they remove.
    streams
        Processes.
    slice_s
        How long each may make files, s.
    timeout_s
        End them after this time, s.

    Raises
    ------
    TierError
        If the tier is full, or out of inodes.
    ToolError
        If it does not end, or fails otherwise.
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


def spent() -> tuple[float, float, float]:
    """Time, CPU time and waiting for a processor of this process so far, s."""
    return time.perf_counter(), time.process_time(), queued_s()


def make(files: int, slice_s: float) -> int:
    """Make files here until there are enough, or time or room is used up; returns how many were made."""
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


def work(folder: str, files: int, slice_s: float, together: Barrier, results: SimpleQueue[Any]) -> None:
    """What a stream's process does in a folder of its own; for each operation, it reports the files and their cost."""
    end_with_parent()
    made, took = 0, {}
    try:
        os.mkdir(folder, 0o700)
        os.chdir(folder)
        for name in OPERATIONS:
            call = os.lstat if name == "look" else os.unlink
            together.wait()
            begin = spent()
            if name == "make":
                made = make(files, slice_s)
            else:
                for number in range(made):
                    call(f"f{number}")
            took[name] = [made, begin[0], *(last - first for last, first in zip(spent(), begin, strict=True))]
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
    """Let streams work in step; returns the cost of each operation.

    Raises
    ------
    OSError
        If a stream failed.
    """
    files, context = files_of_each(streams, os.statvfs(folder).f_favail), multiprocessing.get_context("fork")
    together, results = context.Barrier(streams), context.SimpleQueue()
    folders = [os.path.abspath(f"{folder}/files.{number}") for number in range(streams)]
    workers = [context.Process(target=work, args=(own, files, slice_s, together, results)) for own in folders]
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
    """How many files each stream makes at most; file systems that create inodes on demand report 0 free ones.

    >>> files_of_each(2, 0), files_of_each(96, 1_000_000), files_of_each(2, 3_000), files_of_each(2, 50)
    (250, 100, 150, 20)
    """
    files = max(FILES // streams, FILES_OF_EACH)
    return max(LEAST_FILES, min(files, int(INODE_SHARE * free_inodes) // streams)) if free_inodes else files


def mean_of(streams: Sequence[Sequence[float]]) -> Row:
    """From each stream's number of files, and their begin, clock time, CPU time and waiting for a processor, s: means
    over all files, as cells.

    CPU time includes that of our own loop (some 2 us). What is left without the queue is waiting for the tier, or for
    its locks; ``operation_s`` excludes what others took of the processors. Streams that take turns on one are no faster
    together.

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
