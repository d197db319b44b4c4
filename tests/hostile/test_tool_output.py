"""What a tool wrote in place of its mask: nothing of the host's is read, nothing blocks, and the others are done."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hostile_images import GB, VOXELS, affine, bomb, dims, header, link, write
from neurotier.core.errors import ToolError
from support import Ended, Project, small_head

BINARY = (small_head() > 250).astype(np.int16).tobytes("F")
TOOL = """#!/bin/sh
name=$(basename "$1")
exec cp --archive {made}/"${{name%%_*}}"/. "$(dirname "$2")"
"""

MASKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "host": (lambda path: path.symlink_to(path.parents[1] / "sub-good" / path.name), "is a link, and only files"),
    "zero": (partial(link, to="/dev/zero"), "is a link, and only files are read"),
    "fifo": (os.mkfifo, "is a FIFO, and only files are read"),
    "folder": (os.mkdir, "is a folder, and only files are read"),
    "nothing": (Path.exists, "bet wrote no brain_mask.nii.gz, although its exit code is 0"),
    "empty": (partial(write, content=b""), "is empty (0 bytes)"),
    "half": (partial(write, content=gzip.compress(header() + BINARY)[:200]), "is truncated or not NIfTI"),
    "large": (partial(bomb, head=header(dim=dims(2700, 2700, 1400)), data_bytes=2 * GB), "is on another grid"),
    "endless": (partial(bomb, head=header() + BINARY, data_bytes=20 * GB), "goes on long after"),
    "affine": (partial(write, content=gzip.compress(header(**affine(np.nan)) + BINARY)), "affine that is not"),
    "head": (partial(write, content=gzip.compress(header() + VOXELS)), "is not binary"),
    "all": (partial(write, content=gzip.compress(header() + np.ones(20**3, np.int16).tobytes())), "nothing but brain"),
    "nobrain": (partial(write, content=gzip.compress(header() + bytes(len(VOXELS)))), "found no brain"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Ended]:
    folder = tmp_path_factory.mktemp("masks")
    project, made = Project.at(folder / "project"), folder / "made"
    good: tuple[Callable[[Path], object], str] = (partial(write, content=gzip.compress(header() + BINARY)), "")
    for label, (make, _) in {**MASKS, "good": good}.items():
        (made / f"sub-{label}").mkdir(parents=True)
        make(made / f"sub-{label}/brain_mask.nii.gz")
    (folder / "bet").write_text(TOOL.format(made=made))
    (folder / "bet").chmod(0o755)
    project.heads("good", *MASKS)
    return project, project.fails("participants", path=folder, tool="bet")


@pytest.mark.parametrize("label", MASKS)
def test_a_mask_that_is_none(run: tuple[Project, Ended], label: str) -> None:
    project, ended = run
    (line,) = ended.lines(f"failed  sub-{label}: ")
    assert MASKS[label][1] in line
    assert project.failure(f"sub-{label}")["exit_code"] == ToolError.exit_code
    assert not (project.derivatives / f"sub-{label}").exists()


def test_the_others_are_done_and_nothing_is_left(run: tuple[Project, Ended]) -> None:
    project, ended = run
    ended.says(f"1 of {1 + len(MASKS)} participants done, {len(MASKS)} failed")
    assert project.record("sub-good")["images"][0]["brain_voxels"] == np.frombuffer(BINARY, np.int16).sum()
    assert project.leftovers() == []
