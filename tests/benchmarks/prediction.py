"""Prediction: conditions are predicted by the advice and then run; none of them is part of the calibration.

Five parts, each as a user has it, after ``snakemake advise`` with the same configuration, which analyses two
participants on the local disk; the tiers are probed for the first part, whose probe the others use:

``cold``
    A campaign of noop, which waits a second, on images of noise: all on the local disk, the dataset on a throttled
    disk, intermediates behind a slow network; 2, 8 and 25 at once; from an empty page cache.
``warm``
    The same with 8 and 25 at once, when the images are in the page cache.
``source``
    A run that fetches its images from a DataLad source behind the slow network as its jobs need them.
``computing``
    A campaign of brain extraction on the demonstration, cold, with the work on the local disk and in memory.
``files``
    A campaign of a rehearsal that makes 10,000 small files, with the work in memory, where it is calibrated, on the
    local disk, and on a disk of its own that is throttled; a third table has what is predicted without files.
``waiting``
    A campaign of a rehearsal that makes ten files of 6 MB, with the work on tiers whose writers must wait: a device
    with a strict limit of what is dirty, and a FUSE file system.
``limited``
    The same, six at once, with the work on a throttled disk, in a control group with less memory than they write.
``saturated``
    A campaign of brain extraction, the work on the local disk and in memory, beside 20 busy processes, which the
    calibration has found, too.

Campaigns run in an order drawn from a recorded seed. What others do on the machine meanwhile is part of the result: the
table says what share of its CPU time they took, and runs are not left out for it, nor for jobs that are over before as
many as asked for have been started. The second table has the parts of each makespan, predicted and measured.

``--only PART`` runs one part (it can be given several times).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench import print_table, scratch_project
from devices import fuse_folder, loop_device, memory_limited
from noise import make_noise_dataset
from prediction_files import DESCRIPTION, LARGE, print_terms
from slow_network import slow_network_folder
from support import Project

PARTS = ("cold", "warm", "source", "computing", "files", "waiting", "limited", "saturated")
PARTICIPANTS = 26
SEED = 2026
BYTES_PER_S = 8_000_000
RATE = "160mbit"
EDGES = (100, 130)
"""Voxels along each axis, alternately: int16 noise of that size is 1.5 and 3.4 MB when compressed."""

AT_ONCE = {"cold": [2, 8, 25], "warm": [8, 25]}
FETCHING_AT_ONCE = 4
PROBE = {"file_mib": 64, "time_s": 8, "repetitions": 1, "streams": 4, "share": 0.5}
ITERATIONS = 200
"""Of brain extraction, which by default takes 1,000 of them."""

MAKERS = [f"sub-{number:02d}" for number in range(16)]

PHASES = ("start_up", "stage_in", "compute", "stage_out")
DEVICE_MIB = 2048
WITHIN = 1.2
WAITING_BYTES_PER_S = 12_000_000
LIMIT_MIB = 500
"""Of which neurotier itself takes some 250."""

BUSY = 20
HEAD = [
    *("tool", "placement", "at once", "cache", "predicted (s)", "interval", "Eq. (1)", "measured (s)"),
    *("predicted / measured", "in interval", "CPU time to others"),
]
PARTS_HEAD = ["tool", "placement", "at once", "cache", "makespan", *PHASES, "in no phase"]


@dataclass(frozen=True)
class Outcome:
    """A condition: what was predicted, and the makespans that were then measured, s.

    ``phases_s`` are the seconds that all participants spent in each phase.
    """

    advice: dict[str, str]
    measured_s: list[float]
    others: list[str]
    phases_s: dict[str, float]

    @property
    def predicted_s(self) -> float:
        return float(self.advice["predicted_s"])

    @property
    def interval_s(self) -> tuple[float, float]:
        return float(self.advice["low_s"]), float(self.advice["high_s"])

    @property
    def median_s(self) -> float:
        return statistics.median(self.measured_s)

    @property
    def ratio(self) -> float:
        return self.predicted_s / self.median_s

    @property
    def is_covered(self) -> bool:
        low_s, high_s = self.interval_s
        return low_s <= self.median_s <= high_s

    @property
    def row(self) -> list[object]:
        low_s, high_s = self.interval_s
        return [
            *(self.advice[name] for name in ("tool", "placement", "parallelism", "cache")),
            *(f"{self.predicted_s:.2f}", f"{low_s:.2f} to {high_s:.2f}", f"{float(self.advice['paper_s']):.2f}"),
            *(" ".join(f"{one:.2f}" for one in self.measured_s), f"{self.ratio:.2f}"),
            *("yes" if self.is_covered else "no", " ".join(self.others)),
        ]

    @property
    def parts(self) -> list[object]:
        """Makespan and what makes it up, predicted and measured: seconds of a slot, which add up to it."""
        slots = min(int(self.advice["parallelism"]), int(self.advice["participants"]))
        predicted_s = [float(self.advice[f"{phase}_sum_s"]) / slots for phase in PHASES]
        measured_s = [self.phases_s.get(phase, 0.0) / slots for phase in PHASES]
        pairs = [(self.predicted_s, self.median_s), *zip(predicted_s, measured_s, strict=True)]
        pairs.append((self.predicted_s - sum(predicted_s), self.median_s - sum(measured_s)))
        names = [self.advice[name] for name in ("tool", "placement", "parallelism", "cache")]
        return [*names, *(f"{one:.2f}, {other:.2f}" for one, other in pairs)]


def run_whole(project: Project, arguments: Sequence[str], targets: Sequence[str], cores: int = 2) -> None:
    """Run snakemake, which must succeed, and say what it said of the prediction."""
    begin_s = time.monotonic()
    ended = project.snakemake(*targets, *arguments, cores=cores)
    assert ended.code == 0, ended.output
    took = f"{' '.join(targets) or 'run'}: {time.monotonic() - begin_s:.0f} s, load average {os.getloadavg()[0]:.1f}"
    print("\n".join([*ended.lines("Advice: "), took]), flush=True)


def advise(project: Project, part: str, cores: int = 2, **sections: Any) -> tuple[list[str], Project]:
    """Advise, with a probe that is there; the arguments of the run, and the folder above its results."""
    own = Project(project.folder / part)
    results = f"{part}/results"
    arguments = project.configure(results=results, probe=PROBE, validity={"others_cpu_share": 0.1}, **sections)
    probed = next(iter(sorted(project.folder.glob("*/results/probe"))), None)
    if probed is not None:
        shutil.copytree(probed, own.results / "probe")
    run_whole(project, arguments, ["advise"], cores)
    return arguments, own


def campaign(project: Project, part: str, **sections: Any) -> list[Outcome]:
    """Advise, run the campaign, and hold the one against the other."""
    arguments, own = advise(project, part, **sections)
    run_whole(project, arguments, [])
    advice, runs, plan = map(own.table, ("advice/advice.tsv", "comparison/compared_runs.tsv", "campaign/plan.tsv"))
    outcomes = []
    for row in advice:
        keys = ("tool", "placement", "parallelism", "cache")
        same = [run for run in runs if all(run[key] == row[key] for key in keys)]
        whole = [run for run in same if run["failed"] == "0" and run["makespan_s"] != "n/a"]
        folder = next(run["folder"] for run in plan if all(run[key] == row[key] for key in keys))
        for run in same:
            if run["valid"] != "valid":
                print(*(row[key] for key in keys), "|", run["valid"])
        if not whole:
            continue
        makespans_s = [float(run["makespan_s"]) for run in whole]
        phases = own.table(f"campaign/runs/{folder}/profile/profile.tsv")
        outcomes.append(Outcome(row, makespans_s, list(map(others, whole)), phase_sums_s(phases)))
        print(*outcomes[-1].row, sep=" | ", flush=True)  # should a later part fail
    return outcomes


def phase_sums_s(phases: Sequence[dict[str, str]]) -> dict[str, float]:
    """Seconds of all participants by phase, of rows of their profile."""
    sums: dict[str, float] = {}
    for row in phases:
        sums[row["phase"]] = sums.get(row["phase"], 0.0) + float(row["wall_s"])
    return sums


def others(run: dict[str, str]) -> str:
    """What others took while a run went on."""
    share = run["others_cpu_share"]
    return f"{100 * float(share):.0f} %" if share != "n/a" else run["others_cpu_reason"]


def storage(project: Project, slow: Path, network: Path, cache: str) -> list[Outcome]:
    """Images of noise on three tiers."""
    network.joinpath("tier").mkdir(exist_ok=True)
    return campaign(
        project,
        cache,
        dataset={"source": str(project.folder / "noise")},
        tool={"name": "noop", "noop": {"sleep_s": 1.0}},
        tiers={
            "slow": {"path": str(slow), "kind": "block"},
            "network": {"path": str(network / "tier"), "kind": "network"},
        },
        campaign={
            "placements": {
                "disk": {},
                "slow_memory": {"dataset": "slow", "work": "tmpfs"},
                "network_work": {"work": "network"},
            },
            "parallelism": AT_ONCE[cache],
            "cache": [cache],
            "repetitions": 1,
            "seed": SEED,
        },
    )


def source(project: Project, network: Path) -> list[Outcome]:
    """A run that fetches its images over the slow network; what it does of the batch rule is not told beforehand."""
    served = network.with_name("served") / "noise"
    shutil.copytree(project.folder / "noise", served, symlinks=True)
    given = {"dataset": {"source": str(network / "noise")}, "tool": {"name": "noop"}}
    arguments, own = advise(project, "source", FETCHING_AT_ONCE, **given)
    advice = next(row for row in own.table("advice/advice.tsv") if row["in_use"] == "true")
    run_whole(project, arguments, [], FETCHING_AT_ONCE)
    run = own.table("profile/runs.tsv")[-1]
    assert run["participants"] == advice["participants"]
    new = [row for row in own.table("profile/profile.tsv") if row["run"] == run["run"]]
    named = advice | {"placement": "source over network"}
    return [Outcome(named, [float(run["makespan_s"])], [others(run)], phase_sums_s(new))]


def large_files(project: Project, part: str, tiers: dict[str, Path], at_once: int) -> list[Outcome]:
    """Large files on the local disk, and on some tiers."""
    description = project.folder / "large.yaml"
    description.write_text(functools.reduce(lambda text, pair: text.replace(*pair), LARGE.items(), DESCRIPTION))
    return campaign(
        project,
        part,
        dataset={"source": str(project.folder / "noise"), "participants": MAKERS[:6]},
        tool={"name": "rehearsal", "rehearsal": {"profile": str(description)}},
        tiers={name: {"path": str(path), "kind": "block"} for name, path in tiers.items()},
        campaign={
            "placements": {"disk": {}} | {name: {"work": name} for name in tiers},
            "parallelism": [at_once],
            "cache": ["warm"],
            "repetitions": 1,
            "seed": SEED,
        },
    )


def saturated(project: Project) -> list[Outcome]:
    """Brain extraction beside more busy processes than there are processors."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        return computing(project, "saturated")
    finally:
        for one in busy:
            one.kill()
            one.wait()


def computing(project: Project, part: str = "computing") -> list[Outcome]:
    """Brain extraction."""
    return campaign(
        project,
        part,
        demo={"voxel_size_mm": 4.0},
        tool={"name": "brainextractor", "brainextractor": {"iterations": ITERATIONS}},
        campaign={
            "placements": {"disk": {}, "memory": {"work": "tmpfs"}},
            "parallelism": [2],
            "repetitions": 1,
            "seed": SEED,
        },
    )


def files(project: Project, slow: Path) -> list[Outcome]:
    """Small files, with and without the term for them."""
    description = project.folder / "files.yaml"
    description.write_text(DESCRIPTION)
    outcomes = campaign(
        project,
        "files",
        dataset={"source": str(project.folder / "noise"), "participants": MAKERS},
        tool={"name": "rehearsal", "rehearsal": {"profile": str(description)}},
        tiers={"slow": {"path": str(slow), "kind": "block"}},
        placement={"work": "tmpfs"},
        campaign={
            "placements": {"memory": {"work": "tmpfs"}, "disk": {"work": "local"}, "slow": {"work": "slow"}},
            "parallelism": [2, 8],
            "cache": ["warm"],
            "repetitions": 1,
            "seed": SEED,
        },
    )
    measured_s = {(one.advice["placement"], int(one.advice["parallelism"])): one.median_s for one in outcomes}
    print_terms(project.folder / "files" / "results", measured_s)
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """How good the predictions were, in lines."""
    count = len(outcomes)
    if not count:
        return ["nothing was predicted"]
    errors = [max(one.ratio, 1 / one.ratio) for one in outcomes]
    off_by = math.exp(statistics.fmean(map(math.log, errors)))
    bias = math.exp(statistics.fmean(math.log(one.ratio) for one in outcomes))
    covered = sum(one.is_covered for one in outcomes)
    apart = right = 0
    for one, other in itertools.combinations(outcomes, 2):
        same = all(one.advice[key] == other.advice[key] for key in ("tool", "parallelism", "cache", "participants"))
        (low_s, high_s), (other_low_s, other_high_s) = one.interval_s, other.interval_s
        if same and (high_s < other_low_s or other_high_s < low_s):
            apart += 1
            right += (one.predicted_s < other.predicted_s) == (one.median_s < other.median_s)
    return [
        f"off by {off_by:.2f} (geometric mean of {count}), worst {max(errors):.2f}, mean ratio {bias:.2f}",
        f"within 20 %: {sum(error <= WITHIN for error in errors)} of {count}; in their interval: {covered} of {count}",
        f"pairs of placements whose intervals do not overlap: {apart}, in the right order: {right}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part; by default all")
    parts = parser.parse_args().only or PARTS
    outcomes: list[Outcome] = []
    begin_s = time.monotonic()
    with scratch_project() as project:
        make_noise_dataset(project.folder / "noise", PARTICIPANTS, EDGES, np.int16, ".nii.gz")
        if {"cold", "warm", "source"} & set(parts):
            with loop_device(DEVICE_MIB, BYTES_PER_S) as slow, slow_network_folder(RATE) as network:
                for cache in AT_ONCE:
                    outcomes += storage(project, slow, network, cache) if cache in parts else []
                outcomes += source(project, network) if "source" in parts else []
        outcomes += computing(project) if "computing" in parts else []
        if "waiting" in parts:
            with (
                loop_device(512, WAITING_BYTES_PER_S, "/dev/shm", True) as strict,
                fuse_folder(WAITING_BYTES_PER_S) as fuse,
            ):
                outcomes += large_files(project, "waiting", {"strict": strict, "fuse": fuse}, 2)
        if "limited" in parts:
            with loop_device(1024, WAITING_BYTES_PER_S, "/dev/shm") as slow, memory_limited(LIMIT_MIB):
                outcomes += large_files(project, "limited", {"slow": slow}, 6)
        outcomes += saturated(project) if "saturated" in parts else []
        if "files" in parts:
            with loop_device(DEVICE_MIB, BYTES_PER_S) as slow:
                outcomes += files(project, slow)
    print_table(f"Predicted before the run, and measured (seed {SEED})", HEAD, [one.row for one in outcomes])
    print_table("Seconds of a slot: predicted, measured", PARTS_HEAD, [one.parts for one in outcomes])
    print("\n" + "\n".join(summary(outcomes)))
    print(f"took {time.monotonic() - begin_s:.0f} s, load average {' '.join(f'{one:.1f}' for one in os.getloadavg())}")


if __name__ == "__main__":
    main()
