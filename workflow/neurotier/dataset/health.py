"""Health of clones: what a power cut leaves of a git repository, found before git or git-annex stumbles over it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import exclusive, read_json, remove_tree
from neurotier.core.places import Places
from neurotier.dataset.datalad_environment import prepare_environment

LOOK_AGAIN_S = 1.0

NEVER_EMPTY = ("HEAD", "config", "index", "packed-refs", "annex/index")
"""Files of a git folder that are missing or hold something."""

NEVER_EMPTY_BELOW = ("refs", "objects", "annex/journal")
"""Folders in a git folder whose files all hold something."""


def is_broken(repository: Path) -> bool:
    """Whether a repository of ours cannot be used any more: files of git are empty, or what HEAD needs is missing.

    It is looked at twice: other results may share the clone, and fetch into it meanwhile.
    """
    if not looks_broken(repository):
        return False
    time.sleep(LOOK_AGAIN_S)
    return looks_broken(repository)


def looks_broken(repository: Path) -> bool:
    """Whether a repository cannot be used at this moment."""
    git_folder = ask_git(repository, "rev-parse", "--absolute-git-dir")
    if git_folder is None or any(empty_files(Path(git_folder.strip()))):
        return True
    branches = [name for name in ("HEAD", "git-annex") if ask_git(repository, "rev-parse", "--verify", "-q", name)]
    if "HEAD" not in branches or ask_git(repository, "ls-files") is None:
        return True
    return any(ask_git(repository, "ls-tree", "-r", name) is None for name in branches)


def empty_files(git_folder: Path) -> Iterator[Path]:
    """Files of a git folder that hold nothing, and never do in one that is whole."""
    for name in NEVER_EMPTY:
        file = git_folder / name
        if file.is_file() and file.stat().st_size == 0:
            yield file
    for name in NEVER_EMPTY_BELOW:
        for folder, _, files in os.walk(git_folder / name):
            for file in (Path(folder, each) for each in files):
                if file.suffix == ".lock" or file.name.startswith("tmp_"):  # git of another run is writing them now
                    continue
                with suppress(FileNotFoundError):
                    if file.lstat().st_size == 0:
                        yield file


def ask_git(repository: Path, *arguments: str) -> str | None:
    """What git says of this very repository, and not of one around it; ``None`` if it fails."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(repository.absolute().parent)}
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def remove_broken_clone(places: Places, say: Callable[[str], None]) -> None:
    """Remove the clone that was indexed, or those sites of it, that git cannot use any more.

    The jobs that need it clone it anew. To be called while nobody works on the results; a plain folder and whatever
    else is the user's own is never touched.
    """
    try:
        data = read_json(places.index / "dataset.json")
    except (FileNotFoundError, StateError):
        return
    clone = Path(data["path"])
    if data["kind"] != "datalad" or clone.parent.absolute() != places.datasets.absolute() or not clone.exists():
        return
    prepare_environment()
    with exclusive(clone):
        for folder in (clone, *(clone / site for site in data["sites"] if site)):
            if (folder / ".git").exists() and is_broken(folder):
                say(f"{folder} is damaged (after a power cut?), and is cloned anew")
                remove_tree(folder)
                if folder != clone:
                    folder.mkdir()  # as git leaves the folder of a sub-dataset that is not installed
