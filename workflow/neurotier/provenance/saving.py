"""Save derivatives in their DataLad datasets: one process at a time, since jobs that save race (datalad#4606).

Jobs publish their derivatives as they do without a dataset. When all jobs have ended, this module saves the derivatives
of each site, and then the dataset above the sites. A commit holds up to 16 participants of a site who were analysed in
the same way, and its run record can make their derivatives again. Derivatives whose bytes have not changed give no
commit. A save that is killed leaves whole commits, and the next start undoes what it had begun.

A dataset is made next to the derivatives and moved in. Files of the annex are unlocked: jobs, repairs and users keep
finding files, not links. With ``annex.thin`` each is a hard link to the annex's own copy, so no byte is on the results
tier twice. That suits derivatives, which are replaced by a rename and never written to.

git locks others out with files that stay if it is killed, and that do not say who made them. After a killed save, they
are removed if the save ran on this host and no git that could hold them works in the dataset.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import psutil

from neurotier.analysis.activity import How, how_of, identifier
from neurotier.analysis.app import app_name
from neurotier.analysis.brains import root_files
from neurotier.analysis.staging import OF_DATASET, aside, first_missing, take_dataset_back
from neurotier.core.errors import (
    BusyError,
    InputError,
    NeurotierError,
    SettingsError,
    SourceError,
    TierError,
    one_line,
    without_credentials,
)
from neurotier.core.files import (
    Record,
    flush_file_system,
    partial_of,
    read_intact_json,
    remove_path,
    remove_tree,
    without,
    write_text,
)
from neurotier.core.places import Places
from neurotier.core.quantities import counted, first_of
from neurotier.core.settings import Say, Settings
from neurotier.core.tables import grouped
from neurotier.dataset.addresses import refusal
from neurotier.dataset.commands import ask_git, call_git, datalad_errors, message_of, prepare_environment
from neurotier.dataset.source import Dataset, commit, fault_of, identifier_of
from neurotier.provenance.description import DESCRIBING, RAW, WRITTEN, add_lines, command_of, describe, owner_of
from neurotier.run.participants import Selected, selected_by

ATTEMPTS, PAUSE_S = 12, 5.0
"""How often to try while another program is writing to a dataset, and the pause in between, s."""

TOGETHER = 16
"""Most participants in a commit, so that making one of them again does not mean making hundreds again."""

MANY = 5000
"""A dataset with more entries gets larger commits: each takes 0.1 ms and 25 bytes for each existing entry."""

PATTERN = str.maketrans("{}[", "???")
"""Characters that become ``?`` in the paths of a run record: DataLad fills in names in braces, and expands patterns, so
that a path with such a character is only found by a pattern."""

COMMAND_BYTES = 60_000
"""Longest list of inputs of a commit: Linux takes 128 KiB in one argument, and DataLad gives the command as one."""


def save_derivatives(dataset: Dataset, settings: Settings, places: Places, say: Say) -> dict[str, str]:
    """Save the derivatives of all sites; returns the commit that each site's dataset is at afterwards.

    Parameters
    ----------
    dataset
        The raw dataset.
    settings, places
        Of the run.
    say
        Prints a line per step, for the user.

    Raises
    ------
    NeurotierError
        If derivatives cannot be saved. They themselves stay as they are.
    """
    check_source(dataset)
    prepare_environment()
    people = made_by_participants(selected_by(places.images_table), settings, places)
    attempts_left = ATTEMPTS
    while True:
        try:
            with writing(places) as killed_on:
                try:
                    with datalad_errors("DataLad"):
                        return save_sites(dataset, people, settings, places, say, killed_on)
                except SourceError as error:  # of git, git-annex or DataLad
                    raise save_error(places.derivatives, error.what) from None
        except BusyError as error:  # such as a user's own commit
            attempts_left -= 1
            if not attempts_left:
                raise
            say(f"waiting: {error}")
            time.sleep(PAUSE_S)


def check_source(dataset: Dataset) -> None:
    """Raise :class:`SettingsError` if a dataset cannot be registered as a source."""
    if dataset.kind == "folder":
        raise SettingsError(
            f"a plain folder ({dataset.path}) has no commit that derivatives could name as their source",
            "config key results_dataset",
            "make the folder a DataLad dataset, or set results_dataset: false",
        )


@contextmanager
def writing(places: Places) -> Iterator[str]:
    """Mark that derivatives are being saved; yields the host of an earlier save that was killed or failed, if any."""
    here = socket.gethostname()
    before = (places.saving.read_text(errors="replace").strip() or here) if places.saving.exists() else ""
    write_text(places.saving, before or here)  # locks of the earlier save may be left until this one has finished
    try:
        yield before
    except BusyError:  # our git was not started, or has ended: locks that the next save finds are not ours
        if not before:
            places.saving.unlink()
        raise
    places.saving.unlink()


def save_sites(
    dataset: Dataset, people: Sequence[Made], settings: Settings, places: Places, say: Say, killed_on: str
) -> dict[str, str]:
    """Save all derivatives of each site, and then the dataset above them; see :func:`save_derivatives`."""
    commits = {}
    by_site = grouped((one.name.rpartition("/")[0], one) for one in people)
    for site in sorted({*dataset.sites, *by_site}):
        of_site = by_site.get(site, [])
        folder = (places.derivatives / site).absolute()
        take_dataset_back(folder)
        if not of_site and not (folder / ".git").is_dir():
            continue
        datalad_dataset = open_dataset(folder, killed_on, say)
        shared, level = list[str](), None
        if of_site:
            shared, level = made_by_group_level(site, of_site, dataset.path / site, settings, places)
            prepare_site(folder, dataset, site, [one.how for one in (*of_site, level) if one and one.how])
        changed = changed_entries(folder)
        left = [one for one in of_site if not changed.isdisjoint(one.outputs)]
        for group in groups(left, TOGETHER if len(os.listdir(folder)) <= MANY else len(of_site)):
            of = first_of(sorted(one.name.rpartition("/")[2] for one in group))
            unknown = f"Add {of}; how they were made is not known any more"
            save(datalad_dataset, f"{group[0].how['name']} of {of}" if group[0].how else unknown, made=group)
        if gone := sorted(name for name in changed if not os.path.lexists(folder / name)):  # the history keeps them
            save(datalad_dataset, f"Remove {first_of(gone)}, no longer there", gone)
        if settings.is_app and of_site:
            name = app_name(settings)
            if shared:
                save(datalad_dataset, f"What participants share of {name}", shared)
            if level:
                save(datalad_dataset, f"Group level of {name}", made=[level])
            rest = {*os.listdir(folder), *changed} - {".git", "sourcedata", RAW, *gone}
            save(datalad_dataset, "What else there is" if level else f"Group level of {name}", sorted(rest))
        if left:
            say(f"{folder}: saved the derivatives of {counted(len(left), 'participant')}")
        commits[site] = commit(folder)
    if any(commits):
        above = open_dataset(places.derivatives.absolute(), killed_on, say)
        save(above, "Save the derivatives of all sites", list(filter(None, commits)))
    flush_file_system(places.state)  # and the derivatives with it: git-annex itself flushes little
    return commits


def prepare_site(folder: Path, dataset: Dataset, site: str, ways: Sequence[How]) -> None:
    """Commit how the derivatives of a site were made, and from what."""
    describe(folder, ways)
    raw = register(folder, dataset, site)
    present = [name for name in (*WRITTEN, *DESCRIBING) if (folder / name).exists()]
    run_git(folder, "add", "--", ".gitmodules", *present)
    if ask_git(folder, "diff", "--cached", "--quiet") is None:
        message = f"Describe the derivatives, and register their source at {raw[:8]}"
        run_git(folder, "commit", "--quiet", "--message", message)
    refuse_ignored(folder)


# What a commit holds.


def made_by_participants(everyone: Selected, settings: Settings, places: Places) -> list[Made]:
    """The derivatives of each participant who has a record, and whose derivatives are complete."""
    found, by_app = [], settings.is_app
    for name, images in everyone.items():
        record = read_intact_json(places.record(name))
        manifest, (site, _, label) = record.get("derivatives", {}), name.rpartition("/")
        if not record or first_missing(manifest, places.analysed(name, by_app)):
            continue
        how = how_it_was_made(record, places)
        if not by_app:
            found.append(Made(name, [f"{RAW}/{image.in_site}" for image in images], how, [label]))
            continue
        entries = {path: PurePosixPath(path).parts[0] for path in manifest}
        own = sorted({entry for entry in entries.values() if owner_of(entry) == label})
        outputs = [entry for entry in own if (places.derivatives / site / entry).exists()]
        shared = {path: str(manifest[path][1]) for path, entry in entries.items() if entry not in own}
        found.append(Made(name, [f"{RAW}/{label}"], how, outputs, shared))  # an app reads the whole folder
    return found


def made_by_group_level(
    site: str, people: Sequence[Made], raw: Path, settings: Settings, places: Places
) -> tuple[list[str], Made | None]:
    """The derivatives of a site apart from the participants' own files.

    Parameters
    ----------
    site
        The site.
    people
        What its participants have made.
    raw
        The clone of the raw dataset, whose files at its root the group level was given.
    settings, places
        Of the run.

    Returns
    -------
    list of str, Made or None
        Files that participants wrote for all of them, and what the group level made or rewrote; ``None`` if there was
        no group level, or how it was run is not known any more. A tool has neither.
    """
    step = read_intact_json(places.step("run_group_level", site))
    if not step:
        return [], None
    apart = {*OF_DATASET, *(entry for one in people for entry in one.outputs)}
    files = {
        path: str(content)
        for path, (_, content) in step["derivatives"].items()
        if PurePosixPath(path).parts[0] not in apart
    }
    shared = sorted(files.items() & {written for one in people for written in one.shared.items()})
    names = [path for path, _ in shared]
    made = sorted(files.keys() - {*names, *DESCRIBING})
    # The image is that of the participants, who would otherwise have been analysed again. The caches may differ from
    # theirs, but whenever caches are placed again, the group level is run again, too.
    placed = read_intact_json(places.index / "caches.json")
    own = {"run": step["run"], "caches": {name: f"sha256:{cache['sha256']}" for name, cache in placed.items()}}
    how = how_it_was_made(read_intact_json(places.record(people[0].name)) | own, places)
    if not (how and settings.app.group and made):
        return names, None
    labels = sorted(one.name.rpartition("/")[2] for one in people)
    how["group"] = {"participants": labels, "shared": names, "made": made}
    return names, Made("", ["sub-*", *names, *(f"{RAW}/{file}" for file in root_files(raw))], how, made)


def how_it_was_made(record: Record, places: Places) -> How:
    """How derivatives were made, from their record and the facts of the run that made them; empty if these are lost."""
    facts = facts_of_run(places.runs / f"{record.get('run', '')}.json")
    container, caches = record.get("container"), record.get("caches")
    return how_of(facts[0], record.get("tool_version", ""), container, *facts[1:], caches) if facts else {}


@cache
def facts_of_run(file: Path) -> tuple[Settings, Record, str] | None:
    """Settings of a run, what its results are made with, and neurotier's version; ``None`` if these are lost."""
    with suppress(LookupError, TypeError):
        facts = read_intact_json(file)
        return Settings.from_json(facts["settings"]), facts["made_with"], facts["versions"]["neurotier"]
    return None


def groups(people: Sequence[Made], most: int) -> Iterator[list[Made]]:
    """Participants that share a commit: made in the same way, at most ``most`` of them, and no more than a command can
    hold."""
    for members in grouped((identifier(one.how) if one.how else "", one) for one in people).values():
        group: list[Made] = []
        size_bytes = 0
        for one in members:
            own_bytes = sum(len(path.encode()) + 3 for path in one.inputs)
            if group and (len(group) == most or size_bytes + own_bytes > COMMAND_BYTES):
                yield group
                group, size_bytes = [], 0
            group.append(one)
            size_bytes += own_bytes
        yield group


# The datasets.

OPTIONS = {
    "annex.thin": "true",
    "annex.addunlocked": "true",
    "annex.private": "false",  # otherwise no clone would know that contents are here
    "gc.autoDetach": "false",  # background work would be ended with the run
    "core.excludesFile": os.devnull,  # the user's own is meant for files of editors, not for derivatives
    "core.fsync": "all",  # an object, an index or a branch that a power cut leaves empty would make it unusable
}

LOCKS = (
    ".gitmodules.lock",
    ".git/*.lock",
    ".git/annex/*.lock",
    ".git/objects/*.lock",
    ".git/objects/info/**/*.lock",
    ".git/refs/**/*.lock",
)
"""Files by which git and git-annex keep others away, and which stay when they are killed."""

OTHERS = re.compile(
    r"\.lock'?: File exists|lock config file .*: File exists|Another git process"
    r"|cannot lock ref .*(File exists|but expected)|(nothing|no changes) (added )?to commit"
)
"""What git says if another program is writing to its repository, or has just committed what was staged here."""


def open_dataset(folder: Path, killed_on: str, say: Say) -> Any:
    """Open the DataLad dataset in a folder, or make the folder one; files that are there stay untouched.

    Parameters
    ----------
    folder
        Derivatives of a site, or the folder of all sites.
    killed_on
        The host of the save that was killed, if one was.
    say
        Prints a line per step, for the user.

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
        raise InputError("is not a folder", repository, "remove it, and start the same command again")
    clear_locks(folder, killed_on)
    if not repository.exists():
        say(f"making {folder} a DataLad dataset")
        remove_tree(partial := partial_of(folder))
        run_git(folder, "init", "--quiet", str(partial))
        for key, value in OPTIONS.items():
            run_git(partial, "config", "--local", key, value)
        create(
            path=str(partial),
            force=True,
            description=f"{socket.gethostname()}:{folder}",
            result_renderer="disabled",
        )
        run_git(partial, "annex", "config", "--set", "annex.addunlocked", "true")  # for clones
        flush_file_system(partial)
        add_lines(folder / ".gitattributes", (partial / ".gitattributes").read_text().splitlines())
        remove_path(folder / ".datalad")  # left by a dataset whose history was moved away
        partial.rename(aside(folder))
        take_dataset_back(folder)
    elif (
        not ask_git(folder, "config", "--local", "annex.uuid")
        or ask_git(folder, "cat-file", "-e", "HEAD:.datalad/config") is None
        or fault_of(folder)
    ):
        move = shlex.join(["mv", "--no-target-directory", "--backup=numbered", str(repository), f"{folder}.git"])
        raise InputError(
            "is damaged, or not a DataLad dataset with an annex",
            repository,
            f"`{move}`, and start the same command again: the derivatives stay, their history begins anew",
        )
    run_git(folder, "reset", "--quiet")  # discards what a save that was killed, or on a full tier, had staged
    return Dataset(str(folder))


def clear_locks(folder: Path, killed_on: str) -> None:
    """Remove the locks of git that a killed save left in a dataset.

    Raises
    ------
    BusyError
        If another program holds one, or it cannot be ruled out that one does.
    """
    locks = sorted({lock for pattern in LOCKS for lock in folder.glob(pattern)})
    if locks and (held := holder(folder, killed_on)):
        raise BusyError(
            f"another program is writing to this dataset ({held})",
            locks[0],
            "wait for it; if there is none, remove this file, and start the same command again",
        )
    for lock in locks:
        remove_path(lock)


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
    """Output of a git command in a dataset of derivatives; :func:`save_error` if it fails, as on a full tier."""
    done = call_git(folder, *arguments)
    if done.returncode:
        raise save_error(folder, message_of([], done.stdout.rpartition("\n\n")[2] + done.stderr))
    return done.stdout


def save_error(folder: Path, reason: str) -> NeurotierError:
    """The error for derivatives that could not be saved; they themselves are there."""
    if OTHERS.search(reason):
        return BusyError(
            f"another program is writing to this dataset: {one_line(reason)}",
            folder,
            "wait for it, and start the same command again",
        )
    return TierError(
        f"the derivatives could not be saved: {one_line(reason)}",
        folder,
        "mend that (is the tier full?), and start the same command again",
    )


def register(folder: Path, dataset: Dataset, site: str) -> str:
    """Stage the raw dataset of a site as a sub-dataset, without installing it; returns its commit.

    ``datalad get`` installs it from its address when it is needed.

    Raises
    ------
    InputError
        If its clone on the dataset tier is gone, or has no address that may be handed on.
    """
    clone = dataset.path / site
    here = commit(clone)
    if not here:
        raise InputError("is not there any more", clone, "start with --forcerun clone_dataset")
    address = without_credentials(ask_git(clone, "config", "remote.origin.url") or "")
    if not address or refusal(address):
        raise InputError(f"has no address to register: {refusal(address) or 'no remote is named origin'}", clone)
    # the commit that was indexed: results that share the clone may have moved it since
    analysed = dataset.sites.get(site, {}).get("version") or here
    (folder / RAW).mkdir(parents=True, exist_ok=True)  # without the folder, git takes the sub-dataset for removed
    for key, value in (("path", RAW), ("url", address), ("datalad-id", identifier_of(clone))):
        if value:
            run_git(folder, "config", "--file", ".gitmodules", f"submodule.{RAW}.{key}", value)
    run_git(folder, "update-index", "--add", "--cacheinfo", f"160000,{analysed},{RAW}")
    return analysed


def changed_entries(folder: Path) -> set[str]:
    """Entries of a dataset, except its source, that differ from what was saved, or are missing.

    Entries of ``sourcedata``, where fMRIPrep puts FreeSurfer's output, are listed one by one.
    """
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
    paths = [entry[3:].split("/") for entry in run_git(folder, "status", *options).split("\0") if entry]
    return {"/".join(path[: 1 + (path[0] == "sourcedata")]) for path in paths}


def refuse_ignored(folder: Path) -> None:
    """Raise :class:`InputError` if git would leave files out, because of a tool's own ``.gitignore``, for example."""
    ignored = run_git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    if ignored:
        raise InputError(
            f"{one_line(ignored.split(chr(0))[0])} would not be saved: git is told to ignore it",
            folder,
            "remove the .gitignore that names it (or see .git/info/exclude), and start the same command again",
        )


class Made(NamedTuple):
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
        Paths below the site: a participant's folder and, from an app, files next to it; or those of the group level.
    shared
        Path and checksum of each file that a participant wrote for all participants.
    """

    name: str
    inputs: list[str]
    how: How
    outputs: list[str]
    shared: Mapping[str, str] = {}


def save(dataset: Any, message: str, paths: Sequence[str] = (), made: Sequence[Made] = ()) -> None:
    """Save ``paths`` of a dataset in one commit, or what was ``made``, all of it in one way.

    If that way is known, the commit has a run record by which ``datalad rerun`` makes it again. The source must not be
    among the paths: if it is installed, it may be at another commit.
    """
    from datalad.core.local.run import run_command

    how, paths = made[0].how if made else {}, [*paths, *(path for one in made for path in one.outputs)]
    if not how:
        dataset.save(
            path=[str(dataset.pathobj / path) for path in paths],
            message=message,
            result_renderer="disabled",
        )
        return
    results = run_command(
        command_of(how, "{inputs}"),
        dataset=dataset,
        inputs=[path.translate(PATTERN) for one in made for path in one.inputs],
        outputs=[path.translate(PATTERN) for path in paths],
        explicit=True,
        inject=True,  # the command has already run: nothing is executed here
        message=message,
        # for the group level, the whole of it would name every participant once more
        extra_info={"exit": 0, "neurotier": without(how, "group")},
    )
    if bad := [result for result in results if result["status"] in ("error", "impossible")]:
        raise save_error(Path(dataset.path), message_of(bad, "DataLad gave no reason"))
