"""The BigBrain increment of this project beside the published way of doing it, and beside fio.

The published way, written from Algorithm 1 of the paper: one Python process per block loads it with NiBabel, adds 1 and
saves it with NiBabel; GNU parallel runs as many at once. Ours is the engine ``gnu-parallel``. Both start one process
per block. fio replays what ours reads and writes, call by call: the
same files in the same order, in the same pieces, flushed at the same places, by as many processes that are always at
work. Beside it are our processes that are always at work, too (each increments one block after the other), and the
engine with all its starts. On tiers that are no memory, everything is read with the blocks out of the page cache, and
writing lasts until the device has the data, whoever does it. Ratios are taken within a repetition; its order turns.

    python tests/benchmarks/bigbrain.py [FOLDER ON A TIER ..., else /dev/shm and the folder for temporary files]
"""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from bench import print_table, spread
from bigbrain_blocks import make, plan_of, task_of
from neurotier.bigbrain.blocks.nifti import HEADER_BYTES
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.increment import PIECE_BYTES
from neurotier.bigbrain.engines.worker import work
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import START_UP, WORK_PHASES, Block, Task
from neurotier.core.tiers import find_mount
from neurotier.storage.page_cache import prepare_cache
from support import ENVIRONMENT

REPETITIONS, PROCESSES = 5, 2
SIZES = {0.22: 24, 0.412: 12, 0.53: 4, 1.0: 4}  # scale to blocks of 7, 45, 96 and 644 MB
WAY_OF_THE_PAPER, OURS, STAYING, FIO = "published", "ours", "ours, processes stay", "fio"

PUBLISHED_WAY = """
import json, os, sys, time
start = float(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / 100
start += time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
import nibabel as nib
import numpy as np
flush, source, target, record = sys.argv[1:]
begin = time.time()
image = nib.load(source)
data = np.asanyarray(image.dataobj) + 1
nib.save(nib.Nifti1Image(data, image.affine, image.header), target)
if flush == "flush":
    with open(target) as written:
        os.fsync(written.fileno())
end = time.time()
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
json.dump({"start_up_s": begin - start, "work_s": end - begin, "max_rss_bytes": 1024 * peak}, open(record, "w"))
"""

Figures = dict[str, float]


def measure_published(task: Task, folder: Path) -> Figures:
    """The published way over all blocks."""
    program, written = folder / "published.py", folder / "published"
    program.write_text(PUBLISHED_WAY)
    shutil.rmtree(written, ignore_errors=True)
    written.mkdir()
    words = [sys.executable, str(program), "flush" if task.fsync else "no"]
    command = f"{shlex.join(words)} {{}} {written}/{{/}} {written}/{{/.}}.json"
    own = ["parallel", "--will-cite", "--jobs", str(PROCESSES), command, ":::", *(block.file for block in task.blocks)]
    make_cold(task)
    begin_s = time.monotonic()
    subprocess.run(own, check=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL)
    wall_s = time.monotonic() - begin_s
    records = [json.loads(file.read_text()) for file in written.glob("*.json")]
    shutil.rmtree(written)
    return {
        "wall_s": wall_s,
        "work_s": statistics.median(record["work_s"] for record in records),
        "start_up_s": statistics.median(record["start_up_s"] for record in records),
        "max_rss_bytes": max(record["max_rss_bytes"] for record in records),
    }


def measure_ours(task: Task, folder: Path, right: bool) -> Figures:
    """The engine ``gnu-parallel`` over all blocks; every voxel is checked where ``right`` is asked."""
    forget(task)
    plan = plan_of(task)
    make_cold(task)
    with contextlib.redirect_stdout(None):  # it is there for the log of its rule
        begin_s = time.monotonic()
        run_gnu_parallel(plan, folder / "logs")
        wall_s = time.monotonic() - begin_s
    if right:
        assert all(one.equal for one in check_task(task, lambda _: None))
    records = records_of(task)
    row = run_row(task, records, {}, {})
    return {
        "wall_s": wall_s,
        "work_s": statistics.median(phases_s(record, WORK_PHASES) for record in records),
        "start_up_s": statistics.median(phases_s(record, (START_UP,)) for record in records),
        "max_rss_bytes": row["max_rss_bytes"],
        "makespan_s": row["makespan_s"],
    }


def phases_s(record: Mapping[str, Any], names: Collection[str]) -> float:
    """Time that a block spent in some phases, s."""
    return math.fsum(phase["duration_s"] for phase in record["phases"] if phase["phase"] in names)


def shares_of(blocks: Sequence[Block]) -> list[Sequence[Block]]:
    """The blocks of each process, in its order: as GNU parallel gives blocks out that take equally long."""
    return [blocks[slot::PROCESSES] for slot in range(PROCESSES)]


def measure_staying(task: Task, folder: Path) -> Figures:
    """Our increment by processes that stay: what the engine does, without its starts."""
    forget(task)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(PROCESSES)

    def increment_all(blocks: Sequence[Block]) -> None:
        barrier.wait()
        for block in blocks:
            work(task, block, None, None)

    make_cold(task)
    processes = [context.Process(target=increment_all, args=(blocks,)) for blocks in shares_of(task.blocks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return {"makespan_s": float(run_row(task, records_of(task), {}, {})["makespan_s"])}


def forget(task: Task) -> None:
    """Remove what a run has written."""
    shutil.rmtree(task.folder, ignore_errors=True)
    shutil.rmtree(task.records, ignore_errors=True)


def make_cold(task: Task) -> None:
    """Evict the blocks where that means something."""
    prepare_cache("cold", [Path(block.file) for block in task.blocks], [], in_memory=True, programs=False)


def measure_fio(task: Task, folder: Path) -> Figures:
    """fio's replay of our calls."""
    forget(task)
    Path(task.folder, "1").mkdir(parents=True)
    # as ours: buffers are not changed before they are written, no advice to the kernel, and evicted is what is read
    words = ["--ioengine=psync", "--scramble_buffers=0", "--fadvise_hint=0", "--invalidate=0", "--output-format=json"]
    for slot, blocks in enumerate(shares_of(task.blocks)):
        log = folder / f"calls.{slot}.log"
        log.write_text("".join(f"{line}\n" for line in calls(task, blocks)))
        words += [f"--name=process{slot}", f"--read_iolog={log}"]
    make_cold(task)
    done = subprocess.run(["fio", *words], check=True, capture_output=True, text=True, cwd=folder)
    jobs = json.loads(done.stdout)["jobs"]
    for way in ("read", "write"):
        assert sum(job[way]["io_bytes"] for job in jobs) == sum(block.bytes for block in task.blocks)
    assert sum(job["sync"]["total_ios"] for job in jobs) == len(task.blocks) * task.fsync
    return {"makespan_s": max(job["job_runtime"] for job in jobs) / 1000}


def calls(task: Task, blocks: Sequence[Block]) -> Iterator[str]:
    """What one of our processes reads and writes, in fio's format: each block's header, its pieces, and the flush.

    Source: fio's HOWTO, section 'Trace file format v2'.
    """
    yield "fio version 2 iolog"
    for block in blocks:
        source, target = block.file, task.file(block, 1)
        pieces = [(at, min(PIECE_BYTES, block.bytes - at)) for at in range(HEADER_BYTES, block.bytes, PIECE_BYTES)]
        yield from (f"{file} {action}" for action in ("add", "open") for file in (target, source))
        for begin, size in [(0, HEADER_BYTES), *pieces]:
            yield f"{source} read {begin} {size}"
            yield f"{target} write {begin} {size}"
        if task.fsync:
            yield f"{target} sync 0 0"
        yield from (f"{file} close" for file in (target, source))


def touch_memory(wanted_bytes: int) -> None:
    """Have so much of the free memory written to once: a virtual machine gets it from its host at the first touch,
    which takes ten times as long as any later one and would be charged to whoever comes first."""
    size_bytes = min(wanted_bytes, int(0.7 * psutil.virtual_memory().available))
    subprocess.run([sys.executable, "-c", f"import numpy; numpy.ones({size_bytes}, 'u1')"], check=True)


def main() -> None:
    os.environ.update(ENVIRONMENT)
    rows = []
    for place in sys.argv[1:] or ["/dev/shm", tempfile.gettempdir()]:
        for scale, count in SIZES.items():
            rows.append(measure(Path(place), scale, count))
    print_table(
        f"All, medians of {REPETITIONS} (range), load {os.getloadavg()[1]:.1f}",
        (
            "blocks",
            "on",
            "all blocks, times faster than published",
            "one block, start (s)",
            "its work (s)",
            "memory, ours and published (MiB)",
            "share of fio, processes stay",
            "share of fio, with starts",
        ),
        rows,
    )


def measure(tier: Path, scale: float, count: int) -> list[str]:
    """Measure everything on a tier with blocks of one size; its row of the table."""
    in_memory = find_mount(tier).fs_type == "tmpfs"
    with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir=tier) as name:
        folder = Path(name)
        blocks = make(folder, count=count, scale=scale)
        touch_memory(3 * sum(block.bytes for block in blocks))  # as much as lies on the tier and is held at once
        task = task_of(folder, blocks, run=f"gnu-parallel/disk/{PROCESSES}/1", fsync=not in_memory)
        ways: dict[str, Callable[[bool], Figures]] = {
            WAY_OF_THE_PAPER: lambda _: measure_published(task, folder),
            OURS: lambda first: measure_ours(task, folder, first),
            STAYING: lambda _: measure_staying(task, folder),
        }
        if shutil.which("fio"):
            ways[FIO] = lambda _: measure_fio(task, folder)
        found: dict[str, list[Figures]] = {way: [] for way in ways}
        for repetition in range(REPETITIONS):
            for turn in range(len(ways)):
                way = list(ways)[(repetition + turn) % len(ways)]
                found[way].append(ways[way](repetition == 0))
            forget(task)
    ours, published = found[OURS], found[WAY_OF_THE_PAPER]
    return [
        f"{count} of {blocks[0].bytes / 1e6:.0f} MB",
        "tmpfs" if in_memory else "disk",
        faster(published, ours),
        spread([one["start_up_s"] for one in ours], 3),
        spread([one["work_s"] for one in ours], 3),
        f"{memory_mib(ours)}, {memory_mib(published)}",
        share_of_fio(found, STAYING),
        share_of_fio(found, OURS),
    ]


def ratios(of: Sequence[Figures], to: Sequence[Figures], what: Callable[[Figures], float]) -> list[float]:
    """How many times as much one way took as another, within each repetition."""
    return [what(one) / what(other) for one, other in zip(of, to, strict=True)]


def faster(of: Sequence[Figures], to: Sequence[Figures]) -> str:
    """How many times faster the second way did all blocks."""
    return spread(ratios(of, to, lambda one: one["wall_s"]))


def share_of_fio(found: Mapping[str, list[Figures]], way: str) -> str:
    """The speed of a way as a share of fio's."""
    return spread(ratios(found[FIO], found[way], lambda one: one["makespan_s"])) if FIO in found else "n/a"


def memory_mib(figures: Sequence[Figures]) -> str:
    """Most memory of a process, MiB."""
    return f"{max(one['max_rss_bytes'] for one in figures) / 2**20:,.0f}"


if __name__ == "__main__":
    main()
