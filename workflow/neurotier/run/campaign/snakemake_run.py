"""The runs of a campaign in turn, those that are there left out: each an ordinary run with results of its own.

All are one job of the outer Snakemake and not one job a run: a shuffled order cannot be said in rules, whose priorities
hold for all their jobs, and runs must never overlap. A run is started twice: to have everything ready up to the
participant jobs (dataset, index, images, tool), and, once the page cache is as asked for, for the participant jobs
themselves. A run that was killed is done again from its beginning: half a run has no makespan. What is kept of it,
``campaign/runs/CONDITION/REPETITION``, is a folder that appears by a rename.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from neurotier.analysis.needs import threads_of
from neurotier.containers.shelf import sha256
from neurotier.core.errors import NeurotierError, RunError
from neurotier.core.files import (
    flush_folder,
    flush_tree,
    partial_of,
    read_json,
    remove_tree,
    rename_durably,
    whole_json,
    write_json,
    write_secret,
    write_text,
)
from neurotier.core.installed import ROOT
from neurotier.core.kinds import is_in_memory
from neurotier.core.places import Places, short_hash
from neurotier.core.private import private_folder, remove_empty, remove_private
from neurotier.core.processes import CAMPAIGN, RUN, current_run, end, marked, start_process
from neurotier.core.quantities import counted, seconds
from neurotier.core.settings import Settings, TierSettings
from neurotier.core.tables import read_table
from neurotier.core.tiers import Tier, tiers_of
from neurotier.run.campaign.matrix import Campaign, PlannedRun
from neurotier.run.conditions import valid_unless
from neurotier.run.disturbance import DISTURBED
from neurotier.run.jobs import image_store, load_dataset, read_failures
from neurotier.run.participants import participants
from neurotier.run.profile_tables import Record
from neurotier.storage.page_cache import CacheState, prepare_cache

SNAKEFILE = ROOT / "workflow" / "Snakefile"
ALONE = (
    *("--snakefile", str(SNAKEFILE), "--workflow-profile", "none", "--scheduler", "greedy"),
    *("--keep-going", "--nolock", "--replace-workflow-config"),
)
"""Arguments of an inner Snakemake, whose file is its whole configuration, without a profile of the outer one."""

OWN_VARIABLES = (RUN, "SNAKEMAKE_PROFILE")
"""Environment variables of the outer run that would change an inner one."""

OUTPUTS = ("derivatives", "app")
"""Folders whose contents are the same on every tier, or the run is invalid."""

UNTOLD = {".snakemake_timestamp"}
"""Files that Snakemake leaves in folders, with a time in them."""

KEPT = ("profile", "state", "index", "logs")


def run_planned(campaign: Campaign, run: PlannedRun) -> Record:
    """Run one repetition of a condition, and keep its records; what is noted of it.

    Raises
    ------
    RunError
        If the run could not be begun, or left no trace.
    """
    started_s, condition = time.monotonic(), run.condition
    log = campaign.places.logs / "run_campaign" / run.name / f"{run.repetition}.log"
    folder, settings = campaign.folder(run), campaign.settings
    results, file = (
        inner_results(campaign.places) / f"{run.name}_{run.repetition}",
        folder.with_name(f".{folder.name}.yaml"),
    )
    inner = inner_settings(run.configuration, settings, results, file, settings.in_containers)
    places = Places.from_settings(inner)
    remove_tree(places.results)
    write_text(log, "")
    arguments = inner_arguments(run, inner, file, campaign.limits)
    if snakemake(["ready", *arguments], log) != 0:
        raise RunError("could not be made ready", where=str(condition), fix=f"see {log}")
    cache = make_cache_ready(condition.cache, inner, places, log)
    target = places.shortened(Path.cwd()).profile / "profile.tsv"
    snakemake([str(target), *arguments], log)
    # The run that made ready has no row.
    rows = [facts for facts in map(read_json, sorted(places.runs.glob("*.json"))) if facts.get("row") is not None]
    if not rows:
        raise RunError("ended without analysing anyone", where=str(condition), fix=f"see {log}")
    facts = rows[-1]
    row, stopped = facts["row"], bool(facts.get("stopped_by"))
    begun = row["participants"] + row["failed"]  # of a job that was killed at once nothing is known
    killed = any(failure["exit_code"] > 128 for failure in read_failures(places)) or begun < len(participants(places))
    outputs = {
        path.relative_to(places.results).as_posix(): sha256(path)
        for name in OUTPUTS
        for path in sorted((places.results / name).rglob("*"))
        if path.is_file() and path.name not in UNTOLD
    }
    keep_records(places, partial_of(folder))
    taken_s = time.monotonic() - started_s
    kept = keep_run(campaign, run, row, cache, outputs, taken_s, killed or bool(facts.get("again")), stopped)
    file.unlink(missing_ok=True)
    return kept


def inner_settings(
    given: Mapping[str, Any], outer: Settings, results: Path, file: Path, in_containers: bool = False
) -> Settings:
    """The settings of an inner run, whose tiers are those that this machine has; ``file`` takes its configuration."""
    tiers = {name: here(tier, outer.tiers[name]) for name, tier in given["tiers"].items()}
    configuration = {**given, "tiers": tiers, "results": str(results)}
    write_secret(file, yaml.safe_dump(configuration, sort_keys=False))
    return Settings.from_config(configuration, in_containers)


def here(given: Mapping[str, Any], settings: TierSettings) -> dict[str, Any]:
    """A tier as a run on this machine has it: that of each node is the one of the node that the campaign is on."""
    if not settings.node:
        return dict(given)
    return {**given, "path": str(Tier.from_settings(settings).here().path), "node": False}


def inner_results(places: Places) -> Path:
    """Where the runs of a campaign have their results meanwhile, below the path of any tier."""
    return private_folder(Path()) / "campaign" / short_hash(str(places.results))


def remove_inner_results(campaign: Campaign) -> None:
    """Remove what runs that were killed have left on the tiers, and the folders for it."""
    for name in {run.settings.placement["results"] for run in campaign.planned}:
        tier = Tier.from_settings(campaign.settings.tiers[name])
        tier.refuse_planted()
        folder = tier.path / inner_results(campaign.places)
        remove_private(folder)
        remove_empty(folder.parent)


def inner_arguments(run: PlannedRun, inner: Settings, file: Path, limits: Mapping[str, int]) -> list[str]:
    """Arguments of the inner Snakemake."""
    words = [*ALONE, "--drop-metadata", "--cores", str(run.condition.parallelism * threads_of(inner))]
    words += ["--sdm", "apptainer"] if inner.in_containers else []
    words += ["--resources", f"mem_mb={limits['mem_mb']}"] if "mem_mb" in limits else []
    return [*words, "--configfile", str(file)]


def snakemake(arguments: list[str], log: Path) -> int:
    """Run Snakemake with all that it prints in a log; its exit code. Nothing of it runs on when this returns or raises.

    A signal that ends this process ends it too: the way of jobs that were asked to, and not that of a run that fails.
    """
    environment = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
    environment[CAMPAIGN] = current_run()
    with log.open("a") as file:
        file.write(f"$ snakemake {' '.join(arguments)}\n")
        file.flush()
        try:
            inner = start_process(
                [sys.executable, "-m", "snakemake", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            return inner.wait()
        finally:
            end(marked(CAMPAIGN, [current_run()]))  # also jobs whose Snakemake was killed


def make_cache_ready(asked: str, inner: Settings, places: Places, log: Path) -> CacheState:
    """Bring the page cache into the state that is asked for."""
    dataset = load_dataset(places)
    inputs = [dataset.path / row["path"] for row in read_table(places.index / "images.tsv", "images")]
    tiers = tiers_of(inner)
    others: list[Path] = []
    if inner.image and not is_in_memory(tiers["images"].kind):
        images = image_store(inner, places, log, lambda _: None).images
        others = [path for path in images.rglob("*") if path.is_file() and not path.is_symlink()]
    return prepare_cache(asked, inputs, others, in_memory=is_in_memory(tiers["dataset"].kind))


def keep_records(places: Places, folder: Path) -> None:
    """Move what a run leaves from its results folder to the campaign's, and remove the rest."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in KEPT:
        if (places.results / name).exists():
            shutil.move(places.results / name, folder / name)
    remove_tree(places.results)


def keep_run(
    campaign: Campaign,
    run: PlannedRun,
    row: Record,
    cache: CacheState,
    outputs: Mapping[str, str],
    taken_s: float = 0.0,
    killed: bool = False,
    stopped: bool = False,
) -> Record:
    """Judge a run, note what it was, and let its folder appear; what was noted.

    Parameters
    ----------
    campaign, run
        Which run it was; its records are in the folder's unfinished form.
    row
        Its row of ``runs.tsv``.
    cache
        The page cache before the participant jobs.
    outputs
        Checksums of what it made, by path.
    taken_s
        How long all of it took, s.
    killed
        Whether a job of it was killed: by somebody, or by the kernel for want of memory. Once that is an accident, and
        the run is done again; twice is none.
    stopped
        Whether it was told to stop from outside.
    """
    folder, before = campaign.folder(run), campaign.condition_of(run)
    stopped = stopped or (killed and not (before and before.get("stopped")))
    problems = [cache.problem] if cache.problem else []
    possible, most = min(run.condition.parallelism, row["participants"] + row["failed"]), row["peak_parallelism"]
    if most < possible:
        because = f": {row['limited_by']}" if row["limited_by"] else ""
        problems.append(f"{most} of {possible} jobs at most ran at once{because}")
    # Nobody has failed, either, in a job that was killed before its participants began.
    if campaign.settings.campaign.compare_outputs and not (row["failed"] or killed or stopped):
        problems += differing(campaign, run, outputs)
    condition = {
        **asdict(run.condition),
        "repetition": run.repetition,
        "position": run.position,
        "valid": valid_unless(problems, row["valid"]),
        "cache_state": asdict(cache),
        "participants": row["participants"],
        "makespan_s": row["makespan_s"],
        "taken_s": taken_s,
        "stopped": stopped,
    }
    partial = partial_of(folder)
    write_json(partial / "condition.json", condition)
    flush_tree(partial)
    shutil.rmtree(folder, ignore_errors=True)  # an invalid one that was done again
    rename_durably(partial, folder)
    flush_folder(folder.parent.parent)
    return condition


def differing(campaign: Campaign, run: PlannedRun, outputs: Mapping[str, str]) -> list[str]:
    """What differs from the outputs of the first run of the same tool, if anything.

    The first run with all its participants is noted; if that cannot be read any more, the next one is.
    """
    file = campaign.places.campaign / "outputs" / f"{run.analysis}.json"
    first = whole_json(file)
    if first is None:
        write_json(file, {"of": str(run.condition), "checksums": outputs})
        return []
    names = {*outputs, *first["checksums"]}
    apart = sorted(name for name in names if outputs.get(name) != first["checksums"].get(name))
    found = f"outputs differ from those of {first['of']}: {len(apart)} of {len(names)} files, first "
    return [found + apart[0]] if apart else []


def walk(campaign: Campaign) -> None:
    """Run what is not there yet.

    Raises
    ------
    RunError
        At the end, if runs could not be done, or were stopped; those that are invalid are there, and said. At once if
        others disturb the first run, or two in a row: so they would the rest.
    """
    planned, say = campaign.planned, campaign.say
    remove_inner_results(campaign)
    left = campaign.to_do
    say(f"{len(planned) - len(left)} of {counted(len(planned), 'run')} are there, {len(left)} to do")
    failed: list[str] = []
    undisturbed = False
    try:
        for count, run in enumerate(left, start=1):
            rest = remaining(campaign, len(left) - count + 1)
            say(f"run {count} of {len(left)}: {run.condition}, repetition {run.repetition}{rest}")
            try:
                condition = run_planned(campaign, run)
            except (NeurotierError, OSError) as error:
                failed.append(str(error))
                say(f"  {error}")
                continue
            cache = condition["cache_state"]["action"]
            say(f"  {condition['valid']}, makespan {seconds(condition['makespan_s'])} (before it: {cache})")
            before, undisturbed = undisturbed, DISTURBED not in condition["valid"]
            if not (before or undisturbed):
                fix = "when they have ended, start the same command again with campaign.repeat_invalid set to true"
                raise RunError(f"others use this machine ({condition['valid']})", where="campaign", fix=fix)
    finally:
        remove_inner_results(campaign)
    if failed:
        raise RunError(f"{counted(len(failed), 'run')} could not be done: {failed[0]}", where="campaign")
    conditions = list(filter(None, map(campaign.condition_of, planned)))
    if stopped := sum(bool(condition.get("stopped")) for condition in conditions):
        problem = f"{counted(stopped, 'run')} stopped, in whole or in part"
        raise RunError(problem, where="campaign", fix="start the same command again: no other run is done again")
    invalid = len(planned) - sum(condition["valid"] == "valid" for condition in conditions)
    if invalid and campaign.settings.campaign.repeat_invalid:
        raise RunError(f"{counted(invalid, 'run')} invalid again", where="campaign", fix=f"see {campaign.places.logs}")
    if invalid:
        say(f"{counted(invalid, 'run')} left out of the comparison; campaign.repeat_invalid does invalid runs again")


def remaining(campaign: Campaign, left: int) -> str:
    """How long so many runs will take, from the runs that are there: each repetition has all conditions."""
    conditions = filter(None, map(campaign.condition_of, campaign.planned))
    taken_s = [condition["taken_s"] for condition in conditions]
    return f"; about {seconds(left * statistics.fmean(taken_s))} left" if taken_s else ""
