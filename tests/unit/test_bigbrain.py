"""Blocks of a huge image, made or from a folder, and the increment of one: right, whole or not at all."""

from __future__ import annotations

import dataclasses
import gzip
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from bigbrain_blocks import make, plan_of, save, settings, task_of, voxels
from configured import settings_at
from neurotier.bigbrain.blocks.nifti import HEADER_BYTES
from neurotier.bigbrain.blocks.sources import source_of
from neurotier.bigbrain.checking import check_task, checksum_of
from neurotier.bigbrain.conditions import BLOCK_BYTES, BLOCKS, GRIDS
from neurotier.bigbrain.engines import increment as increment_module
from neurotier.bigbrain.engines.increment import increment
from neurotier.bigbrain.engines.worker import work
from neurotier.bigbrain.plan import CHECKED, BigBrainPlan
from neurotier.bigbrain.tabulation import records_of, run_row
from neurotier.bigbrain.tasks import ALL, NONE, PUBLISHED, STREAMING
from neurotier.core.errors import InputError, SourceError
from neurotier.core.places import Places
from neurotier.core.tiers import find_mount
from neurotier.dataset.commands import prepare_environment
from neurotier.run.bigbrain_job import forget_interrupted, forget_others
from shown_values import shown
from support import JOB_ENVIRONMENT, git, wait_for

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


@pytest.mark.parametrize(
    ("name", "split"),
    [("volume.nii", [3, 2, 2]), ("tiny.mnc", [2, 2, 2]), ("small.mnc", [2, 2, 2])],  # MINC 1 and 2
)
def test_volume_is_split_along_all_axes(tmp_path: Path, name: str, split: list[int]) -> None:
    made = save(tmp_path / "volume.nii", np.arange(11 * 9 * 8, dtype=np.uint16).reshape(11, 9, 8))
    file = made if made.name == name else Path(nib.__file__).parent / "tests" / "data" / name
    blocks = make(tmp_path, source=str(file), split=split, count=None)
    whole = np.rint(nib.load(file).get_fdata())
    built = np.full_like(whole, -1)
    for block in blocks:
        x, y, z = (int(part) for part in block.block.split("_")[1:])
        part = voxels(block.file)
        built[x : x + part.shape[0], y : y + part.shape[1], z : z + part.shape[2]] = part
    assert len(blocks) == math.prod(split)
    assert np.array_equal(built, whole)


def test_a_volume_that_does_not_fit_and_a_folder_without_blocks_are_refused(tmp_path: Path) -> None:
    file = save(tmp_path / "negative" / "volume.nii", np.full((4, 4, 4), -1, np.int16))
    for source, split, line in (
        (tmp_path, 2, r"holds no \*\.nii, \*\.nii\.gz"),
        (file, 2, r"volume\.nii: has voxels from -1 to -1, which uint16 cannot hold"),
        (file, 5, "is of shape 4 x 4 x 4, which cannot be split in 5 x 5 x 5"),
    ):
        with pytest.raises(InputError, match=line):
            make(tmp_path, source=str(source), split=[split] * 3)


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
    (block,) = make(tmp_path, source=str(tmp_path / "given"))
    content = Path(block.file).read_bytes()
    task = task_of(tmp_path, (block,), pairing=STREAMING if pairing == GIVEN else pairing)
    record, written = increment(task, block, 1, given=content if pairing == GIVEN else None), task.file(block, 1)
    assert record["wrapped_voxels"] == 5
    assert np.array_equal(voxels(written), data + data.dtype.type(1))
    assert written.read_bytes()[:HEADER_BYTES] == content[:HEADER_BYTES]
    moved = {phase["phase"]: phase["bytes"] for phase in record["phases"]}
    apart = {"read"} if pairing == STREAMING else set()
    assert moved.keys() == {"load_header", "increment", "write"} | apart
    assert (moved["write"], moved["increment"]) == (block.bytes, data.nbytes)


@pytest.mark.parametrize("keep", [NONE, ALL])
def test_iterations_are_chained_and_kept_as_asked_and_a_wrong_voxel_is_found(tmp_path: Path, keep: str) -> None:
    blocks = make(tmp_path)
    task = task_of(tmp_path, blocks, iterations=4, keep=keep)
    for block in blocks:
        assert work(task, block, None, None) == [1, 2, 3, 4]
    checked = check_task(task)
    assert all(one.equal for one in checked)
    there = [iteration for iteration in range(1, 5) if task.file(blocks[0], iteration).exists()]
    assert there == ([1, 2, 3, 4] if keep == ALL else [3, 4])
    other = task_of(tmp_path / "other", blocks, iterations=4, pairing=PUBLISHED)
    for block in blocks:
        work(other, block, None, None)
    assert checksum_of(check_task(other)) == checksum_of(checked)
    assert task.incomplete() == []
    run = run_row(dataclasses.replace(task, run="gnu-parallel/disk/2/1"), records_of(task), {}, None)
    assert run["valid"] == "invalid: its output was not checked; at most 1 block ran at once, not 2"
    last = task.file(blocks[0], 4)
    *content, voxel = last.read_bytes()
    last.write_bytes(bytes([*content, voxel ^ 1]))
    assert [one.equal for one in check_task(task)] == [False, True, True]


def test_a_run_that_was_suspended_is_invalid(tmp_path: Path) -> None:
    (block,) = make(tmp_path, count=1)
    task = task_of(tmp_path, (block,), delay_s=1)
    command = [sys.executable, "-m", "neurotier.bigbrain.engines.worker", str(plan_of(task)), block.block, "1"]
    process = subprocess.Popen([*command, str(tmp_path / "log")], env=JOB_ENVIRONMENT)
    wait_for(task.file(block, 1).exists, process)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGCONT)
    assert process.wait() == 0
    run = run_row(task, records_of(task), {}, None)
    assert run["valid"] == "invalid: its output was not checked; it was suspended and resumed"


def random_voxels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 16, (13, 11, 7), dtype=np.uint16)


@pytest.mark.parametrize("extension", ["nii", "nii.gz"])
def test_blocks_of_a_folder_are_copied_as_they_are_and_packed_ones_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str
) -> None:
    monkeypatch.setattr("neurotier.bigbrain.blocks.sources.PIECE_BYTES", 500)
    given = [save(tmp_path / "given" / f"part_{n}.{extension}", random_voxels(n)) for n in range(2)]
    for left in ("given/folder.nii", "blocks/folder"):
        (tmp_path / left).mkdir(parents=True)
    blocks = make(tmp_path, source=str(tmp_path / "given"))
    assert [shown(block, "block shape dtype") for block in blocks] == ["part_0 13x11x7 <u2", "part_1 13x11x7 <u2"]
    task = task_of(tmp_path, blocks)
    for file, block in zip(given, blocks, strict=True):
        content = file.read_bytes()
        assert Path(block.file).read_bytes() == (gzip.decompress(content) if extension == "nii.gz" else content)
        work(task, block, None, None)
    assert all(one.equal for one in check_task(task))


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
    packed = bad.read_bytes()
    content = gzip.decompress(packed)
    damaged = {
        "cut": packed[:-1000],
        "bits": packed[:-1000] + bytes([packed[-1000] ^ 255]) + packed[-999:],
        "text": b"text",
        "short": gzip.compress(content[:2000]),
        "long": gzip.compress(content + b"0"),
        "scale": gzip.compress(content[:112] + np.float32(2).tobytes() + content[116:]),
    }
    bad.write_bytes(damaged[damage])
    with pytest.raises(InputError, match=f"^{re.escape(f'block b ({bad}): {line}')}"):
        make(tmp_path, source=str(tmp_path / "given"))
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
    configured = settings_at(bigbrain={"source": str(folder)})
    plan = BigBrainPlan(configured, Places.from_settings(configured))
    asked = plan.blocks_params(SimpleNamespace(tier="disk"))

    def refused(file: Path, line: str, **given: int) -> None:
        with pytest.raises(SourceError, match=rf"^block {file.name[:6]} \({file}\): its content is not here{line}"):
            make(tmp_path, source=str(folder), **given)

    refused(first, f", nor that of 2 more; datalad get {folder}")
    refused(first, f"; datalad get {first}", count=1)

    copy.get("blocks", result_renderer="disabled")
    blocks = make(tmp_path, source=str(folder))
    assert [np.array_equal(voxels(block.file), random_voxels(n)) for n, block in enumerate(blocks)] == [True] * 3
    assert plan.blocks_params(SimpleNamespace(tier="disk")) == asked  # fetching is no change

    second = folder / "part_1.nii.gz"
    copy.drop(str(second), result_renderer="disabled")
    refused(second, "; datalad get ")
    git(copy.pathobj, "annex", "unlock", str(second))  # now a pointer, no link
    assert second.is_file()
    refused(second, "; datalad get ")


def test_runs_that_are_through_stay_and_others_begin_anew(tmp_path: Path) -> None:
    """On a tier that each node has for itself, and on one that all share."""
    own = {"path": f"{tmp_path}/own/$JOB_OF_TEST", "kind": find_mount(tmp_path).kind, "node": True}
    small = {"count": 2, "scale": 0.03, "engines": ["gnu-parallel", "snakemake"], "parallelism": [1], "predict": False}

    moved = dict(own)

    def inner(**changes: Any) -> BigBrainPlan:
        asked, results = {**small, "tiers": ["own"], **changes}, "results/bigbrain/node"
        settings = settings_at(tmp_path, tiers={"own": own, "moved": moved}, bigbrain=asked, results=results)
        return BigBrainPlan(settings, Places.from_settings(settings))

    plan = inner()
    through, begun = (plan.places.bigbrain_run(run) for run in plan.runs)

    def stays(**changes: Any) -> bool:
        """Whether a run that is through is one of the changed configuration, too."""
        for folder in (through, begun):
            folder.mkdir(parents=True, exist_ok=True)
        (through / CHECKED).touch()
        changed = inner(**changes)
        forget_others(changed.settings, changed)
        return through.exists()

    assert not stays(), "nobody knows what it was"
    assert stays()
    assert stays(repetitions=3, parallelism=[1, 2], engines=["gnu-parallel"], tiers=["own", "disk"])
    forget_interrupted(plan)
    assert (through.exists(), begun.exists()) == (True, False)
    assert not stays(scale=0.04)
    for path, tiers, expected in (("1", ["own", "moved"], True), ("2", ["own"], True), ("2", ["own", "moved"], False)):
        moved["path"] = str(tmp_path / path)
        assert stays(scale=0.04, tiers=tiers) == expected, (path, tiers)
