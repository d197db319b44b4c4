"""Small blocks of the incrementation, and a run of them, for its tests."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import nibabel as nib
import numpy as np
from configured import settings_at
from neurotier.bigbrain.blocks.sources import source_of
from neurotier.bigbrain.room import make_blocks
from neurotier.bigbrain.tasks import NONE, STREAMING, Block, Task
from neurotier.core.settings import BigBrainSettings

SMALL = {"count": 3, "scale": 0.04}


def settings(**keys: object) -> BigBrainSettings:
    return settings_at(bigbrain={**SMALL, **keys}).bigbrain


def make(folder: Path, **keys: object) -> tuple[Block, ...]:
    """Blocks in a folder."""
    return tuple(make_blocks(source_of(settings(**keys)), folder / "blocks", "disk"))


def task_of(place: Path, blocks: tuple[Block, ...], **keys: object) -> Task:
    """A run in a place; one iteration, streaming, unless given otherwise."""
    task = Task(
        run="gnu-parallel/disk/1/1",
        tier="disk",
        folder=str(place / "written"),
        records=str(place / "records"),
        iterations=1,
        delay_s=0,
        pairing=STREAMING,
        fsync=False,
        keep=NONE,
        blocks=blocks,
    )
    return dataclasses.replace(task, **keys)  # type: ignore[arg-type]


def plan_of(task: Task) -> Path:
    """The plan of a run, written beside its records."""
    plan = Path(task.records).with_name("plan.json")
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps(dataclasses.asdict(task)))
    return plan


def voxels(file: Path | str) -> np.ndarray:
    return np.asanyarray(nib.load(file).dataobj)


def save(file: Path, data: np.ndarray) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, np.eye(4), dtype=data.dtype), file)
    return file
