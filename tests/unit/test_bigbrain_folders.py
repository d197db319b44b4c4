"""A folder of blocks as the source: files of NIfTI, packed or not; and a DataLad dataset's links."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bigbrain_blocks import make, save, task_of, voxels
from configured import settings_at
from neurotier.bigbrain.checking import check_task
from neurotier.bigbrain.engines.worker import work
from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.core.errors import InputError, SourceError
from neurotier.core.places import Places
from neurotier.dataset.commands import prepare_environment
from support import git, quiet


def random_voxels(seed: int, dtype: type = np.uint16) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, (13, 11, 7), dtype=dtype, endpoint=True)


@pytest.mark.parametrize("extension", ["nii", "nii.gz"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_blocks_of_a_folder_are_copied_as_they_are_and_packed_ones_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: type, extension: str
) -> None:
    monkeypatch.setattr("neurotier.bigbrain.blocks.sources.PIECE_BYTES", 500)
    given = [save(tmp_path / "given" / f"part_{n}.{extension}", random_voxels(n, dtype)) for n in range(2)]
    blocks = make(tmp_path, source=str(tmp_path / "given"))
    named = [(block.block, block.shape, block.dtype) for block in blocks]
    assert named == [(f"part_{n}", "13x11x7", np.dtype(dtype).str) for n in range(2)]
    task = task_of(tmp_path, blocks)
    for file, block in zip(given, blocks, strict=True):
        content = file.read_bytes()
        assert Path(block.file).read_bytes() == (gzip.decompress(content) if extension == "nii.gz" else content)
        work(task, block, None, None)
    assert all(one.equal for one in check_task(task, quiet))


def test_folder_without_blocks_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no \*\.nii, \*\.nii\.gz"):
        make(tmp_path, source=str(tmp_path))


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        ("cut", "cannot be unpacked ("),
        ("bits", "cannot be unpacked ("),
        ("short", "is truncated: expected 2354 bytes, found 2000; fetch it again"),
        ("long", "is too long: expected 2354 bytes, found 2355; fetch it again"),
        ("scale", "scales its voxels"),
        ("text", "cannot be unpacked (Not a gzipped file"),
    ],
)
def test_bad_packed_block_is_said_and_leaves_nothing(tmp_path: Path, damage: str, line: str) -> None:
    save(tmp_path / "given" / "a.nii.gz", random_voxels(0))
    bad = save(tmp_path / "given" / "b.nii.gz", random_voxels(1))
    packed = bytearray(bad.read_bytes())
    content = bytearray(gzip.decompress(packed))
    if damage == "cut":
        packed = packed[:-1000]
    elif damage == "bits":
        packed[-1000] ^= 255
    elif damage == "text":
        packed = bytearray(b"text")
    else:
        content[112:116] = np.float32(2 if damage == "scale" else 1).tobytes()
        packed = bytearray(gzip.compress({"short": content[:2000], "long": content + b"0"}.get(damage, content)))
    bad.write_bytes(packed)
    with pytest.raises(InputError) as raised:
        make(tmp_path, source=str(tmp_path / "given"))
    assert str(raised.value).startswith(f"block b ({bad}): {line}")
    assert os.listdir(tmp_path / "blocks") == ["a.nii"]


def test_blocks_of_a_datalad_dataset_without_content_are_said(tmp_path: Path) -> None:
    from datalad.api import clone, create

    prepare_environment()
    dataset = create(str(tmp_path / "bigbrain"), result_renderer="disabled")
    for number in range(3):
        save(dataset.pathobj / "blocks" / f"part_{number}.nii.gz", random_voxels(number))
    dataset.save(result_renderer="disabled")
    copy = clone(str(dataset.pathobj), str(tmp_path / "clone"), result_renderer="disabled")
    folder = copy.pathobj / "blocks"
    first = folder / "part_0.nii.gz"
    settings = settings_at(bigbrain={"source": str(folder)})
    plan = BigBrainPlan(settings, Places.from_settings(settings))
    asked = plan.asked_blocks(SimpleNamespace(tier="disk"))
    with pytest.raises(SourceError) as raised:
        make(tmp_path, source=str(folder))
    said = f"block part_0 ({first}): its content is not here, nor that of 2 more; datalad get {folder}"
    assert str(raised.value) == said
    with pytest.raises(SourceError, match=rf"its content is not here; datalad get {first}$"):
        make(tmp_path, source=str(folder), count=1)

    copy.get("blocks", result_renderer="disabled")
    blocks = make(tmp_path, source=str(folder))
    assert [np.array_equal(voxels(block.file), random_voxels(n)) for n, block in enumerate(blocks)] == [True] * 3
    assert plan.asked_blocks(SimpleNamespace(tier="disk")) == asked  # fetching is no change

    copy.drop("blocks/part_1.nii.gz", result_renderer="disabled")
    with pytest.raises(SourceError, match=r"block part_1 .*: its content is not here; datalad get "):
        make(tmp_path, source=str(folder))
    git(copy.pathobj, "annex", "unlock", "blocks/part_1.nii.gz")  # now a pointer, no link
    assert (folder / "part_1.nii.gz").is_file()
    with pytest.raises(SourceError, match=r"block part_1 .*: its content is not here; datalad get "):
        make(tmp_path, source=str(folder))
