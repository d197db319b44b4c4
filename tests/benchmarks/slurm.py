"""Slurm: ``profiles/slurm`` beside what one would write by hand.

``python tests/benchmarks slurm``: 200 participants whose tool sleeps for 2 s. By hand, that is an array of chunks: a
task copies, runs the tool and copies back for 16 participants, four at a time. A job of ``profiles/slurm`` has as many,
and also measures, checks and records them. A node has one job at once, so there are 16 slots. The ways are run in turn,
with the index there. CPU time of the nodes is their control group's, with Slurm's daemons on them; that of the head is
Snakemake's and of all that it starts, or sbatch's. Wall time is the command's, which hears of the last end late
(``sbatch --wait`` does, too); so the jobs' own span, in Slurm's whole seconds, stands beside it.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from bench import prepare, print_table, restore, spread, spread_of, timed
from neurotier.run.participants import PARTICIPANTS_OF_A_JOB
from slurm_cluster import Cluster, slurm
from slurm_hosts import give
from support import ENVIRONMENT, Project, save_image, script, small_head

PARTICIPANTS, AT_ONCE, TOOL_S = 200, 4, 2
ROUNDS = 3
PROFILE = ["participants", "--quiet", "--profile", "profiles/slurm", "--resources", "mem_mb=5000"]
SOON = [
    *("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2"),
    # four nodes have as many jobs of four at once; --jobs would have each job wait until the head looks
    *("--set-resources", "analyze_participants:slurm_extra='--exclusive'"),
]
BY_HAND = "sbatch --array"
HEADER = [
    *("by", "Slurm jobs", "wall, s", "span of the jobs, s", "CPU of the head, s", "CPU of the nodes, s"),
    *(f"beside {BY_HAND}: wall", "span", "CPU"),
]
TOOL = """# bet IN OUT -m -f F: copies what stands for a brain and its mask.
sleep {tool_s} && cp "$1" "$2.nii.gz" && cp "{mask}" "$2_mask.nii.gz"
"""

CHUNKS = """#!/bin/sh
#SBATCH --array=0-{last} --cpus-per-task={at_once} --mem=1000 --exclusive --output=/dev/null --wait
if [ $# = 0 ]; then
    export work=$(mktemp -d)
    ls bids | grep ^sub- | awk "NR % {tasks} == $SLURM_ARRAY_TASK_ID" | xargs -n 1 -P {at_once} sh by-hand.sh
    exec rm -r "$work"
fi
cp "bids/$1/anat/$1_T1w.nii.gz" "$work/" && bet "$work/$1_T1w.nii.gz" "$work/$1" -m -f 0.5 &&
    mkdir -p "results/$1" && cp "$work/$1.nii.gz" "$work/$1_mask.nii.gz" "results/$1/"
"""
"""What one would write by hand: tasks of an array, which start the same script for each participant."""


@dataclass(frozen=True)
class Cost:
    """What one way took: Slurm jobs, and times in s."""

    jobs: int
    span_s: float
    wall_s: float
    head_cpu_s: float
    nodes_cpu_s: float

    @property
    def cpu_s(self) -> float:
        return self.head_cpu_s + self.nodes_cpu_s


def ready(cluster: Cluster) -> tuple[Project, Path, dict[str, list[str]]]:
    """A project with an index, a folder that comes first on PATH, and the command of each way."""
    project = cluster.project("benchmark")
    folder, tools = project.folder, project.folder / "tools"
    project.heads(*(f"{number:03d}" for number in range(PARTICIPANTS)))
    mask = save_image(folder / "mask.nii.gz", (small_head() > 250).astype(np.int16))
    script(tools / "bet", TOOL.format(tool_s=TOOL_S, mask=mask))
    tasks = -(-PARTICIPANTS // PARTICIPANTS_OF_A_JOB)
    (folder / "by-hand.sh").write_text(CHUNKS.format(tasks=tasks, last=tasks - 1, at_once=AT_ONCE))
    project.configure(tool="bet")
    give(folder)
    prepare(project, PATH=f"{tools}:{ENVIRONMENT['PATH']}")
    by_profile = project.command(*PROFILE, *SOON, cores=0)
    ways = {
        BY_HAND: [*project.before(), "sbatch", "by-hand.sh"],
        "profiles/slurm": by_profile,
        "the same, 50 a job": [*by_profile, "--config", f"shares={{participants: 50, at_once: {AT_ONCE}}}"],
        "the same, --executor slurm": [*by_profile, "--executor", "slurm"],
    }
    return project, tools, ways


def measure(cluster: Cluster, project: Project, command: list[str], tools: Path) -> Cost:
    """What a way costs to do all who have none of it done yet."""
    restore(project)
    first, nodes_cpu_s = cluster.next_job(), cluster.cpu_s()
    cost = timed(command, project.folder, PATH=f"{tools}:{ENVIRONMENT['PATH']}")
    nodes_cpu_s = cluster.cpu_s() - nodes_cpu_s
    made = len(list(project.results.rglob("sub-*_mask.nii.gz")))
    assert made == PARTICIPANTS, f"{made} of {PARTICIPANTS} participants have a mask"
    return Cost(*jobs_since(first), cost.wall_s, cost.cpu_s, nodes_cpu_s)


def compare(cluster: Cluster) -> None:
    """The table of the ways."""
    project, tools, ways = ready(cluster)
    made: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, command in ways.items():
            made[name].append(measure(cluster, project, command, tools))
            print(f"{name}: {made[name][-1]}", file=sys.stderr, flush=True)
    rows = []
    for name, costs in made.items():
        figures = [spread_of(costs, one, 1) for one in ("wall_s", "span_s", "head_cpu_s", "nodes_cpu_s")]
        pairs = list(zip(costs, made[BY_HAND], strict=True))
        beside = [
            spread([getattr(one, what) / getattr(other, what) for one, other in pairs])
            for what in ("wall_s", "span_s", "cpu_s")
        ]
        rows.append([name, costs[0].jobs, *figures, *beside])
    print_table(f"{PARTICIPANTS} participants of {TOOL_S} s, {ROUNDS} rounds", HEADER, rows)


def jobs_since(first: int) -> tuple[int, float]:
    """How many jobs there are from a number on, and the time from their first submission to their last end, s."""
    asked = ["squeue", "--noheader", "--states=all", "--array", "--format=%A %V %e"]
    queue = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    jobs = [line.split()[1:] for line in queue.splitlines() if int(line.split()[0]) >= first]
    begun, ended = ([datetime.fromisoformat(time) for time in times] for times in zip(*jobs, strict=True))
    return len(jobs), (max(ended) - min(begun)).total_seconds()


def main() -> None:
    with slurm() as cluster:
        compare(cluster)
