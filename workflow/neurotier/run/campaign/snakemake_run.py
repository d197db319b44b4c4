"""A run of a condition: an ordinary run of this very workflow, with results of its own.

It is started twice: to have everything ready up to the participant jobs (dataset, index, images, tool), and, once
the page cache is as asked for, for the participant jobs themselves. A run that was killed is done again from its
beginning: half a run has no makespan.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from neurotier.analysis.needs import threads_of
from neurotier.core.errors import RunError
from neurotier.core.files import read_json, remove_tree, write_secret, write_text
from neurotier.core.installed import ROOT
from neurotier.core.kinds import is_in_memory
from neurotier.core.places import Places, short_hash
from neurotier.core.private import remove_empty, remove_private, user_name
from neurotier.core.processes import CAMPAIGN, RUN, current_run, end, marked, start_process
from neurotier.core.settings import Settings, TierSettings
from neurotier.core.tables import read_table
from neurotier.core.tiers import Tier, tiers_of
from neurotier.run.campaign.matrix import PlannedRun
from neurotier.run.campaign.outputs import checksums
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
KEPT = ("profile", "state", "index", "logs")


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes
    ----------
    cache
        The page cache before the participant jobs.
    row
        The run's row of ``runs.tsv``.
    problems
        Why the run does not count, beside what its row says.
    outputs
        Checksums of what it made, by path.
    taken_s
        How long all of it took, s.
    stopped
        Whether the run was told to stop from outside.
    killed
        Whether a job of it was killed: by somebody, or by the kernel for want of memory.
    """

    cache: CacheState
    row: Record
    problems: list[str]
    outputs: dict[str, str]
    taken_s: float
    stopped: bool = False
    killed: bool = False


def run_planned(planned: PlannedRun, settings: Settings, limits: Mapping[str, int], folder: Path, log: Path) -> Outcome:
    """Run one repetition of a condition; its records are below ``folder`` afterwards, under a hidden name.

    Parameters
    ----------
    planned
        What to run.
    settings
        Settings of the campaign.
    limits
        Snakemake resources that the jobs share.
    folder
        Where the records are to be: the caller renames the hidden folder once it has judged the run.
    log
        File that takes what Snakemake prints.

    Raises
    ------
    RunError
        If the run could not be begun, or left no trace.
    """
    started_s = time.monotonic()
    inner, file = inner_settings(planned, settings, folder)
    places = Places.from_settings(inner)
    remove_tree(places.results)
    write_text(log, "")
    arguments = inner_arguments(planned, inner, file, limits)
    if snakemake(["ready", *arguments], log) != 0:
        raise RunError("could not be made ready", where=str(planned.condition), fix=f"see {log}")
    cache = make_cache_ready(planned.condition.cache, inner, places, log)
    target = places.shortened(Path.cwd()).profile / "profile.tsv"
    snakemake([str(target), *arguments], log)
    facts = last_run(places)
    if facts is None:
        raise RunError("ended without analysing anyone", where=str(planned.condition), fix=f"see {log}")
    row, stopped = facts["row"], bool(facts.get("stopped_by"))
    begun = row["participants"] + row["failed"]  # of a job that was killed at once nothing is known
    killed = any(failure["exit_code"] > 128 for failure in read_failures(places)) or begun < len(participants(places))
    killed = killed or bool(facts.get("again"))
    outputs: dict[str, str] = {}
    for name in OUTPUTS:
        outputs |= {f"{name}/{path}": sum_ for path, sum_ in checksums(places.results / name).items()}
    keep_records(places, hidden(folder))
    return Outcome(cache, row, problems_of(planned, cache, row), outputs, time.monotonic() - started_s, stopped, killed)


def inner_settings(planned: PlannedRun, settings: Settings, folder: Path) -> tuple[Settings, Path]:
    """The run's own settings, and the configuration file that says them."""
    results = inner_results(Places.from_settings(settings)) / f"{planned.name}_{planned.repetition}"
    tiers = {name: here(tier, settings.tiers[name]) for name, tier in planned.configuration["tiers"].items()}
    configuration = {**planned.configuration, "tiers": tiers, "results": str(results)}
    file = folder.with_name(f".{folder.name}.yaml")
    write_secret(file, f"# {planned.condition}\n" + yaml.safe_dump(configuration, sort_keys=False))
    return Settings.from_config(configuration, settings.in_containers), file


def here(given: Mapping[str, Any], settings: TierSettings) -> dict[str, Any]:
    """A tier as a run on this machine has it: that of each node is the one of the node that the campaign is on."""
    if not settings.node:
        return dict(given)
    return {**given, "path": str(Tier.from_settings(settings).here().path), "node": False}


def inner_results(places: Places) -> Path:
    """Where the runs of a campaign have their results meanwhile, below the path of any tier."""
    return Path(f"neurotier-{user_name()}", "campaign", short_hash(str(places.results)))


def remove_inner_results(planned: Sequence[PlannedRun], settings: Settings, places: Places) -> None:
    """Remove what runs that were killed have left on the tiers, and the folders for it."""
    for name in {run.configuration["placement"]["results"] for run in planned}:
        tier = Tier.from_settings(settings.tiers[name])
        tier.refuse_planted()
        remove_private(tier.path / inner_results(places))
        remove_empty(tier.path / inner_results(places).parent)


def inner_arguments(planned: PlannedRun, inner: Settings, file: Path, limits: Mapping[str, int]) -> list[str]:
    """Arguments of the inner Snakemake."""
    words = [*ALONE, "--drop-metadata", "--cores", str(planned.condition.parallelism * threads_of(inner))]
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


def last_run(places: Places) -> Record | None:
    """Facts of the run that analysed or failed someone; the one that made ready has no row."""
    runs = [read_json(file) for file in sorted(places.runs.glob("*.json"))]
    return next((facts for facts in reversed(runs) if facts.get("row") is not None), None)


def problems_of(planned: PlannedRun, cache: CacheState, row: Record) -> list[str]:
    """Why a run does not show what its condition says."""
    problems = [cache.problem] if cache.problem else []
    possible = min(planned.condition.parallelism, row["participants"] + row["failed"])
    if row["peak_parallelism"] < possible:
        reached = f"{row['peak_parallelism']} of {possible} jobs at most ran at once"
        problems.append(f"{reached}: {row['limited_by']}" if row["limited_by"] else reached)
    return problems


def keep_records(places: Places, folder: Path) -> None:
    """Move what a run leaves from its results folder to the campaign's, and remove the rest."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in KEPT:
        if (places.results / name).exists():
            shutil.move(places.results / name, folder / name)
    remove_tree(places.results)


def hidden(folder: Path) -> Path:
    """The name of a run's folder while it is not complete."""
    return folder.with_name(f".{folder.name}.partial")
