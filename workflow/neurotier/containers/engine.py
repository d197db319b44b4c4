"""The container engine: Apptainer, or else Singularity, and explanations of its failures."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.core.configuration import read_yaml
from neurotier.core.errors import ContainerError, one_line
from neurotier.core.foreign import TEXT_BYTES
from neurotier.meter.tree import die_with_parent

NAMES = ("apptainer", "singularity")
OWN_VARIABLES = re.compile(r"(APPTAINER|SINGULARITY)(?!_(CONFIGDIR|DOCKER_\w+|NOHTTPS)$)")
"""The engine's own variables that are not passed to it: they could bind or set anything in the container."""

MISSING = {
    127: ("the image has no command {!r}", "name an image that holds the tool"),
    126: ("{!r} in the image is not executable", "correct the image"),
}
"""Exit codes of a shell if a program does not exist or cannot be executed: what each means, and what to do."""


def find_engine() -> str:
    """Path of the engine.

    Raises
    ------
    ContainerError
        If there is none on PATH.
    """
    if path := next(filter(None, map(shutil.which, NAMES)), None):
        return path
    raise ContainerError(
        f"neither {' nor '.join(NAMES)} is on PATH",
        "--sdm apptainer",
        "install it (containers/README.md says how), or leave the switch out to run on the host",
    )


LABELS = "/.singularity.d/labels.json"
"""File in an image with the labels that describe it."""

LABEL_NAMES = ("org.opencontainers.image.version", "org.label-schema.version", "Version", "version")


def labelled_version(text: str) -> str:
    """The version in an image's labels; ``unknown`` if they have none, or cannot be read.

    >>> labelled_version('{"Version": "1.2"}'), labelled_version("[]")
    ('1.2', 'unknown')
    """
    with suppress(ValueError, RecursionError, AttributeError, StopIteration):
        labels = json.loads(text)
        return next(one_line(str(labels[name]))[:200] for name in LABEL_NAMES if labels.get(name))
    return "unknown"


def clean_environment() -> dict[str, str]:
    """The environment for the engine, without :data:`OWN_VARIABLES`.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"APPTAINER_BIND": "/home", "PATH": "/bin"}, clear=True):
    ...     clean_environment()
    {'PATH': '/bin'}
    """
    return {name: value for name, value in os.environ.items() if not OWN_VARIABLES.match(name)}


def explain(
    said: str, where: object, doing: str = "start", problem: str = "the container did not start", fix: str = ""
) -> ContainerError:
    """The error for what an engine printed when it failed.

    Parameters
    ----------
    said
        What it printed.
    where
        The image or task concerned.
    doing
        What the engine was doing, a key of ``complaints.yaml``.
    problem, fix
        What to say, with the last error printed, if nothing in that file matches.

    Examples
    --------
    >>> str(explain("FATAL: squashfuse_ll exited: fuse: failed to open /dev/fuse: Permission denied", "x.sif"))
    'x.sif: this user may mount no image file here (FUSE); set containers.form to sandbox, ...'
    >>> str(explain("runtime/cgo: pthread_create failed: Resource temporarily unavailable\\ngs 0x0", "x.sif"))
    'x.sif: this user may have no more processes; see the limits (ulimit -a), and start the same command again'
    >>> str(explain("FATAL ERROR: Failed to write to output filesystem", "x.def", "definition")).partition(",")[0]
    'x.def: there is no room for it; free some space on the tier of the results'
    """
    for pattern, meaning, remedy in read_yaml(Path(__file__).with_name("complaints.yaml").read_text())[doing]:
        if re.search(pattern, said, re.IGNORECASE):
            return ContainerError(meaning.format(machine=os.uname().machine), where, remedy)
    lines = [line for line in said.splitlines() if re.match(r"\s*(FATAL|ERROR)", line)] or said.splitlines()[-1:]
    return ContainerError(f"{problem}: {lines[-1].strip() if lines else 'no reason given'}", where, fix)


def run_logged(command: list[Any], log: Path, **options: Any) -> tuple[int, str]:
    """Run a command that prints to a log; returns exit code and output. :func:`subprocess.run` takes ``options``."""
    with log.open("ab") as file:
        begin = file.tell()
        options |= {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, "preexec_fn": die_with_parent}
        code = subprocess.run(command, **options).returncode
    return code, read_from(log, begin)


def read_from(log: Path, begin: int) -> str:
    """The end of what was added to a log after it was ``begin`` bytes long."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - TEXT_BYTES))
        return file.read().decode(errors="replace")
