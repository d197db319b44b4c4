"""Blocks of a huge image, and the increment of one: right, whole or not at all, and clear when it cannot be done."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from bigbrain_blocks import make, save, settings, task_of, voxels
from neurotier.bigbrain.blocks.nifti import HEADER_BYTES
from neurotier.bigbrain.blocks.sources import source_of
from neurotier.bigbrain.checking import check_block, check_task, checksum_of
from neurotier.bigbrain.conditions import BLOCK_BYTES, BLOCKS, GRIDS
from neurotier.bigbrain.engines import increment as increment_module
from neurotier.bigbrain.engines.increment import increment
from neurotier.bigbrain.engines.worker import work
from neurotier.bigbrain.tasks import ALL, NONE, PUBLISHED, STREAMING
from neurotier.core.errors import InputError
from support import quiet

GIVEN = "given"  # what Spark does when it reads files itself


@pytest.mark.parametrize("resolution_um", [40, 20])
def test_synthetic_blocks_have_the_published_shapes_and_sizes(resolution_um: int) -> None:
    source = source_of(settings(resolution_um=resolution_um, scale=1, count=None))
    assert len(set(source.names())) == BLOCKS[resolution_um]
    layout, header, _ = source.block(source.names()[-1])
    assert layout.shape == GRIDS[resolution_um]
    assert layout.file_bytes == BLOCK_BYTES[resolution_um]
    assert nib.Nifti1Header(header[:348]).get_data_shape() == GRIDS[resolution_um]


def test_synthetic_blocks_are_readable_seeded_and_all_different(tmp_path: Path) -> None:
    blocks = make(tmp_path / "one")
    again, other = make(tmp_path / "two"), make(tmp_path / "three", seed=1)
    assert [block.block for block in blocks] == ["bigbrain_0_0_0", "bigbrain_0_0_28", "bigbrain_0_24_0"]
    assert [block.sha256 for block in blocks] == [block.sha256 for block in again]
    assert len({block.sha256 for block in blocks + other}) == 6
    image = nib.load(blocks[1].file)
    assert (image.shape, image.get_data_dtype()) == ((31, 24, 28), np.uint16)
    assert image.affine[2, 3] == pytest.approx(28 * 0.04)


def test_volume_is_split_along_all_axes(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 65536, (11, 9, 8), dtype=np.uint16)
    file = save(tmp_path / "volume.nii", data)
    blocks = make(tmp_path, source=str(file), split=[3, 2, 2], count=None)
    assert len(blocks) == 12
    built = np.zeros_like(data)
    for block in blocks:
        x, y, z = (int(part) for part in block.block.split("_")[1:])
        part = voxels(block.file)
        built[x : x + part.shape[0], y : y + part.shape[1], z : z + part.shape[2]] = part
    assert np.array_equal(built, data)


@pytest.mark.parametrize("name", ["tiny.mnc", "small.mnc"])  # MINC 1 and 2
def test_minc_volume_is_split(tmp_path: Path, name: str) -> None:
    with importlib.resources.as_file(importlib.resources.files("nibabel.tests") / "data" / name) as file:
        blocks = make(tmp_path, source=str(file), split=[2, 2, 2], count=None)
        rounded = np.rint(nib.load(file).get_fdata())
    parts = [[[voxels(blocks[4 * x + 2 * y + z].file) for z in (0, 1)] for y in (0, 1)] for x in (0, 1)]
    assert np.array_equal(np.block([[list(row) for row in plane] for plane in parts]), rounded)


def test_volume_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = save(tmp_path / "volume.nii", np.full((4, 4, 4), -1, np.int16))
    with pytest.raises(InputError, match=r"volume\.nii: has voxels from -1 to -1, which uint16 cannot hold"):
        make(tmp_path, source=str(file), split=[2, 2, 2])
    with pytest.raises(InputError, match=r"is of shape 4 x 4 x 4, which cannot be split in 5 x 5 x 5"):
        make(tmp_path, source=str(file))


@pytest.mark.parametrize("pairing", [STREAMING, PUBLISHED, GIVEN])
@pytest.mark.parametrize("dtype", ["<u2", ">u2", "|u1", "<u4"])
def test_every_voxel_is_incremented_and_wraps_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairing: str, dtype: str
) -> None:
    monkeypatch.setattr(increment_module, "PIECE_BYTES", 1000)  # several pieces, the last one shorter
    largest = np.iinfo(dtype).max
    data = np.random.default_rng(0).integers(0, largest, (13, 11, 7), dtype=np.dtype(dtype).newbyteorder("="))
    data[::3, 0, 0] = largest
    header = nib.Nifti1Header(endianness="<" if dtype[0] == "|" else dtype[0])
    image = nib.Nifti1Image(data, np.eye(4), header)
    image.header.set_data_dtype(np.dtype(dtype))
    (tmp_path / "given").mkdir()
    nib.save(image, tmp_path / "given" / "a.nii")
    blocks = make(tmp_path, source=str(tmp_path / "given"))
    task = task_of(tmp_path, blocks, pairing=STREAMING if pairing == GIVEN else pairing)
    record = increment(task, blocks[0], 1, given=Path(blocks[0].file).read_bytes() if pairing == GIVEN else None)
    assert record["wrapped_voxels"] == 5
    assert np.array_equal(voxels(task.file(blocks[0], 1)), data + data.dtype.type(1))
    assert Path(task.file(blocks[0], 1)).read_bytes()[:HEADER_BYTES] == Path(blocks[0].file).read_bytes()[:HEADER_BYTES]
    phases = {phase["phase"]: phase for phase in record["phases"]}
    apart = {"read"} if pairing == STREAMING else set()
    assert set(phases) == {"load_header", "increment", "write"} | apart
    assert phases["write"]["bytes"] == blocks[0].bytes
    assert phases["increment"]["bytes"] == data.nbytes
    assert all(phase["duration_s"] <= phase["end_s"] - phase["start_s"] + 1e-6 for phase in phases.values())


@pytest.mark.parametrize("keep", [NONE, ALL])
def test_iterations_are_chained_and_their_blocks_kept_as_asked(tmp_path: Path, keep: str) -> None:
    blocks = make(tmp_path)
    task = task_of(tmp_path, blocks, iterations=4, keep=keep)
    for block in blocks:
        assert work(task, block, None, None) == [1, 2, 3, 4]
    checked = check_task(task, quiet)
    assert all(one.equal for one in checked)
    for iteration in range(1, 5):
        there = task.file(blocks[0], iteration).exists()
        assert there == (keep == ALL or iteration >= 3)
    other = task_of(tmp_path / "other", blocks, iterations=4, pairing=PUBLISHED)
    for block in blocks:
        work(other, block, None, None)
    assert checksum_of(check_task(other, quiet)) == checksum_of(checked)
    assert task.incomplete() == []


def test_a_wrong_voxel_is_found(tmp_path: Path) -> None:
    blocks = make(tmp_path, count=1)
    task = task_of(tmp_path, blocks)
    work(task, blocks[0], None, None)
    file = task.file(blocks[0], 1)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert not check_block(task, blocks[0]).equal
