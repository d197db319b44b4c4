"""An environment in which DataLad works: git and git-annex are found, nothing prompts, commits are possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from neurotier.core.errors import SourceError

TRANSPORTS = ("https", "http", "ssh", "git", "file")
"""Schemes of addresses that only fetch."""


def prepare_environment() -> None:
    """Prepare this process and its children; to be called before DataLad is imported.

    Variables set by the user stay. git-annex is installed from a wheel, next to Python. A git identity is set only
    where there is none, since git-annex cannot record the location of a clone without one.

    Raises
    ------
    SourceError
        If git is not installed.
    """
    if shutil.which("git") is None:
        raise SourceError("git is not installed", fix="install git; DataLad needs it")
    folders = [str(Path(sys.executable).parent), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(folders))
    quiet = {"GIT_TERMINAL_PROMPT": "0", "DATALAD_LOG_LEVEL": "critical", "DATALAD_UI_PROGRESSBAR": "none"}
    # Whatever a dataset's own configuration asks for: only fetching, and clones that share nothing with their source.
    asked = {"GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS), "DATALAD_CLONE_RECKLESS": ""}
    for variable, value in (quiet | asked).items():
        os.environ.setdefault(variable, value)
    for key, value in {"name": "neurotier", "email": "neurotier@localhost"}.items():
        known = subprocess.run(["git", "config", f"user.{key}"], capture_output=True, check=False)
        if known.returncode != 0:
            for who in ("AUTHOR", "COMMITTER"):
                os.environ.setdefault(f"GIT_{who}_{key.upper()}", value)


def ask_git(repository: Path, *arguments: str, **variables: str) -> str | None:
    """Output of a git command for this repository, never for one above it; ``None`` if it fails."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(repository.absolute().parent), **variables}
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout if done.returncode == 0 else None
