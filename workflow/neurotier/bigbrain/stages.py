"""Stages of the incrementation: what the scripts of its rules do."""

from __future__ import annotations

import itertools
import shutil
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neurotier.analysis.work import remove_empty
from neurotier.bigbrain.blocks.making import make_blocks
from neurotier.bigbrain.blocks.sources import source_of
from neurotier.bigbrain.calibration import learn
from neurotier.bigbrain.checking import check_task, checksum_of
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.numa import NOTICE, ONE_NODE
from neurotier.bigbrain.engines.spark_events import DRIVERS, drivers_of, read_events, spark_rows
from neurotier.bigbrain.plan import BigBrainPlan, is_calibration
from neurotier.bigbrain.predictions import Known, rows_of
from neurotier.bigbrain.tabulation import outputs_text, phase_rows, records_of, run_row
from neurotier.bigbrain.tasks import ALL, NONE, Task, size_of
from neurotier.campaign.page_cache import prepare_cache
from neurotier.errors import SourceError
from neurotier.files import read_json, write_json
from neurotier.places import Places
from neurotier.probe.access import IN_MEMORY
from neurotier.probe.machine import page_cache_here, processors_here, read_probed
from neurotier.report.quantities import seconds, size
from neurotier.settings import Settings
from neurotier.tables import write_table

PHASES, RUNS, SPARK, PREDICTIONS = "bigbrain_phases", "bigbrain_runs", "bigbrain_spark", "bigbrain_predictions"
FINISHED, CHECKED = "finished.json", "checked.json"


def make(settings: Settings, places: Places, tier: str, say: Callable[[str], None]) -> None:
    """Make the blocks on a tier, and their manifest."""
    plan = BigBrainPlan(settings, places)
    source, folder = source_of(settings.bigbrain), plan.folder(plan.tier(tier)) / "blocks"
    shutil.rmtree(folder, ignore_errors=True)
    needed, free = plan.needed_bytes(source), plan.tier(tier).free_bytes()
    if needed > free:  # said, and tried: a file system that compresses may hold more than it seems
        what = f"the blocks and what runs make of them need {size(needed)} at a time, and {size(free)} are free"
        say(f"Tier {tier!r} will be full before the end: {what}")
    blocks = make_blocks(source, folder, tier, print)
    write_table(places.bigbrain_blocks(tier), "bigbrain_blocks", map(asdict, blocks))


def ensure_blocks(plan: BigBrainPlan, task: Task) -> None:
    """Make the blocks again where their tier has lost them: a tmpfs after a reboot, or an earlier run was through.

    Raises
    ------
    SourceError
        If they are not what they were any more.
    """
    if all(size_of(Path(block.file)) == block.bytes for block in task.blocks):
        return
    folder = plan.blocks_folder(task.run)
    if tuple(make_blocks(plan.source(task.run), folder, task.tier, print)) != task.blocks:
        raise SourceError(
            "its blocks were lost from their tier, and the source has changed since they were made",
            where=f"bigbrain.source {plan.settings.bigbrain.source!r}",
            fix="start with --forcerun make_blocks",
        )


def begin(settings: Settings, places: Places, run: str) -> None:
    """Write the plan of a run, and make room: what it left earlier goes, and what was checked and is not kept."""
    plan = BigBrainPlan(settings, places)
    task = plan.task(run)
    shutil.rmtree(task.folder, ignore_errors=True)
    shutil.rmtree(task.records, ignore_errors=True)
    shutil.rmtree(places.bigbrain_run(run) / DRIVERS, ignore_errors=True)
    for left in (FINISHED, CHECKED):  # of another plan
        (places.bigbrain_run(run) / left).unlink(missing_ok=True)
    make_room(plan)
    if is_calibration(run):
        blocks = make_blocks(plan.source(run), plan.blocks_folder(run), task.tier, print)
        task = replace(task, blocks=tuple(blocks))
    ensure_blocks(plan, task)
    files = [Path(block.file) for block in task.blocks]
    asked = settings.bigbrain.cache
    cache = prepare_cache(asked, files, [], in_memory=plan.tier(task.tier).kind in IN_MEMORY, programs=False)
    task = replace(task, cache=cache.state, cache_problem=cache.problem)
    if task.pinned == ONE_NODE:
        print(NOTICE)
    write_json(places.bigbrain_run(run) / "plan.json", task.to_json())


def make_room(plan: BigBrainPlan) -> None:
    """Remove what checked runs wrote, as far as it is not to be kept."""
    for run in checked_runs(plan):
        folder = plan.places.bigbrain_run(run)
        task = Task.load(folder / "plan.json")
        if task.keep == NONE:
            shutil.rmtree(task.folder, ignore_errors=True)
        if is_calibration(run):
            shutil.rmtree(plan.blocks_folder(run), ignore_errors=True)
        for iteration in range(1, task.iterations) if task.keep != ALL else ():
            shutil.rmtree(Path(task.folder, str(iteration)), ignore_errors=True)


def remove_blocks(plan: BigBrainPlan) -> None:
    """Remove the blocks, too, once all runs are checked; a run that is asked for later makes them again."""
    if checked_runs(plan) == plan.order and plan.settings.bigbrain.keep == NONE:
        for name in plan.tiers:
            shutil.rmtree(plan.folder(plan.tier(name)), ignore_errors=True)
            remove_empty(plan.folder(plan.tier(name)).parent)


def checked_runs(plan: BigBrainPlan) -> list[str]:
    """Runs that are through."""
    return [run for run in plan.order if plan.checked(run).exists()]


def increment_with_gnu_parallel(places: Places, run: str) -> None:
    """Run the engine ``gnu-parallel``."""
    folder = places.bigbrain_run(run)
    joblog = run_gnu_parallel(folder / "plan.json", places.logs / "run_gnu_parallel" / run)
    write_json(folder / FINISHED, {"joblog": str(joblog)})


def increment_with_spark(settings: Settings, places: Places, run: str) -> None:
    """Run the engine ``spark``."""
    from neurotier.bigbrain.engines.spark import run_spark

    folder = places.bigbrain_run(run)
    asked = settings.bigbrain
    driver = run_spark(folder / "plan.json", places.logs / "run_spark" / run, asked.spark_master, asked.spark_options)
    garbage_s = [one.garbage_s for one in read_events(Path(driver.events)).tasks]
    write_json(folder / FINISHED, {"driver": asdict(driver) | {"garbage_s": garbage_s}})


def check(places: Places, run: str, say: Callable[[str], None]) -> None:
    """Check what a run wrote."""
    checked = check_task(Task.load(places.bigbrain_run(run) / "plan.json"), say)
    found = {"sha256": checksum_of(checked), "blocks": [asdict(one) for one in checked]}
    write_json(places.bigbrain_run(run) / CHECKED, found)


def predict(settings: Settings, places: Places) -> None:
    """Write what the model predicts for every condition; nothing if that is not asked for."""
    plan, asked = BigBrainPlan(settings, places), settings.bigbrain
    processors, page_cache = processors_here(1, others=0.0), page_cache_here(0.0)
    learned = {}
    for run in plan.calibrations:
        task = Task.load(places.bigbrain_run(run) / "plan.json")
        finished = read_if_there(places.bigbrain_run(run) / FINISHED)
        learned[task.engine, task.parallelism] = learn(task, records_of(task), finished, processors)
    probes = {tier: read_probed(places.probed(tier)) for tier in plan.tiers} if asked.predict else {}
    rows = []
    for tier, parallelism, engine in itertools.product(probes, asked.parallelism, asked.engines):
        known = Known(asked, plan.manifest(tier), probes, processors, page_cache)
        rows += rows_of(known, engine, tier, parallelism, learned[engine, parallelism])
    write_table(places.bigbrain / f"{PREDICTIONS}.tsv", PREDICTIONS, rows)


def compare(settings: Settings, places: Places) -> None:
    """Write the table of conditions."""
    from neurotier.bigbrain.report.collect import write_conditions

    write_conditions(places, socket.gethostname(), with_published=settings.published is not None)


def draw(places: Places) -> None:
    """Draw the figures of all runs."""
    from neurotier.bigbrain.report.collect import read_collected
    from neurotier.bigbrain.report.figures import draw_all

    draw_all(read_collected(places), places.bigbrain / "figures")


def write_page(places: Places) -> list[str]:
    """Write the page; what it says, and where it is."""
    from neurotier.bigbrain.report import page, verdict
    from neurotier.bigbrain.report.collect import read_collected

    collected, file = read_collected(places), places.results / "bigbrain.html"
    page.write_page(collected, places.bigbrain, file)
    said = verdict.judge(collected.conditions, collected.runs)
    return [*said.told(), f"Report: {places.shortened(Path.cwd()).results / file.name}"]


def write_partial(settings: Settings, places: Places) -> list[str]:
    """All that is told of the runs that are there, after one that failed."""
    told = tabulate(settings, places)
    compare(settings, places)
    draw(places)
    return [*told, *write_page(places)]


def read_if_there(file: Path) -> dict[str, Any]:
    """What a JSON file says; nothing while it is not there."""
    return dict(read_json(file)) if file.exists() else {}


def tabulate(settings: Settings, places: Places) -> list[str]:
    """Write the tables of all runs that have begun; a line about each, and one about their output."""
    plan = BigBrainPlan(settings, places)
    phases, rows, spark = [], [], []
    for folder in map(places.bigbrain_run, plan.runs):
        if (folder / "plan.json").exists():
            task = Task.load(folder / "plan.json")
            records = records_of(task)
            phases += phase_rows(task, records)
            spark += spark_rows(task, drivers_of(folder), records)
            rows.append(run_row(task, records, read_if_there(folder / CHECKED), read_if_there(folder / FINISHED)))
    write_table(places.bigbrain / f"{PHASES}.tsv", PHASES, phases)
    write_table(places.bigbrain / f"{RUNS}.tsv", RUNS, rows)
    write_table(places.bigbrain / f"{SPARK}.tsv", SPARK, spark)
    make_room(plan)
    remove_blocks(plan)
    told = [
        f"BigBrain: {row['engine']} on {row['tier']}, {row['parallelism']} at once, repetition {row['repetition']}: "
        + (seconds(row["makespan_s"]) if row["valid"] == "valid" else row["valid"])
        for row in rows
    ]
    if any(row["pinned"] == ONE_NODE for row in rows):
        told.append(NOTICE)
    same = outputs_text(rows)
    return [*told, f"BigBrain: {same}"] if same else told
