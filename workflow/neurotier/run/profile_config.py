"""Keep a profile's ``config:`` when the command line has a ``--config`` of its own.

Snakemake lets ``--config`` replace a profile's whole ``config:``: ``config: {placement: {work: tmpfs}}`` in a storage
profile is silently lost as soon as the user adds ``--config results=elsewhere``. A run that was meant for one tier
would then measure another, so the profiles are read again here and merged key by key: general profiles, then the
workflow profile, then the command line (the order that Snakemake documents).
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from snakemake.utils import update_config

from neurotier.core.errors import SettingsError
from neurotier.core.files import Facts, Record
from neurotier.core.places import safe_name
from neurotier.run.snakemake_internals import config_of_profile, default_resources, options_of, options_of_profile

ENVIRONMENT = "NEUROTIER_COMMAND"
"""Environment variable that tells jobs what the user's command says: the Snakemake in a job is not given all of it."""

SOME_NODES = "nodes"
"""Class of a cluster's nodes if neither a partition nor a constraint is chosen."""

HERE = (None, "local", "dryrun", "touch")
"""Executors of Snakemake that run jobs on this machine, or run none."""

SLURM = ("neurotier-slurm", "slurm")
"""Executors of Snakemake that submit jobs to Slurm by means of the plugin ``slurm``."""


class UserCommand(NamedTuple):
    """What the user's command line and its profiles say, before Snakemake merges them.

    Attributes
    ----------
    config
        The ``config:`` entries of the profiles, merged.
    executor
        Snakemake's executor that submits jobs; empty if they run on this machine. Snakemake's own settings do not yet
        contain it while rules are read.
    node_class
        Class of a cluster's nodes, from the partition and the constraint in ``default-resources``; it is part of the
        paths of what the nodes measure. If the nodes of a partition differ, the user names the class (key
        ``node_class``).
    cores
        Cores given to the user's Snakemake; on a cluster, the most for one job (the job's own Snakemake is given all of
        a node). 0 if none were given.
    """

    config: Record
    executor: str = ""
    node_class: str = SOME_NODES
    cores: int = 0


def read_command(
    arguments: Sequence[str] | None, snakefile: Path, directory: Path | None = None, cores: int = 0
) -> UserCommand:
    """Read what a Snakemake command and its profiles say.

    Parameters
    ----------
    arguments
        Command line after ``snakemake``, or ``None`` in a process that Snakemake started for a job: such a process is
        not given the profiles, and reads what the main process left in the environment.
    snakefile
        The main Snakefile; ``profiles/`` is searched next to it and in the working folder, as Snakemake does.
    directory
        The folder given with ``--directory`` on the command line or in a profile.
    cores
        Cores given to Snakemake.

    Raises
    ------
    SettingsError
        If the requested workflow profile is not found: Snakemake would go on with another placement.
    """
    if arguments is None:
        return inherited_command()
    options = options_of(arguments)
    names, merged = profiles(options, snakefile, directory), Record()
    for name in names:
        update_config(merged, config_of_profile(name))
    executor = option_value(options, names, "executor")
    resources = default_resources(option_value(options, names, "default_resources"))
    chosen = [safe_name(resources.get(key, "")) for key in ("slurm_partition", "constraint")]
    node_class = "-".join(filter(None, chosen)) or SOME_NODES
    said = UserCommand(merged, "" if executor in HERE else executor, node_class, cores)
    os.environ[ENVIRONMENT] = json.dumps(said, default=refuse)
    return said


def refuse(value: object) -> NoReturn:
    """Refuse values that YAML has and JSON lacks, such as dates."""
    raise SettingsError(f"{value} was read as a {type(value).__name__}", "a profile's config", "put it in quotes")


def inherited_command() -> UserCommand:
    """What the main process left in the environment."""
    return UserCommand(*json.loads(os.environ.get(ENVIRONMENT, "[{}]")))


def profiles(options: Namespace, snakefile: Path, directory: Path | None) -> list[str]:
    """The profiles that a command line selects, the one that takes precedence last.

    Parameters as of :func:`read_command`.
    """
    start = starting_folder(directory)
    asked = [name for name in options.profile or [] if name != "none"]
    names = [start / name if (start / name).exists() else name for name in asked]  # Snakemake searches for others
    return list(map(str, filter(None, [*names, find_workflow_profile(options.workflow_profile, start, snakefile)])))


def option_value(options: Namespace, names: Sequence[str], option: str) -> Any:
    """The value of an option on the command line, otherwise in the profiles with these names; ``None`` if none has
    it."""
    value = getattr(options, option)
    for name in names if value is None else ():
        value = options_of_profile(name).get(option.replace("_", "-"), value)
    return value


def starting_folder(directory: Path | None) -> Path:
    """The folder in which the command was given: profiles are relative to it, and with ``--directory`` Snakemake has
    left it by now."""
    here, before = Path.cwd(), Path(os.environ.get("PWD", "/"))
    return before if directory is not None and (before / directory).resolve() == here else here


def find_workflow_profile(asked: str | None, start: Path, snakefile: Path) -> Path | None:
    """Where Snakemake finds the workflow profile: as a path, below ``profiles/``, or in ``profiles/`` next to the
    Snakefile."""
    if asked == "none":
        return None
    name = asked or "default"
    candidates = [start / name, start / "profiles" / name, snakefile.parent / "profiles" / name]
    found = next((candidate for candidate in candidates if candidate.exists()), None)
    if asked and found is None:
        raise SettingsError("there is no such workflow profile", f"--workflow-profile {asked}", "give its full path")
    return found


def effective_config(config: Facts, command_line: Facts, from_profiles: Facts) -> Record:
    """The configuration with the profiles' entries restored under those of the command line.

    Parameters
    ----------
    config
        The configuration as Snakemake merged it from files and command line.
    command_line
        Snakemake's ``--config`` alone (a profile's entries if the command line had none).
    from_profiles
        The profiles' entries.
    """
    effective: Record = {}
    for layer in (config, from_profiles, command_line):
        update_config(effective, layer)
    return effective
