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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from neurotier.analysis.activity import How
from neurotier.analysis.staging import aside, take_dataset_back
from neurotier.core.credentials import without_credentials
from neurotier.core.errors import BusyError, InputError, NeurotierError, TierError, one_line
from neurotier.core.files import flush_file_system, partial_of, remove_tree, remove_whatever
from neurotier.core.settings import Say
from neurotier.dataset.addresses import refusal
from neurotier.dataset.commands import ask_git, call_git, message_of
from neurotier.dataset.sites import commit, identifier_of, is_broken
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import RAW, add_lines, command_of

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


def open_dataset(folder: Path, killed_on: str, say: Say) -> Any:
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
    """Output of a git command in a dataset of derivatives; :func:`unsaved` if it fails, as on a full tier."""
    done = call_git(folder, *arguments)
    if done.returncode != 0:
        raise unsaved(folder, message_of([], done.stderr))
    return done.stdout


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
    # the commit that was indexed: results that share the clone may have moved it since
    analysed = dataset.sites.get(site, {}).get("version") or here
    (folder / RAW).mkdir(parents=True, exist_ok=True)  # without the folder, git takes the sub-dataset for removed
    for key, value in (("path", RAW), ("url", address), ("datalad-id", identifier_of(clone))):
        if value:
            run_git(folder, "config", "--file", ".gitmodules", f"submodule.{RAW}.{key}", value)
    run_git(folder, "update-index", "--add", "--cacheinfo", f"160000,{analysed},{RAW}")
    return analysed


def changed_entries(folder: Path) -> set[str]:
    """Participants' folders, and files beside them, that are not as they were saved, or gone."""
    listed = run_git(folder, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--", "sub-*")
    return {entry[3:].split("/", 1)[0] for entry in listed.split("\0") if entry}


def refuse_ignored(folder: Path) -> None:
    """Raise :class:`InputError` if git would leave files out, as a tool's own ``.gitignore`` may have it."""
    ignored = run_git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    if ignored:
        raise InputError(
            f"{one_line(ignored.split(chr(0))[0])} would not be saved: git is told to ignore it",
            where=str(folder),
            fix="remove the .gitignore that names it (or see .git/info/exclude), and start the same command again",
        )


@dataclass(frozen=True)
class Made:
    """The derivatives of a participant, or what the group level of a site has made.

    Attributes
    ----------
    name
        ``[SITE/]sub-LABEL``; empty for the group level.
    inputs
        What was read, as paths below the dataset of derivatives.
    how
        How they were made; empty if the facts of that run are lost.
    outputs
        A participant's folder and, from an app, files beside it; the files of the group level. Below the site.
    shared
        Path and checksum of each file that a participant has written for all.
    """

    name: str
    inputs: list[str]
    how: How
    outputs: list[str]
    shared: dict[str, str] = field(default_factory=dict)


def save(dataset: Any, message: str, paths: Sequence[str] = (), made: Sequence[Made] = ()) -> None:
    """Save some paths of a dataset in one commit, or else what was ``made`` in one way.

    If that is known, the commit has a run record by which ``datalad rerun`` makes it again. The source is not among the
    paths: if it is installed, it may be at another commit.
    """
    from datalad.core.local.run import run_command

    how, paths = made[0].how if made else {}, [*paths, *(path for one in made for path in one.outputs)]
    if not how:
        whole = [str(dataset.pathobj / path) for path in paths]
        dataset.save(path=whole, message=message, result_renderer="disabled")
        return
    results = run_command(
        command_of(how, "{inputs}"),
        dataset=dataset,
        inputs=[path for one in made for path in one.inputs],
        outputs=paths,
        explicit=True,
        inject=True,  # it has been run: nothing is executed here
        message=message,
        # of the group level, all of it would name everyone once more
        extra_info={"exit": 0, "neurotier": {key: value for key, value in how.items() if key != "group"}},
    )
    if bad := [result for result in results if result["status"] in ("error", "impossible")]:
        raise unsaved(Path(dataset.path), message_of(bad, "DataLad gave no reason"))
