"""The BigBrain increment of this project beside the published way of doing it, and beside fio.

The published way, written from Algorithm 1 of the paper: one Python process per block loads it with NiBabel, adds 1 and
saves it with NiBabel; GNU parallel runs as many at once. Ours is the engine ``gnu-parallel``. Both start one process
per block, so both are shown with and without the start of Python and its libraries. fio reads and writes files of the
size of a block with as many processes, in pieces of the size that ours takes.

    python tests/benchmarks/bigbrain.py [FOLDER ON A TIER, else /dev/shm]
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

from bench import print_table, spread
from neurotier.bigbrain.blocks import make_blocks
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.increment import PIECE_BYTES
from neurotier.bigbrain.sources import source_of
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import PUBLISHED, STREAMING, Task
from neurotier.settings import Settings
from support import ENVIRONMENT

REPETITIONS, BLOCKS, PROCESSES = 3, 4, 2
SCALE = 0.53  # 96 MB a block

PUBLISHED_WAY = """
import json, sys, time
start = float(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / 100
start += time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
import nibabel as nib
import numpy as np
source, target, record = sys.argv[1:]
begin = time.time()
image = nib.load(source)
data = np.asanyarray(image.dataobj) + 1
nib.save(nib.Nifti1Image(data, image.affine, image.header), target)
end = time.time()
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
json.dump({"start_up_s": begin - start, "work_s": end - begin, "max_rss_bytes": 1024 * peak}, open(record, "w"))
"""

Figures = dict[str, float]


def timed_children(work: Callable[[], object]) -> Figures:
    """Wall time, and CPU time of all processes that it starts, s; the second means something on a busy machine, too."""
    before, begin = os.times(), time.monotonic()
    work()
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall_s": time.monotonic() - begin, "cpu_s": cpu_s / BLOCKS}


def measure_published(task: Task, folder: Path) -> Figures:
    """The published way over all blocks."""
    program, written = folder / "published.py", folder / "published"
    program.write_text(PUBLISHED_WAY)
    shutil.rmtree(written, ignore_errors=True)
    written.mkdir()
    words = [sys.executable, str(program)]
    command = f"{shlex.join(words)} {{}} {written}/{{/}} {written}/{{/.}}.json"
    own = ["parallel", "--will-cite", "--jobs", str(PROCESSES), command, ":::", *(block.file for block in task.blocks)]
    cost = timed_children(lambda: subprocess.run(own, check=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL))
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
    cost = timed_children(lambda: run_gnu_parallel(plan, folder / "logs"))
    if right:
        assert all(one.equal for one in check_task(task, lambda _: None))
    row = run_row(task, records_of(task), {}, {})
    work_s = sum(row[key] or 0.0 for key in ("load_header_s", "read_s", "increment_s", "write_s"))
    return cost | {
        "work_s": work_s / BLOCKS,
        "start_up_s": row["start_up_s"] / BLOCKS,
        "max_rss_bytes": row["max_rss_bytes"],
        "read_bytes_per_s": PROCESSES * row["read_bytes"] / row["read_s"] if row["read_s"] else 0.0,
        "write_bytes_per_s": PROCESSES * row["written_bytes"] / row["write_s"],
        "io_bytes_per_s": PROCESSES
        * (row["read_bytes"] + row["written_bytes"])
        / ((row["read_s"] or row["increment_s"]) + row["write_s"]),
        "work_bytes_per_s": PROCESSES * (row["read_bytes"] + row["written_bytes"]) / work_s,
    }


def measure_fio(task: Task, folder: Path) -> Figures:
    """fio's bandwidth, reading and writing files of the size of a block."""
    found = {}
    size_bytes = task.blocks[0].bytes // PIECE_BYTES * PIECE_BYTES
    for way in ("write", "read"):
        words = [f"--name={way}", f"--rw={way}", "--ioengine=psync", f"--bs={PIECE_BYTES}", f"--size={size_bytes}"]
        # ours writes new files: no file that fio laid out before
        words += [f"--numjobs={PROCESSES}", "--group_reporting", "--output-format=json", "--invalidate=0"]
        words += [f"--filename_format={folder}/fio.$jobnum", "--create_on_open=1" if way == "write" else "--thread=0"]
        done = subprocess.run(["fio", *words], check=True, capture_output=True, text=True)
        found[f"{way}_bytes_per_s"] = json.loads(done.stdout)["jobs"][0][way]["bw_bytes"]
    for file in folder.glob("fio.*"):
        file.unlink()
    both_s = 1 / found["read_bytes_per_s"] + 1 / found["write_bytes_per_s"]
    return {**found, "io_bytes_per_s": 2 / both_s, "work_bytes_per_s": 2 / both_s}


def main() -> None:
    os.environ.update(ENVIRONMENT)
    tier = Path(sys.argv[1] if len(sys.argv) > 1 else "/dev/shm")
    tiers = {"tier": {"path": str(tier), "kind": "tmpfs"}}
    placement = dict.fromkeys(("dataset", "work", "images", "results"), "tier")
    asked = {"count": BLOCKS, "scale": SCALE}
    settings = Settings.from_config({"tiers": tiers, "placement": placement, "bigbrain": asked}).bigbrain
    with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir=tier) as name:
        folder = Path(name)
        blocks = make_blocks(source_of(settings), folder / "blocks", "tier", lambda _: None)
        run = f"gnu-parallel/tier/{PROCESSES}/1"
        streaming = Task(
            run, "tier", f"{name}/written", f"{name}/records", 1, 0.0, STREAMING, False, "none", tuple(blocks)
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
        report(ways, blocks[0].bytes, tier)


def report(ways: dict[str, list[Figures]], block_bytes: int, tier: Path) -> None:
    """Print both tables."""
    base = statistics.median(one["wall_s"] for one in ways["published"])
    print_table(
        f"{BLOCKS} blocks of {block_bytes / 1e6:.0f} MB on {tier}, {PROCESSES} at once, medians of {REPETITIONS}",
        (
            "way",
            "work on a block (s)",
            "its start (s)",
            "CPU of both (s)",
            "all blocks (s)",
            "faster",
            "memory (MiB)",
        ),
        [
            (
                way,
                spread([one["work_s"] for one in figures], 3),
                spread([one["start_up_s"] for one in figures]),
                spread([one["cpu_s"] for one in figures]),
                spread([one["wall_s"] for one in figures]),
                f"{base / statistics.median(one['wall_s'] for one in figures):.2f}",
                f"{max(one['max_rss_bytes'] for one in figures) / 2**20:.0f}",
            )
            for way, figures in ways.items()
            if way != "fio"
        ],
    )
    keys = ("read_bytes_per_s", "write_bytes_per_s", "io_bytes_per_s", "work_bytes_per_s")
    fio = {key: statistics.median(one[key] for one in ways["fio"]) for key in keys} if "fio" in ways else {}
    rows = []
    for way in ("fio", "ours, streaming"):
        for key in keys if way in ways else ():
            values = [one[key] for one in ways[way]]
            share = f"{statistics.median(values) / fio[key]:.2f}" if fio else "n/a"
            rows.append((way, key.removesuffix("_bytes_per_s"), spread([value / 1e9 for value in values]), share))
    print_table("Bandwidth", ("way", "of", "GB/s", "of fio's"), rows)


if __name__ == "__main__":
    main()
