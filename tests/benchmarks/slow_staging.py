"""Slow staging: images that are read from a tier of 8 MB/s, or results that are written to one, while others compute.

40 participants of 5 MB, 2 and 4 at once in one job. The slow tier is a disk that is throttled for everybody. It lies in
memory, where no other load is in its way; everything else is on the local disk. Computing takes as long as the bytes of
all slots, which is hardest to overlap:

``in``
    a plain dataset on the slow tier; noop, which sleeps;
``out``
    results on the slow tier; a stand-in for bet, which sleeps and finds a brain nearly everywhere, so that results
    are as large as images.

Each is run with ``shares.staging_beside`` of 0, 1 and 2. Nobody is quicker than the larger of two bounds:
the bytes across the slow tier once, and the computing of one; all computing by so many slots, and the bytes of one.
Computing is what the phase took (median of all runs).
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
from pathlib import Path

import nibabel as nib
import numpy as np
from bench import print_table, scratch_project, timed
from devices import loop_device
from neurotier.core.tables import read_table
from neurotier.storage.page_cache import evict
from noise import make_noise
from support import ENVIRONMENT, Project, script, sleeping

PARTICIPANTS = 40
AT_ONCE = (2, 4)
BESIDE = (0, 1, 2)
BYTES_PER_S = 8_000_000
EDGE = 171
"""Voxels along each axis: bytes of noise, 5 MB, not compressed."""

BET_S = 0.2
"""About what checking a mask and compressing a brain take beside the tool, s."""


def stand_in(folder: Path, sleep_s: float) -> str:
    """The search path with a bet that sleeps, and finds a brain nearly everywhere."""
    script(folder / "bet", f'sleep {sleep_s}\ncp {folder}/mask.nii.gz "$2_mask.nii.gz"')
    brain = np.ones((EDGE, EDGE, EDGE), dtype=np.uint8)
    brain[0] = 0
    nib.save(nib.Nifti1Image(brain, np.eye(4)), folder / "mask.nii.gz")
    return f"{folder}{os.pathsep}{ENVIRONMENT['PATH']}"


def run(
    project: Project, slow: Path, way: str, at_once: int, beside: int, compute_s: float
) -> tuple[float, list[float], int]:
    """Run once, from a cold cache: makespan, s; how long each was computed, s; bytes across the slow tier."""
    out = way == "out"
    source, results = (project.folder / "noise", slow / "results") if out else (slow / "noise", project.results)
    project.configure(
        dataset=source,
        tool={"name": "bet"} if out else sleeping(compute_s),
        tiers={"slow": slow},
        placement={"results": "slow"} if out else {"dataset": "slow"},
        shares={"staging_beside": beside},
    )
    options = ("--scheduler=greedy", "--quiet")
    path = stand_in(project.folder / "bin", compute_s - BET_S)
    timed(project.command("ready", *options, cores=at_once), project.folder, PATH=path)
    os.sync()
    evict([file for file in source.rglob("*.nii") if file.is_file()])
    command = project.command("participants", "tabulate_profile", *options, cores=at_once)
    timed(command, project.folder, PATH=path)
    row = read_table(results / "profile" / "runs.tsv", "runs")[-1]
    phases = read_table(results / "profile" / "profile.tsv", "profile")
    assert row["participants"] == PARTICIPANTS, row
    shutil.rmtree(results)
    computed_s = [phase["wall_s"] for phase in phases if phase["phase"] == "compute"]
    copied = [phase["staged_bytes"] for phase in phases if phase["phase"] == f"stage_{way}"]
    return row["makespan_s"], computed_s, sum(copied)


def main() -> None:
    rows: list[list[object]] = []
    with scratch_project() as project, loop_device(1024, BYTES_PER_S, "/dev/shm") as slow:
        (size_bytes,) = {
            make_noise(folder, PARTICIPANTS, [EDGE], np.uint8, ".nii")
            for folder in (slow / "noise", project.folder / "noise")
        }
        for at_once in AT_ONCE:
            asked_s = size_bytes / PARTICIPANTS / BYTES_PER_S * at_once
            for way in ("in", "out"):
                runs = {beside: run(project, slow, way, at_once, beside, asked_s) for beside in BESIDE}
                each_s = runs[0][2] / PARTICIPANTS / BYTES_PER_S
                compute_s = statistics.median(one for _, computed_s, _ in runs.values() for one in computed_s)
                computing_s = compute_s * math.ceil(PARTICIPANTS / at_once)
                bound_s = max(each_s * PARTICIPANTS + compute_s, each_s + computing_s)
                makespans = [f"{makespan_s:.1f} ({makespan_s / bound_s:.2f})" for makespan_s, _, _ in runs.values()]
                rows.append([way, at_once, f"{compute_s:.2f}", f"{bound_s:.1f}", *makespans])
    what = f"{PARTICIPANTS} participants, {size_bytes / 1e6:.0f} MB over 8 MB/s: makespan, s (of bound)"
    print_table(what, ["bytes", "at once", "compute, s", "bound, s", *(f"beside {one}" for one in BESIDE)], rows)
