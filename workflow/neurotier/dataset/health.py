"""Health of clones: damage that a power cut does to a git repository, found before git or git-annex fails on it."""

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
"""Files of a git folder that may be missing, but are never empty."""

NEVER_EMPTY_BELOW = ("refs", "objects", "annex/journal")
"""Folders in a git folder whose files are never empty."""


def is_broken(repository: Path) -> bool:
    """Whether a clone of ours is unusable: files of git are empty, or objects that HEAD needs are missing.

    It is checked twice, since a run for other results may share the clone and be fetching into it.
    """
    if not looks_broken(repository):
        return False
    time.sleep(LOOK_AGAIN_S)
    return looks_broken(repository)


def looks_broken(repository: Path) -> bool:
    """Whether a repository is unusable at this moment."""
    git_folder = ask_git(repository, "rev-parse", "--absolute-git-dir")
    if git_folder is None or any(empty_files(Path(git_folder.strip()))):
        return True
    branches = [name for name in ("HEAD", "git-annex") if ask_git(repository, "rev-parse", "--verify", "-q", name)]
    if "HEAD" not in branches or ask_git(repository, "ls-files") is None:
        return True
    return any(ask_git(repository, "ls-tree", "-r", name) is None for name in branches)


def empty_files(git_folder: Path) -> Iterator[Path]:
    """Empty files of a git folder that are never empty in a sound one."""
    for name in NEVER_EMPTY:
        file = git_folder / name
        if file.is_file() and file.stat().st_size == 0:
            yield file
    for name in NEVER_EMPTY_BELOW:
        for folder, _, files in os.walk(git_folder / name):
            for file in (Path(folder, each) for each in files):
                if file.suffix == ".lock" or file.name.startswith("tmp_"):  # another run may be writing them now
                    continue
                with suppress(FileNotFoundError):
                    if file.lstat().st_size == 0:
                        yield file


def ask_git(repository: Path, *arguments: str) -> str | None:
    """Output of a git command for this repository, never for one above it; ``None`` if it fails."""
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
    """Remove the indexed clone, or the sites in it, if git cannot use them any more.

    The jobs that need them clone them again. To be called while no run works on the results. Plain folders and anything
    else of the user's is never touched.
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
                say(f"{folder} is damaged (after a power cut?), and is cloned again")
                remove_tree(folder)
                if folder != clone:
                    folder.mkdir()  # an empty folder stands for a sub-dataset that is not installed
