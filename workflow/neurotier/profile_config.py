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

ENVIRONMENT = "NEUROTIER_PROFILE_CONFIG"


def profile_config(arguments: Sequence[str], snakefile: Path) -> dict[str, Any]:
    """The ``config:`` entries of the profiles that a Snakemake command line selects, merged.

    Parameters
    ----------
    arguments
        Command line after ``snakemake``.
    snakefile
        The main Snakefile; ``profiles/`` is searched beside it and in the working folder, as Snakemake does.
    """
    from snakemake.cli import get_argument_parser, get_profile_dir, parse_config

    known, _ = get_argument_parser().parse_known_args(list(arguments))
    names = [name for name in known.profile or [] if name != "none"]
    workflow_profile = find_workflow_profile(known.workflow_profile, snakefile)
    names += [str(workflow_profile)] if workflow_profile else []
    merged: dict[str, Any] = {}
    for name in names:
        found = get_profile_dir(name)
        if found is None:
            continue
        entry = (yaml.safe_load(found[1].read_text()) or {}).get("config", {})
        merge(merged, entry if isinstance(entry, Mapping) else parse_config(entry))
    return merged


def find_workflow_profile(asked: str | None, snakefile: Path) -> Path | None:
    """Where Snakemake finds the workflow profile: as a path, below ``profiles/``, or beside the Snakefile."""
    if asked == "none":
        return None
    name = Path(asked or "default")
    if asked and name.is_file():
        return name
    candidates = [name, Path("profiles") / name, snakefile.parent / "profiles" / name]
    return next((candidate for candidate in candidates if candidate.exists()), None)


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
