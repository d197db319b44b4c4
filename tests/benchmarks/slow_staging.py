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
from support import Project

PARTICIPANTS = 40
AT_ONCE = (2, 4)
BESIDE = (0, 1, 2)
BYTES_PER_S = 8_000_000
EDGE = 171
"""Voxels along each axis: bytes of noise, 5 MB, not compressed."""

BET_S = 0.2
"""About what checking a mask and compressing a brain take beside the tool, s."""

DEVICE_MIB = 1024
HEAD = ["bytes", "at once", "beside", "compute, s", "bound, s", "makespan, s", "over bound"]


Run = tuple[float, list[float], int]
"""Makespan, s; how long each participant was computed, s; and the bytes that were copied across the slow tier."""


def stand_in(folder: Path, sleep_s: float) -> Path:
    """A folder with a bet that sleeps, and finds a brain nearly everywhere."""
    folder.mkdir(exist_ok=True)
    mask = folder / "mask.nii.gz"
    brain = np.ones((EDGE, EDGE, EDGE), dtype=np.uint8)
    brain[0] = 0
    nib.save(nib.Nifti1Image(brain, np.eye(4)), mask)
    program = folder / "bet"
    program.write_text(f'#!/bin/sh\nsleep {sleep_s}\ncp {mask} "$2_mask.nii.gz"\n')
    program.chmod(0o755)
    return folder


def run(project: Project, source: Path, slow: Path, out: bool, at_once: int, beside: int, compute_s: float) -> Run:
    """Run once, from a cold cache."""
    results = slow / "results" if out else project.results
    arguments = project.configure(
        dataset={"source": str(source)},
        tool={"name": "bet"} if out else {"name": "noop", "noop": {"sleep_s": compute_s}},
        tiers={"slow": {"path": str(slow), "kind": "block"}},
        placement={"results": "slow"} if out else {"dataset": "slow"},
        results="results",
        shares={"staging_beside": beside},
    )
    arguments += ["--scheduler=greedy", "--quiet"]
    bet = stand_in(project.folder / "bin", compute_s - BET_S)
    environment = {"PATH": f"{bet}{os.pathsep}{os.environ['PATH']}"}
    timed(project.command("ready", *arguments, cores=at_once), project.folder, **environment)
    os.sync()
    evict([file for file in source.rglob("*.nii") if file.is_file()])
    targets = ["participants", "tabulate_profile"]
    timed(project.command(*targets, *arguments, cores=at_once), project.folder, **environment)
    row = read_table(results / "profile" / "runs.tsv", "runs")[-1]
    phases = read_table(results / "profile" / "profile.tsv", "profile")
    assert row["participants"] == PARTICIPANTS, row
    shutil.rmtree(results)
    copied = "stage_out" if out else "stage_in"
    return (
        row["makespan_s"],
        [phase["wall_s"] for phase in phases if phase["phase"] == "compute"],
        sum(phase["staged_bytes"] for phase in phases if phase["phase"] == copied),
    )


def rows_of(way: str, at_once: int, runs: dict[int, Run]) -> list[list[str]]:
    """The lines of the table for one load."""
    each_s = runs[0][2] / PARTICIPANTS / BYTES_PER_S
    compute_s = statistics.median(one for _, computed_s, _ in runs.values() for one in computed_s)
    bound_s = max(each_s * PARTICIPANTS + compute_s, each_s + compute_s * math.ceil(PARTICIPANTS / at_once))
    return [
        [way, f"{at_once}", f"{beside}", f"{compute_s:.2f}", *(f"{one:.1f}" for one in (bound_s, makespan_s)), over]
        for beside, (makespan_s, _, _) in runs.items()
        for over in [f"{makespan_s / bound_s:.2f}"]
    ]


def main() -> None:
    rows: list[list[str]] = []
    with scratch_project() as project, loop_device(DEVICE_MIB, BYTES_PER_S, "/dev/shm") as slow:
        sources = {"in": slow / "noise", "out": project.folder / "noise"}
        (size_bytes,) = {make_noise(folder, PARTICIPANTS, [EDGE], np.uint8, ".nii") for folder in sources.values()}
        for at_once in AT_ONCE:
            compute_s = size_bytes / PARTICIPANTS / BYTES_PER_S * at_once
            for way, source in sources.items():
                load = project, source, slow, way == "out", at_once
                runs = {beside: run(*load, beside, compute_s) for beside in BESIDE}
                rows += rows_of(way, at_once, runs)
                print(rows[-len(runs) :], flush=True)
    print_table(f"{PARTICIPANTS} participants, {size_bytes / 1e6:.0f} MB over {BYTES_PER_S / 1e6:.0f} MB/s", HEAD, rows)


if __name__ == "__main__":
    main()
