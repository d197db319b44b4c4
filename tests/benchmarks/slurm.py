"""Slurm: 160 participants that do nothing through ``profiles/slurm``, local cores, and a plain ``sbatch --array``.

All have 16 slots on this machine and run the same metered command on a results folder whose index is there; ``profiles/
slurm`` does so with the executor that it has and with the plugin ``slurm`` itself. The tool does nothing, so what is
compared is what starting costs. They are run in turn, several times: the machine may be busy, and CPU time depends less
on that than time does. That of the nodes is their control group's, with Slurm's daemons on them; that of the head is
Snakemake's and of all that it starts, or sbatch's. Slurm has all jobs at once, as the array has, and holds back those
that have no slots. The plugin looks at its jobs 1, 12, 33, 64, 105 s after they were submitted (then up to every 180
s), ``neurotier-slurm`` every second, and after 10 s each tenth of the time they have had; wall time contains the last
wait, so the participants' makespan stands beside it.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass

from bench import prepare, print_table, restore, spread, spread_of, timed
from neurotier.core.parallelism import job_spans
from neurotier.run.profile_tables import profile_rows
from slurm_cluster import Cluster, slurm
from support import Project, read_json

PARTICIPANTS = 160
SLOTS, ROUNDS = 16, 3
PROFILE = [
    *("participants", "--quiet", "--profile", "profiles/slurm", "--resources", "mem_mb=5000"),
    *("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2"),
    # four nodes have as many jobs of four at once; --jobs would have each job wait until the head looks
    *("--set-resources", "analyze_participants:slurm_extra='--exclusive'"),
]
BY_HAND = "sbatch --array"
HEADER = [
    *("by", "Slurm jobs", "wall, s", "makespan, s", "CPU of the head, s", "CPU of the nodes, s"),
    *("a participant: CPU, ms", f"beside {BY_HAND}: wall", "CPU"),
]


@dataclass(frozen=True)
class Cost:
    """What one way took: Slurm jobs, and times in s."""

    jobs: int
    wall_s: float
    makespan_s: float
    head_cpu_s: float
    nodes_cpu_s: float

    @property
    def cpu_s(self) -> float:
        return self.head_cpu_s + self.nodes_cpu_s


def ways_of(project: Project, arguments: list[str]) -> dict[str, list[str]]:
    """The command of each way."""
    job = f"{sys.executable} -m neurotier analyze-participants --only sub-$(printf %03d $SLURM_ARRAY_TASK_ID)"
    job += " --results results --log results/logs/array/$SLURM_ARRAY_TASK_ID.log"
    array = ["--array", f"0-{PARTICIPANTS - 1}%{SLOTS}", "--mem", "100", "--output", "/dev/null", "--wait"]
    by_profile = project.command(*PROFILE, *arguments, cores=0)
    return {
        "local cores": project.command("participants", "--quiet", *arguments, cores=SLOTS),
        BY_HAND: [*project.before(), "sbatch", *array, "--wrap", job],
        "profiles/slurm": by_profile,
        "the same, --executor slurm": [*by_profile, "--executor", "slurm"],
    }


def measure(cluster: Cluster, project: Project, command: list[str]) -> Cost:
    """What a way costs to do all who have none of it done yet."""
    restore(project)
    jobs, nodes_cpu_s = len(cluster.sacct("JobID")), cluster.cpu_s()
    by_hand = {"NEUROTIER_RUN": "array", "PYTHONPATH": str(project.folder / "workflow")} if "sbatch" in command else {}
    cost = timed(command, project.folder, **by_hand)
    jobs, nodes_cpu_s = len(cluster.sacct("JobID")) - jobs, cluster.cpu_s() - nodes_cpu_s
    records = [read_json(file) for file in project.records()]
    assert len(records) == PARTICIPANTS, f"{len(records)} of {PARTICIPANTS} participants have a record"
    spans = job_spans(profile_rows(records))
    makespan_s = max(end for _, end in spans) - min(start for start, _ in spans)
    return Cost(jobs, cost.wall_s, makespan_s, cost.cpu_s, nodes_cpu_s)


def main() -> None:
    with slurm() as cluster:
        project = cluster.project("benchmark")
        project.heads(*(f"{number:03d}" for number in range(PARTICIPANTS)))
        arguments = project.configure(tool="noop")
        prepare(project, arguments)
        ways = ways_of(project, arguments)
        made: dict[str, list[Cost]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, command in ways.items():
                made[name].append(measure(cluster, project, command))
    rows = []
    for name, costs in made.items():
        figures = [spread_of(costs, one, 1) for one in ("wall_s", "makespan_s", "head_cpu_s", "nodes_cpu_s")]
        each_ms = 1000 * statistics.median(cost.cpu_s for cost in costs) / PARTICIPANTS
        pairs = list(zip(costs, made[BY_HAND], strict=True))
        beside = [
            spread([getattr(one, what) / getattr(other, what) for one, other in pairs]) for what in ("wall_s", "cpu_s")
        ]
        rows.append([name, costs[0].jobs, *figures, f"{each_ms:.0f}", *beside])
    print_table(f"{PARTICIPANTS} participants that do nothing, {SLOTS} slots, {ROUNDS} rounds", HEADER, rows)
