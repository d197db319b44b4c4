"""The DataLad dataset of derivatives: made where they lie, written by one process, and taken up again after a kill.

Files of the annex are unlocked: jobs, healing and people go on finding files and no links. With ``annex.thin`` each is
a hard link of the annex's own copy, so that no byte lies on the results tier twice. That suits derivatives, which are
replaced by a rename and never written to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neurotier.core.errors import BusyError, InputError, NeurotierError, TierError, one_line
from neurotier.core.files import remove_whatever
from neurotier.core.quantities import first_of
from neurotier.dataset.attempts import first_message, message_of
from neurotier.dataset.datalad_environment import ask_git
from neurotier.dataset.health import is_broken
from neurotier.provenance.description import command_of
from neurotier.provenance.made import Made
from neurotier.provenance.source import RAW, Raw
from neurotier.provenance.writer import Writer, clear_locks

OPTIONS = {
    "annex.thin": "true",
    "annex.addunlocked": "true",
    "gc.autoDetach": "false",  # what runs on in the background would be ended with the run
    "core.fsync": "committed",  # an object that a power cut leaves empty would make the dataset unusable
}

MOST_NAMES = 5000
"""Names in one command: Linux takes some 2 MB of them."""

OTHERS = re.compile(
    r"\.lock'?: File exists|lock config file .*: File exists|Another git process"
    r"|cannot lock ref .*(File exists|but expected)"
)
"""What git says when somebody else is writing to its repository."""


def open_dataset(folder: Path, before: Writer | None, say: Callable[[str], None]) -> Any:
    """The DataLad dataset in a folder, which becomes one if it is none; files that are there stay untouched.

    Parameters
    ----------
    folder
        Derivatives of a site, or the folder of all sites.
    before
        The writer that was killed, if one was: git's locks are then its (:mod:`neurotier.provenance.writer`).
    say
        Takes a line per step, for the user.

    Raises
    ------
    BusyError
        If another program is writing to the repository.
    InputError
        If the repository is damaged, or not one of DataLad's.
    """
    from datalad.api import Dataset, create

    repository = folder / ".git"
    if os.path.lexists(repository) and (repository.is_symlink() or not repository.is_dir()):
        raise InputError("is no folder", where=str(repository), fix="remove it, and start the same command again")
    clear_locks(folder, before)
    if before and repository.exists() and was_being_made(repository):
        for name in (".datalad", ".gitattributes", ".git"):  # it was being made: no commit was ever in it
            remove_whatever(folder / name)
    if not repository.exists():
        say(f"making {folder} a DataLad dataset")
        with naming_unsaved(folder):
            create(path=str(folder), force=True, result_renderer="disabled")
        run_git(folder, "annex", "config", "--set", "annex.addunlocked", "true")  # for clones
    elif (
        not ask_git(folder, "config", "--local", "annex.uuid")
        or ask_git(folder, "cat-file", "-e", "HEAD:.datalad/config") is None
        or is_broken(folder)
    ):
        raise InputError(
            "is damaged, or not a DataLad dataset with an annex",
            where=str(repository),
            fix="move it away, and start the same command again: the derivatives stay, their history begins anew",
        )
    for key, value in OPTIONS.items():
        run_git(folder, "config", "--local", key, value)
    run_git(folder, "reset", "--quiet")  # what a save that was killed, or met a full tier, has staged
    return Dataset(str(folder))


def was_being_made(repository: Path) -> bool:
    """Whether a repository has no branch but git-annex's own, in whichever form; a damaged one has some of it."""
    branches = {file.name for file in (repository / "refs" / "heads").glob("*")}
    others = [repository / name for name in ("packed-refs", "reftable", "logs/HEAD")]
    return branches <= {"git-annex"} and not any(map(os.path.lexists, others))


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
        lines = str(error.stderr or error).strip().splitlines()
        fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]  # advice may follow it
        raise unsaved(folder, (fatal or lines[-1:] or [""])[0]) from None


@contextmanager
def naming_unsaved(folder: Path) -> Iterator[None]:
    """Turn what DataLad says of a dataset that it could not make or save into :func:`unsaved`."""
    from datalad.support.exceptions import IncompleteResultsError

    try:
        yield
    except IncompleteResultsError as error:
        raise unsaved(folder, first_message(error)) from None


def unsaved(folder: Path, reason: str) -> NeurotierError:
    """The error for derivatives that could not be saved; they themselves are there."""
    if OTHERS.search(reason):
        return BusyError(
            f"another program is writing to this dataset: {one_line(reason)}",
            where=str(folder),
            fix="wait for it, and start the same command again",
        )
    return TierError(
        f"the derivatives could not be saved: {one_line(reason)}",
        where=str(folder),
        fix="mend that (is the tier full?), and start the same command again",
    )


def register(folder: Path, raw: Raw) -> None:
    """Stage the raw dataset as a sub-dataset at its commit, without installing it."""
    (folder / RAW).mkdir(parents=True, exist_ok=True)  # without the folder, git takes the sub-dataset for removed
    for key, value in (("path", RAW), ("url", raw.address), ("datalad-id", raw.identifier)):
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


def refuse_ignored(folder: Path) -> None:
    """Raise :class:`InputError` if git would leave files out, as a tool's own ``.gitignore`` may have it."""
    ignored = run_git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    if ignored:
        raise InputError(
            f"{one_line(ignored.split(chr(0))[0])} would not be saved: git is told to ignore it",
            where=str(folder),
            fix="remove the .gitignore that names it (or see .git/info/exclude), and start the same command again",
        )


def forget(folder: Path, names: Sequence[str]) -> None:
    """Take participants whose folders are gone out of a dataset; its history keeps them."""
    for first in range(0, len(names), MOST_NAMES):
        run_git(folder, "rm", "-r", "--cached", "--quiet", "--", *names[first : first + MOST_NAMES])
    commit_staged(folder, f"Remove {first_of(names)}, no longer there")


def save_all(datalad_dataset: Any, paths: Sequence[str], message: str) -> None:
    """Save some paths of a dataset. The source is not among them: if it is installed, it may be at another commit."""
    with naming_unsaved(Path(datalad_dataset.path)):
        datalad_dataset.save(
            path=[str(datalad_dataset.pathobj / path) for path in paths], message=message, result_renderer="disabled"
        )


def record_run(datalad_dataset: Any, made: Sequence[Made], message: str) -> None:
    """Save what was made in the same way in one commit, with a run record by which ``datalad rerun`` makes it again."""
    from datalad.core.local.run import run_command

    how = made[0].how or {}
    results = run_command(
        command_of(how, "{inputs}"),
        dataset=datalad_dataset,
        inputs=[path for one in made for path in one.inputs],
        outputs=[path for one in made for path in one.outputs],
        explicit=True,
        inject=True,  # it has been run: nothing is executed here
        message=message,
        # of the group level, all of it would name everyone once more
        extra_info={"exit": 0, "neurotier": {key: value for key, value in how.items() if key != "group"}},
    )
    if bad := [result for result in results if result["status"] in ("error", "impossible")]:
        raise unsaved(Path(datalad_dataset.path), message_of(bad, "DataLad gave no reason"))
