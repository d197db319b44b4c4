"""96 at once: brain extraction of 96 participants' small heads on this machine, with its memory at the peak.

Four participants of the demonstration (4 mm) are copied to 96. What a job asks for (``mem_mb``) is estimated for heads
of 1 mm; here it is told, so that memory does not keep jobs waiting.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import psutil
from bench import print_table, scratch_project
from support import Project, make_demo

AT_ONCE = 96
INTERVAL_S = 0.2


class Peak:
    """The most memory that the machine had in use at a time, beyond what it had at the start."""

    def __init__(self) -> None:
        self.before = self.most = psutil.virtual_memory().used
        self.over = threading.Event()
        self.watcher = threading.Thread(target=self.watch)

    def watch(self) -> None:
        while not self.over.wait(INTERVAL_S):
            self.most = max(self.most, psutil.virtual_memory().used)

    def __enter__(self) -> Peak:
        self.watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.watcher.join()

    @property
    def used_bytes(self) -> int:
        return self.most - self.before


def make_dataset(project: Project) -> Path:
    """A plain dataset of 96 participants, each a copy of one of the demonstration's images."""
    demo, folder = make_demo(project.folder / "demo"), project.folder / "bids"
    images = [image.resolve() for image in sorted(demo.glob("Site*/sub-*/ses-*/anat/*_T1w.nii.gz"))]
    folder.mkdir()
    (folder / "dataset_description.json").write_text('{"Name": "copies", "BIDSVersion": "1.10.0"}')
    for number in range(AT_ONCE):
        target = folder / f"sub-{number:02d}" / "anat" / f"sub-{number:02d}_T1w.nii.gz"
        target.parent.mkdir(parents=True)
        shutil.copyfile(images[number % len(images)], target)
    return folder


def main() -> None:
    with scratch_project() as project:
        tool = {"brainextractor": {"iterations": 50}}  # as much memory as with 1,000, and less waiting for two cores
        arguments = project.configure(dataset={"source": str(make_dataset(project))}, tool=tool)
        assert project.snakemake("ready", *arguments).code == 0
        profiles = ["--profile", "profiles/local-96", "--workflow-profile", "profiles/tmpfs"]
        resources = ["--set-resources", "analyze_participants:mem_mb=200"]
        with Peak() as peak:
            ended = project.snakemake("results/profile/runs.tsv", *profiles, *resources, *arguments, cores=AT_ONCE)
        assert ended.code == 0, ended.output
        (run,) = project.table("profile/runs.tsv")
        largest = max(int(row["max_rss_bytes"]) for row in project.table("profile/profile.tsv"))
        header = [
            "participants",
            "failed",
            "peak at once",
            "mean at once",
            "makespan, s",
            "all in use, GB",
            "largest, MB",
        ]
        figures = [run["participants"], run["failed"], run["peak_parallelism"], f"{float(run['mean_parallelism']):.1f}"]
        figures += [f"{float(run['makespan_s']):.1f}", f"{peak.used_bytes / 1e9:.1f}", f"{largest / 1e6:.0f}"]
        print_table(f"brain extraction, {AT_ONCE} at once, oversubscribed {run['oversubscribed']}", header, [figures])
        print(f"limited by: {run['limited_by']}")


if __name__ == "__main__":
    main()
