"""Preconditions: a run that would fail is refused before anything is done, with one line.

This module checks what can be known at the start of a run; jobs report what only a job can know.

A results folder holds derivatives of one dataset, made by one tool or app with one set of options: their description
covers all of them, including participants that a run does not analyse. So a run with another dataset or tool is
refused, or replaces all existing results. What results were made with is in the facts of the runs that their records
name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from neurotier.analysis.needs import content_keys
from neurotier.analysis.tools import make_tool
from neurotier.bigbrain.engines import gnu_parallel
from neurotier.containers.engine import find_engine
from neurotier.containers.run import further_binds
from neurotier.core.configuration import BELOW, WORKLOADS
from neurotier.core.errors import ContainerError, SettingsError, TierError, ToolError, without_credentials
from neurotier.core.files import Facts, Record, absolute_path, read_intact_json, read_json_or_empty, remove_path
from neurotier.core.foreign import blaming, read_named
from neurotier.core.places import Places, participant_of
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Say, Settings
from neurotier.core.tiers import find_mount, is_on_other_file_system, is_per_node, tier_named
from neurotier.dataset.index import changed_since
from neurotier.dataset.source import is_address, local_folder
from neurotier.run.allocations import asks_for_nodes
from neurotier.run.healing import SAVED
from neurotier.run.jobs import load_dataset
from neurotier.run.participants import selected_in
from neurotier.run.plan import Plan
from neurotier.run.snakemake_internals import Command
from neurotier.storage import fio
from neurotier.storage.calls import require_program
from neurotier.storage.ior import mpi
from neurotier.storage.staging.supervise import require_engine
from neurotier.storage.workspace import require_written

WITHOUT_DATASET = {"published", "probe", *WORKLOADS, "bigbrain", "check"}
"""Targets that need no dataset."""

WITHOUT_PARTICIPANTS = WITHOUT_DATASET | {"ready", "advise", "comparison"}
"""Targets that do not analyse the participants."""

WRITTEN = ("results", "work", "images", "image_store")
"""Folders that must not lie in the dataset. The folder of clones may: a dataset that is a plain folder is not cloned,
and may be the root of its tier."""

AFTER_INDEX = (
    "validate_dataset",
    "describe_derivatives",
    "fetch_images",
    "analyze_participants",
    "drop_images",
    "run_group_level",
)
"""Rules whose jobs Snakemake does not know until the index, a checkpoint, has been evaluated."""

WITH_FIO = {"probe_tier": "target probe", "run_sweep": "target sweep", "run_daq": "target daq"}
"""Rules that need fio, and the target that each serves."""


def check_start(plan: Plan, command: Command, say: Say) -> None:
    """Check a run before the graph of jobs is built; in a dry run, also say which tiers are missing.

    Parameters
    ----------
    plan
        The plan of the run.
    command
        What Snakemake was started for.
    say
        Prints a warning for the user.

    Raises
    ------
    SourceError
        If the source is a path that does not exist.
    TierError
        If a tier to be measured is read-only, or the results folder is on another file system than its tier.
    SettingsError, ContainerError
        If the run would write into the dataset, if there is nothing to compare, if the description to rehearse is
        wrong, if a file or folder for containers is missing, if the run would succeed without doing anything, or if a
        campaign's runs are to be predicted for a cluster.
    """
    settings = plan.settings
    if blind := next((rule for rule in AFTER_INDEX if rule in command.until), None):
        raise SettingsError(
            "before the dataset is indexed, Snakemake does not know these jobs and would do nothing",
            f"--until {blind}",
            "name a target instead: ready, participants",
        )
    results, tier = plan.places.results, tier_named(settings, settings.placement["results"])
    if results.exists() and is_on_other_file_system(results, tier.path):
        raise TierError(
            f"is on {find_mount(results).mount_point}, and not on the tier of the results, {tier.name!r}",
            f"results folder {results}",
            "name one below that by its whole path (results=/PATH)",
        )
    if "advise" in command.targets and plan.on_cluster and settings.is_campaign:
        raise SettingsError(
            "the runs of a campaign are not predicted for a cluster",
            "target advise",
            "on a node, start it with --cores and without the Snakemake profile of a cluster",
        )
    if command.targets - WITHOUT_DATASET:
        check_dataset(plan, command, say)
        check_container_inputs(settings, plan.on_cluster)
    if "comparison" in command.targets:  # raised by an input function, the error would be shown as a trace
        plan.compared_tables()
    content_keys(settings)  # checks the description to rehearse; a campaign checks those of all its runs first
    if command.targets & {"advise", "probe"}:  # otherwise the probe would fail after a trial run that may take hours
        for name in settings.probe.tiers or settings.placed_tiers:
            require_written(tier_named(settings, name), "probe")
    for name in settings.placed_tiers if command.is_dry_run else ():
        try:
            if not (plan.on_cluster and is_per_node(settings, name)):  # nodes check their own tiers
                tier_named(settings, name).check()
        except TierError as error:
            say(f"neurotier: a run would be refused: {error}")


def check_dataset(plan: Plan, command: Command, say: Say) -> None:
    """Refuse a missing source, and folders inside it that a run writes to; tell the user which participants are new or
    changed, and how to have them indexed, unless they are being. Parameters and errors as :func:`check_start`."""
    settings, places = plan.settings, plan.places
    source = settings.dataset.source
    if source == "demo" or is_address(source):
        return
    folder, known = absolute_path(source), read_intact_json(places.dataset_facts)
    if not folder.exists() and (known.get("kind"), known.get("source")) == ("datalad", str(folder)):
        return  # there is a clone of it, which may be enough
    folder = local_folder(source).resolve()
    for name in WRITTEN:
        written: Path = getattr(places, name).resolve()
        if written.is_relative_to(folder):
            raise SettingsError(
                f"lies in the dataset {folder}, which is never written to",
                f"{name.replace('_', ' ')} folder {written}",
                "start in another working folder, or declare a tier outside the dataset and set placement to it",
            )
    table = places.images_table
    if (known.get("kind"), Path(known.get("path", "")).resolve()) == ("folder", folder) and table.exists():
        suffixes = settings.app.suffixes if settings.is_app else None
        if changed := changed_since(
            load_dataset(places), settings.dataset, suffixes, selected_in(places), table.stat().st_mtime
        ):
            since = f"new, gone or changed since the dataset was indexed: {first_of(changed)}"
            how = "" if command.reindexes else "; --forcerun index_dataset updates the index"
            say(f"{counted(len(changed), 'participant')} {since}{how}")


def check_programs(rules: Collection[str], settings: Settings, say: Say) -> None:
    """Refuse to start if a program is missing that a rule needs, perhaps only hours later.

    Parameters
    ----------
    rules
        Names of the rules that will run on this machine.
    settings
        The configuration: it names tool and engines.
    say
        Prints a line for each missing program except the last, which is raised.

    Raises
    ------
    ToolError, ContainerError
        If a program is not on ``PATH``, or an engine's package is not installed.
    """
    looks: list[Callable[[], object]] = [
        partial(fio.require_fio, where) for rule, where in WITH_FIO.items() if rule in rules
    ]
    if "run_gnu_parallel" in rules:
        looks.append(partial(require_program, "parallel", "target bigbrain", gnu_parallel.FIX))
    if "prepare_tool" in rules:
        looks.append(find_engine if settings.image else make_tool(settings.tool).find)
    if "run_ior" in rules and not asks_for_nodes(settings.ior):  # otherwise it runs on nodes, not here
        looks.append(partial(mpi.require_engine, settings.ior.engine, "target ior"))
    if "run_staging" in rules:
        looks += [partial(require_engine, engine, "target staging") for engine in settings.staging.engines]
    missing = []
    for look in looks:
        try:
            look()
        except (ToolError, ContainerError) as error:
            missing.append(error)
    for one in missing[:-1]:
        say(f"neurotier: {one}")
    if missing:
        raise missing[-1]


FILTER_BYTES = 1_000_000
"""Largest size of a BIDS filter file, which is a few lines written by a person."""


def check_container_inputs(settings: Settings, on_cluster: bool) -> None:
    """Check that the files and folders exist that the configuration makes available to containers.

    Parameters
    ----------
    settings
        The configuration.
    on_cluster
        Whether containers run on the nodes of a cluster: binds then need not exist here, and the first job checks them.

    Raises
    ------
    ContainerError
        If a bind does not exist.
    SettingsError
        If a bind lies in an app's dataset or output, the BIDS filter file is missing or not a JSON object, or a cache's
        source is not a folder.
    """
    if settings.image is None:
        return
    if not on_cluster:
        further_binds(settings.containers.binds)
    if settings.is_app:
        for word in settings.containers.binds:
            inside = word.removesuffix(":ro").rpartition(":")[2]
            if f"{inside}/".startswith(BELOW):
                raise SettingsError(
                    "lies in an app's dataset or output",
                    f"config key containers.binds: {word}",
                    "name a place elsewhere, as /path:/path/inside",
                )
        check_filter_file(settings.app.filter_file)
        for name, cache in settings.app.caches.items():
            if not absolute_path(cache["source"]).is_dir():
                raise SettingsError(
                    "there is no such folder",
                    f"config key app.caches.{name}.source: {cache['source']}",
                    "correct the path",
                )


def check_filter_file(text: str | None) -> None:
    """Raise :class:`SettingsError` unless the BIDS filter file, if there is one, is a JSON object."""
    if text is None:
        return
    where, path = f"config key app.filter_file: {text}", absolute_path(text)
    if not path.is_file():
        raise SettingsError("no such file", where, "correct the path")
    try:
        with blaming(where, SettingsError):
            filters = json.loads(read_named(path, FILTER_BYTES, "a filter file"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"is not valid JSON: {error}", where, "correct it") from None
    if not isinstance(filters, dict):
        raise SettingsError(
            "holds no filters",
            where,
            'write {"SUFFIX": {"ENTITY": VALUE}}, as in the documentation of the app',
        )


WHOLE = ("dataset", "tool", "app", "image")
"""Keys that are named without the others if they differ, since options belong to a tool."""

CONTENT = "content of the image"


class OtherResults(NamedTuple):
    """Results of which some were made with another dataset, tool, option or image than this run: all are removed.

    Attributes
    ----------
    places
        Of the results.
    line
        What will become of the results, for the user.
    by_app
        Whether an app made some of them.
    """

    places: Places
    line: str
    by_app: bool

    @property
    def folders(self) -> list[Path]:
        """The derivatives folders of their sites, without those behind a planted link."""
        records = self.places.records
        sites = {participant_of(file, records).rpartition("/")[0] for file in records.rglob("*.json")}
        return [self.places.derivatives / site for site in sites if self.places.holds(f"derivatives/{site}/any")]

    def remove(self) -> None:
        """Remove the results; what was saved in datasets stays in the datasets' history.

        The index's facts about dataset, tool and image are removed, too: if the folder was moved, Snakemake would take
        them for this run's. Records are removed last: if this process is killed, the next start finds out from them
        what is left.
        """
        for folder in self.folders:
            patterns = ["[!.]*", "sourcedata/[!.]*"] if self.by_app else ["sub-*", "dataset_description.json", "README"]
            stays = {folder / name for name in (*SAVED, "sourcedata/raw")}
            for entry in {entry for pattern in patterns for entry in folder.glob(pattern)} - stays:
                if not entry.parent.is_symlink():  # a link of the user's, for example to the source
                    remove_path(entry)
            with suppress(OSError):  # the folder is a dataset, or holds files of the user
                folder.rmdir()
        for path in (
            *(self.places.profile / "steps").rglob("run_group_level.json"),
            *map(self.places.index.joinpath, ("dataset.json", "images.tsv", "tool.json", "image.json", "caches.json")),
            self.places.results / "app",
            self.places.records,
        ):
            remove_path(path)


def made_with(plan: Plan) -> Record:
    """What the results of a run are made with, as noted in its facts, without the version and selection of the
    dataset."""
    tool, image, source = plan.tool(), plan.image(), without_credentials(plan.settings.dataset.source)
    facts = {
        "dataset": source.rstrip("/") if source == "demo" or is_address(source) else str(absolute_path(source)),
        "app" if plan.is_app else "tool": tool.pop("name"),
        "image": image["image"],
        CONTENT: image["content"],
        **tool,
    }
    return dict(json.loads(json.dumps(facts)))


def other_results(plan: Plan, places: Places, command: Command) -> OtherResults | None:
    """The results in this run's folder, if some of them were made with something else, for example because two folders
    were merged.

    Parameters
    ----------
    plan, places
        Of this run.
    command
        What Snakemake was started for. The results may be removed if it is forced, that is, if all participants are to
        be analysed again.

    Raises
    ------
    SettingsError
        If the results may not be removed, or are saved in datasets whose history is that of another source.
    """
    here = made_with(plan)
    with_others = {
        file.stem: made
        for file in places.runs.glob("*.json")
        if differing_keys(made := read_json_or_empty(file).get("made_with") or here, here)
    }
    files = places.records.rglob("*.json") if with_others else ()  # half a million are read only if some may differ
    found = [with_others[run] for file in files if (run := f"{read_json_or_empty(file).get('run')}") in with_others]
    if not found:
        return None
    keys = differing_keys(there := found[0], here)
    made = f"{counted(found.count(there), 'participant')} analysed with {in_words(there, keys)}"
    becomes = "are removed, and everyone is" if command.starts else "would be removed, and everyone would be"
    line = f"neurotier: {places.derivatives}: {made} {becomes} analysed with {in_words(here, keys)}"
    others = OtherResults(places, line, any("app" in one for one in found))
    is_history = "dataset" in keys and any((folder / ".git").exists() for folder in others.folders)
    if is_history or not command.forced:
        again = "have these removed and everyone analysed with --forcerun analyze_participants"
        more = f", or {again if command.targets - WITHOUT_DATASET else 'give the settings of these results'}"
        more = ": the history of its datasets is that of one source" if is_history else more
        raise SettingsError(
            f"has {made}, and this run has {in_words(here, keys)}",
            f"results folder {places.results}",
            f"choose another folder with --config results=NAME{more}",
        )
    return others


def differing_keys(there: Facts, here: Facts) -> list[str]:
    """The keys in which two descriptions of what results were made with differ.

    >>> differing_keys({"tool": "bet", "x": 1}, {"tool": "bet", "x": 2})
    ['x']
    >>> differing_keys({"tool": "noop", "x": 1}, {"app": "noop", "y": 2})
    ['tool', 'app']
    """
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    if CONTENT in keys and not (there.get(CONTENT) and here.get(CONTENT)):  # the rule that obtains it reports why
        keys.remove(CONTENT)
    return [key for key in WHOLE if key in keys] or keys


def in_words(made: Facts, keys: Iterable[str]) -> str:
    """Part of what results were made with, as text for people."""
    shown = {key: made.get(key) for key in keys if key in made or key not in ("tool", "app")}
    return ", ".join(f"{key} {'none' if value is None else value}" for key, value in shown.items())
