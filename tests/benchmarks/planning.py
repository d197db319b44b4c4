"""Planning: indexing and dry run over a tree of CoRR's shape, and over ten times as many participants.

The tree holds zero-byte files. Its shape is the list of the published run's images where that is at hand
(``NEUROTIER_CORR_IMAGES``), else the same counts spread evenly: 685 participants at 19 sites, two of them without
T1w images, 1,233 images.
"""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

from bench import Timed, print_table, scratch_project, timed
from support import ROOT, Project

IMAGES = Path(os.environ.get("NEUROTIER_CORR_IMAGES", ROOT.parent / "shared" / "reference" / "corr_t1w_images.csv"))
IMAGES_PER_PARTICIPANT = {1: 251, 2: 349, 3: 54, 4: 28, 10: 1}
SITES = 19


def corr_images() -> list[str]:
    """Paths of the T1w images of the published run, or as many of the same distribution."""
    if IMAGES.exists():
        with IMAGES.open(newline="") as file:
            return [row["image"] for row in csv.DictReader(file)]
    counts = [count for count, people in IMAGES_PER_PARTICIPANT.items() for _ in range(people)]
    return [
        f"Site{number % SITES}/sub-{number:07d}/ses-{session}/anat/sub-{number:07d}_ses-{session}_run-1_T1w.nii.gz"
        for number, count in enumerate(counts)
        for session in range(1, count + 1)
    ]


def make_tree(folder: Path, copies: int) -> int:
    """Make the tree; every copy has participants of its own. Returns how many participants it has."""
    people = set()
    for copy in range(copies):
        for image in corr_images():
            site, label, *folders, name = image.split("/")
            other = label.replace("sub-", f"sub-{copy}x")
            file = folder.joinpath(site, other, *folders, name.replace(label, other))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            people.add(f"{site}/{other}")
            description = folder / site / "dataset_description.json"
            if not description.exists():
                description.write_text('{"Name": "CoRR-shaped", "BIDSVersion": "1.10.0"}')
        for number in range(2):  # the published two without a T1w image
            (folder / "NYU_2" / f"sub-{copy}xempty{number}" / "func").mkdir(parents=True)
            people.add(f"NYU_2/sub-{copy}xempty{number}")
    (folder / "NYU_2" / "dataset_description.json").write_text('{"Name": "CoRR-shaped", "BIDSVersion": "1.10.0"}')
    return len(people)


def measure(project: Project, copies: int) -> tuple[int, Timed, Timed]:
    """Participants, cold indexing (the whole command, from clone to index), and the dry run after it."""
    people = make_tree(project.folder / "bids", copies)
    arguments = project.configure(dataset={"source": "bids"}, tool={"name": "noop"})
    cold = timed(project.command("results/index/images.tsv", *arguments), project.folder)
    warm = timed(project.command(*arguments, "--dry-run", "--quiet"), project.folder)
    shutil.rmtree(project.folder / "bids")
    shutil.rmtree(project.results)
    return people, cold, warm


def main() -> None:
    rows: list[list[object]] = []
    with scratch_project() as project:
        for copies in (1, 10):
            people, cold, warm = measure(project, copies)
            rows.append([people, f"{cold.wall_s:.1f}", f"{warm.wall_s:.1f}", f"{warm.max_rss_bytes / 2**20:.0f}"])
    rows.append(
        ["ratio", *(f"{float(str(b)) / float(str(a)):.1f}" for a, b in zip(rows[0][1:], rows[1][1:], strict=True))]
    )
    header = ["participants", "cold index, s", "dry run from a warm index, s", "peak memory of the dry run, MiB"]
    print_table("Planning", header, rows)


if __name__ == "__main__":
    main()
