"""Hostile T1w images: each is refused with one line and exit code 65, at once, and costs no memory to speak of."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hostile_images import AFFINE, GB, HOSTILE, LARGE, LARGE_BYTES, VOXELS, dims, header, sparse
from neurotier.analysis.images import load_head
from neurotier.analysis.inflating import DamagedError
from neurotier.analysis.memory import LEAST_BYTES
from neurotier.analysis.nifti import read_header
from neurotier.core.errors import InputError
from support import ENVIRONMENT, PATIENCE_S, save_image, small_head

MORE_BYTES = 100 * 10**6
"""What a hostile image may cost beyond a good one, bytes."""

PROGRAM = """
import json, sys, time
from pathlib import Path
from neurotier.analysis.images import load_head
from neurotier.core.errors import NeurotierError

for name, path, memory_bytes in json.load(sys.stdin):
    began_s, said, code = time.monotonic(), "", 0
    try:
        load_head(Path(path), "sub-01", memory_bytes)
    except NeurotierError as error:
        said, code = str(error), error.exit_code
    took_s = time.monotonic() - began_s
    lines = Path("/proc/self/status").read_text().splitlines()
    peak_bytes = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    found = {"name": name, "said": said, "code": code, "peak_bytes": peak_bytes, "took_s": took_s}
    print(json.dumps(found), flush=True)
"""
"""Loads images one after the other; the peak is that of all before, too."""

GOOD, LAST_VOXEL = "good", "nothing but the last voxel of 64 million"


@dataclass(frozen=True)
class Loaded:
    """What came of loading an image."""

    name: str
    said: str
    code: int
    peak_bytes: int
    took_s: float


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    """What came of each image, by name; all in one process, after a good one. After one that hangs, none."""
    folder = tmp_path_factory.mktemp("images")
    jobs = [(GOOD, str(save_image(folder / "good.nii.gz", small_head())), 8 * GB)]
    for number, (name, hostile) in enumerate(HOSTILE.items()):
        path = folder / str(number) / hostile.name
        path.parent.mkdir()
        hostile.make(path)
        jobs.append((name, str(path), hostile.memory_bytes))
    sparse(folder / "last.nii", LARGE, 352 + LARGE_BYTES - 4)
    with (folder / "last.nii").open("ab") as file:
        file.write(np.float32(1).tobytes())
    jobs.append((LAST_VOXEL, str(folder / "last.nii"), 64 * GB))
    command = [sys.executable, "-c", PROGRAM]
    try:
        printed = subprocess.run(
            command, env=ENVIRONMENT, input=json.dumps(jobs).encode(), stdout=subprocess.PIPE, timeout=PATIENCE_S
        ).stdout
    except subprocess.TimeoutExpired as expired:
        printed = expired.stdout or b""
    outcomes = [Loaded(**json.loads(line)) for line in printed.splitlines()]
    return {one.name: one for one in outcomes}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_image_is_refused(loaded: dict[str, Loaded], name: str) -> None:
    assert name in loaded, f"hung, or one before it did: {list(loaded)[-1]} was the last to end"
    one, good = loaded[name], loaded[GOOD]
    more_bytes = one.peak_bytes - good.peak_bytes
    print(f"{name}: {more_bytes / 1e6:+.0f} MB, {one.took_s:.2f} s | {one.said}")
    assert one.code == InputError.exit_code
    assert one.said.startswith("sub-01: ")
    assert HOSTILE[name].reason in one.said
    assert "\n" not in one.said
    assert more_bytes < MORE_BYTES


def test_good_image_is_loaded(loaded: dict[str, Loaded]) -> None:
    assert loaded[GOOD].code == 0, loaded[GOOD].said


def test_only_a_slab_is_in_memory_while_values_are_checked(loaded: dict[str, Loaded]) -> None:
    """Only the last voxel differs: nothing is wrong, and all were looked at."""
    assert loaded[LAST_VOXEL].code == 0, loaded[LAST_VOXEL].said
    assert loaded[LAST_VOXEL].peak_bytes - loaded[GOOD].peak_bytes < MORE_BYTES


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(header()[:100]) + gzip.compress(header()[100:] + VOXELS[:777]) + gzip.compress(VOXELS[777:]),
        gzip.compress(header() + VOXELS) + bytes(1000),
        gzip.compress(header() + VOXELS) + b"which gzip, too, says and ignores",
        gzip.compress(header() + VOXELS + bytes(1000)) + gzip.compress(b""),
    ],
    ids=["many members", "zeros that pad", "garbage after the end", "padded content"],
)
def test_gzip_that_others_read_is_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.nii.gz").write_bytes(content)
    assert np.array_equal(np.asarray(load_head(tmp_path / "a.nii.gz", "a").dataobj), small_head())


@pytest.mark.parametrize("slope", [0, np.nan, np.inf])
def test_slope_that_is_none_is_ignored_as_nibabel_does(tmp_path: Path, slope: float) -> None:
    (tmp_path / "a.nii").write_bytes(header(scl_slope=slope, scl_inter=np.nan) + VOXELS)
    head = load_head(tmp_path / "a.nii", "a")
    assert np.array_equal(np.asarray(head.dataobj), small_head())
    assert np.array_equal(head.affine, AFFINE)


@pytest.mark.parametrize("kind", [nib.Nifti1Header, nib.Nifti2Header])
def test_image_is_as_nibabel_loads_it(tmp_path: Path, kind: type[nib.Nifti1Header]) -> None:
    values = small_head().astype(">f4").tobytes("F")
    made = kind(header(kind, datatype=16, bitpix=32)[:-4]).as_byteswapped(">")
    made["pixdim"][0] = 0  # which nibabel mends
    (tmp_path / "a.nii").write_bytes(bytes(made.binaryblock) + bytes(4) + values)
    ours, theirs = load_head(tmp_path / "a.nii", "a"), nib.load(tmp_path / "a.nii")
    assert type(ours) is type(theirs)
    assert ours.header == theirs.header
    assert np.array_equal(ours.affine, theirs.affine)
    assert np.array_equal(ours.get_fdata(), theirs.get_fdata())


@pytest.mark.parametrize(("memory_bytes", "fits"), [(8 * GB, True), (LEAST_BYTES, True), (2 * GB, False)])
def test_head_of_half_a_mm_fits_a_job_of_8_gb(tmp_path: Path, memory_bytes: int, fits: bool) -> None:
    (tmp_path / "a.nii").write_bytes(header(dim=dims(512, 512, 512), datatype=16, bitpix=32))
    with (tmp_path / "a.nii").open("rb") as file:
        stored = read_header(file, "a.nii")
    if fits:
        stored.check_memory(memory_bytes)
    else:
        with pytest.raises(DamagedError, match=r"which take 2.5 GiB of memory to analyse, and this job has 1.86 GiB"):
            stored.check_memory(memory_bytes)
