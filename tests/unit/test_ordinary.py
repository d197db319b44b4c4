"""Ordinary heads are accepted without NiBabel, which accepts them, too, and says the same of them."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hostile_images import HOSTILE, VOXELS, header
from neurotier.analysis.images import load_head
from neurotier.analysis.nifti import read_header as read_by_nibabel
from neurotier.analysis.ordinary import DATA_OFFSET, TYPES, Header, is_ordinary, read_header
from support import save_image, small_head

SEED, HEADERS, DAMAGES = 15, 4000, 600
FIELDS = {name: nib.Nifti1Header.template_dtype[name] for name in nib.Nifti1Header.template_dtype.names}
USUAL, UNUSUAL = (0.0, 1.0, -1.0, 4.0), (np.nan, np.inf, -np.inf, 1e30, 1e-30, 2.5e-7, 348.0, 0.70710678)
WHOLE = (0, 1, 2, 3, 4, 5, 7, 8, 16, 20, 64, 352, -1, 255, 32767, -32768)


def drawn(chance: np.random.Generator, order: str) -> bytes:
    """A header of a small head with some fields drawn by chance."""
    made = nib.Nifti1Header(header()[:-4]).as_byteswapped(order)
    made["qform_code"], made["sform_code"] = chance.choice([0, 0, 1, 2, 4, 5, -1], 2)
    made["pixdim"][0] = chance.choice([-1, 1, 0, np.nan])
    axis = chance.normal(size=4)
    for name, part in zip("bcd", axis / np.linalg.norm(axis), strict=False):
        made[f"quatern_{name}"] = part
    for row in "xyz":
        if chance.random() < 0.5:
            made[f"srow_{row}"] = chance.normal(size=4) * 10.0 ** chance.integers(-3, 3)
    made["pixdim"][1:4] *= 10.0 ** chance.integers(-3, 3, 3)
    code = chance.choice([*TYPES, *TYPES, 1, 32, 128, 1536, 4242])
    made["datatype"], made["bitpix"] = code, 8 * struct.calcsize(TYPES.get(int(code), "h"))
    dims = [chance.choice([3, 3, 4, 5, 7]), *chance.integers(2, 9, 3), 1, 1, 1, 1]
    made["dim"] = dims
    for _ in range(chance.integers(0, 3)):
        name = str(chance.choice([*FIELDS]))
        kind, shape = FIELDS[name].base, FIELDS[name].shape
        if kind.kind == "S":
            made[name] = chance.choice([b"", b"ni1", b"n+1", b"n+2", b"x"])
            continue
        pool = np.array([*USUAL, *UNUSUAL] if kind.kind == "f" else WHOLE)
        with np.errstate(all="ignore"):
            value = pool[chance.integers(len(pool))].astype(kind)
        if shape:
            made[name][chance.integers(shape[0])] = value
        else:
            made[name] = value
    return bytes(made.binaryblock) + (bytes(4) if chance.random() < 0.9 else b"\x01\0\0\0")


def values(chance: np.random.Generator, found: Header) -> bytes:
    """Voxels of a head, sometimes all alike or not finite."""
    kind = np.dtype(f"{found.order}{found.code}")
    made = chance.integers(0, chance.choice([1, 2, 100]), found.voxels).astype(kind)
    if kind.kind == "f" and chance.random() < 0.3:
        made[chance.integers(len(made))] = chance.choice([np.nan, np.inf, -0.0, 3e38])
    return made.tobytes()


def test_nibabel_accepts_whatever_is_ordinary_and_says_the_same(tmp_path: Path) -> None:
    chance, accepted, heads = np.random.default_rng(SEED), 0, 0
    file = tmp_path / "head.nii"
    for number in range(HEADERS):
        start = drawn(chance, "<>"[number % 2])
        found = read_header(start)
        if found is None:
            continue
        accepted += 1
        file.write_bytes(start + values(chance, found))
        with file.open("rb") as opened:
            stored = read_by_nibabel(opened, file.name)
        assert stored.shape == found.shape, number
        assert stored.dtype == np.dtype(f"{found.order}{found.code}"), number
        assert stored.header.get_data_offset() == DATA_OFFSET, number
        assert stored.header.get_slope_inter() in ((None, None), (1, 0)), number
        assert np.allclose(stored.affine[:3, :3], found.affine, rtol=1e-5, atol=1e-5 * np.abs(found.affine).max())
        if is_ordinary(file):
            heads += 1
            assert load_head(file, "head").shape == found.shape[:3], number
    print(f"{accepted} of {HEADERS} headers and {heads} heads are ordinary")
    assert accepted > HEADERS / 10
    assert heads > accepted / 4


@pytest.mark.parametrize("name", ["head.nii", "head.nii.gz"])
def test_a_damaged_file_is_accepted_only_if_nibabel_loads_it(tmp_path: Path, name: str) -> None:
    chance, file, accepted = np.random.default_rng(SEED), tmp_path / name, 0
    whole = save_image(file, small_head().astype(np.float32)).read_bytes()
    for _ in range(DAMAGES):
        content = bytearray(whole[: chance.integers(len(whole))] if chance.random() < 0.3 else whole)
        for _ in range(chance.integers(0, 3) if content else 0):
            place = chance.integers(min(352, len(content)) if chance.random() < 0.7 else len(content))
            content[place] ^= 1 << chance.integers(8)
        file.write_bytes(content)
        if is_ordinary(file):
            accepted += 1
            load_head(file, name)
    assert 10 < accepted < DAMAGES


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_image_is_ordinary(tmp_path: Path, name: str) -> None:
    hostile = HOSTILE[name]
    hostile.make(tmp_path / hostile.name)
    assert not is_ordinary(tmp_path / hostile.name)


@pytest.mark.parametrize("name", ["head.nii", "head.nii.gz"])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", TYPES.values())
def test_heads_of_all_types_are_ordinary(tmp_path: Path, code: str, order: str, name: str) -> None:
    voxels = small_head().clip(0, 255).astype(f"{order}{code}")
    image = nib.Nifti1Image(voxels, np.diag([1.0, 1.0, 1.2, 1.0]), dtype=voxels.dtype)
    nib.save(image, tmp_path / name)
    assert is_ordinary(tmp_path / name)


def test_a_head_behind_slices_of_air_is_ordinary(tmp_path: Path) -> None:
    voxels = np.zeros((200, 200, 20), np.int16, order="F")
    voxels[..., -1] = 7
    assert is_ordinary(save_image(tmp_path / "a.nii.gz", voxels))


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(header()[:100]) + gzip.compress(header()[100:] + VOXELS),
        gzip.compress(header() + VOXELS) + bytes(1000),
        gzip.compress(header(scl_slope=np.nan, scl_inter=np.nan) + VOXELS),
        gzip.compress(header(sform_code=0, qform_code=1, quatern_b=1) + VOXELS),
        gzip.compress(header(dim=[4, 20, 20, 20, 1, 1, 1, 1]) + VOXELS),
    ],
    ids=["two members", "zeros that pad", "no slope", "qform", "a single volume of four dimensions"],
)
def test_what_others_write_is_ordinary(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.nii.gz").write_bytes(content)
    assert is_ordinary(tmp_path / "a.nii.gz")
