"""Campaigns: plan the runs and their order, check that all of them are possible, and do them one after the other.

Each repetition is a block in random order (:func:`run_order`), so that a drift over time, such as a warmer machine or a
fuller disk, does not affect one tier more than others. A run is identified by what it measures, not by its place in the
order: tiers, parallelism or repetitions can be added later without repeating existing runs. A campaign takes hours, so
one that cannot fit is refused before its first run.

Each run is an ordinary run with its own results folder. All runs together are one job of the outer Snakemake: rules
cannot express a shuffled order, since a rule's priority holds for all its jobs, and runs must never overlap. Snakemake
is started twice for a run: first to prepare all that the participant jobs need (dataset, index, images, tool) and then,
with the page cache in the requested state, for the participant jobs themselves. A killed run is repeated as a whole,
since half a run has no makespan. What is kept of a run is in ``campaign/runs/CONDITION/REPETITION``, a folder that is
renamed into place when it is complete.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from neurotier.analysis.app import app_name
from neurotier.analysis.needs import threads_of, work_bytes
from neurotier.analysis.staging import manifest_of
from neurotier.analysis.tools import make_tool
from neurotier.core.configuration import WORKLOADS
from neurotier.core.errors import (
    InputError,
    RunError,
    SettingsError,
    StateError,
    TierError,
    ToolError,
    may_pass,
    one_line,
)
from neurotier.core.files import (
    Facts,
    Record,
    atomic_path,
    flush_folder,
    note,
    read_json_or_empty,
    remove_tree,
    without,
    write_json,
    write_secret,
    write_text,
)
from neurotier.core.installed import ROOT
from neurotier.core.parallelism import fits
from neurotier.core.places import Places, short_hash
from neurotier.core.private import clear, make_private, private_folder
from neurotier.core.processes import CAMPAIGN, RUN, current_run, end, marked, start_process
from neurotier.core.quantities import counted, seconds, size
from neurotier.core.settings import Say, Settings
from neurotier.core.tables import Rows, read_table
from neurotier.core.tiers import Tier, tier_named
from neurotier.dataset.bids import size_of
from neurotier.dataset.contents import is_present
from neurotier.run.adoption import last_facts
from neurotier.run.compared import OF_CAMPAIGN, VALID, Condition, valid_unless
from neurotier.run.disturbance import DISTURBED
from neurotier.run.jobs import EXTERNAL, clone_on, load_dataset, own_error, read_failures, settings_without_credentials
from neurotier.run.needs import Needs, largest, needs_of
from neurotier.run.participants import Selected, selected_in
from neurotier.run.plan import Plan
from neurotier.run.scripting import Context
from neurotier.storage.page_cache import CacheState, prepare_cache

APART = (
    "results",
    "report",
    "campaign",
    "comparison",
    "published",
    "probe",
    "advice",
    "shares",
    "node_class",
    "bigbrain",
    *WORKLOADS,
)
"""Sections that do not affect what a run measures; they are left out of its configuration."""

FETCHING = ("concurrent_gets", "get_attempts", "get_backoff_s", "drop", "validation", "ahead")
"""Keys of section ``dataset`` that do not affect it either: their steps are over, or skipped, when participant jobs
begin."""

PLACED = ("tiers", "placement", "in_containers")
"""Sections that do not affect the outputs of a run."""


class PlannedRun(NamedTuple):
    """One repetition of a condition.

    Attributes
    ----------
    position
        Place in the order, from 1.
    repetition
        Which repetition, from 1.
    condition
        What is run.
    configuration, settings
        Configuration of the run without its results folder, and the settings that were checked from it.
    identity
        Hash that differs between runs that measure different things, even under the same condition.
    analysis
        Hash that differs between runs whose outputs may differ.
    """

    position: int
    repetition: int
    condition: Condition
    configuration: Record
    settings: Settings
    identity: str
    analysis: str

    @property
    def name(self) -> str:
        """Name of the folder that holds all repetitions of this condition."""
        condition = self.condition
        cache = condition.cache.replace(" ", "-")
        return f"{condition.placement}_{condition.parallelism}_{cache}_{condition.tool}_{self.identity}"

    @property
    def folder(self) -> str:
        """Path of its folder below the campaign's ``runs``."""
        return f"{self.name}/{self.repetition}"


def conditions(settings: Settings) -> list[Condition]:
    """The conditions of a campaign, in the order of the configuration."""
    campaign = settings.campaign
    tools = [app_name(settings)] if settings.is_app else campaign.tools or [settings.tool.name]
    matrix = itertools.product(campaign.placements, campaign.parallelism, campaign.cache, tools)
    return [Condition(OF_CAMPAIGN, tool, cache, count, placement) for placement, count, cache, tool in matrix]


def configuration_of(base: Facts, settings: Settings, condition: Condition) -> Record:
    """The configuration of the runs of a condition, without their results folders; these runs do not drop images."""
    own = without(copy.deepcopy(base), *APART)
    own["dataset"] = {**(own.get("dataset") or {}), "source": settings.dataset.source, "drop": False}
    placed = settings.campaign.placements[condition.placement]
    own["placement"] = settings.placement | {role: tier for role, tier in placed.items() if tier is not None}
    own["tiers"] = {name: tier for name, tier in own["tiers"].items() if name in own["placement"].values()}
    if not settings.is_app:
        own["tool"] = {**(own.get("tool") or {}), "name": condition.tool}
    return own


def planned_runs(base: Facts, settings: Settings, places: Places, on_cluster: bool) -> list[PlannedRun]:
    """Every run of a campaign, in the order in which they are to be done.

    Parameters
    ----------
    base
        The configuration as given, without credentials of the source.
    settings, places
        The settings checked from it, and the places of the campaign. Its index must exist: with other images, runs have
        another identity.
    on_cluster
        Whether the runs are done on a node of a cluster, whose programs may differ from those of this machine.
    """
    made, versions = [], Record()
    index = (places.index / "images.sha256").read_text()
    for condition in conditions(settings):
        configuration = configuration_of(base, settings, condition)
        own = Settings.from_config(configuration, settings.in_containers)
        checked = settings_without_credentials(own)
        measured = without(checked, *APART, "validity") | {"analysis": Plan(own, places).analysis, "index": index}
        measured["dataset"] = without(checked["dataset"], *FETCHING)
        if own.dataset.source != "demo":
            del measured["demo"]
        if not (own.image or on_cluster):
            name = own.tool.name
            if name not in versions:
                versions[name] = ""  # stays empty if the tool is missing, which is reported before the first run
                with suppress(ToolError):
                    versions[name] = make_tool(own.tool).version()
            measured["version"] = versions[name]
        analysed = without(measured, *PLACED)
        identity, analysis = (short_hash(json.dumps(each, sort_keys=True)) for each in (measured, analysed))
        made.append((condition, configuration, own, identity, analysis))
    order = run_order(len(made), settings.campaign.repetitions, settings.campaign.seed)
    return [
        PlannedRun(position, repetition, *made[index]) for position, (repetition, index) in enumerate(order, start=1)
    ]


def is_planned(base: Facts, settings: Settings, places: Places, on_cluster: bool) -> bool:
    """Whether the existing plan, if any, lists the runs of :func:`planned_runs`."""
    with suppress(OSError, InputError):
        runs = {run.folder for run in planned_runs(base, settings, places, on_cluster)}
        try:
            return runs == {row["folder"] for row in read_table(places.campaign / "plan.tsv", "plan")}
        except StateError:  # the plan is damaged
            return False
    return True


def run_order(conditions: int, repetitions: int, seed: int) -> list[tuple[int, int]]:
    """Repetition and index of the condition of every run: random in odd repetitions, and reversed in even ones.

    If each repetition were shuffled independently, one of two conditions would come first in all of three repetitions
    in every fourth campaign, and a steady drift would look like a difference.

    >>> [index for _, index in run_order(3, 4, seed=1)]
    [2, 0, 1, 1, 0, 2, 0, 1, 2, 2, 1, 0]
    """
    order = []
    for repetition in range(1, repetitions + 1):
        drawn = np.random.default_rng([seed, (repetition + 1) // 2]).permutation(conditions).tolist()
        order += [(repetition, index) for index in (drawn if repetition % 2 else reversed(drawn))]
    return order


class Campaign(NamedTuple):
    """A campaign and what it works with.

    Attributes
    ----------
    planned
        Its runs, in the order in which they are done.
    settings, places
        Of the results folder that keeps it.
    limits
        Snakemake resources that the jobs of a run share.
    say
        Prints a line for the user.
    """

    planned: Sequence[PlannedRun]
    settings: Settings
    places: Places
    limits: Mapping[str, int]
    say: Say

    @classmethod
    def of_script(cls, context: Context) -> Campaign:
        """The campaign that a script works on."""
        settings, places, facts = context.settings, context.places, context.run_facts
        planned = planned_runs(context.params.configuration, settings, places, facts["elsewhere"])
        return cls(planned, settings, places, facts["limits"], context.say)

    def folder(self, run: PlannedRun) -> Path:
        """The folder with the records of a run."""
        return self.places.campaign / "runs" / run.folder

    def condition_of(self, run: PlannedRun) -> Record:
        """The conditions under which a run was done and its validity; empty if it is missing or no longer readable."""
        return read_json_or_empty(self.folder(run) / "condition.json")

    @property
    def to_do(self) -> list[PlannedRun]:
        """The runs that are still to be done. A run that was stopped, in whole or in part, is repeated: it says nothing
        about its condition."""
        return [
            run
            for run in self.planned
            if not (condition := self.condition_of(run))
            or condition.get("stopped")
            or (self.settings.campaign.repeat_invalid and condition["valid"] != VALID)
        ]


SCARCE = {
    "mem_mb": ("memory", "MB", "or add --resources mem_mb=N if the jobs need less than estimated"),
    "work_files": ("room for files on the work tier", "inodes", "remove files there, or leave its placements out"),
}
"""Resources that limit the parallelism: what each is called, its unit, and what else the user can do."""

RESULTS_FACTOR = 2
"""Bytes of results per byte of compressed input: the brain image, at most as large as the input, and what is kept with
it."""


def plan_rows(campaign: Campaign) -> Rows:
    """Rows of ``plan.tsv``."""
    return [
        {
            **without(vars(run.condition), "origin"),
            "position": run.position,
            "repetition": run.repetition,
            **{f"{role}_tier": tier for role, tier in run.settings.placement.items()},
            "folder": run.folder,
            "there": bool(campaign.condition_of(run)),
        }
        for run in campaign.planned
    ]


def check_campaign(campaign: Campaign) -> None:
    """Tell the user what will be done, and refuse what is impossible; runs that exist are not checked.

    Raises
    ------
    TierError
        If a tier is missing, not what it is declared to be, or has no room.
    SettingsError
        If the requested parallelism or a placement is impossible.
    """
    settings, planned, say = campaign.settings, campaign.planned, campaign.say
    people = selected_in(campaign.places)
    kinds = counted(len({run.condition for run in planned}), "condition")
    counts = f"{counted(len(planned), 'run')} of {counted(len(people), 'participant')}"
    say(
        f"Campaign: {counts} ({kinds}, {counted(settings.campaign.repetitions, 'time')}, seed {settings.campaign.seed})"
    )
    tiers = {run.settings.placement["dataset"] for run in planned}
    if load_dataset(campaign.places).kind == "folder" and len(tiers) > 1:
        raise SettingsError(
            f"the dataset is a plain folder, which is read where it lies, and cannot be on {len(tiers)} tiers",
            "config key campaign.placements",
            "place the role dataset on one tier, or make the folder a DataLad dataset",
        )
    left = list({run.condition: run for run in campaign.to_do}.values())
    for name, roles in needs(campaign, left, people).items():
        tier = tier_named(settings, name).here()
        tier.check()
        check_room(tier, roles, say)
    for run in left:
        check_parallelism(run, campaign, people)


def needs(campaign: Campaign, left: Iterable[PlannedRun], people: Selected) -> dict[str, dict[str, int]]:
    """For each tier, the most bytes that each role there still needs at the same time, without container images.

    ``left`` has one run for each condition that is not done.
    """
    settings, images = campaign.settings, [image for own in people.values() for image in own]
    needed: dict[str, dict[str, int]] = {}
    for run in left:
        each, tiers = [work_bytes(own, run.settings) for own in people.values()], run.settings.placement
        clone = clone_on(settings, campaign.places, tiers["dataset"])  # or the plain folder itself
        missing = (image for image in images if not is_present(clone, image.path, settings.dataset.links_to))
        for role, count in (
            ("dataset", size_of(missing)),
            ("work", largest(each, run.condition.parallelism)),
            ("results", RESULTS_FACTOR * size_of(images)),
        ):
            roles = needed.setdefault(tiers[role], {})
            roles[role] = max(count, roles.get(role, 0))
    return needed


def check_room(tier: Tier, roles: Mapping[str, int], say: Say) -> None:
    """Tell the user what a tier will hold, and refuse if it has no room."""
    needed, free = sum(roles.values()), tier.usable_bytes()
    parts = ", ".join(f"{role} {size(count)}" for role, count in roles.items())
    say(f"  tier {tier.name}: {parts} at most; {size(free)} free")
    if needed > free:
        raise TierError(
            f"the campaign needs {size(needed)} there ({parts}), and {size(free)} are free",
            f"tier {tier.name!r}",
            "make room, lower campaign.parallelism, or leave its placements out",
        )


def check_parallelism(run: PlannedRun, campaign: Campaign, people: Selected) -> None:
    """Refuse a parallelism that cannot be reached: a figure labelled 'at 96' must not come from 60 jobs at once."""
    asked, where = run.condition.parallelism, "config key campaign.parallelism"
    if asked > len(people):
        raise SettingsError(
            f"only {counted(len(people), 'participant')} could run, not {asked} at once",
            where,
            f"lower it to at most {len(people)}, or select more participants",
        )
    own = Needs(run.settings, campaign.places, on_cluster=False)
    limits = {"work_files": own.room.get("work_files"), "mem_mb": campaign.limits.get("mem_mb")}
    known = {resource: limit for resource, limit in limits.items() if limit is not None}
    for resource, room in fits(known, needs_of(own, people)).items():
        if room < asked:
            what, unit, fix = SCARCE[resource]
            raise SettingsError(
                f"{asked} at once need more {what} than there is: {room} fit into {known[resource]:,} {unit}",
                where,
                f"lower it, {fix}",
            )


# The runs.

ALONE = (
    "--snakefile",
    ROOT / "workflow" / "Snakefile",
    "--workflow-profile",
    "none",
    "--scheduler",
    "greedy",
    "--keep-going",
    "--nolock",
    "--replace-workflow-config",
)
"""Arguments of an inner Snakemake: its configuration file is complete, and no profile of the outer one applies."""

OWN_VARIABLES = (RUN, "SNAKEMAKE_PROFILE")
"""Environment variables of the outer run that would change an inner one."""

OUTPUTS = ("derivatives", "app")
"""Folders whose contents must be the same on every tier; otherwise the run is invalid."""

KEPT = ("profile", "state", "index", "logs")
"""What a campaign keeps of a run."""


def run_planned(campaign: Campaign, run: PlannedRun) -> Record:
    """Run one repetition of a condition, and keep its records; returns the content of its ``condition.json``.

    Raises
    ------
    RunError
        If the run could not be prepared, left no row in ``runs.tsv``, or has another dataset or disk than the campaign.
    """
    started_s, condition = time.monotonic(), run.condition
    log = campaign.places.logs / "run_campaign" / f"{run.folder}.log"
    folder, settings = campaign.folder(run), campaign.settings
    results = inner_results(campaign.places) / f"{run.name}_{run.repetition}"
    file = folder.with_name(f".{folder.name}.yaml")
    inner = inner_settings(run.configuration, settings, results, file)
    places = Places.from_settings(inner)
    make_private(places.results.parent)
    # by its identity, a run recognises what a killed run left on a shared work tier, even on another node
    write_text(places.state / "identity", campaign.places.identity)
    write_text(log, "")
    arguments = [*ALONE, "--drop-metadata", "--configfile", file, "--cores", condition.parallelism * threads_of(inner)]
    if inner.in_containers:
        arguments += ["--sdm", "apptainer"]
    if "mem_mb" in campaign.limits:
        arguments += ["--resources", f"mem_mb={campaign.limits['mem_mb']}"]

    def failed(what: str) -> RunError:
        return RunError(": ".join(filter(None, [what, last_message(log)])), condition, f"see {log}")

    if snakemake(["ready", *arguments], log) != 0:
        raise failed("could not be made ready")
    if (places.index / "images.sha256").read_text() != (campaign.places.index / "images.sha256").read_text():
        raise RunError(
            "the dataset is not the one that was indexed for the campaign any more",
            condition,
            "name dataset.version or, for a plain folder, start with --forcerun index_dataset",
        )
    mounts = {one["path"]: f"{one['mount_point']} ({one['fs_type']})" for one in last_facts(places)["tiers"].values()}
    for earlier in campaign.planned:
        for path, before in campaign.condition_of(earlier).get("mounts", {}).items():
            # the tier's disk is not mounted, so that the mount point's own folder is used, on another disk
            if mounts.get(path, before) != before and earlier not in campaign.to_do:
                raise RunError(
                    f"{path} is on {mounts[path]}, in earlier runs on {before}",
                    condition,
                    "mount it again, go on on a node that has it, or choose another results folder",
                )
    cache = make_cache_ready(condition.cache, inner, places)
    if cache.problem and cache.resident is None:  # only the images' owner can find out: no run would be valid
        raise RunError(cache.problem, condition, "copy the dataset, or set campaign.cache to [as found]")
    snakemake([places.shortened().profile / "profile.tsv", *arguments], log)
    facts = last_facts(places)  # the start that made everything ready has no row
    row, stopped = facts.get("row"), bool(facts.get("stopped_by"))
    if row is None:
        raise failed("ended without a row of its own")
    begun = row["participants"] + row["failed"]  # nothing is known of participants whose job was killed at once
    accident = any(may_pass(one["exit_code"]) for one in read_failures(places)) or begun < len(selected_in(places))
    outputs = {
        f"{name}/{path}": str(content)
        for name in OUTPUTS
        for path, (_, content) in manifest_of(places.results / name).items()
    }
    with atomic_path(folder) as partial:
        partial.mkdir(parents=True)
        for name in KEPT:
            if (places.results / name).exists():
                shutil.move(places.results / name, partial / name)
        (partial / "state" / "source").unlink(missing_ok=True)  # it may contain a token
        remove_tree(places.results)
        taken_s = time.monotonic() - started_s
        kept = condition_json(campaign, run, row, cache, outputs, taken_s, accident or facts["again"], stopped)
        write_json(partial / "condition.json", kept | {"mounts": mounts})
    flush_folder(folder.parent.parent)
    file.unlink(missing_ok=True)
    return kept


def inner_settings(given: Facts, outer: Settings, results: Path, file: Path) -> Settings:
    """The settings of an inner run, with this machine's tiers; its configuration is written to ``file``.

    Tiers of the nodes become those of the node that the campaign is on.
    """
    tiers = {
        name: {**tier, "path": str(tier_named(outer, name).here().path), "node": False}
        for name, tier in given["tiers"].items()
    }
    configuration = {**given, "tiers": tiers, "results": str(results)}
    write_secret(file, yaml.safe_dump(configuration, sort_keys=False))
    return Settings.from_config(configuration, outer.in_containers)


def inner_results(places: Places) -> Path:
    """Where the runs of a campaign keep their results while they run, relative to the path of a tier."""
    return private_folder(Path()) / "campaign" / short_hash(str(places.results))


def remove_inner_results(campaign: Campaign) -> None:
    """Remove the results of inner runs, such as killed ones left, from the tiers, with the folders that held them."""
    for name in {run.settings.placement["results"] for run in campaign.planned}:
        tier = tier_named(campaign.settings, name)
        tier.refuse_planted()
        clear(tier.path / inner_results(campaign.places))


def snakemake(arguments: Iterable[object], log: Path) -> int:
    """Run Snakemake with all its output in a log; returns its exit code. No job of it survives this call.

    A signal that ends this process ends Snakemake, too; its jobs then count as stopped, not as failed.
    """
    environment = without(os.environ, *OWN_VARIABLES) | {CAMPAIGN: current_run()}
    words = list(map(str, arguments))
    note(log, f"$ snakemake {' '.join(words)}")
    with log.open("a") as file:
        try:
            return start_process(
                [sys.executable, "-m", "snakemake", *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
            ).wait()
        finally:
            end(marked(CAMPAIGN, [current_run()]))  # also jobs whose Snakemake was killed


def last_message(log: Path) -> str:
    """neurotier's last line in the log of a Snakemake, without its prefix; empty if there is none."""
    return next(reversed(re.findall("^neurotier: (.*)", log.read_text(errors="replace"), re.MULTILINE)), "")


def make_cache_ready(asked: str, inner: Settings, places: Places) -> CacheState:
    """Bring the page cache into the requested state."""
    dataset = load_dataset(places)
    inputs = [dataset.path / row["path"] for row in read_table(places.images_table, "images")]
    others = []
    if inner.image and not inner.kind_of("images").in_memory:
        others = [path for path in places.images.rglob("*") if path.is_file() and not path.is_symlink()]
    return prepare_cache(asked, inputs, others, in_memory=inner.kind_of("dataset").in_memory)


def condition_json(
    campaign: Campaign,
    run: PlannedRun,
    row: Record,
    cache: CacheState,
    outputs: Mapping[str, str],
    taken_s: float,
    accident: bool,
    stopped: bool,
) -> Record:
    """The content of ``condition.json`` for a run: its conditions, and whether it is valid or why not.

    Parameters
    ----------
    campaign, run
        Which run it was.
    row
        Its row of ``runs.tsv``.
    cache
        The page cache before the participant jobs.
    outputs
        Checksums of its outputs, by path.
    taken_s
        How long all of it took, s.
    accident
        Whether a participant failed for a reason that may be temporary: a full tier, or a kill by a person, or by the
        kernel for lack of memory. The run is then repeated, but only once.
    stopped
        Whether it was stopped from outside.
    """
    stopped = stopped or (accident and not campaign.condition_of(run).get("stopped"))
    problems = [cache.problem]
    possible, most = min(run.condition.parallelism, row["participants"] + row["failed"]), row["peak_parallelism"]
    if most < possible and not row["failed"]:  # the times of failed participants are not known
        because = f": {row['limited_by']}" if row["limited_by"] else ""
        problems.append(f"{most} of {possible} jobs ran at once at most{because}")
    # If a job was killed before its participants began, none of them counts as failed, either.
    if campaign.settings.campaign.compare_outputs and not (row["failed"] or accident or stopped):
        problems += output_differences(campaign, run, outputs)
    return {
        **vars(run.condition),
        "repetition": run.repetition,
        "position": run.position,
        "valid": valid_unless(problems, row["valid"]),
        "cache_state": vars(cache),
        "participants": row["participants"],
        "makespan_s": row["makespan_s"],
        "taken_s": taken_s,
        "stopped": stopped,
    }


def output_differences(campaign: Campaign, run: PlannedRun, outputs: Mapping[str, str]) -> list[str]:
    """How the outputs differ from those of the first run of the same tool, if they do.

    The outputs of the first run that did all its participants are noted; if that note can no longer be read, those of
    the next such run are noted.
    """
    file = campaign.places.campaign / "outputs" / f"{run.analysis}.json"
    first = read_json_or_empty(file)
    if not first:
        write_json(file, {"of": str(run.condition), "checksums": outputs})
        return []
    names = {*outputs, *first["checksums"]}
    apart = sorted(name for name in names if outputs.get(name) != first["checksums"].get(name))
    found = f"outputs differ from those of {first['of']}: {len(apart)} of {len(names)} files, first "
    return [f"{found}{one_line(apart[0])} (campaign.compare_outputs: false allows that)"] if apart else []


def walk(campaign: Campaign) -> None:
    """Do the runs that are still missing.

    Raises
    ------
    RunError
        At the end, if runs could not be done or were stopped; invalid runs are kept and mentioned. At once, if
        processes outside the campaign disturb the first run, or two in a row: they would disturb the rest, too.
    """
    planned, say = campaign.planned, campaign.say
    left = campaign.to_do
    say(f"{len(planned) - len(left)} of {counted(len(planned), 'run')} are there, {len(left)} to do")
    failed = []
    undisturbed = False
    try:
        for count, run in enumerate(left, start=1):
            # Each repetition has all conditions, so the runs that exist show how long the rest takes on average.
            taken_s = [done["taken_s"] for done in filter(None, map(campaign.condition_of, planned))]
            left_s = (len(left) - count + 1) * statistics.fmean(taken_s or [0.0])
            rest = f"; about {seconds(left_s)} left" if taken_s else ""
            say(f"run {count} of {len(left)}: {run.condition}, repetition {run.repetition}{rest}")
            try:
                condition = run_planned(campaign, run)
            except EXTERNAL as error:
                failed.append(str(own_error(error)))
                say(f"  {failed[-1]}")
                continue
            cache = condition["cache_state"]["action"]
            say(f"  {condition['valid']}, makespan {seconds(condition['makespan_s'])} (before it: {cache})")
            before, undisturbed = undisturbed, DISTURBED not in condition["valid"]
            if not (before or undisturbed):
                raise RunError(
                    f"others use this machine ({condition['valid']})",
                    "campaign",
                    "when they have ended, start the same command again with campaign.repeat_invalid set to true",
                )
    finally:
        remove_inner_results(campaign)
    if failed:
        raise RunError(f"{counted(len(failed), 'run')} could not be done: {failed[0]}", "campaign")
    conditions = list(filter(None, map(campaign.condition_of, planned)))
    if stopped := sum(bool(condition.get("stopped")) for condition in conditions):
        raise RunError(
            f"{counted(stopped, 'run')} stopped, or failed for a reason that may pass",
            "campaign",
            "start the same command again: only these runs are repeated",
        )
    invalid = [condition["valid"] for condition in conditions if condition["valid"] != VALID]
    again = "set campaign.repeat_invalid to do invalid runs again"
    if invalid and (campaign.settings.campaign.repeat_invalid or len(invalid) == len(planned)):
        raise RunError(
            f"{len(invalid)} of {counted(len(planned), 'run')} cannot be compared ({invalid[0]})",
            "campaign",
            f"see {campaign.places.logs}; {again}",
        )
    if invalid:
        say(f"{counted(len(invalid), 'run')} left out of the comparison; {again}")
