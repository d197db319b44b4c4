"""Keep a profile's ``config:`` when the command line has a ``--config`` of its own.

Snakemake merges profiles and command line by top-level key: ``config: {placement: {work: tmpfs}}`` in a storage
profile is lost without a word as soon as the user adds ``--config results=elsewhere``. A run that was meant for
one tier would then measure another, so the profiles are read again here and merged key by key: general profiles,
then the workflow profile, then the command line (the order Snakemake documents).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from snakemake.utils import update_config

from neurotier.core.errors import SettingsError
from neurotier.run.snakemake_internals import config_of_profile, default_resources, options_of, options_of_profile

ENVIRONMENT = "NEUROTIER_PROFILE_CONFIG"

EXECUTOR = "NEUROTIER_EXECUTOR"
"""Environment variable that tells jobs by which executor of Snakemake they were started; empty for this machine."""

NODE_CLASS = "NEUROTIER_NODE_CLASS"
"""Environment variable that tells jobs the class of their nodes: it is in the path of what they write."""

CORES = "NEUROTIER_CORES"
"""Environment variable that tells jobs the cores that the user's Snakemake was given: their own takes all of a node."""

SOME_NODES = "nodes"
"""Class of a cluster's nodes where neither partition nor constraint is chosen."""

HERE = (None, "local", "dryrun", "touch")
"""Executors of Snakemake that run jobs on this machine, or none."""

SLURM = ("neurotier-slurm", "slurm")
"""Executors of Snakemake that give jobs to Slurm by the plugin ``slurm``."""


def profile_config(arguments: Sequence[str], snakefile: Path) -> dict[str, Any]:
    """The ``config:`` entries of the profiles that a Snakemake command line selects, merged.

    Parameters
    ----------
    arguments
        Command line after ``snakemake``.
    snakefile
        The main Snakefile; ``profiles/`` is searched beside it and in the working folder, as Snakemake does.

    Raises
    ------
    SettingsError
        If a profile that was asked for is not found: Snakemake would go on with another placement.
    """
    merged: dict[str, Any] = {}
    for name in profiles(arguments, snakefile):
        update_config(merged, config_of_profile(name))
    return merged


def profiles(arguments: Sequence[str], snakefile: Path) -> list[str]:
    """The profiles that a command line selects, the one that counts most last; as :func:`profile_config`."""
    options = options_of(arguments)
    start = starting_folder(options.directory)
    asked = [name for name in options.profile or [] if name != "none"]
    names = [start / name if (start / name).exists() else name for name in asked]  # else Snakemake searches for it
    workflow_profile = find_workflow_profile(options.workflow_profile, start, snakefile)
    return [str(name) for name in (*names, *([workflow_profile] if workflow_profile else []))]


def runs_elsewhere(arguments: Sequence[str] | None, snakefile: Path) -> bool:
    """Whether jobs are given to a cluster: while rules are read, Snakemake does not say so yet.

    ``arguments`` are ``None`` in a process that Snakemake started for a job, as in :func:`effective_config`.
    """
    if arguments is not None:
        executor = given(arguments, snakefile, "executor")
        os.environ[EXECUTOR] = "" if executor in HERE else str(executor)
    return bool(os.environ.get(EXECUTOR))


def given(arguments: Sequence[str], snakefile: Path, option: str) -> Any:
    """An option as the command line gives it, else as the profiles do; ``None`` if neither does."""
    value = getattr(options_of(arguments), option)
    for name in profiles(arguments, snakefile) if value is None else []:
        value = options_of_profile(name).get(option.replace("_", "-"), value)
    return value


def class_of_nodes(arguments: Sequence[str] | None, snakefile: Path) -> str:
    """Class of a cluster's nodes, by the partition and the constraint of ``default-resources``.

    Nodes of a partition may differ; then the user names the class (configuration key ``node_class``). ``arguments`` are
    as those of :func:`runs_elsewhere`.
    """
    if arguments is None:
        return os.environ.get(NODE_CLASS, SOME_NODES)
    resources = default_resources(given(arguments, snakefile, "default_resources"))
    chosen = [safe_name(resources.get(key, "")) for key in ("slurm_partition", "constraint")]
    os.environ[NODE_CLASS] = "-".join(filter(None, chosen)) or SOME_NODES
    return os.environ[NODE_CLASS]


def safe_name(text: str) -> str:
    """A text as a part of a file's name.

    >>> safe_name("'long'"), safe_name("haswell&big"), safe_name("../x"), safe_name("")
    ('long', 'haswell_big', 'x', '')
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("._-")


def given_cores(arguments: Sequence[str] | None, cores: int) -> int:
    """Cores that the user's Snakemake was given, on a cluster the most of a job; ``cores`` are those of this one."""
    if arguments is None:
        return int(os.environ.get(CORES, cores))
    os.environ[CORES] = str(cores)
    return cores


def starting_folder(directory: Path | None) -> Path:
    """Where the command was given: profiles are meant from there, but ``--directory`` has left it by now."""
    here, before = Path.cwd(), Path(os.environ.get("PWD", "/"))
    return before if directory is not None and (before / directory).resolve() == here else here


def find_workflow_profile(asked: str | None, start: Path, snakefile: Path) -> Path | None:
    """Where Snakemake finds the workflow profile: as a path, below ``profiles/``, or beside the Snakefile."""
    if asked == "none":
        return None
    name = asked or "default"
    candidates = [start / name, start / "profiles" / name, snakefile.parent / "profiles" / name]
    found = next((candidate for candidate in candidates if candidate.exists()), None)
    if asked and found is None:
        raise SettingsError(
            "there is no such workflow profile", where=f"--workflow-profile {asked}", fix="give its full path"
        )
    return found


def effective_config(
    config: Mapping[str, Any], command_line: Mapping[str, Any], arguments: Sequence[str] | None, snakefile: Path
) -> dict[str, Any]:
    """The configuration with the profiles' entries restored under those of the command line.

    Parameters
    ----------
    config
        What Snakemake made of configuration files and command line.
    command_line
        Snakemake's ``--config`` alone (a profile's entries if the command line had none).
    arguments
        Command line of the main process, or ``None`` in a process that Snakemake started for a job: that one
        is not given the profiles, and takes what the main process left in the environment.
    snakefile
        The main Snakefile.
    """
    if arguments is None:
        from_profiles = json.loads(os.environ.get(ENVIRONMENT, "{}"))
    else:
        from_profiles = profile_config(arguments, snakefile)
        os.environ[ENVIRONMENT] = json.dumps(from_profiles)
    effective: dict[str, Any] = {}
    for layer in (config, from_profiles, command_line):
        update_config(effective, layer)
    return effective
