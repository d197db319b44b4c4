"""The BigBrain increment of this project beside the published way of doing it, and beside fio.

The published way, written from Algorithm 1 of the paper: one Python process per block loads it with NiBabel, adds 1 and
saves it with NiBabel; GNU parallel runs as many at once. Ours is the engine ``gnu-parallel``. Both start one process
per block, so both are shown with and without the start of Python and its libraries. fio reads and writes files of the
size of a block with as many processes, in pieces of the size that ours takes. On tiers that are no memory, everything
is read with these files out of the page cache, and writing lasts until the device has the data, fio's and ours.

    python tests/benchmarks/bigbrain.py [FOLDER ON A TIER ..., else /dev/shm and the folder for temporary files]
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from bench import print_table, spread
from neurotier.bigbrain.blocks.making import make_blocks
from neurotier.bigbrain.blocks.sources import source_of
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.increment import PIECE_BYTES
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import PUBLISHED, STREAMING, Task
from neurotier.core.settings import Settings
from neurotier.core.tiers import find_mount
from neurotier.storage.page_cache import prepare_cache
from support import ENVIRONMENT

REPETITIONS, PROCESSES = 3, 2
SIZES = {0.22: 8, 0.53: 4, 1.0: 4}  # scale to blocks of 7, 96 and 644 MB

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


def timed_children(work: Callable[[], object], blocks: int) -> Figures:
    """Wall time, and CPU time of all processes that it starts, s; the second means something on a busy machine, too."""
    before, begin = os.times(), time.monotonic()
    work()
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall_s": time.monotonic() - begin, "cpu_s": cpu_s / blocks}


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
    cost = timed_children(
        lambda: subprocess.run(own, check=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL), len(task.blocks)
    )
    records = [json.loads(file.read_text()) for file in written.glob("*.json")]
    shutil.rmtree(written)
    return cost | {
        "work_s": statistics.median(record["work_s"] for record in records),
        "start_up_s": statistics.median(record["start_up_s"] for record in records),
        "max_rss_bytes": max(record["max_rss_bytes"] for record in records),
    }


def measure_ours(task: Task, folder: Path, right: bool) -> Figures:
    """The engine ``gnu-parallel`` over all blocks; every voxel is checked where ``right`` is asked."""
    shutil.rmtree(task.folder, ignore_errors=True)
    shutil.rmtree(task.records, ignore_errors=True)
    plan = folder / "plan.json"
    plan.write_text(json.dumps(task.to_json()))
    make_cold(task)
    cost = timed_children(lambda: run_gnu_parallel(plan, folder / "logs"), len(task.blocks))
    if right:
        assert all(one.equal for one in check_task(task, lambda _: None))
    row = run_row(task, records_of(task), {}, {})
    work_s = sum(row[key] or 0.0 for key in ("load_header_s", "read_s", "increment_s", "write_s"))
    moved = row["read_bytes"] + row["written_bytes"]
    return cost | {
        "work_s": work_s / len(task.blocks),
        "start_up_s": row["start_up_s"] / len(task.blocks),
        "max_rss_bytes": row["max_rss_bytes"],
        "read_bytes_per_s": PROCESSES * row["read_bytes"] / row["read_s"] if row["read_s"] else 0.0,
        "write_bytes_per_s": PROCESSES * row["written_bytes"] / row["write_s"],
        "io_bytes_per_s": PROCESSES * moved / ((row["read_s"] or row["increment_s"]) + row["write_s"]),
        "work_bytes_per_s": PROCESSES * moved / work_s,
        "all_bytes_per_s": moved / row["makespan_s"],
    }


def make_cold(task: Task) -> None:
    """Evict the blocks where that means something."""
    prepare_cache("cold", [Path(block.file) for block in task.blocks], [], in_memory=True, programs=False)


def measure_fio(task: Task, folder: Path) -> Figures:
    """fio's bandwidth, reading and writing files of the size of a block."""
    bandwidths = {}
    size_bytes = task.blocks[0].bytes // PIECE_BYTES * PIECE_BYTES
    for way in ("write", "read"):
        words = [f"--name={way}", f"--rw={way}", "--ioengine=psync", f"--bs={PIECE_BYTES}", f"--size={size_bytes}"]
        # ours writes new files: no file that fio laid out before
        words += [f"--numjobs={PROCESSES}", "--group_reporting", "--output-format=json", "--invalidate=1"]
        words += ["--end_fsync=1"] if task.fsync and way == "write" else []
        words += [f"--filename_format={folder}/fio.$jobnum", "--create_on_open=1" if way == "write" else "--thread=0"]
        done = subprocess.run(["fio", *words], check=True, capture_output=True, text=True)
        bandwidths[f"{way}_bytes_per_s"] = json.loads(done.stdout)["jobs"][0][way]["bw_bytes"]
    for file in folder.glob("fio.*"):
        file.unlink()
    both = 2 / (1 / bandwidths["read_bytes_per_s"] + 1 / bandwidths["write_bytes_per_s"])
    return {**bandwidths, "io_bytes_per_s": both, "work_bytes_per_s": both, "all_bytes_per_s": both}


def touch_memory() -> None:
    """Have most of the free memory written to once: a virtual machine gets it from its host at the first touch, which
    takes ten times as long as any later one and would be charged to whoever comes first."""
    free_bytes = int(0.7 * psutil.virtual_memory().available)
    subprocess.run([sys.executable, "-c", f"import numpy; numpy.ones({free_bytes}, 'u1')"], check=True)


def main() -> None:
    os.environ.update(ENVIRONMENT)
    touch_memory()
    for place in sys.argv[1:] or ["/dev/shm", tempfile.gettempdir()]:
        for scale, count in SIZES.items():
            measure(Path(place), scale, count)


def measure(tier: Path, scale: float, count: int) -> None:
    """Measure everything on a tier with blocks of one size, and print it."""
    in_memory = find_mount(tier).fs_type == "tmpfs"
    tiers = {"tier": {"path": str(tier), "kind": "tmpfs" if in_memory else "block"}}
    placement = dict.fromkeys(("dataset", "work", "images", "results"), "tier")
    asked = {"count": count, "scale": scale, "fsync": not in_memory}
    settings = Settings.from_config({"tiers": tiers, "placement": placement, "bigbrain": asked}).bigbrain
    with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir=tier) as name:
        folder = Path(name)
        blocks = make_blocks(source_of(settings), folder / "blocks", "tier", lambda _: None)
        run = f"gnu-parallel/tier/{PROCESSES}/1"
        streaming = Task(
            run, "tier", f"{name}/written", f"{name}/records", 1, 0.0, STREAMING, not in_memory, "none", tuple(blocks)
        )
        mapped = dataclasses.replace(streaming, pairing=PUBLISHED)
        ways: dict[str, list[Figures]] = {"published": [], "ours, streaming": [], "ours, pairing published": []}
        if shutil.which("fio"):
            ways["fio"] = []
        for repetition in range(REPETITIONS):
            ways["published"].append(measure_published(streaming, folder))
            ways["ours, streaming"].append(measure_ours(streaming, folder, repetition == 0))
            ways["ours, pairing published"].append(measure_ours(mapped, folder, repetition == 0))
            shutil.rmtree(streaming.folder)
            if "fio" in ways:
                ways["fio"].append(measure_fio(streaming, folder))
        title = f"{count} blocks of {blocks[0].bytes / 1e6:.0f} MB on {tier}, {PROCESSES} at once"
        report(ways, f"{title}, medians of {REPETITIONS}")


def report(ways: dict[str, list[Figures]], title: str) -> None:
    """Print both tables."""
    base, each = (statistics.median(one["wall_s"] for one in ways["published"]), per_block_s(ways["published"]))
    print_table(
        title,
        (
            "way",
            "work on a block (s)",
            "its start (s)",
            "CPU of both (s)",
            "block faster",
            "all blocks (s)",
            "all faster",
            "memory (MiB)",
        ),
        [
            (
                way,
                spread([one["work_s"] for one in figures], 3),
                spread([one["start_up_s"] for one in figures]),
                spread([one["cpu_s"] for one in figures]),
                f"{each / per_block_s(figures):.2f}",
                spread([one["wall_s"] for one in figures]),
                f"{base / statistics.median(one['wall_s'] for one in figures):.2f}",
                f"{max(one['max_rss_bytes'] for one in figures) / 2**20:.0f}",
            )
            for way, figures in ways.items()
            if way != "fio"
        ],
    )
    keys = ("read_bytes_per_s", "write_bytes_per_s", "io_bytes_per_s", "work_bytes_per_s", "all_bytes_per_s")
    fio = {key: statistics.median(one[key] for one in ways["fio"]) for key in keys} if "fio" in ways else {}
    rows = []
    for way in ("fio", "ours, streaming"):
        for key in keys if way in ways else ():
            values = [one[key] for one in ways[way]]
            share = f"{statistics.median(values) / fio[key]:.2f}" if fio else "n/a"
            rows.append((way, key.removesuffix("_bytes_per_s"), spread([value / 1e9 for value in values]), share))
    print_table(
        "Bandwidth (io: read + write; work: + increment; all: + starts)", ("way", "of", "GB/s", "of fio's"), rows
    )


def per_block_s(figures: list[Figures]) -> float:
    """What a block costs with the start of its process, s."""
    return statistics.median(one["work_s"] + one["start_up_s"] for one in figures)


if __name__ == "__main__":
    main()
