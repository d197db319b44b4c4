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
from hostile_images import AFFINE, GB, HOSTILE, LARGE, VOXELS, dims, header
from neurotier.analysis.images import load_head
from neurotier.analysis.inflating import DamagedError
from neurotier.analysis.nifti import read_header
from neurotier.errors import InputError
from support import ENVIRONMENT, PATIENCE_S, save_image, small_head

MORE_BYTES = 200 * 10**6
"""What a hostile image may cost beyond a good one, bytes."""

PROGRAM = """
import json, sys, time
from pathlib import Path
from neurotier.analysis.images import load_head
from neurotier.errors import NeurotierError

began_s, said, code = time.monotonic(), "", 0
try:
    load_head(Path(sys.argv[1]), "sub-01", int(sys.argv[2]))
except NeurotierError as error:
    said, code = str(error), error.exit_code
took_s = time.monotonic() - began_s
lines = Path("/proc/self/status").read_text().splitlines()
peak_bytes = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps({"said": said, "code": code, "peak_bytes": peak_bytes, "took_s": took_s}))
"""


@dataclass(frozen=True)
class Loaded:
    """What came of loading an image in a process of its own."""

    said: str
    code: int
    peak_bytes: int
    took_s: float


def load(path: Path, memory_bytes: int) -> Loaded:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(memory_bytes)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        check=True,
        timeout=PATIENCE_S,
    )
    return Loaded(**json.loads(done.stdout))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A good image."""
    loaded = load(save_image(tmp_path_factory.mktemp("good") / "a.nii.gz", small_head()), 8 * GB)
    assert loaded.code == 0, loaded.said
    return loaded


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_image_is_refused(tmp_path: Path, good: Loaded, name: str) -> None:
    hostile = HOSTILE[name]
    path = tmp_path / hostile.name
    hostile.make(path)
    loaded = load(path, hostile.memory_bytes)
    more_bytes = loaded.peak_bytes - good.peak_bytes
    print(f"{name}: {more_bytes / 1e6:+.0f} MB, {loaded.took_s:.2f} s | {loaded.said}")
    assert loaded.code == InputError.exit_code
    assert loaded.said.startswith("sub-01: ")
    assert hostile.reason in loaded.said
    assert "\n" not in loaded.said
    assert more_bytes < MORE_BYTES


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


@pytest.mark.parametrize(("memory_bytes", "fits"), [(8 * GB, True), (2 * GB, False)])
def test_head_of_half_a_mm_fits_a_job_of_8_gb(tmp_path: Path, memory_bytes: int, fits: bool) -> None:
    (tmp_path / "a.nii").write_bytes(header(dim=dims(512, 512, 512), datatype=16, bitpix=32))
    with (tmp_path / "a.nii").open("rb") as file:
        stored = read_header(file, "a.nii")
    if fits:
        stored.check_memory(memory_bytes)
    else:
        with pytest.raises(DamagedError, match=r"which take 3.5 GiB of memory to analyse, and this job has 1.86 GiB"):
            stored.check_memory(memory_bytes)


def test_only_a_slab_is_in_memory_while_values_are_checked(tmp_path: Path, good: Loaded) -> None:
    """The only voxel of 216 million that differs is the last: nothing is wrong, and all was looked at."""
    path = tmp_path / "a.nii"
    with path.open("wb") as file:
        file.write(LARGE)
        file.seek(352 + 4 * (600**3 - 1))
        file.write(np.float32(1).tobytes())
    loaded = load(path, 64 * GB)
    assert loaded.code == 0, loaded.said
    assert loaded.peak_bytes - good.peak_bytes < MORE_BYTES
