"""Keep a profile's ``config:`` when the command line has a ``--config`` of its own.

Snakemake merges profiles and command line by top-level key: ``config: {placement: {work: tmpfs}}`` in a storage
profile is lost without a word as soon as the user adds ``--config results=elsewhere``. A run that was meant for
one tier would then measure another, so the profiles are read again here and merged key by key: general profiles,
then the workflow profile, then the command line (the order Snakemake documents).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from neurotier.core.errors import SettingsError

ENVIRONMENT = "NEUROTIER_PROFILE_CONFIG"


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
    from snakemake.cli import get_argument_parser, get_profile_dir, parse_config

    known, _ = get_argument_parser().parse_known_args(list(arguments))
    start = starting_folder(known.directory)
    files = [get_profile_dir(str(path_from(start, name))) for name in known.profile or [] if name != "none"]
    workflow_profile = find_workflow_profile(known.workflow_profile, start, snakefile)
    files += [get_profile_dir(str(workflow_profile))] if workflow_profile else []
    merged: dict[str, Any] = {}
    for found in files:
        entry = (yaml.safe_load(found[1].read_text()) or {}).get("config", {}) if found else {}
        merge(merged, entry if isinstance(entry, Mapping) else parse_config(entry))
    return merged


LOOKING = (
    *("dryrun", "touch", "lint", "print_compilation", "containerize", "generate_unit_tests", "unlock", "archive"),
    *("dag", "rulegraph", "filegraph", "d3dag", "reporter", "report", "summary", "detailed_summary"),
    *("list_target_rules", "list_rules", "list_changes", "list_input_changes", "list_params_changes", "list_untracked"),
    *("cleanup_metadata", "cleanup_shadow", "conda_cleanup_envs", "conda_create_envs_only", "list_conda_envs"),
    *("container_cleanup_images", "delete_all_output", "delete_temp_output"),
)
"""Options with which Snakemake runs no job."""


def only_looks(arguments: Sequence[str]) -> bool:
    """Whether a Snakemake command line runs no job.

    >>> only_looks(["--cores", "2", "-n"]), only_looks(["--cores", "2"])
    (True, False)
    """
    from snakemake.cli import get_argument_parser

    known, _ = get_argument_parser().parse_known_args(list(arguments))
    return any(getattr(known, option, None) for option in LOOKING)


def starting_folder(directory: Path | None) -> Path:
    """Where the command was given: profiles are meant from there, but ``--directory`` has left it by now."""
    here, before = Path.cwd(), Path(os.environ.get("PWD", "/"))
    return before if directory is not None and (before / directory).resolve() == here else here


def path_from(start: Path, name: str) -> Path:
    """A profile's name as a path, if it is one there; else as it is, for Snakemake's own search."""
    return start / name if (start / name).exists() else Path(name)


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
        merge(effective, layer)
    return effective


def merge(target: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Put ``layer`` over ``target``, mapping by mapping.

    >>> target = {"placement": {"work": "local", "results": "local"}}
    >>> merge(target, {"placement": {"work": "tmpfs"}})
    >>> target
    {'placement': {'work': 'tmpfs', 'results': 'local'}}
    """
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = dict(value) if isinstance(value, Mapping) else value
