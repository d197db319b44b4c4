"""Prediction: conditions are predicted by the advice and then run; none of them is part of the calibration.

Two campaigns, as users run them, each after ``snakemake advise`` with the same configuration, which probes the tiers
and analyses two participants on the local disk. First storage: the tool noop on images of noise, cold, with dataset
and work on the local disk, the work in memory, and both on a throttled disk. Then computing: brain extraction on the
demonstration, with the work on the local disk and in memory. What others do on the machine meanwhile is part of the
result: look at the load beside the table.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from bench import print_table, scratch_project
from support import Project, git
from truth import loop_device

PARTICIPANTS = 24
AT_ONCE = 4
REPETITIONS = 2
BYTES_PER_S = 8_000_000
EDGES = (110, 150)
"""Voxels along each axis, alternately: int16 noise of that size is 2 and 5 MB when compressed."""

PROBE = {"file_mib": 64, "time_s": 30, "repetitions": 2}
HEAD = ["tool", "placement", "predicted (s)", "interval", "Eq. (1)", "measured (s)", "predicted / measured", "limit"]


def make_dataset(folder: Path) -> None:
    """A DataLad dataset of participants whose images are noise, which hardly compresses."""
    git(folder.parent, "init", "--quiet", folder.name)
    git(folder, "annex", "init", "--quiet")
    (folder / "dataset_description.json").write_text('{"Name": "noise", "BIDSVersion": "1.10.0"}')
    git(folder, "add", "dataset_description.json")
    for number in range(PARTICIPANTS):
        shape = (EDGES[number % len(EDGES)],) * 3
        noise = np.random.default_rng(number).integers(0, 4096, shape).astype(np.int16)
        image = folder / f"sub-{number:02d}" / "anat" / f"sub-{number:02d}_T1w.nii.gz"
        image.parent.mkdir(parents=True)
        nib.save(nib.Nifti1Image(noise, np.eye(4)), image)
    git(folder, "annex", "add", "--quiet", ".")
    git(folder, "commit", "--quiet", "-m", "noise")


def predict_and_run(project: Project, results: str, **sections: Any) -> list[list[object]]:
    """Advise, run the campaign, and hold the one against the other."""
    arguments = project.configure(results=results, probe=PROBE, **sections)
    for targets in (["advise"], []):
        ended = project.snakemake(*arguments, targets=targets)
        assert ended.code == 0, ended.output
        print("\n".join(line for part in ("Advice: ", "Others kept", "how long") for line in ended.lines(part)))
        print(f"load average {os.getloadavg()[0]:.1f}")
    own = Project(project.folder / results)
    advice, runs = (table(own, name) for name in ("advice/advice.tsv", "comparison/compared_runs.tsv"))
    rows: list[list[object]] = []
    for row in advice:
        makespans = [
            float(run["makespan_s"]) for run in runs if run["placement"] == row["placement"] and run["valid"] == "valid"
        ]
        measured_s = statistics.median(makespans)
        predicted_s, low_s, high_s = (float(row[name]) for name in ("predicted_s", "low_s", "high_s"))
        makespans_text = " ".join(f"{makespan:.2f}" for makespan in makespans)
        rows.append(
            [
                *(row["tool"], row["placement"], f"{predicted_s:.2f}", f"{low_s:.2f} to {high_s:.2f}"),
                *(f"{float(row['paper_s']):.2f}", makespans_text, f"{predicted_s / measured_s:.2f}", row["limit"]),
            ]
        )
    return rows


def table(own: Project, path: str) -> list[dict[str, str]]:
    """Rows of a table of a results folder."""
    head, *rows = (own.folder / path).read_text().splitlines()
    return [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]


def main() -> None:
    with scratch_project() as project, loop_device(2048, BYTES_PER_S) as slow:
        make_dataset(project.folder / "noise")
        storage = predict_and_run(
            project,
            "storage",
            dataset={"source": str(project.folder / "noise")},
            tool={"name": "noop"},
            tiers={"slow": {"path": str(slow), "kind": "block"}},
            campaign={
                "placements": {"disk": {}, "memory": {"work": "tmpfs"}, "slow": {"dataset": "slow", "work": "slow"}},
                "parallelism": [AT_ONCE],
                "repetitions": REPETITIONS,
            },
        )
        computing = predict_and_run(
            project,
            "computing",
            demo={"voxel_size_mm": 3.0},
            campaign={
                "placements": {"disk": {}, "memory": {"work": "tmpfs"}},
                "parallelism": [2],
                "repetitions": 1,
            },
        )
        print_table("Predicted before the run, and measured", HEAD, storage + computing)


if __name__ == "__main__":
    main()
