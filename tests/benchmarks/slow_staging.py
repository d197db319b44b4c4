"""Slow staging: images that are read from a tier of 8 MB/s, or results that are written to one, while others compute.

40 participants of 5 MB, 2 and 4 at once in one job. The slow tier is a disk that is throttled for everybody. It lies in
memory, where no other load is in its way; everything else is on the local disk. Computing takes as long as the bytes of
all slots, which is hardest to overlap:

``in``
    a plain dataset on the slow tier; noop, which sleeps;
``out``
    results on the slow tier; a stand-in for bet, which sleeps and finds a brain nearly everywhere, so that results
    are as large as images.

Each is run with ``batches.staging_beside`` of 0, 1 and 2, in turns. Nobody is quicker than the larger of two bounds:
the bytes across the slow tier once, and the computing of one; all computing by so many slots, and the bytes of one.
Computing is what the phase took (median of all runs). ``--only 2`` runs one parallelism, ``--times 3`` all three times.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from bench import print_table, scratch_project, spread, timed
from devices import loop_device
from neurotier.storage.page_cache import evict
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
HEAD = [
    *("bytes", "at once", "beside", "compute, s", "bound, s", "makespan, s", "over bound"),
    *("waited for a slot, s", "present", "computing", "load"),
]


@dataclass
class Found:
    """What the runs of one way gave: makespans, computing and waiting of a participant, s; participants at most."""

    makespans_s: list[float] = field(default_factory=list)
    computed_s: list[float] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)
    copied_bytes: int = 0
    peaks: set[tuple[int, int]] = field(default_factory=set)
    loads: list[float] = field(default_factory=list)


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


def make_noise(folder: Path) -> Path:
    """A plain dataset of participants with an image of noise each, which hardly compresses."""
    folder.mkdir()
    (folder / "dataset_description.json").write_text('{"Name": "noise", "BIDSVersion": "1.10.0"}')
    for number in range(PARTICIPANTS):
        noise = np.random.default_rng(number).integers(1, 255, (EDGE, EDGE, EDGE), dtype=np.uint8)
        image = folder / f"sub-{number:02d}" / "anat" / f"sub-{number:02d}_T1w.nii"
        image.parent.mkdir(parents=True)
        nib.save(nib.Nifti1Image(noise, np.eye(4)), image)
    return folder


def configuration(source: Path, slow: Path, out: bool, at_once: int, beside: int, compute_s: float) -> dict[str, Any]:
    """The configuration of a run."""
    placed = {"results": "slow"} if out else {"dataset": "slow"}
    return {
        "dataset": {"source": str(source)},
        "tool": {"name": "bet"} if out else {"name": "noop", "noop": {"sleep_s": compute_s}},
        "tiers": {"slow": {"path": str(slow), "kind": "block"}},
        "placement": placed,
        "results": "results",
        "batches": {"participants": PARTICIPANTS, "at_once": at_once, "staging_beside": beside},
    }


def run(project: Project, results: Path, source: Path, options: dict[str, Any], path: Path, found: Found) -> None:
    """Run once, from a cold cache, and take down what it took."""
    arguments = [*project.configure(**options), "--scheduler=greedy", "--quiet"]
    shutil.rmtree(results, ignore_errors=True)
    environment = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    at_once = options["batches"]["at_once"]
    timed(project.command("ready", *arguments, cores=at_once), project.folder, **environment)
    os.sync()
    evict([file for file in source.rglob("*.nii") if file.is_file()])
    targets = ["participants", "tabulate_profile"]
    timed(project.command(*targets, *arguments, cores=at_once), project.folder, **environment)
    found.loads.append(os.getloadavg()[0])
    head, *lines = (results / "profile" / "runs.tsv").read_text().splitlines()
    row = dict(zip(head.split("\t"), lines[-1].split("\t"), strict=True))
    assert int(row["participants"]) == PARTICIPANTS, row
    found.makespans_s.append(float(row["makespan_s"]))
    found.peaks.add((int(row["peak_parallelism"]), int(row["peak_computing"])))
    records = [json.loads(file.read_text()) for file in results.glob("profile/records/**/*.json")]
    for record in records:
        found.computed_s += [phase["wall_s"] for phase in record["phases"] if phase["phase"] == "compute"]
        found.waited_s.append(record["slot_wait_s"])
    copied = "stage_out" if results != project.results else "stage_in"
    rows = [phase for record in records for phase in record["phases"]]
    found.copied_bytes = sum(phase["staged_bytes"] for phase in rows if phase["phase"] == copied)


def rows_of(way: str, at_once: int, tried: dict[int, Found]) -> list[Sequence[object]]:
    """The lines of the table for one load."""
    each_s = tried[0].copied_bytes / PARTICIPANTS / BYTES_PER_S
    compute_s = statistics.median(one for found in tried.values() for one in found.computed_s)
    bound_s = max(each_s * PARTICIPANTS + compute_s, each_s + compute_s * math.ceil(PARTICIPANTS / at_once))
    lines: list[Sequence[object]] = []
    for beside, found in tried.items():
        over = spread([one / bound_s for one in found.makespans_s])
        cells = [f"{compute_s:.2f}", f"{bound_s:.1f}", spread(found.makespans_s, 1), over]
        present, computing = (max(each) for each in zip(*found.peaks, strict=True))
        cells += [f"{statistics.median(found.waited_s):.2f}", str(present), str(computing), f"{max(found.loads):.0f}"]
        lines.append([way, at_once, beside, *cells])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, action="append", help="run this parallelism alone")
    parser.add_argument("--times", type=int, default=1, help="how often each is run")
    options = parser.parse_args()
    rows: list[Sequence[object]] = []
    with scratch_project() as project, loop_device(DEVICE_MIB, BYTES_PER_S, "/dev/shm") as slow:
        sources = {way: make_noise(folder / "noise") for way, folder in (("in", slow), ("out", project.folder))}
        size_bytes = sum(file.stat().st_size for file in sources["in"].rglob("*.nii"))
        for at_once in options.only or AT_ONCE:
            for way, source in sources.items():
                is_out, compute_s = way == "out", size_bytes / PARTICIPANTS / BYTES_PER_S * at_once
                path = stand_in(project.folder / "bin", compute_s - BET_S)
                results = slow / "results" if is_out else project.results
                tried = {beside: Found() for beside in BESIDE}
                for turn in range(options.times):
                    for beside in BESIDE if turn % 2 == 0 else BESIDE[::-1]:
                        given = configuration(source, slow, is_out, at_once, beside, compute_s)
                        run(project, results, source, given, path, tried[beside])
                        print(way, at_once, beside, f"{tried[beside].makespans_s[-1]:.1f} s", flush=True)
                shutil.rmtree(results, ignore_errors=True)
                rows += rows_of(way, at_once, tried)
    print_table(f"{PARTICIPANTS} participants, {size_bytes / 1e6:.0f} MB over {BYTES_PER_S / 1e6:.0f} MB/s", HEAD, rows)


if __name__ == "__main__":
    main()
