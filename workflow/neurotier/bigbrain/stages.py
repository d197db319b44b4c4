"""Stages of the incrementation: what the scripts of its rules do."""

from __future__ import annotations

import itertools
import shutil
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neurotier.bigbrain.blocks.making import make_blocks
from neurotier.bigbrain.blocks.sources import source_of
from neurotier.bigbrain.calibration import learn
from neurotier.bigbrain.checking import check_task, checksum_of
from neurotier.bigbrain.engines.gnu_parallel import run_gnu_parallel
from neurotier.bigbrain.engines.numa import NOTICE, ONE_NODE
from neurotier.bigbrain.engines.spark_events import DRIVERS, drivers_of, read_events, spark_rows
from neurotier.bigbrain.plan import BigBrainPlan, is_calibration
from neurotier.bigbrain.predictions import Known, rows_of
from neurotier.bigbrain.room import check_calibration_fits, ensure_blocks, make_room, remove_blocks
from neurotier.bigbrain.tabulation import outputs_text, phase_rows, records_of, run_row
from neurotier.bigbrain.tasks import Task
from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.quantities import seconds, size
from neurotier.core.settings import Settings
from neurotier.core.tables import write_table
from neurotier.model.this_machine import page_cache_here, processors_here, read_probed
from neurotier.storage.access import IN_MEMORY
from neurotier.storage.page_cache import prepare_cache

PHASES, RUNS, SPARK, PREDICTIONS = "bigbrain_phases", "bigbrain_runs", "bigbrain_spark", "bigbrain_predictions"
FINISHED, CHECKED = "finished.json", "checked.json"
RULES = ("make_blocks", "begin_increment", "increment_block", "run_gnu_parallel", "run_spark", "check_increment")
"""Rules whose failure is one of the incrementation."""


def make(settings: Settings, places: Places, tier: str, say: Callable[[str], None]) -> None:
    """Make the blocks on a tier, and their manifest."""
    plan = BigBrainPlan(settings, places)
    plan.tier(tier).claim()
    source, folder = source_of(settings.bigbrain), plan.folder(plan.tier(tier)) / "blocks"
    shutil.rmtree(folder, ignore_errors=True)
    needed, free = plan.needed_bytes(source), plan.tier(tier).free_bytes()
    if needed > free:  # said, and tried: a file system that compresses may hold more than it seems
        what = f"the blocks and what runs make of them need {size(needed)} at a time, and {size(free)} are free"
        say(f"Tier {tier!r} will be full before the end: {what}")
    blocks = make_blocks(source, folder, tier, print)
    write_table(places.bigbrain_blocks(tier), "bigbrain_blocks", map(asdict, blocks))


def begin(settings: Settings, places: Places, run: str) -> None:
    """Write the plan of a run, and make room: what it left earlier goes, and what was checked and is not kept."""
    plan = BigBrainPlan(settings, places)
    for left in (FINISHED, CHECKED):  # of another plan
        (places.bigbrain_run(run) / left).unlink(missing_ok=True)
    task = replace(plan.task(run), attempt=current_run())
    plan.tier(task.tier).claim()
    forget(task, places)
    shutil.rmtree(task.folder, ignore_errors=True)
    make_room(plan)
    if is_calibration(run):
        check_calibration_fits(plan, run)
        blocks = make_blocks(plan.source(run), plan.blocks_folder(run), task.tier, print)
        task = replace(task, blocks=tuple(blocks))
    ensure_blocks(plan, task)
    files = [Path(block.file) for block in task.blocks]
    # a calibration tells what is spent besides reading: where reading is within incrementing, it must cost little
    asked = "warm" if is_calibration(run) else settings.bigbrain.cache
    cache = prepare_cache(asked, files, [], in_memory=plan.tier(task.tier).kind in IN_MEMORY, programs=False)
    task = replace(task, cache=cache.state, cache_problem=cache.problem)
    if task.pinned == ONE_NODE:
        print(NOTICE)
    write_json(places.bigbrain_run(run) / "plan.json", task.to_json())


def forget(task: Task, places: Places) -> None:
    """Remove what a run has left in the results."""
    shutil.rmtree(task.records, ignore_errors=True)
    shutil.rmtree(places.bigbrain_run(task.run) / DRIVERS, ignore_errors=True)


def take_up(settings: Settings, places: Places, run: str) -> Path:
    """The plan of a run whose engine is to start, or to go on; a calibration that was interrupted begins anew, since
    what lies between two starts would be taken for the engine's."""
    plan = places.bigbrain_run(run) / "plan.json"
    task = Task.load(plan)
    if is_calibration(run):
        forget(task, places)
        ensure_blocks(BigBrainPlan(settings, places), task)
    return plan


def increment_with_gnu_parallel(settings: Settings, places: Places, run: str) -> None:
    """Run the engine ``gnu-parallel``."""
    joblog = run_gnu_parallel(take_up(settings, places, run), places.logs / "run_gnu_parallel" / run)
    write_json(places.bigbrain_run(run) / FINISHED, {"joblog": str(joblog)})


def increment_with_spark(settings: Settings, places: Places, run: str) -> None:
    """Run the engine ``spark``."""
    from neurotier.bigbrain.engines.spark import run_spark

    plan, asked = take_up(settings, places, run), settings.bigbrain
    driver = run_spark(plan, places.logs / "run_spark" / run, asked.spark_master, asked.spark_options)
    garbage_s = [one.garbage_s for one in read_events(Path(driver.events)).tasks]
    write_json(places.bigbrain_run(run) / FINISHED, {"driver": asdict(driver) | {"garbage_s": garbage_s}})


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
    from neurotier.pages.bigbrain.collect import write_conditions

    write_conditions(places, socket.gethostname(), with_published=settings.published is not None)


def draw(places: Places) -> None:
    """Draw the figures of all runs."""
    from neurotier.pages.bigbrain.collect import read_collected
    from neurotier.pages.bigbrain.figures import draw_all

    draw_all(read_collected(places), places.bigbrain / "figures")


def write_page(places: Places) -> list[str]:
    """Write the page; what it says, and where it is."""
    from neurotier.pages.bigbrain import page, verdict
    from neurotier.pages.bigbrain.collect import read_collected

    collected, file = read_collected(places), places.results / "bigbrain.html"
    page.write_page(collected, places.bigbrain, file)
    said = verdict.judge(collected.conditions, collected.runs)
    return [*said.told(), f"Report: {places.shortened(Path.cwd()).results / file.name}"]


def write_partial(settings: Settings, places: Places) -> list[str]:
    """All that is told of the runs that are there, after one that failed; nothing if none had a part in that.

    Predictions of other runs than these are removed.
    """
    begun = [places.bigbrain_run(run) / "plan.json" for run in BigBrainPlan(settings, places).order]
    newest = max((file.stat().st_mtime for file in begun if file.exists()), default=None)
    if newest is None or not had_a_part(places):
        return []
    predictions = places.bigbrain / f"{PREDICTIONS}.tsv"
    if predictions.exists() and predictions.stat().st_mtime < newest:
        predictions.unlink()
    told = tabulate(settings, places)
    compare(settings, places)
    draw(places)
    return [*told, *write_page(places)]


def had_a_part(places: Places) -> bool:
    """Whether this run of the workflow has done any job of the incrementation: each writes a log."""
    started_s = read_json(places.runs / f"{current_run()}.json")["started_s"]
    logs = [log for rule in RULES for log in (places.logs / rule).rglob("*.log")]
    return any(log.stat().st_mtime >= started_s for log in logs)


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
            drivers = drivers_of(folder)
            spark += spark_rows(task, drivers, records)
            left = read_if_there(folder / CHECKED), read_if_there(folder / FINISHED)
            rows.append(run_row(task, records, *left, starts=len(drivers)))
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
