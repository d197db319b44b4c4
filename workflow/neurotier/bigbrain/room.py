"""The blocks of the incrementation on its tiers: make them, provide them for runs, and remove them in time."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from neurotier.bigbrain.blocks.nifti import finish, new_block, shape_text
from neurotier.bigbrain.blocks.sources import Source, source_of
from neurotier.bigbrain.engines.numa import NOTICE, ONE_NODE
from neurotier.bigbrain.engines.spark_events import DRIVERS
from neurotier.bigbrain.plan import CALIBRATIONS, BigBrainPlan, is_calibration
from neurotier.bigbrain.tasks import ALL, NONE, Block, Task, size_of
from neurotier.core.errors import SourceError
from neurotier.core.files import remove_path, write_json
from neurotier.core.kinds import is_in_memory
from neurotier.core.private import remove_empty
from neurotier.core.quantities import size
from neurotier.core.settings import Say
from neurotier.storage.page_cache import prepare_cache


def make_blocks(source: Source, folder: Path, tier: str) -> list[Block]:
    """Write all blocks of a source to a folder, one at a time and piece by piece, so that none must fit in memory.

    Parameters
    ----------
    source
        The source of the blocks.
    folder
        The folder to write to; everything else in it is removed. The source may be this folder.
    tier
        Name of the folder's tier.

    Raises
    ------
    InputError
        If the source is not as it should be.
    TierError
        If the tier is full.
    """
    names, made = source.names(), []
    folder.mkdir(parents=True, exist_ok=True)
    for other in set(folder.iterdir()) - {folder / f"{name}.nii" for name in names}:
        remove_path(other)
    for number, name in enumerate(names, start=1):
        file, (layout, header, pieces) = folder / f"{name}.nii", source.block(name)
        checksum, shape = hashlib.sha256(header), shape_text(layout.shape)
        with new_block(file, layout.file_bytes, tier) as new:
            new.write(header)
            for piece in pieces:
                checksum.update(piece)
                new.write(piece)
            finish(new, file, layout.file_bytes)
        made.append(Block(name, str(file), shape, layout.dtype.str, layout.file_bytes, checksum.hexdigest()))
        print(f"Block {number} of {len(names)}: {name}, {shape}, {layout.file_bytes} bytes.")
    return made


def fill_tier(plan: BigBrainPlan, name: str, say: Say) -> list[Block]:
    """Make the blocks on a tier, replacing existing ones, and warn the user with ``say`` if they will not fit."""
    tier, source = plan.tier(name), source_of(plan.settings.bigbrain)
    tier.claim()
    folder = plan.folder(name) / "blocks"
    shutil.rmtree(folder, ignore_errors=True)
    needed, free = plan.needed_bytes(source), tier.usable_bytes()
    if needed > free:  # only a warning, since a file system that compresses may hold more than it seems
        problem = f"the blocks and what runs make of them need {size(needed)} at a time, and {size(free)} are free"
        say(f"Tier {name!r} will be full before the end: {problem}")
    return make_blocks(source, folder, name)


def ensure_blocks(plan: BigBrainPlan, task: Task) -> tuple[Block, ...]:
    """The blocks of a run at their present place; they are made if there are none yet, or if they were lost.

    A calibration has none before it begins. Blocks are lost when a machine with a tmpfs reboots, and they are removed
    when all runs are complete. On a cluster, the tier may have another path in each job.

    Raises
    ------
    SourceError
        If the new blocks differ from the lost ones.
    """
    folder = plan.blocks_folder(task.run)
    moved = tuple(replace(block, file=str(folder / Path(block.file).name)) for block in task.blocks)
    for blocks in (task.blocks, moved):
        if blocks and all(size_of(Path(block.file)) == block.bytes for block in blocks):
            return blocks
    made = tuple(make_blocks(plan.source(task.run), folder, task.tier))
    before, now = ([replace(block, file="") for block in blocks] for blocks in (task.blocks, made))
    if before not in ([], now):
        raise SourceError(
            "its blocks were lost from their tier, and the source has changed since they were made",
            f"bigbrain.source {plan.settings.bigbrain.source!r}",
            "start with --forcerun make_blocks",
        )
    return made


def make_room(plan: BigBrainPlan) -> None:
    """Remove blocks that checked runs wrote, unless they are to be kept, and the blocks of finished calibrations.

    Interrupted runs that the configuration no longer asks for are removed too; if it asks for one again, the run starts
    from the beginning. Once all runs are checked, the original blocks are removed as well, and a later run makes them.
    Blocks that runs of another configuration wrote and kept stay.
    """
    checked = [run for run in plan.order if plan.checked(run).exists()]
    for run in checked:
        task = Task.load(plan.places.bigbrain_run(run) / "plan.json")
        if task.keep == NONE:
            shutil.rmtree(task.folder, ignore_errors=True)
        for iteration in range(1, task.iterations) if task.keep != ALL else ():
            shutil.rmtree(Path(task.folder, str(iteration)), ignore_errors=True)
    to_come = {plan.blocks_folder(run) for run in plan.calibrations if not plan.checked(run).exists()}
    for name in plan.tiers:
        for folder in (plan.folder(name) / CALIBRATIONS).glob("*"):
            if folder not in to_come:
                shutil.rmtree(folder, ignore_errors=True)
        written = plan.folder(name) / "runs"
        for folder in written.glob("*/*/*/*"):
            run = folder.relative_to(written).as_posix()
            if run not in plan.order and not plan.checked(run).exists():
                shutil.rmtree(plan.places.bigbrain_run(run), ignore_errors=True)
                shutil.rmtree(folder, ignore_errors=True)
    if checked == plan.order and plan.settings.bigbrain.keep == NONE:
        for name in plan.tiers:
            folder = plan.folder(name)
            shutil.rmtree(folder / "blocks", ignore_errors=True)
            for left in sorted(folder.rglob("*"), reverse=True):  # subfolders before their parents
                with suppress(OSError):
                    left.rmdir()
            remove_empty(folder)


def begin_run(plan: BigBrainPlan, run: str, file: Path) -> None:
    """Begin a run: write its plan, and remove its earlier files and checked blocks that are not to be kept.

    Parameters
    ----------
    plan
        The incrementation.
    run
        ``ENGINE/TIER/PARALLELISM/REPETITION``.
    file
        ``plan.json`` in the run's folder.
    """
    shutil.rmtree(file.parent, ignore_errors=True)  # it belongs to an earlier plan
    task = plan.task(run)
    plan.tier(task.tier).claim()
    shutil.rmtree(task.folder, ignore_errors=True)
    make_room(plan)
    task = replace(task, blocks=ensure_blocks(plan, task))
    files = [Path(block.file) for block in task.blocks]
    asked, in_memory = plan.settings_of(run).cache, is_in_memory(plan.tier(task.tier).kind)
    cache = prepare_cache(asked, files, [], in_memory, programs=False)
    if task.pinned == ONE_NODE:
        print(NOTICE)
    write_json(file, asdict(replace(task, cache=cache.state, cache_problem=cache.problem)))


def prepare_run(plan: BigBrainPlan, file: Path) -> None:
    """Prepare a run whose engine is about to start or to resume.

    An interrupted calibration starts over, since the time between two starts would be taken for a cost of the engine.

    Parameters
    ----------
    plan
        The incrementation.
    file
        ``plan.json`` in the run's folder.
    """
    task = Task.load(file)
    if is_calibration(task.run):
        for left in (task.records, file.with_name(DRIVERS)):
            shutil.rmtree(left, ignore_errors=True)
        ensure_blocks(plan, task)
