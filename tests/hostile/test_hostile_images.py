"""Hostile T1w images in one dataset: each fails its own participant, in a line with exit code 65, and costs no memory
to speak of; all others are done, even those that only others would write."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hostile_images import HOSTILE, VOXELS, header
from neurotier.core.errors import InputError
from support import Ended, Project, plain_dataset, small_head, t1w

MOST_BYTES = 280 << 20
"""What no process of the run may hold; the largest image that is not refused unseen holds 256 MB."""

MEASURING = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""
"""Runs a command; writes the peak memory of its largest process, KiB."""

READ = {
    "members": gzip.compress(header()[:100])
    + gzip.compress(header()[100:] + VOXELS[:777])
    + gzip.compress(VOXELS[777:]),
    "padded": gzip.compress(header() + VOXELS) + bytes(1000),
    "garbage": gzip.compress(header() + VOXELS) + b"which gzip, too, says and ignores",
    "longer": gzip.compress(header() + VOXELS + bytes(1000)) + gzip.compress(b""),
    **{
        f"slope{number}": gzip.compress(header(scl_slope=slope, scl_inter=np.nan) + VOXELS)
        for number, slope in enumerate((0, np.nan, np.inf))
    },
}
"""What others read: several members, padding, garbage after the end, slopes that are none."""

LABELS = {name: f"hostile{number:02d}" for number, name in enumerate(HOSTILE)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Ended]:
    folder = tmp_path_factory.mktemp("images")
    project = Project.at(folder / "project", lambda: [sys.executable, "-c", MEASURING, str(folder / "peak")])
    bids = plain_dataset(project.folder / "bids", {t1w(label): content for label, content in READ.items()})
    for name, label in LABELS.items():
        path = (bids / t1w(label)).with_name(f"sub-{label}_{HOSTILE[name].name.partition('_')[2]}")
        path.parent.mkdir(parents=True)
        HOSTILE[name].make(path)
    return project, project.fails("participants", tool="bet")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_image_fails_its_participant_alone(run: tuple[Project, Ended], name: str) -> None:
    project, ended = run
    participant = f"sub-{LABELS[name]}"
    (line,) = ended.lines(f"failed  {participant}: ")
    assert HOSTILE[name].reason in line
    assert project.failure(participant)["exit_code"] == InputError.exit_code
    assert not (project.derivatives / participant).exists()


def test_nothing_else_comes_of_them(run: tuple[Project, Ended]) -> None:
    project, ended = run
    ended.says(f"{len(READ)} of {len(READ) + len(HOSTILE)} participants done, {len(HOSTILE)} failed")
    assert project.leftovers() == []
    assert int((project.folder.parent / "peak").read_text()) << 10 < MOST_BYTES


@pytest.mark.parametrize("label", READ)
def test_what_others_read_is_analysed(run: tuple[Project, Ended], label: str) -> None:
    made: Path = run[0].results / "derivatives" / t1w(label).replace("_T1w", "_desc-brain_T1w")
    head = small_head()
    assert np.array_equal(np.asarray(nib.load(made).dataobj), np.where(head > 0.5 * head.max(), head, 0))
