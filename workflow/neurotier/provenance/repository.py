"""The DataLad dataset of derivatives: made where they lie, written by one process, and taken up again after a kill.

Files of the annex are unlocked: jobs, healing and people go on finding files and no links. With ``annex.thin`` each is
a hard link of the annex's own copy, so that no byte lies on the results tier twice. That suits derivatives, which are
replaced by a rename and never written to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neurotier.core.errors import BusyError, InputError, TierError, one_line
from neurotier.core.files import remove_whatever
from neurotier.dataset.health import ask_git, is_broken
from neurotier.provenance.source import RAW, Raw

ATTRIBUTES = "* annex.largefiles=(((mimeencoding=binary)and(largerthan=0))or(largerthan=1mb))"
"""What goes into the annex; text goes into git, as DataLad's procedure ``text2git`` has it, unless it is large."""

OPTIONS = {
    "annex.thin": "true",
    "annex.addunlocked": "true",
    "gc.autoDetach": "false",  # what runs on in the background would be ended with the run
    "core.fsync": "committed",  # an object that a power cut leaves empty would make the dataset unusable
}


def open_dataset(folder: Path, was_killed: bool, say: Callable[[str], None]) -> Any:
    """The DataLad dataset in a folder, which becomes one if it is none; files that are there stay untouched.

    Parameters
    ----------
    folder
        Derivatives of a site, or the folder of all sites.
    was_killed
        Whether who saved derivatives last was killed: git's locks are then its.
    say
        Takes a line per step, for the user.

    Raises
    ------
    BusyError
        If another program is writing to the repository.
    InputError
        If the repository is damaged, or not one of DataLad's.
    """
    from datalad.distribution.dataset import Dataset

    repository = folder / ".git"
    if os.path.lexists(repository) and (repository.is_symlink() or not repository.is_dir()):
        raise InputError("is no folder", where=str(repository), fix="remove it, and start the same command again")
    locks = locks_in(repository)
    if locks and not was_killed:
        raise BusyError(
            "another program is writing to this dataset",
            where=str(locks[0]),
            fix="wait for it; if there is none, remove this file, and start the same command again",
        )
    for lock in locks:
        remove_whatever(lock)
    if was_killed and repository.exists() and was_being_made(repository):
        for name in (".datalad", ".gitattributes", ".git"):  # it was being made: no commit was ever in it
            remove_whatever(folder / name)
    if not repository.exists():
        make_dataset(folder, say)
    elif not is_complete(folder) or is_broken(folder):
        raise InputError(
            "is damaged, or not a DataLad dataset with an annex",
            where=str(repository),
            fix="move it away, and start the same command again: the derivatives stay, their history begins anew",
        )
    for key, value in OPTIONS.items():
        if (ask_git(folder, "config", "--local", key) or "").strip() != value:
            run_git(folder, "config", "--local", key, value)
    run_git(
        folder, "reset", "--quiet"
    )  # what was staged and not committed, by a save that was killed or met a full tier
    return Dataset(str(folder))


def make_dataset(folder: Path, say: Callable[[str], None]) -> None:
    """Make a folder a DataLad dataset, without saving what is in it."""
    from datalad.api import create
    from datalad.support.exceptions import IncompleteResultsError

    from neurotier.dataset.attempts import first_message

    say(f"making {folder} a DataLad dataset")
    try:
        create(path=str(folder), force=True, result_renderer="disabled")
    except IncompleteResultsError as error:
        raise unsaved(folder, first_message(error)) from None
    run_git(folder, "annex", "config", "--set", "annex.addunlocked", "true")  # for clones


def is_complete(folder: Path) -> bool:
    """Whether a repository is a DataLad dataset with an annex."""
    has_annex = ask_git(folder, "config", "--local", "annex.uuid")
    return bool(has_annex and ask_git(folder, "cat-file", "-e", "HEAD:.datalad/config") is not None)


def was_being_made(repository: Path) -> bool:
    """Whether a repository has no branch but git-annex's own: one that is damaged has the file of its branch."""
    branches = {file.name for file in (repository / "refs" / "heads").glob("*")}
    return branches <= {"git-annex"} and not (repository / "packed-refs").exists()


def locks_in(repository: Path) -> list[Path]:
    """Files by which git keeps others away, and which a killed git leaves."""
    return [
        *sorted(repository.glob("*.lock")),
        *sorted((repository / "refs").rglob("*.lock")),
        *sorted((repository / "annex").glob("*.lock")),
    ]


def run_git(folder: Path, *arguments: str) -> str:
    """Output of a git command in a dataset of derivatives.

    Raises
    ------
    TierError
        If it fails, as on a full tier.
    """
    from datalad.runner import CommandError, GitRunner, StdOutErrCapture

    try:
        return str(GitRunner(cwd=str(folder)).run(["git", *arguments], protocol=StdOutErrCapture)["stdout"])
    except CommandError as error:
        raise unsaved(folder, str(error.stderr or error).strip().rsplit("\n", 1)[-1]) from None


def unsaved(folder: Path, reason: str) -> TierError:
    """The error for derivatives that could not be saved; they themselves are there."""
    return TierError(
        f"the derivatives could not be saved: {one_line(reason)}",
        where=str(folder),
        fix="mend that (is the tier full?), and start the same command again",
    )


def register(folder: Path, raw: Raw) -> None:
    """Stage the raw dataset as a sub-dataset at its commit, without installing it."""
    (folder / RAW).mkdir(parents=True, exist_ok=True)  # without the folder, git takes the sub-dataset for removed
    facts = {"path": RAW, "url": raw.address, "datalad-id": raw.identifier}
    for key, value in facts.items():
        if value:
            run_git(folder, "config", "--file", ".gitmodules", f"submodule.{RAW}.{key}", value)
    run_git(folder, "update-index", "--add", "--cacheinfo", f"160000,{raw.commit},{RAW}")


def commit_staged(folder: Path, message: str) -> None:
    """Commit what is staged, if anything is."""
    if ask_git(folder, "diff", "--cached", "--quiet") is None:
        run_git(folder, "commit", "--quiet", "--message", message)


def changed_entries(folder: Path) -> tuple[set[str], set[str]]:
    """Participants' folders, and files beside them, that are not as they were saved, and those that are gone."""
    listed = run_git(folder, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--", "sub-*")
    changed = {entry[3:].split("/", 1)[0] for entry in listed.split("\0") if entry}
    return changed, {name for name in changed if not os.path.lexists(folder / name)}


def forget(folder: Path, names: Sequence[str]) -> None:
    """Take participants whose folders are gone out of a dataset; its history keeps them."""
    run_git(folder, "rm", "-r", "--cached", "--quiet", "--", *names)
    commit_staged(folder, f"Remove {', '.join(names)}, no longer there")
