"""Slurm: 200 short participants through ``profiles/slurm``, local cores, and a plain ``sbatch --array``.

All have 16 slots on this machine and run the same metered command on a results folder whose index is there. The tool
does nothing, so what is compared is what starting costs. The plugin looks at its jobs 1, 12, 33, 64, 105 s after they
were submitted (then up to every 180 s), which its wall time contains: the participants' makespan stands beside it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench import Timed, prepare, print_table, restore, scratch_project, timed
from neurotier.core.parallelism import job_spans
from neurotier.run.profile_tables import profile_rows
from slurm_cluster import slurm
from support import Project, plain_dataset, small_head, t1w

JOBS = 200
SLOTS = 16
CORES_PER_JOB = 4
LIMITS = ["--resources", "mem_mb=5000", "--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "2"]


def by_profile(project: Project, arguments: list[str]) -> Timed:
    jobs = ["--jobs", str(SLOTS // CORES_PER_JOB)]
    words = ["--profile", "profiles/slurm", *LIMITS, *jobs, *arguments, "--quiet"]
    return timed([sys.executable, "-m", "snakemake", "participants", *words], project.folder)


def by_local_cores(project: Project, arguments: list[str]) -> Timed:
    return timed(project.command(*arguments, "--quiet", targets=["participants"], cores=SLOTS), project.folder)


def by_array(project: Project, _: list[str]) -> Timed:
    job = f"{sys.executable} -m neurotier analyze-participants sub-$(printf %03d $SLURM_ARRAY_TASK_ID)"
    job += " --results results --log results/logs/array/$SLURM_ARRAY_TASK_ID.log"
    array = ["--array", f"0-{JOBS - 1}%{SLOTS}", "--mem", "100", "--output", "/dev/null", "--wait"]
    environment = {"NEUROTIER_RUN": "array", "PYTHONPATH": str(project.folder / "workflow")}
    return timed(["sbatch", *array, "--wrap", job], project.folder, **environment)


def makespan_s(project: Project) -> float:
    """Time from the earliest start to the latest end of a participant, s; everyone must be done."""
    records = [json.loads(file.read_text()) for file in project.results.glob("profile/records/**/*.json")]
    assert len(records) == JOBS, f"{len(records)} of {JOBS} participants have a record"
    spans = job_spans(profile_rows(records))
    return max(end for _, end in spans) - min(start for start, _ in spans)


def main() -> None:
    made: dict[str, tuple[int, float, float]] = {}
    ways = {"local cores": by_local_cores, "sbatch --array": by_array, "profiles/slurm": by_profile}
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        slurm(Path(folder) / "cluster") as cluster,
        scratch_project() as project,
    ):
        plain_dataset(project.folder / "bids", {t1w(f"{n:03d}"): small_head(n) for n in range(JOBS)})
        arguments = project.configure(dataset={"source": "bids"}, tool={"name": "noop"})
        prepare(project, arguments)
        for name, way in ways.items():
            restore(project)
            before = len(cluster.sacct("JobID"))
            cost = way(project, arguments)
            made[name] = (len(cluster.sacct("JobID")) - before, cost.wall_s, makespan_s(project))
    _, our_wall_s, our_span_s = made["profiles/slurm"]
    print_table(
        f"{JOBS} participants that do nothing, {SLOTS} slots",
        ["by", "Slurm jobs", "command wall, s", "makespan, s", "profiles/slurm takes: wall", "makespan"],
        [
            [name, jobs, f"{wall_s:.1f}", f"{span_s:.1f}", f"{our_wall_s / wall_s:.2f}x", f"{our_span_s / span_s:.2f}x"]
            for name, (jobs, wall_s, span_s) in made.items()
        ],
    )


if __name__ == "__main__":
    main()
