"""Health of clones: damage that a power cut does to a git repository, found before git or git-annex fails on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.core.errors import StateError
from neurotier.core.files import exclusive, read_json, remove_tree
from neurotier.core.places import Places
from neurotier.dataset.datalad_environment import ask_git, prepare_environment

LOOK_AGAIN_S = 1.0


def is_broken(repository: Path) -> bool:
    """Whether git or git-annex cannot work in a repository.

    It is asked twice, since a run for other results may share the clone and be fetching into it.
    """
    if not looks_broken(repository):
        return False
    time.sleep(LOOK_AGAIN_S)
    return looks_broken(repository)


def looks_broken(repository: Path) -> bool:
    """Whether git finds refs, objects or an index unusable, also git-annex's own, or its annex has lost its name."""
    git_folder = ask_git(repository, "rev-parse", "--absolute-git-dir")
    if git_folder is None or ask_git(repository, "rev-parse", "--verify", "-q", "HEAD") is None:
        return True
    annex = Path(git_folder.strip(), "annex")
    for file in (annex / "journal").glob("*"):
        with suppress(FileNotFoundError):  # an empty one, as a power cut leaves, hides what git-annex's branch says
            if file.stat().st_size == 0:
                file.unlink()
    has_branch, has_name = (
        ask_git(repository, *words) is not None
        for words in (("rev-parse", "--verify", "-q", "refs/heads/git-annex"), ("config", "annex.uuid"))
    )
    objects = ask_git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
    return (
        has_branch != has_name
        or objects is None
        or " missing" in objects  # as git says of one that is there and cannot be read
        or ask_git(repository, "fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress") is None
        or ask_git(repository, "ls-files", GIT_INDEX_FILE=str(annex / "index")) is None
    )


def set_aside(folder: Path, clone: Path, say: Callable[[str], None]) -> None:
    """Make way for a new clone of a dataset, or of a site in it; contents may be nowhere else, and stay.

    Parameters
    ----------
    folder
        The clone, or a site in it.
    clone
        The clone.
    say
        Takes a line that names where it lies now, if it had contents.
    """
    if folder != clone and not any((folder / ".git" / "annex" / "objects").glob("*")):
        remove_tree(folder)
    else:
        name = "-".join((clone.name, *folder.relative_to(clone).parts))
        aside = clone.with_name(f"{name}-until-{time.strftime('%Y%m%dT%H%M%S')}")
        folder.rename(aside)
        say(f"{folder} is now {aside}; remove that if nothing in it is needed")
    if folder != clone:
        folder.mkdir()  # an empty folder stands for a sub-dataset that is not installed


def indexed_dataset(places: Places) -> dict[str, Any]:
    """What is known of the dataset that was cloned last; empty if nothing is."""
    try:
        known: dict[str, Any] = read_json(places.index / "dataset.json")
    except (FileNotFoundError, StateError):
        return {}
    return known


def renew_clone(places: Places, say: Callable[[str], None]) -> None:
    """Set aside the indexed clone, or the sites in it, if git cannot use them any more, and forget unreachable sites.

    The jobs that need them clone them again; without its record, Snakemake has the clone completed. To be called at the
    start of a run, before Snakemake decides what to do, and while no other run works on the results. Plain folders and
    anything else of the user's is never touched.
    """
    data = indexed_dataset(places)
    clone = Path(data.get("path", ""))
    if data.get("kind") == "datalad" and clone.parent.absolute() == places.datasets.absolute() and clone.exists():
        prepare_environment()
        with exclusive(clone):
            for folder in (clone, *(clone / site for site in data["sites"] if site)):
                if (folder / ".git").exists() and is_broken(folder):
                    say(f"{folder} is damaged (after a power cut?), and is cloned again")
                    set_aside(folder, clone, say)
    if data.get("unreachable"):
        (places.index / "dataset.json").unlink(missing_ok=True)
