"""Hostile images in a dataset fail their own participants, with a line and exit code 65 each; the good one is done."""

from __future__ import annotations

import os
from pathlib import Path

from hostile_images import HOSTILE
from neurotier.core.errors import InputError
from support import STAND_INS, Project, checksums, plain_dataset, small_head, t1w

CANARY = "canary-of-the-host"

LABELS = {
    "voxels": "10^12 voxels",
    "sizes": "negative size",
    "type": "unknown type",
    "affine": "NaN affine",
    "offset": "data at 1e38",
    "extension": "extension of 2 GB",
    "bomb": "20 GB as declared",
    "endless": "20 GB after a small head",
    "half": "half",
    "series": "4D",
}


def test_hostile_images_fail_their_participants_only(project: Project) -> None:
    dataset = plain_dataset(project.folder / "bids", {t1w("good"): small_head()})
    for label, name in LABELS.items():
        path = dataset / t1w(label)
        path.parent.mkdir(parents=True)
        HOSTILE[name].make(path)
    secret = project.folder / "secret"
    secret.write_text(CANARY * 100)
    (dataset / t1w("link")).parent.mkdir(parents=True)
    (dataset / t1w("link")).symlink_to(secret)
    arguments = project.configure(dataset={"source": "bids"}, tool={"name": "bet"})
    ended = project.snakemake(*arguments, path=STAND_INS)
    assert ended.code != 0
    assert "Traceback" not in ended.output
    for label in [*LABELS, "link"]:
        (line,) = ended.lines(f"failed  sub-{label}")
        print(line)
        if label != "link":
            assert HOSTILE[LABELS[label]].reason in line
        assert project.failure(f"sub-{label}")["exit_code"] == InputError.exit_code
        assert not (project.results / "derivatives" / f"sub-{label}").exists()
    assert len(checksums(project.results / "derivatives" / "sub-good")) == 4
    assert [row["participant"] for row in project.table("group/group.tsv")] == ["sub-good"]
    assert project.leftovers() == []
    assert files_with(project.results, CANARY) == []


def files_with(folder: Path, text: str) -> list[Path]:
    """Files below a folder that hold a text."""
    files = [Path(root, name) for root, _, names in os.walk(folder) for name in names]
    return [file for file in files if file.is_file() and text.encode() in file.read_bytes()]
