"""Overhead: 200 participant jobs whose tool does nothing or sleeps 2 s, by Snakemake and by GNU parallel.

Both run the same metered command, 25 at once, in turn, in one results folder. The makespan is that of the
participant jobs (latest end - earliest start of a phase); the wall time is that of the whole command.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys

from bench import Timed, print_table, scratch_project, spread, timed
from neurotier.core.parallelism import job_spans
from neurotier.run.profile_tables import profile_rows
from support import Project, plain_dataset, small_head, t1w

JOBS = 200
CORES = 25
REPETITIONS = 3


def forget(project: Project) -> None:
    """Remove what the participant jobs made."""
    for folder in ("derivatives", "profile"):
        shutil.rmtree(project.results / folder, ignore_errors=True)


def figures(project: Project) -> tuple[float, float]:
    """Makespan and summed phases of the jobs that have run, s."""
    records = [json.loads(file.read_text()) for file in project.results.glob("profile/records/*.json")]
    assert len(records) == JOBS, f"{len(records)} of {JOBS} participants have a record"
    rows = profile_rows(records)
    spans = job_spans(rows)
    makespan_s = max(end for _, end in spans) - min(start for start, _ in spans)
    return makespan_s, sum(row["wall_s"] for row in rows)


def by_snakemake(project: Project, arguments: list[str]) -> Timed:
    return timed(project.command(*arguments, "--quiet", targets=["participants"], cores=CORES), project.folder)


def by_parallel(project: Project) -> Timed:
    names = [f"{number:03d}" for number in range(JOBS)]
    (project.folder / "names").write_text("\n".join(f"sub-{name}" for name in names))
    job = (
        f"{sys.executable} -m neurotier analyze-participant {{}} --results results --log results/logs/parallel/{{}}.log"
    )
    command = ["parallel", "--will-cite", "-j", str(CORES), "-a", "names", job]
    return timed(command, project.folder, NEUROTIER_RUN="parallel", PYTHONPATH=str(project.folder / "workflow"))


def main() -> None:
    rows: list[list[object]] = []
    parts: list[list[object]] = []
    for sleep_s in (0, 2):
        with scratch_project() as project:
            plain_dataset(project.folder / "bids", {t1w(f"{n:03d}"): small_head(n) for n in range(JOBS)})
            tool = {"name": "noop", "noop": {"sleep_s": sleep_s}}
            arguments = project.configure(dataset={"source": "bids"}, tool=tool)
            prepared = ["results/index/images.tsv", "results/index/tool.json"]
            timed(project.command(*arguments, targets=prepared), project.folder)
            made: dict[str, list[tuple[float, float, Timed]]] = {"snakemake": [], "parallel": []}
            for _ in range(REPETITIONS):
                for name in made:
                    forget(project)
                    cost = by_snakemake(project, arguments) if name == "snakemake" else by_parallel(project)
                    made[name].append((*figures(project), cost))
        ratios = [ours[0] / theirs[0] for ours, theirs in zip(made["snakemake"], made["parallel"], strict=True)]
        walls = [
            ours[2].wall_s / theirs[2].wall_s for ours, theirs in zip(made["snakemake"], made["parallel"], strict=True)
        ]
        task = f"sleep {sleep_s}" if sleep_s else "true"
        rows.append(
            [
                task,
                *(spread([one[0] for one in made[name]]) for name in made),
                spread(ratios),
                *(spread([one[2].wall_s for one in made[name]]) for name in made),
                spread(walls),
            ]
        )
        for name, all_made in made.items():
            median_s = statistics.median(one[1] for one in all_made)
            cpu_s = statistics.median(one[2].cpu_s for one in all_made)
            wall_s = statistics.median(one[2].wall_s for one in all_made)
            parts.append(
                [
                    task,
                    name,
                    f"{1000 * wall_s / JOBS:.0f}",
                    f"{1000 * cpu_s / JOBS:.0f}",
                    f"{1000 * median_s / JOBS:.0f}",
                ]
            )
    names = [f"{quantity} {name}, s" for quantity in ("makespan", "command") for name in ("snakemake", "parallel")]
    header = ["task", names[0], names[1], "makespan ratio", names[2], names[3], "command ratio"]
    print_table(f"Overhead of {JOBS} jobs, {CORES} at once, median (range) of {REPETITIONS}", header, rows)
    print_table(
        "Where it goes, per job",
        ["task", "by", "command wall, ms", "command CPU (itself and all jobs), ms", "sum of the metered phases, ms"],
        parts,
    )


if __name__ == "__main__":
    main()
