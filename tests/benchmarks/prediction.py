"""Prediction: conditions are predicted by the advice and then run; none of them is part of the calibration.

Each part is as a user has it, after ``snakemake advise`` with the same configuration, which analyses two
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
``waiting``
    Intermediates on tiers whose writers must wait, since the page cache takes next to nothing: a throttled disk with a
    strict limit, and a FUSE file system.
``little_memory``
    As ``cold``, 8 at once, on the local disk and the throttled one, by commands whose control group has so little
    memory that the page cache cannot keep the images.
``busy``
    On the local disk, 2 and 8 at once, beside 20 busy processes: the advice has to refuse, or its intervals to hold.

Campaigns run in an order drawn from a recorded seed. What others do on the machine meanwhile is part of the result: the
table says what share of its CPU time they took, and runs are not left out for it, nor for jobs that are over before as
many as asked for have been started. The second table has the parts of each makespan, predicted and measured.

Words are the parts to run, by default all.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bench import print_table, scratch_project
from devices import fuse_folder, loop_device
from faults.disturbances import joining, memory_group
from noise import make_noise_dataset
from slow_network import slow_network_folder
from support import Project, busy_loops, sleeping

PARTICIPANTS = 26
SEED = 2026
BYTES_PER_S = 8_000_000
RATE = "160mbit"
EDGES = (100, 130)
"""Voxels along each axis, alternately: int16 noise of that size is 1.5 and 3.4 MB when compressed."""

AT_ONCE = {"cold": [2, 8, 25], "warm": [8, 25]}
FETCHING_AT_ONCE = 4
BUSY = 20
MEMORY_BYTES = 400_000_000
"""Least in which a run of this size ends: Snakemake and a pool take most of it."""

GRANTED = "--resources", "mem_mb=8000"
"""For the jobs, which need less than estimated: so many have room in a small control group, too."""

PROBE = {"file_mib": 64, "time_s": 8, "repetitions": 1, "streams": 4, "share": 0.5}
ITERATIONS = 200
"""Of brain extraction, which by default takes 1,000 of them."""

PHASES = ("start_up", "stage_in", "compute", "stage_out")
KEYS = ("tool", "placement", "parallelism", "cache")
HEAD = [
    *("tool", "placement", "at once", "cache", "predicted (s)", "interval", "Eq. (1)", "measured (s)"),
    *("predicted / measured", "in interval", "CPU time to others"),
]
PARTS_HEAD = ["tool", "placement", "at once", "cache", "makespan", *PHASES, "in no phase"]


@dataclass(frozen=True)
class Outcome:
    """A condition: its row of the advice, the row of the run that was then measured, and s of all in each phase."""

    advice: dict[str, str]
    run: dict[str, str]
    phases_s: Counter[str]

    @property
    def predicted_s(self) -> float:
        return float(self.advice["predicted_s"])

    @property
    def measured_s(self) -> float:
        return float(self.run["makespan_s"])

    @property
    def interval_s(self) -> tuple[float, float]:
        return float(self.advice["low_s"]), float(self.advice["high_s"])

    @property
    def is_covered(self) -> bool:
        low_s, high_s = self.interval_s
        return low_s <= self.measured_s <= high_s

    @property
    def row(self) -> list[object]:
        low_s, high_s = self.interval_s
        share = self.run["others_cpu_share"]
        return [
            *(self.advice[key] for key in KEYS),
            *(f"{self.predicted_s:.2f}", f"{low_s:.2f} to {high_s:.2f}", f"{float(self.advice['paper_s']):.2f}"),
            *(f"{self.measured_s:.2f}", f"{self.predicted_s / self.measured_s:.2f}"),
            *("yes" if self.is_covered else "no", f"{share:.4}" if share != "n/a" else self.run["others_cpu_reason"]),
        ]

    @property
    def parts(self) -> list[object]:
        """Makespan and what makes it up, predicted and measured: seconds of a slot, which add up to it."""
        slots = min(int(self.advice["parallelism"]), int(self.advice["participants"]))
        phases = [(float(self.advice[f"{phase}_sum_s"]) / slots, self.phases_s[phase] / slots) for phase in PHASES]
        whole = self.predicted_s, self.measured_s
        rest = [value - math.fsum(each) for value, each in zip(whole, zip(*phases, strict=True), strict=True)]
        cells = [f"{predicted:.2f}, {measured:.2f}" for predicted, measured in (whole, *phases, rest)]
        return [*(self.advice[key] for key in KEYS), *cells]


def phase_sums_s(phases: Sequence[dict[str, str]]) -> Counter[str]:
    """Seconds of all participants by phase, of rows of their profile."""
    sums: Counter[str] = Counter()
    for row in phases:
        sums[row["phase"]] += float(row["wall_s"])  # type: ignore[assignment]  # a Counter of seconds
    return sums


def advise(project: Project, part: str, cores: int = 2, **sections: Any) -> Project:
    """Configure and advise, with a probe that is there; the folder above the results."""
    own = replace(project, folder=project.folder / part)
    more = {"results": f"{part}/results", "probe": PROBE, "validity": {"others_cpu_share": 0.1}}
    project.configure(**more, **sections)
    probed = next(iter(sorted(project.folder.glob("*/results/probe"))), None)
    if probed is not None:
        shutil.copytree(probed, own.results / "probe")
    project.succeeds("advise", *GRANTED, cores=cores)
    return own


def campaign(project: Project, part: str, campaign: dict[str, Any], **sections: Any) -> list[Outcome]:
    """Advise, run the campaign, and hold the one against the other."""
    asked = {"repetitions": 1, "seed": SEED, **campaign}
    own = advise(project, part, campaign=asked, **sections)
    project.succeeds(*GRANTED)
    advice, runs, plan = map(own.table, ("advice/advice.tsv", "comparison/compared_runs.tsv", "campaign/plan.tsv"))
    outcomes = []
    for row in advice:
        (run,), (planned,) = (
            [one for one in rows if all(one[key] == row[key] for key in KEYS)] for rows in (runs, plan)
        )
        if run["valid"] != "valid":
            print(*(row[key] for key in KEYS), "|", run["valid"])
        if run["failed"] == "0" and run["makespan_s"] != "n/a":
            phases = own.table(f"campaign/runs/{planned['folder']}/profile/profile.tsv")
            outcomes.append(Outcome(row, run, phase_sums_s(phases)))
            print(*outcomes[-1].row, sep=" | ", flush=True)  # should a later part fail
    return outcomes


def images(
    project: Project,
    part: str,
    placements: dict[str, Any],
    at_once: Sequence[int],
    tiers: Mapping[str, Any],
    cache: str = "cold",
    gets: int = FETCHING_AT_ONCE,
) -> list[Outcome]:
    """A campaign of noop on images of noise."""
    return campaign(
        project,
        part,
        {"placements": placements, "parallelism": list(at_once), "cache": [cache]},
        dataset={"source": project.folder / "noise", "concurrent_gets": gets},
        tool=sleeping(1.0),
        tiers=tiers,
    )


def slow_tiers(project: Project, stack: ExitStack, cache: str) -> list[Outcome]:
    """Images of noise on three tiers."""
    slow = stack.enter_context(loop_device(2048, BYTES_PER_S))
    network = stack.enter_context(slow_network_folder(RATE)) / "tier"
    network.mkdir()
    slow_memory = {"dataset": "slow", "work": "tmpfs"}
    placements = {"disk": {}, "slow_memory": slow_memory, "network_work": {"work": "network"}}
    tiers = {"slow": slow, "network": {"path": network, "kind": "network"}}
    return images(project, cache, placements, AT_ONCE[cache], tiers, cache)


def waiting(project: Project, stack: ExitStack) -> list[Outcome]:
    """Intermediates on tiers whose writers must wait."""
    strict = stack.enter_context(loop_device(512, BYTES_PER_S, "/dev/shm", strict_limit=True))
    paths = {"strict": strict, "fuse": stack.enter_context(fuse_folder(BYTES_PER_S))}
    return images(project, "waiting", {"disk": {}} | {name: {"work": name} for name in paths}, [2, 8], paths)


def little_memory(project: Project, stack: ExitStack) -> list[Outcome]:
    """Images of noise, of which the page cache of the commands' control group keeps few."""
    slow, group = stack.enter_context(loop_device(2048, BYTES_PER_S)), stack.enter_context(memory_group("prediction"))
    (group / "memory.limit_in_bytes").write_text(str(MEMORY_BYTES))
    placements = {"disk": {}, "slow_data": {"dataset": "slow"}}
    limited = replace(project, before=lambda: joining(group, badness=0))
    return images(limited, "little_memory", placements, [8], {"slow": slow}, gets=1)  # more git-annex would not fit


def busy(project: Project, stack: ExitStack) -> list[Outcome]:
    """Images of noise beside others who are busy."""
    stack.enter_context(busy_loops(BUSY))
    try:
        return images(project, "busy", {"disk": {}}, [2, 8], {})
    except AssertionError as refusal:  # what was said is in it
        print("refused:", str(refusal)[-500:])
        return []


def source(project: Project, stack: ExitStack) -> list[Outcome]:
    """A run that fetches its images over the slow network; what it does of them is not told beforehand."""
    network = stack.enter_context(slow_network_folder(RATE))
    shutil.copytree(project.folder / "noise", network.with_name("served") / "noise", symlinks=True)
    given = {"dataset": {"source": network / "noise"}, "tool": "noop"}
    own = advise(project, "source", FETCHING_AT_ONCE, **given)
    (advice,) = (row for row in own.table("advice/advice.tsv") if row["in_use"] == "true")
    project.succeeds(cores=FETCHING_AT_ONCE)
    run = own.table("profile/runs.tsv")[-1]
    assert run["participants"] == advice["participants"]
    new = [row for row in own.table("profile/profile.tsv") if row["run"] == run["run"]]
    return [Outcome(advice | {"placement": "source over network"}, run, phase_sums_s(new))]


def computing(project: Project, _: ExitStack) -> list[Outcome]:
    """Brain extraction."""
    return campaign(
        project,
        "computing",
        {"placements": {"disk": {}, "memory": {"work": "tmpfs"}}, "parallelism": [2]},
        demo={"voxel_size_mm": 4.0},
        tool={"name": "brainextractor", "brainextractor": {"iterations": ITERATIONS}},
    )


PARTS: dict[str, Callable[[Project, ExitStack], list[Outcome]]] = {
    "cold": lambda project, stack: slow_tiers(project, stack, "cold"),
    "warm": lambda project, stack: slow_tiers(project, stack, "warm"),
    **{part.__name__: part for part in (source, computing, waiting, little_memory, busy)},
}


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """How good the predictions were, in lines."""
    logs = [math.log(one.predicted_s / one.measured_s) for one in outcomes]
    off_by, bias = (math.exp(statistics.fmean(each)) for each in (map(abs, logs), logs))
    covered, close = sum(one.is_covered for one in outcomes), sum(abs(one) <= math.log(1.2) for one in logs)
    apart = right = 0
    for one, other in itertools.combinations(outcomes, 2):
        same = all(one.advice[key] == other.advice[key] for key in ("tool", "parallelism", "cache", "participants"))
        if same and abs(math.log(one.measured_s / other.measured_s)) > math.log(1.2):
            apart += 1
            right += (one.predicted_s < other.predicted_s) == (one.measured_s < other.measured_s)
    worst = math.exp(max(map(abs, logs)))
    return [
        f"off by {off_by:.2f} (geometric mean of {len(logs)}), worst {worst:.2f}, mean ratio {bias:.2f}",
        f"within 20 %: {close} of {len(logs)}; in their interval: {covered} of {len(logs)}",
        f"pairs of placements that differ by more than 20 %: {apart}, in the right order: {right}",
    ]


def main(*parts: str) -> None:
    outcomes: list[Outcome] = []
    with scratch_project() as project:
        make_noise_dataset(project.folder / "noise", PARTICIPANTS, EDGES, np.int16, ".nii.gz")
        for part in parts or PARTS:
            with ExitStack() as stack:
                outcomes += PARTS[part](project, stack)
    print_table(f"Predicted before the run, and measured (seed {SEED})", HEAD, [one.row for one in outcomes])
    print_table("Seconds of a slot: predicted, measured", PARTS_HEAD, [one.parts for one in outcomes])
    print("\n" + "\n".join(summary(outcomes)))
    print(f"load average {' '.join(f'{one:.1f}' for one in os.getloadavg())}")
