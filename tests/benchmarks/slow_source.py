"""Slow source: images fetched from a DataLad source of 8 MB/s while others are analysed; how near is that to the least?

40 participants of 5 MB, 2, 4 and 25 at once. The source lies on a disk that is throttled for everybody, everything else
on the local disk. The tool is noop, which sleeps once as long as one fetch takes (then the source decides) and once as
long as the fetches for all slots take (then both take the same time, which is hardest to overlap). Each is run in one
command, ``participants``, which fetches images while others are analysed, and in two, of which ``ready`` fetches all.

Time is from the begin of the first fetch to the end of the last participant. Nobody can be quicker than the larger of
two bounds: the bytes across the source once, and the analysis of the last that came; the first fetch, and all analyses
by so many slots.
"""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import numpy as np
from bench import prepare, print_table, restore, scratch_project, timed
from devices import loop_device
from neurotier.storage.page_cache import evict
from noise import make_noise_dataset
from support import Project, git, read_json

PARTICIPANTS = 40
AT_ONCE = (2, 4, 25)
BYTES_PER_S = 8_000_000
EDGE = 171
"""Voxels along each axis: bytes of noise, 5 MB, not compressed."""

WAYS = {"as they come": ["participants"], "fetched first": ["ready", "participants"]}


def measure(project: Project, source: Path, at_once: int, compute_s: float, way: str) -> tuple[float, float, float]:
    """Time from the first fetch to the last participant, makespan and CPU time of the commands, s."""
    tool = {"name": "noop", "noop": {"sleep_s": round(compute_s, 2)}}
    arguments = [*project.configure(dataset={"source": str(source)}, tool=tool), "--scheduler=greedy", "--quiet"]
    shutil.rmtree(project.folder / "prepared", ignore_errors=True)
    shutil.rmtree(project.results, ignore_errors=True)
    prepare(project, arguments)
    restore(project)
    git(next(project.folder.glob("neurotier-*/datasets/noise-*")), "annex", "drop", "--force", "--quiet", ".")
    os.sync()
    evict([file for file in (source / ".git" / "annex" / "objects").rglob("*") if file.is_file()])
    cpu_s, got = 0.0, []
    for target in WAYS[way]:
        cpu_s += timed(project.command(target, *arguments, cores=at_once), project.folder).cpu_s
        noted = [read_json(file)["participants"] for file in project.results.glob("state/got/*")]
        got += [one for each in noted for one in each.values()]
    found = [read_json(file) for file in project.records()]
    assert len(found) == PARTICIPANTS, len(found)
    begun_s, ended_s = (
        min(one["phases"][0]["start_s"] for one in found),
        max(one["phases"][-1]["end_s"] for one in found),
    )
    if way == "as they come":
        looked_s = min(one["got"]["end_s"] - one["got"]["wall_s"] for one in found)
        return ended_s - looked_s, ended_s - begun_s, cpu_s
    fetching_s = max(one["end_s"] for one in got) - min(one["end_s"] - one["wall_s"] for one in got)
    return fetching_s + ended_s - begun_s, ended_s - begun_s, cpu_s


def main() -> None:
    rows = []
    with scratch_project() as project, loop_device(512, BYTES_PER_S) as slow:
        size_bytes = make_noise_dataset(slow / "noise", PARTICIPANTS, [EDGE], np.uint8, ".nii")
        fetch_s = size_bytes / PARTICIPANTS / BYTES_PER_S
        for at_once in AT_ONCE:
            for compute_s in (fetch_s, fetch_s * at_once):
                computing_s = compute_s * math.ceil(PARTICIPANTS / at_once)
                bound_s = max(size_bytes / BYTES_PER_S + compute_s, fetch_s + computing_s)
                for way in WAYS:
                    *spans_s, cpu_s = measure(project, slow / "noise", at_once, compute_s, way)
                    times = [f"{one:.1f} ({one / bound_s:.2f})" for one in spans_s]
                    rows.append([at_once, f"{compute_s:.2f}", way, f"{bound_s:.1f}", *times, f"{cpu_s:.0f}"])
    what = f"{PARTICIPANTS} participants, {size_bytes / 1e6:.0f} MB from a source of {BYTES_PER_S / 1e6:.0f} MB/s"
    header = ["at once", "compute, s", "fetching", "bound, s", "time, s (of bound)", "makespan, s (of bound)", "CPU, s"]
    print_table(what, header, rows)
