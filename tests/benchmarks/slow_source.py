"""Slow source: images fetched from a DataLad source of 8 MB/s while others are analysed; how near is that to the least?

40 participants of 5 MB, 2, 4 and 25 at once. The source lies on a disk that is throttled for everybody, everything else
on the local disk. The tool is noop, which sleeps once as long as one fetch takes (then the source decides) and once as
long as the fetches for all slots take (then both take the same time, which is hardest to overlap). Each is run

``as they come``
    in one command, ``participants``; images are fetched while others are analysed;
``fetched first``
    in two: ``ready`` fetches all, then ``participants``.

Time is from the begin of the first fetch to the end of the last participant. Nobody can be quicker than the larger of
two bounds: the bytes across the source once, and the analysis of the last that came; the first fetch, and all analyses
by so many slots.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench import prepare, print_table, restore, scratch_project, timed
from devices import loop_device
from neurotier.storage.page_cache import evict
from noise import make_noise_dataset
from support import Project, git

PARTICIPANTS = 40
AT_ONCE = (2, 4, 25)
BYTES_PER_S = 8_000_000
EDGE = 171
"""Voxels along each axis: bytes of noise, 5 MB, not compressed."""

DEVICE_MIB = 512
AS_THEY_COME, FETCHED_FIRST = "as they come", "fetched first"
HEAD = [
    *("at once", "compute, s", "fetching", "bound, s", "time, s", "over bound", "makespan, s", "over bound", "CPU, s"),
]


def records(project: Project) -> list[dict[str, Any]]:
    """The records of all participants."""
    found = [json.loads(file.read_text()) for file in project.results.glob("profile/records/**/*.json")]
    assert len(found) == PARTICIPANTS, len(found)
    return found


def begun_and_ended_s(project: Project) -> tuple[float, float]:
    """When the first participant was begun and the last one ended, s since 1970."""
    phases = [record["phases"] for record in records(project)]
    return min(one[0]["start_s"] for one in phases), max(one[-1]["end_s"] for one in phases)


def measure(project: Project, source: Path, at_once: int, compute_s: float, first: bool) -> list[float]:
    """Time from the first fetch to the last participant, makespan and CPU time of the commands, s."""
    tool = {"name": "noop", "noop": {"sleep_s": round(compute_s, 2)}}
    arguments = project.configure(dataset={"source": str(source)}, tool=tool)
    arguments += ["--scheduler=greedy", "--quiet"]
    for folder in (project.results, project.folder / "prepared"):
        shutil.rmtree(folder, ignore_errors=True)
    prepare(project, arguments)
    restore(project)
    clone = next(project.folder.glob("neurotier-*/datasets/noise-*"))
    git(clone, "annex", "drop", "--force", "--quiet", ".")
    os.sync()
    evict([file for file in (source / ".git" / "annex" / "objects").rglob("*") if file.is_file()])
    targets = ["ready", "participants"] if first else ["participants"]
    spans_s, cpu_s = [], 0.0
    for target in targets:
        done = timed(project.command(target, *arguments, cores=at_once), project.folder)
        cpu_s += done.cpu_s
        if target == "ready":
            noted = [json.loads(file.read_text())["participants"] for file in project.results.glob("state/got/*")]
            got = [one for each in noted for one in each.values()]
            spans_s.append(max(one["end_s"] for one in got) - min(one["end_s"] - one["wall_s"] for one in got))
        else:
            begun_s, ended_s = begun_and_ended_s(project)
            looked_s = [one["got"]["end_s"] - one["got"]["wall_s"] for one in records(project)]
            spans_s.append(ended_s - (begun_s if first else min(looked_s)))
    return [sum(spans_s), ended_s - begun_s, cpu_s]


def main() -> None:
    rows: list[Sequence[object]] = []
    with scratch_project() as project, loop_device(DEVICE_MIB, BYTES_PER_S) as slow:
        size_bytes = make_noise_dataset(slow / "noise", PARTICIPANTS, [EDGE], np.uint8, ".nii")
        fetch_s = size_bytes / PARTICIPANTS / BYTES_PER_S
        for at_once in AT_ONCE:
            for compute_s in (fetch_s, fetch_s * at_once):
                computing_s = compute_s * math.ceil(PARTICIPANTS / at_once)
                bound_s = max(size_bytes / BYTES_PER_S + compute_s, fetch_s + computing_s)
                for first in (False, True):
                    time_s, makespan_s, cpu_s = measure(project, slow / "noise", at_once, compute_s, first)
                    way = FETCHED_FIRST if first else AS_THEY_COME
                    cells = [f"{bound_s:.1f}"]
                    cells += [f for one in (time_s, makespan_s) for f in (f"{one:.1f}", f"{one / bound_s:.2f}")]
                    rows.append([at_once, f"{compute_s:.2f}", way, *cells, f"{cpu_s:.0f}"])
                    print(rows[-1], flush=True)
    what = f"{PARTICIPANTS} participants, {size_bytes / 1e6:.0f} MB from a source of {BYTES_PER_S / 1e6:.0f} MB/s"
    print_table(f"{what}: {size_bytes / BYTES_PER_S:.1f} s", HEAD, rows)


if __name__ == "__main__":
    main()
