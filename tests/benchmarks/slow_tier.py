"""Slow shared tier: 60 participants, 25 at once, dataset on a throttled disk; where should the intermediates lie?

A campaign, as users run one, on four placements: all on the slow tier, work in memory or on the local disk, and all
in memory but for the results. The tool is noop: what is compared is storage, and two cores are slow enough without a
brain extraction. The slow tier is ext4 on a loop device throttled for everybody, write-back included. No run can be
quicker than the bytes of the dataset take to cross the slow tier once; the table says how far each is from that.
"""

from __future__ import annotations

import statistics

import numpy as np
from bench import print_table, scratch_project, spread
from devices import loop_device
from noise import make_noise_dataset

PARTICIPANTS = 60
AT_ONCE = 25
REPETITIONS = 3
BYTES_PER_S = 8_000_000
EDGE = 150
"""Voxels along each axis: int16 noise of that size is 5 MB when compressed."""

PLACEMENTS = {
    "slow": {"dataset": "slow", "work": "slow"},
    "slow_but_work_in_memory": {"dataset": "slow", "work": "tmpfs"},
    "slow_but_work_on_disk": {"dataset": "slow", "work": "local"},
    "disk": {"dataset": "local", "work": "local"},
}


def main() -> None:
    with scratch_project() as project, loop_device(2048, BYTES_PER_S) as slow:
        source = project.folder / "noise"
        bound_s = make_noise_dataset(source, PARTICIPANTS, [EDGE], np.int16, ".nii.gz") / BYTES_PER_S
        campaign = {"placements": PLACEMENTS, "parallelism": [AT_ONCE], "repetitions": REPETITIONS}
        tiers = {"slow": {"path": str(slow), "kind": "block"}}
        project.succeeds(
            *project.configure(dataset={"source": str(source)}, tool="noop", tiers=tiers, campaign=campaign)
        )
        runs = project.table("comparison/compared_runs.tsv")
    rows = []
    for name, placement in PLACEMENTS.items():
        same = [run for run in runs if run["placement"] == name]
        makespans_s = [float(run["makespan_s"]) for run in same if run["valid"] == "valid"]
        of_bound = f"{statistics.median(makespans_s) / bound_s:.2f}" if placement["dataset"] == "slow" else "-"
        at_once = spread([float(run["mean_parallelism"]) for run in same])
        rows.append([name, f"{len(makespans_s)} of {len(same)}", spread(makespans_s), at_once, of_bound])
    header = ["placement", "valid", "makespan, s", "mean at once", "to the bound"]
    print_table(f"{PARTICIPANTS} participants, {AT_ONCE} at once: bound {bound_s:.1f} s", header, rows)
