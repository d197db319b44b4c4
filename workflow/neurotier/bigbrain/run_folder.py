"""The folder of a run in the results: its plan when it begins, and what its engine and its check leave in it."""

from __future__ import annotations

import shutil
import socket
from dataclasses import asdict, replace
from pathlib import Path

from neurotier.bigbrain.checking import Checked, checksum_of
from neurotier.bigbrain.engines.numa import NOTICE, ONE_NODE
from neurotier.bigbrain.engines.spark_events import DRIVERS
from neurotier.bigbrain.plan import CHECKED, FINISHED, BigBrainPlan, is_calibration
from neurotier.bigbrain.room import ensure_blocks, make_blocks, make_room
from neurotier.bigbrain.tasks import Task
from neurotier.core.files import write_json
from neurotier.core.kinds import is_in_memory
from neurotier.core.processes import current_run
from neurotier.storage.page_cache import prepare_cache


def begin(plan: BigBrainPlan, run: str, file: Path) -> None:
    """Write the plan of a run, and make room: remove what it left earlier, and checked blocks that are not kept.

    Parameters
    ----------
    plan
        The incrementation.
    run
        ``ENGINE/TIER/PARALLELISM/REPETITION``.
    file
        ``plan.json`` in the run's folder.
    """
    for left in (FINISHED, CHECKED):  # of another plan
        file.with_name(left).unlink(missing_ok=True)
    task = replace(plan.task(run), attempt=current_run(), host=socket.gethostname())
    plan.tier(task.tier).claim()
    forget(task, file.parent)
    shutil.rmtree(task.folder, ignore_errors=True)
    make_room(plan)
    if is_calibration(run):
        task = replace(task, blocks=tuple(make_blocks(plan.source(run), plan.blocks_folder(run), task.tier)))
    task = replace(task, blocks=ensure_blocks(plan, task))
    files = [Path(block.file) for block in task.blocks]
    # a calibration tells what is spent besides reading: where reading is within incrementing, it must cost little
    asked = "warm" if is_calibration(run) else plan.settings.bigbrain.cache
    cache = prepare_cache(asked, files, [], in_memory=is_in_memory(plan.tier(task.tier).kind), programs=False)
    if task.pinned == ONE_NODE:
        print(NOTICE)
    write_json(file, asdict(replace(task, cache=cache.state, cache_problem=cache.problem)))


def forget(task: Task, folder: Path) -> None:
    """Remove what a run left in its folder of the results."""
    shutil.rmtree(task.records, ignore_errors=True)
    shutil.rmtree(folder / DRIVERS, ignore_errors=True)


def take_up(plan: BigBrainPlan, file: Path) -> None:
    """Prepare a run whose engine is about to start, or to resume.

    An interrupted calibration begins again: the time between two starts would be taken for the engine's.

    Parameters
    ----------
    plan
        The incrementation.
    file
        ``plan.json`` in the run's folder.
    """
    task = Task.load(file)
    if is_calibration(task.run):
        forget(task, file.parent)
        ensure_blocks(plan, task)


def write_checked(checked: list[Checked], file: Path) -> None:
    """Write what the check of a run found for each block, and one checksum of all."""
    write_json(file, {"sha256": checksum_of(checked), "blocks": [asdict(one) for one in checked]})
