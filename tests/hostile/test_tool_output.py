"""What a tool wrote in place of its mask and its log: nothing of the host's is read, and nothing blocks."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hostile_images import GB, VOXELS, affine, bomb, dims, header, write
from neurotier.analysis.images import check_mask, load_head
from neurotier.analysis.tools import end_of, failed, last_line
from neurotier.core.errors import KilledError, ToolError
from neurotier.meter.residency import resident_share
from support import save_image, small_head

CANARY = "canary-of-the-host"
MASK = (small_head() > 250).astype(np.int16)
BINARY = MASK.tobytes("F")


@pytest.fixture
def head(tmp_path: Path) -> nib.Nifti1Image:
    return load_head(save_image(tmp_path / "head.nii.gz", small_head()), "head")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the host with a mask and a file that nobody else may see."""
    save_image(tmp_path / "elsewhere" / "mask.nii.gz", MASK)
    (tmp_path / "elsewhere" / "log").write_text(f"{CANARY}\n")
    return tmp_path / "elsewhere"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """The folder that a tool may write to, with one for its first image."""
    (tmp_path / "scratch" / "0").mkdir(parents=True)
    return tmp_path / "scratch"


MASKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a mask of the host": (lambda path: path.symlink_to("../../elsewhere/mask.nii.gz"), "is a link, and only files"),
    "/dev/zero": (lambda path: path.symlink_to("/dev/zero"), "is a link, and only files are read"),
    "a FIFO": (os.mkfifo, "is a FIFO, and only files are read"),
    "a folder": (os.mkdir, "is a folder, and only files are read"),
    "nothing": (Path.exists, "tool wrote no mask, although its exit code is 0"),
    "no content": (partial(write, content=b""), "is empty (0 bytes)"),
    "half": (partial(write, content=gzip.compress(header() + BINARY)[:200]), "is truncated or no NIfTI"),
    "20 GB": (partial(bomb, head=header(dim=dims(2700, 2700, 1400)), data_bytes=2 * GB), "is on another grid"),
    "20 GB after it": (partial(bomb, head=header() + BINARY, data_bytes=20 * GB), "goes on long after"),
    "NaN affine": (partial(write, content=gzip.compress(header(**affine(np.nan)) + BINARY)), "affine that is not"),
    "no mask": (partial(write, content=gzip.compress(header() + VOXELS)), "is not binary"),
    "no brain": (partial(write, content=gzip.compress(header() + bytes(len(VOXELS)))), "found no brain"),
}


@pytest.mark.parametrize("name", MASKS)
def test_mask_that_is_none(head: nib.Nifti1Image, elsewhere: Path, scratch: Path, name: str) -> None:
    make, reason = MASKS[name]
    make(scratch / "0" / "brain_mask.nii.gz")
    with pytest.raises(ToolError) as caught:
        check_mask(scratch, "0/brain_mask.nii.gz", head, "tool", "sub-01")
    assert reason in str(caught.value)
    assert str(caught.value).startswith("sub-01")


def test_mask_behind_a_link(head: nib.Nifti1Image, elsewhere: Path, scratch: Path) -> None:
    (scratch / "0").rmdir()
    (scratch / "0").symlink_to(elsewhere)
    with pytest.raises(ToolError, match="lies behind a link, which is not followed"):
        check_mask(scratch, "0/mask.nii.gz", head, "tool", "sub-01")


def test_mask_that_is_one(head: nib.Nifti1Image, scratch: Path) -> None:
    (scratch / "0" / "mask.nii.gz").write_bytes(gzip.compress(header() + BINARY))
    assert np.array_equal(check_mask(scratch, "0/mask.nii.gz", head, "tool", "sub-01"), MASK > 0)


def test_log_that_is_none(elsewhere: Path, scratch: Path) -> None:
    log = scratch / "0" / "log"
    assert last_line(end_of(log)) == "it printed nothing"
    log.symlink_to(elsewhere / "log")
    assert last_line(end_of(log)) == "its log is a link, and only files are read"
    log.unlink()
    os.mkfifo(log)
    error = failed("tool", KilledError.exit_code, end_of(log), "sub-01")
    assert isinstance(error, KilledError)
    assert str(error).endswith("its log is a FIFO, and only files are read")


def test_log_of_a_gigabyte(scratch: Path) -> None:
    log = scratch / "0" / "log"
    log.touch()
    os.truncate(log, GB)
    with log.open("ab") as file:
        file.write(b"\nthe last line\n\n")
    assert last_line(end_of(log)) == "the last line"


def test_page_cache_is_asked_of_files_alone(scratch: Path) -> None:
    (scratch / "file").write_text("content")
    (scratch / "link").symlink_to("file")  # as an annex has
    os.mkfifo(scratch / "FIFO")
    assert resident_share([scratch / "link"]) == resident_share([scratch / "file"]) is not None
    assert resident_share([scratch / "FIFO"]) is None
    assert resident_share(["/dev/zero"]) is None
    assert resident_share([scratch]) is None
