"""The BigBrain increment of this project beside the published way of doing it.

The published way, written from Algorithm 1 of the paper: one Python process per block loads it with NiBabel, adds 1 and
saves it with NiBabel; GNU parallel runs as many at once. Ours is the engine ``gnu-parallel``. On tiers that are no
memory, everything is read with the blocks out of the page cache, and writing lasts until the device has the data,
whoever does it. Ratios are taken within a repetition; its order turns.

Words are folders on tiers, else ``/dev/shm`` and the folder for temporary files.
"""

from __future__ import annotations

import contextlib
import math
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
from bigbrain_blocks import make, plan_of, task_of
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import START_UP, WORK_PHASES, Task
from neurotier.core.tiers import find_mount
from neurotier.storage.page_cache import evict
from support import ENVIRONMENT, read_json

REPETITIONS, PROCESSES = 5, 2
SIZES = {0.22: 24, 0.412: 12, 0.53: 4, 1.0: 4}  # scale to blocks of 7, 45, 96 and 644 MB

PUBLISHED_WAY = """
import json, os, sys
import nibabel as nib
import numpy as np
flush, source, target, record = sys.argv[1:]
image = nib.load(source)
data = np.asanyarray(image.dataobj) + 1
nib.save(nib.Nifti1Image(data, image.affine, image.header), target)
if flush == "flush":
    with open(target) as written:
        os.fsync(written.fileno())
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
json.dump({"max_rss_bytes": 1024 * peak}, open(record, "w"))
"""

Figures = dict[str, float]


def published(task: Task, folder: Path) -> Figures:
    """The published way over all blocks."""
    program, written = folder / "published.py", folder / "published"
    program.write_text(PUBLISHED_WAY)
    written.mkdir()
    words = [sys.executable, str(program), "flush" if task.fsync else "no"]
    command = f"{shlex.join(words)} {{}} {written}/{{/}} {written}/{{/.}}.json"
    own = ["parallel", "--will-cite", "--jobs", str(PROCESSES), command, ":::", *(block.file for block in task.blocks)]
    begin_s = time.monotonic()
    subprocess.run(own, check=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL)
    wall_s = time.monotonic() - begin_s
    peak_bytes = max(read_json(file)["max_rss_bytes"] for file in written.glob("*.json"))
    shutil.rmtree(written)
    return {"wall_s": wall_s, "max_rss_bytes": peak_bytes}


def ours(task: Task, folder: Path) -> Figures:
    """The engine ``gnu-parallel`` over all blocks."""
    with contextlib.redirect_stdout(None):  # it is there for the log of its rule
        begin_s = time.monotonic()
        run_gnu_parallel(plan_of(task), folder / "logs")
        wall_s = time.monotonic() - begin_s
    assert all(one.equal for one in check_task(task))
    records = records_of(task)
    row = run_row(task, records, {}, None)

    def median_s(*names: str) -> float:
        """What a block spent in some phases, s."""
        each = [[phase["duration_s"] for phase in one["phases"] if phase["phase"] in names] for one in records]
        return statistics.median(map(math.fsum, each))

    times_s = {"work_s": median_s(*WORK_PHASES), "start_up_s": median_s(START_UP)}
    return {"wall_s": wall_s, "max_rss_bytes": row["max_rss_bytes"], **times_s}


def touch_memory(wanted_bytes: int) -> None:
    """Have so much of the free memory written to once: a virtual machine gets it from its host at the first touch,
    which takes ten times as long as any later one and would be charged to whoever comes first."""
    size_bytes = min(wanted_bytes, int(0.7 * psutil.virtual_memory().available))
    subprocess.run([sys.executable, "-c", f"import numpy; numpy.ones({size_bytes}, 'u1')"], check=True)


WAYS: tuple[Callable[[Task, Path], Figures], ...] = (published, ours)


def measure(tier: Path, scale: float, count: int) -> list[str]:
    """Measure everything on a tier with blocks of one size; its row of the table."""
    in_memory = find_mount(tier).fs_type == "tmpfs"
    with tempfile.TemporaryDirectory(prefix="neurotier-benchmark-", dir=tier) as name:
        folder = Path(name)
        blocks = make(folder, count=count, scale=scale)
        touch_memory(3 * sum(block.bytes for block in blocks))  # as much as lies on the tier and is held at once
        task = task_of(folder, blocks, run=f"gnu-parallel/disk/{PROCESSES}/1", fsync=not in_memory)
        rounds: list[dict[str, Figures]] = []
        for repetition in range(REPETITIONS):
            rounds.append({})
            for way in WAYS[:: 1 - 2 * (repetition % 2)]:
                for left in (task.folder, task.records):
                    shutil.rmtree(left, ignore_errors=True)
                if not in_memory:
                    os.sync()
                    evict([Path(block.file) for block in blocks])
                rounds[-1][way.__name__] = way(task, folder)

    def ratio(of: str, to: str, what: str) -> str:
        """How many times as much one way took as another, within each repetition."""
        return spread([one[of][what] / one[to][what] for one in rounds])

    def peak_mib(way: str) -> str:
        return f"{max(one[way]['max_rss_bytes'] for one in rounds) / 2**20:,.0f}"

    return [
        *(f"{count} of {blocks[0].bytes / 1e6:.0f} MB", "tmpfs" if in_memory else "disk"),
        ratio("published", "ours", "wall_s"),
        *(spread([one["ours"][what] for one in rounds], 3) for what in ("start_up_s", "work_s")),
        f"{peak_mib('ours')}, {peak_mib('published')}",
    ]


def main(*tiers: str) -> None:
    places = tiers or ("/dev/shm", tempfile.gettempdir())
    rows = [measure(Path(place), scale, count) for place in places for scale, count in SIZES.items()]
    header = [
        *("blocks", "on", "all blocks, times faster than published", "one block, start (s)", "its work (s)"),
        "memory, ours and published (MiB)",
    ]
    print_table(f"All, medians of {REPETITIONS} (range), load {os.getloadavg()[1]:.1f}", header, rows)
