"""Preconditions: what cannot end well is refused before anything is done, in one line.

What only a job can know is left to it, and said by it; here is what is plain at the start.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from neurotier.analysis.app import filter_path
from neurotier.analysis.needs import described
from neurotier.bigbrain.engines import gnu_parallel
from neurotier.core.configuration import WORKLOADS
from neurotier.core.errors import SettingsError, TierError, ToolError
from neurotier.core.files import read_json
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.core.tiers import Tier, on_nodes
from neurotier.dataset.source import is_address, local_folder
from neurotier.run.allocations import asks_for_nodes
from neurotier.run.plan import Plan
from neurotier.run.snakemake_internals import Command, names
from neurotier.storage import fio
from neurotier.storage.ior import mpi
from neurotier.storage.staging.supervise import require_engine
from neurotier.storage.workspace import require_written

WITHOUT_DATASET = {"published", "probe", *WORKLOADS, "bigbrain", "check"}
"""Targets that need no dataset."""

WRITTEN = ("results", "work", "images", "image_store")
"""Folders that must not lie in the dataset. That of clones may: a plain folder has none, and may be its tier's root."""

AFTER_INDEX = (
    *("validate_dataset", "describe_derivatives", "fetch_images", "analyze_participants", "drop_images"),
    "run_group_level",
)
"""Rules whose jobs Snakemake does not know before it has evaluated the index, a checkpoint."""

PROGRAMS = {
    "run_gnu_parallel": ("parallel", "GNU parallel", "target bigbrain", gnu_parallel.FIX),
    "probe_tier": ("fio", "fio", "target probe", fio.INSTALL),
    "run_sweep": ("fio", "fio", "target sweep", fio.INSTALL),
    "run_daq": ("fio", "fio", "target daq", fio.INSTALL),
}
"""Rule to the program that it cannot do without: its command, its name, who wants it, and how to get it."""


def check_start(plan: Plan, command: Command, say: Callable[[str], None]) -> None:
    """Look at the dataset before the graph of jobs is built; a dry run is told of tiers that are missing, too.

    Parameters
    ----------
    plan
        The plan of the run.
    command
        What Snakemake is started for.
    say
        Takes warnings for the user, a line each.

    Raises
    ------
    SourceError
        If the source is a path, and nothing is there.
    TierError
        If a tier is to be measured that is only read.
    SettingsError, ContainerError
        If the run would write into the dataset, there is nothing to compare, what it is to rehearse is wrongly
        described, what containers are to see is not there, or it would do nothing and end well.
    """
    if blind := next((rule for rule in AFTER_INDEX if names(command.until, rule)), None):
        raise SettingsError(
            "Snakemake knows of these jobs only once the dataset is indexed, and so would do nothing",
            where=f"--until {blind}",
            fix="name a target instead: ready, participants",
        )
    needs_dataset = [target for target in command.targets if not any(names([target], rule) for rule in WITHOUT_DATASET)]
    if not command.targets or needs_dataset:
        check_dataset(plan)
        check_container_inputs(plan.settings, plan.elsewhere)
    if command.asks_for("comparison"):  # Snakemake would show a trace of what an input function raises
        plan.compared()
    check_rehearsal(plan.settings)
    if command.asks_for("advise") or command.asks_for("probe"):  # else after a trial that may take hours
        for name in plan.settings.probe.tiers or plan.settings.placed_tiers:
            require_written(Tier.from_settings(plan.settings.tiers[name]), "probe")
    tiers = [name for name in plan.settings.placed_tiers if not (plan.elsewhere and on_nodes(plan.settings, name))]
    for name in tiers if command.is_dry_run else ():  # nodes look at their own
        try:
            Tier.from_settings(plan.settings.tiers[name]).check()
        except TierError as error:
            say(f"neurotier: a run would be refused: {error}")


def check_dataset(plan: Plan) -> None:
    """Refuse a source that is not there, and folders of ours in it; see :func:`check_start`."""
    source, places = plan.settings.dataset.source, Places.from_settings(plan.settings)
    if plan.is_demo or is_address(source):
        return
    folder = Path(source).expanduser().absolute()
    known = places.index / "dataset.json"
    if not folder.exists() and known.exists():
        dataset = read_json(known)
        if dataset["kind"] == "datalad" and dataset["source"] == str(folder):
            return  # its clone is there, and may do
    folder = local_folder(source).resolve()
    for name in WRITTEN:
        written: Path = getattr(places, name).resolve()
        if written.is_relative_to(folder):
            raise SettingsError(
                f"lies in the dataset {folder}, which is never written to",
                where=f"{name.replace('_', ' ')} folder {written}",
                fix="start in another working folder, or declare a tier outside the dataset and set placement to it",
            )


def check_rehearsal(settings: Settings) -> None:
    """Read what is to be rehearsed, if anything is; a campaign reads that of its runs before the first of them."""
    described(settings)


def check_programs(rules: Collection[str], settings: Settings) -> None:
    """Refuse to start when a program is missing that a rule will need hours later.

    Parameters
    ----------
    rules
        Names of the rules that will run on this machine.
    settings
        The configuration, which names engines.

    Raises
    ------
    ToolError
        If one is not on ``PATH``, or the package of an engine is not installed.
    """
    for rule, (command, name, where, fix) in PROGRAMS.items():
        if names(rules, rule) and shutil.which(command) is None:
            raise ToolError(f"{name} is not on PATH", where=where, fix=fix)
    if names(rules, "run_ior") and not asks_for_nodes(settings.ior):  # else it waits here, and the nodes have fio
        mpi.require_engine(settings.ior.engine, "target ior")
    for engine in settings.staging.engines if names(rules, "run_staging") else ():
        require_engine(engine, "target staging")


FILTER_BYTES = 1_000_000
"""Largest size of a BIDS filter file: a few lines that a person has written."""


def check_container_inputs(settings: Settings, elsewhere: bool) -> None:
    """Look for the files and folders that the configuration has containers see.

    Parameters
    ----------
    settings
        The configuration.
    elsewhere
        Whether containers run on the nodes of a cluster: what is bound need not be here, and the first one looks.

    Raises
    ------
    ContainerError
        If a bind does not exist.
    SettingsError
        If the BIDS filter file is missing or no JSON object, or the source of a cache is no folder.
    """
    if settings.image is None:
        return
    if not elsewhere:
        from neurotier.containers.run import further_binds

        further_binds(settings.containers.binds)
    if settings.app.image:
        check_filter_file(settings.app.filter_file)
        for name, cache in settings.app.caches.items():
            if not Path(cache["source"]).expanduser().is_dir():
                where = f"config key app.caches.{name}.source: {cache['source']}"
                raise SettingsError("there is no such folder", where=where, fix="correct the path")


def check_filter_file(text: str | None) -> None:
    """Raise :class:`SettingsError` unless a BIDS filter file, if there is one, is a JSON object."""
    if text is None:
        return
    where, path = f"config key app.filter_file: {text}", filter_path(text)
    if not path.is_file():
        raise SettingsError("no such file", where=where, fix="correct the path")
    try:
        with path.open("rb") as file:
            content = file.read(FILTER_BYTES + 1)
        filters = json.loads(content)
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", where=where, fix="correct its permissions") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"is no JSON: {error}", where=where, fix="correct it") from None
    if not isinstance(filters, dict) or len(content) > FILTER_BYTES:
        fix = 'write {"SUFFIX": {"ENTITY": VALUE}}, as in the documentation of the app'
        raise SettingsError("holds no filters", where=where, fix=fix)
