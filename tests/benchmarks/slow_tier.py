"""Slow shared tier: 60 participants, 25 at once, dataset on a throttled disk; where should the intermediates lie?

A campaign, as users run one, on four placements: all on the slow tier, work in memory or on the local disk, and all
in memory but for the results. The tool is noop: what is compared is storage, and two cores are slow enough without a
brain extraction. The slow tier is ext4 on a loop device throttled for everybody, write-back included. No run can be
quicker than the bytes of the dataset take to cross the slow tier once; the table says how far each is from that.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
from bench import print_table, scratch_project, spread
from devices import loop_device
from noise import make_noise_dataset
from support import Project

PARTICIPANTS = 60
AT_ONCE = 25
REPETITIONS = 3
BYTES_PER_S = 8_000_000
EDGE = 150
"""Voxels along each axis: int16 noise of that size is 5 MB when compressed."""

PLACEMENTS = {
    "slow": {"dataset": "slow", "work": "slow"},
    "slow, work in memory": {"dataset": "slow", "work": "tmpfs"},
    "slow, work on disk": {"dataset": "slow", "work": "local"},
    "disk": {"dataset": "local", "work": "local"},
}


def configure(project: Project, source: Path, slow: Path) -> list[str]:
    """The campaign's configuration."""
    names = {name: name.replace(", ", "_").replace(" ", "-") for name in PLACEMENTS}
    return project.configure(
        dataset={"source": str(source)},
        tool={"name": "noop"},
        tiers={"slow": {"path": str(slow), "kind": "block"}},
        campaign={
            "placements": {names[name]: placement for name, placement in PLACEMENTS.items()},
            "parallelism": [AT_ONCE],
            "repetitions": REPETITIONS,
        },
    )


def main() -> None:
    with scratch_project() as project, loop_device(2048, BYTES_PER_S) as slow:
        size_bytes = make_noise_dataset(project.folder / "noise", PARTICIPANTS, [EDGE], np.int16, ".nii.gz")
        ended = project.snakemake(*configure(project, project.folder / "noise", slow))
        assert ended.code == 0, ended.output
        runs = project.table("comparison/compared_runs.tsv")
        bound_s = size_bytes / BYTES_PER_S
        medians: dict[str, float] = {}
        rows: list[list[object]] = []
        for name in dict.fromkeys(run["placement"] for run in runs):
            same = [run for run in runs if run["placement"] == name]
            makespans = [float(run["makespan_s"]) for run in same if run["valid"] == "valid"]
            parallel = [float(run["mean_parallelism"]) for run in same]
            medians[name] = statistics.median(makespans) if makespans else float("nan")
            rows.append([name, f"{len(makespans)} of {len(same)}", spread(makespans), spread(parallel)])
        for row in rows:
            median = medians[str(row[0])]
            crosses = str(row[0]).startswith("slow")
            row += [f"{median / medians['slow']:.2f}", f"{median / bound_s:.2f}" if crosses else "-"]
        header = ["placement", "valid", "makespan, s", "mean at once", "to all on slow", "to the bound"]
        workload = f"{PARTICIPANTS} participants, {AT_ONCE} at once, {size_bytes / 1e6:.0f} MB"
        print_table(f"{workload}, slow tier {BYTES_PER_S / 1e6:.0f} MB/s: bound {bound_s:.1f} s", header, rows)


if __name__ == "__main__":
    main()
