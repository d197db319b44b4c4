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

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench import Timed, prepare, print_table, restore, spread, timed
from neurotier.core.parallelism import job_spans
from neurotier.run.profile_tables import profile_rows
from slurm_cluster import slurm
from support import Project, plain_dataset, small_head, t1w

PARTICIPANTS = 160
SLOTS, ROUNDS = 16, 3
LIMITS = ["--resources", "mem_mb=5000", "--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2"]
A_NODE_EACH = ["--set-resources", "analyze_participants:slurm_extra='--exclusive'"]
"""Four nodes have as many jobs of four participants at once; --jobs would have each job wait until the head looks."""
BY_HAND = "sbatch --array"

HEADER = [
    *("by", "Slurm jobs", "wall, s", "makespan, s", "CPU of the head, s", "CPU of the nodes, s"),
    *("a participant: wall, ms", "CPU, ms", f"beside {BY_HAND}: wall", "CPU"),
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


def by_profile(project: Project, arguments: list[str], *others: str) -> Timed:
    words = ["--profile", "profiles/slurm", *LIMITS, *A_NODE_EACH, *others, *arguments, "--quiet"]
    command = [*project.before(), sys.executable, "-m", "snakemake", "participants", *words]
    return timed(command, project.folder)


def by_plugin(project: Project, arguments: list[str]) -> Timed:
    return by_profile(project, arguments, "--executor", "slurm")


def by_local_cores(project: Project, arguments: list[str]) -> Timed:
    return timed(project.command("participants", *arguments, "--quiet", cores=SLOTS), project.folder)


def by_array(project: Project, _: list[str]) -> Timed:
    job = f"{sys.executable} -m neurotier analyze-participants --only sub-$(printf %03d $SLURM_ARRAY_TASK_ID)"
    job += " --results results --log results/logs/array/$SLURM_ARRAY_TASK_ID.log"
    array = ["--array", f"0-{PARTICIPANTS - 1}%{SLOTS}", "--mem", "100", "--output", "/dev/null", "--wait"]
    environment = {"NEUROTIER_RUN": "array", "PYTHONPATH": str(project.folder / "workflow")}
    return timed([*project.before(), "sbatch", *array, "--wrap", job], project.folder, **environment)


WAYS = {
    "local cores": by_local_cores,
    BY_HAND: by_array,
    "profiles/slurm": by_profile,
    "the same, --executor slurm": by_plugin,
}


def makespan_s(project: Project) -> float:
    """Time from the earliest start to the latest end of a participant, s; everyone must be done."""
    records = [json.loads(file.read_text()) for file in project.results.glob("profile/records/**/*.json")]
    assert len(records) == PARTICIPANTS, f"{len(records)} of {PARTICIPANTS} participants have a record"
    spans = job_spans(profile_rows(records))
    return max(end for _, end in spans) - min(start for start, _ in spans)


def row(name: str, costs: Sequence[Cost], beside: Sequence[Cost]) -> list[str]:
    """A line of the table; what a participant takes is said beside what it takes by hand."""
    pairs = list(zip(costs, beside, strict=True))
    return [
        name,
        str(costs[0].jobs),
        spread([cost.wall_s for cost in costs], 1),
        spread([cost.makespan_s for cost in costs], 1),
        spread([cost.head_cpu_s for cost in costs], 1),
        spread([cost.nodes_cpu_s for cost in costs], 1),
        f"{statistics.median(cost.wall_s for cost in costs) / PARTICIPANTS * 1e3:.0f}",
        f"{statistics.median(cost.cpu_s for cost in costs) / PARTICIPANTS * 1e3:.0f}",
        f"{spread([cost.wall_s / other.wall_s for cost, other in pairs])} x",
        f"{spread([cost.cpu_s / other.cpu_s for cost, other in pairs])} x",
    ]


def main() -> None:
    made: dict[str, list[Cost]] = {name: [] for name in WAYS}
    with slurm() as cluster:
        project = cluster.project("benchmark")
        heads = {t1w(f"{number:03d}"): small_head(number) for number in range(PARTICIPANTS)}
        plain_dataset(project.folder / "bids", heads)
        arguments = project.configure(dataset={"source": "bids"}, tool={"name": "noop"})
        prepare(project, arguments)
        for _ in range(ROUNDS):
            for name, way in WAYS.items():
                restore(project)
                jobs, nodes_cpu_s = len(cluster.sacct("JobID")), cluster.cpu_s()
                cost = way(project, arguments)
                jobs = len(cluster.sacct("JobID")) - jobs
                nodes_cpu_s = cluster.cpu_s() - nodes_cpu_s
                made[name].append(Cost(jobs, cost.wall_s, makespan_s(project), cost.cpu_s, nodes_cpu_s))
                print(f"{name}: {made[name][-1]}", file=sys.stderr, flush=True)
    print_table(
        f"{PARTICIPANTS} participants that do nothing, {SLOTS} slots, {ROUNDS} rounds",
        HEADER,
        [row(name, costs, made[BY_HAND]) for name, costs in made.items()],
    )


if __name__ == "__main__":
    main()
