"""The DataLad dataset of derivatives: made next to them and moved in, written by one process, taken up after a kill.

Files of the annex are unlocked: jobs, healing and people go on finding files and no links. With ``annex.thin`` each is
a hard link of the annex's own copy, so that no byte lies on the results tier twice. That suits derivatives, which are
replaced by a rename and never written to.

git keeps others away by files that a kill leaves behind, and which do not say whose they are. After a save that was
killed, they are removed if that ran on this host, and no git works in the dataset that could hold them.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from neurotier.analysis.staging import aside, take_dataset_back
from neurotier.core.credentials import without_credentials
from neurotier.core.errors import BusyError, InputError, NeurotierError, TierError, one_line
from neurotier.core.files import flush_file_system, partial_of, remove_tree, remove_whatever
from neurotier.dataset.addresses import refusal
from neurotier.dataset.attempts import first_message, message_of
from neurotier.dataset.datalad_environment import ask_git
from neurotier.dataset.health import is_broken
from neurotier.dataset.sites import commit, identifier_of
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import RAW, add_lines, command_of
from neurotier.provenance.made import Made

OPTIONS = {
    "annex.thin": "true",
    "annex.addunlocked": "true",
    "gc.autoDetach": "false",  # what runs on in the background would be ended with the run
    "commit.gpgSign": "false",  # nobody is there to type a passphrase
    "core.excludesFile": os.devnull,  # the user's own names files of an editor, and no derivatives
    "core.fsync": "all",  # an object, an index or a branch that a power cut leaves empty would make it unusable
}

LOCKS = (
    *(".gitmodules.lock", ".git/*.lock", ".git/annex/*.lock", ".git/objects/*.lock"),
    *(".git/objects/info/**/*.lock", ".git/refs/**/*.lock"),
)
"""Files by which git and git-annex keep others away, and which stay when they are killed."""

OTHERS = re.compile(
    r"\.lock'?: File exists|lock config file .*: File exists|Another git process"
    r"|cannot lock ref .*(File exists|but expected)"
)
"""What git says when somebody else is writing to its repository."""


def open_dataset(folder: Path, killed_on: str, say: Callable[[str], None]) -> Any:
    """The DataLad dataset in a folder, which becomes one if it is none; files that are there stay untouched.

    Parameters
    ----------
    folder
        Derivatives of a site, or the folder of all sites.
    killed_on
        The host of the save that was killed, if one was.
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
    take_dataset_back(folder)
    if os.path.lexists(repository) and (repository.is_symlink() or not repository.is_dir()):
        raise InputError("is no folder", where=str(repository), fix="remove it, and start the same command again")
    clear_locks(folder, killed_on)
    if not repository.exists():
        say(f"making {folder} a DataLad dataset")
        remove_tree(partial := partial_of(folder))
        run_git(folder, "init", "--quiet", str(partial))
        for key, value in OPTIONS.items():
            run_git(partial, "config", "--local", key, value)
        here = f"{socket.gethostname()}:{folder}"
        with naming_unsaved(folder):
            create(path=str(partial), force=True, description=here, result_renderer="disabled")
        run_git(partial, "annex", "config", "--set", "annex.addunlocked", "true")  # for clones
        flush_file_system(partial)
        add_lines(folder / ".gitattributes", (partial / ".gitattributes").read_text().splitlines())
        remove_whatever(folder / ".datalad")  # of a dataset whose history was moved away
        partial.rename(aside(folder))
        take_dataset_back(folder)
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
    run_git(folder, "reset", "--quiet")  # what a save that was killed, or met a full tier, has staged
    return Dataset(str(folder))


def clear_locks(folder: Path, killed_on: str) -> None:
    """Remove the locks of git that a save that was killed has left in a dataset.

    Raises
    ------
    BusyError
        If somebody else holds one, or it cannot be known that nobody does.
    """
    locks = sorted({lock for pattern in LOCKS for lock in folder.glob(pattern)})
    if locks and (held := holder(folder, killed_on)):
        raise BusyError(
            f"another program is writing to this dataset ({held})",
            where=str(locks[0]),
            fix="wait for it; if there is none, remove this file, and start the same command again",
        )
    for lock in locks:
        remove_whatever(lock)


def holder(folder: Path, killed_on: str) -> str:
    """What may hold locks of a dataset; empty if it is known that nothing does.

    git changes to the top of a repository before it writes to it. Processes of other users cannot be seen.
    """
    whole, own = folder.resolve(), psutil.Process().children(recursive=True)
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            name = process.name()
            if name.startswith("git") and Path(process.cwd()).is_relative_to(whole) and process not in own:
                return f"process {process.pid}, {name}"
    if not killed_on:
        return "no save of neurotier was killed that could have left it"
    if killed_on != socket.gethostname():
        return f"a save on {killed_on} was killed, and whether git still runs there cannot be seen from here"
    return ""


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


def register(folder: Path, dataset: Dataset, site: str) -> str:
    """Stage the raw dataset of a site as a sub-dataset, without installing it; its commit.

    ``datalad get`` installs it where it is wanted, from its address.

    Raises
    ------
    InputError
        If its clone on the dataset tier is gone, or has no address that may be handed on.
    """
    clone = dataset.path / site
    here = commit(clone)
    if not here:
        raise InputError("is not there any more", where=str(clone), fix="start with --forcerun clone_dataset")
    address = without_credentials((ask_git(clone, "config", "remote.origin.url") or "").strip())
    if not address or refusal(address):
        raise InputError(f"has no address to register: {refusal(address) or 'no remote is named origin'}", str(clone))
    analysed = (
        dataset.sites.get(site, {}).get("version") or here
    )  # results that share the clone may have moved it since
    (folder / RAW).mkdir(parents=True, exist_ok=True)  # without the folder, git takes the sub-dataset for removed
    for key, value in (("path", RAW), ("url", address), ("datalad-id", identifier_of(clone))):
        if value:
            run_git(folder, "config", "--file", ".gitmodules", f"submodule.{RAW}.{key}", value)
    run_git(folder, "update-index", "--add", "--cacheinfo", f"160000,{analysed},{RAW}")
    return analysed


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
