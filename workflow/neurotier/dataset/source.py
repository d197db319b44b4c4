"""The source of the dataset: cloned by DataLad, with its sites installed; and clones damaged by a power cut.

A clone is named after its source and version: results folders that use the same ones share it, and no run changes
another's data. Sites are the sub-datasets that hold participants. If one cannot be installed, that is reported with the
reason, and the others are analysed nevertheless.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from neurotier.core.configuration import suggestion
from neurotier.core.errors import InputError, SourceError, one_line, without_credentials
from neurotier.core.files import (
    absolute_path,
    atomic_path,
    exclusive,
    flush_file_system,
    read_intact_json,
    remove_tree,
)
from neurotier.core.foreign import file_in_dataset
from neurotier.core.places import Places, dataset_name, short_hash
from neurotier.core.private import make_private
from neurotier.core.settings import DatasetSettings, Say
from neurotier.core.tiers import Tier, find_mount, is_on_other_file_system, is_plain_folder
from neurotier.dataset.addresses import check_own_files, config_of, refusal, refused_subdatasets
from neurotier.dataset.bids import Reasons, is_bids, selector
from neurotier.dataset.commands import TRANSIENT, ask_git, datalad_errors, message_of, prepare_environment, retry
from neurotier.dataset.special_remotes import NOTE, OF_DATALAD, annex_hook

Sites = dict[str, dict[str, str]]
"""Site to its facts, ``url`` and ``version``."""


class Dataset(NamedTuple):
    """A dataset on the dataset tier, with its sites.

    Attributes
    ----------
    source
        The source in the configuration, without user name and token.
    path
        Its folder.
    kind
        ``datalad`` (a clone made here) or ``folder`` (a plain BIDS folder, read in place and never written to).
    sites
        Path of each installed sub-dataset below ``path`` to its facts (``url``, ``version``); the single key
        ``""`` if the dataset itself holds the participants.
    unreachable
        Selected sub-datasets that could not be installed, or sites that are links out of the dataset, with the reason.
    """

    source: str
    path: Path
    kind: str
    sites: Sites
    unreachable: Reasons


def obtain(settings: DatasetSettings, source: str, datasets: Path, say: Say) -> Dataset:
    """Clone the dataset, unless a clone exists already, and install the selected sites.

    Parameters
    ----------
    settings
        Section ``dataset`` of the configuration.
    source
        The source, with ``demo`` already replaced by the demonstration dataset's path.
    datasets
        Folder of clones on the dataset tier.
    say
        Prints one line per step, for the user.

    Raises
    ------
    SourceError
        If the source is missing or cannot be reached.
    InputError
        If it is not a dataset, or a site does not exist.
    """
    if is_address(source):
        if reason := refusal(source):
            raise InputError(reason, "dataset.source", "correct it")
    else:
        local = local_folder(source)
        source = str(local)
        if is_plain_folder(local):
            if settings.version:
                raise InputError("a plain folder has no versions", "dataset.version", "leave it out")
            known = plain_sites(local, settings.links_to)
            sites = choose_sites(settings.sites, list(known), source)
            unreachable = {site: known[site] for site in sites if known[site]}
            facts = {
                site: {"url": (local / site).as_uri(), "version": ""} for site in reachable(sites, unreachable, say)
            }
            return Dataset(source, local, "folder", facts, unreachable)
    prepare_environment()
    folder, version = datasets / dataset_name(source, settings.version), settings.version or "HEAD"
    make_private(datasets.absolute())
    with exclusive(folder):
        if folder.exists():
            set_aside_if_broken(folder, folder, say)
        if not folder.exists():
            say(f"cloning {without_credentials(source)}")
            retry(lambda: clone(source, folder, version, f"dataset.source {source!r}"), settings, say)
        elif not re.match(r"(HEAD|@)(?![\w./-])", version) and commit_named(folder, version) != commit(folder):
            raise SourceError(  # HEAD~1 is not checked: it was resolved when the dataset was cloned
                f"is not at dataset.version {version!r} any more",
                f"clone {folder}",
                "check it out there with git, or remove the clone",
            )
        return Dataset(without_credentials(source), folder, "datalad", *install_sites(settings, source, folder, say))


def is_address(source: str) -> bool:
    """Whether a source is a URL, a ``///`` name or an SSH address, not a local path.

    >>> is_address("///corr"), is_address("git@host:x"), is_address("ria+file:///x#~a"), is_address("../x")
    (True, True, True, False)
    """
    return bool(re.match(r"///|[A-Za-z][\w+.-]*:|[^/]+@[^/]+:", source))


def named_source(source: str) -> str:
    """A source as a rule's parameter, which Snakemake records: it changes with the credentials, but does not show them.

    >>> named_source("https://x.org/a"), named_source("https://me:secret@x.org/a")
    ('https://x.org/a', 'https://x.org/a (with credentials 1f5322f1)')
    """
    shown = without_credentials(source)
    return shown if shown == source else f"{shown} (with credentials {short_hash(source)})"


def local_folder(source: str) -> Path:
    """A local source as an absolute path: the meaning of a relative one depends on the working folder.

    Raises
    ------
    SourceError
        If it does not exist.
    InputError
        If it is a file.
    """
    path = absolute_path(source)
    if not path.exists():
        raise SourceError("there is no such folder", f"dataset.source {source!r}", "correct the path")
    if not path.is_dir():
        raise InputError("is a file, not a dataset", f"dataset.source {source!r}")
    return path


def clone(source: str, folder: Path, version: str, where: str) -> None:
    """Clone with DataLad, and check out the version; only a whole clone gets its final name; errors name ``where``."""
    from datalad.api import clone as datalad_clone

    fix = "check the address, the network, and the room on the dataset tier"
    with datalad_errors("cannot be cloned", where, fix), atomic_path(folder) as partial:
        datalad_clone(source=source, path=str(partial), result_renderer="disabled")
        if reason := hazard(partial):
            raise InputError(reason, where)
        # Git is given the commit's hash, so that it never takes a version for an option.
        found = commit_named(partial, version)
        if found != commit(partial) and ask_git(partial, "checkout", "--detach", found) is None:
            raise SourceError(f"has no branch, tag or commit {version!r}", where, "see dataset.version")
        if not is_whole(partial):
            raise SourceError(f"cannot be cloned: {NOT_WHOLE}", where, "start the same command again")


def commit_named(repository: Path, version: str) -> str:
    """The commit of a version; a branch that exists only at the source is a remote branch in its clone."""
    return commit(repository, version) or commit(repository, f"refs/remotes/origin/{version}")


def plain_sites(folder: Path, links_to: Sequence[str]) -> Reasons:
    """Sites of a plain folder, each with the reason why it is not read, if any: the folder itself (``""``) if it holds
    participants, else its sub-folders that do. An unreadable folder may be a site, and so may a link to something not
    mounted, unless it has a file's name.
    """
    sites = {}
    for path in () if is_bids(folder) else sorted(folder.iterdir()):
        may_be_site = "." not in path.name and path.name != "lost+found" and (path.is_symlink() or path.is_dir())
        is_lost = may_be_site and not os.access(path, os.R_OK)
        if is_bids(path) or is_lost:
            sites[path.name] = "cannot be read" if is_lost else ""
            try:
                file_in_dataset(folder, path.name, links_to)
            except InputError as error:
                sites[path.name] = f"{error.what}; {error.fix}" if error.fix else error.what
    return sites or {"": ""}


def check_tier(dataset: Dataset, tier: Tier) -> None:
    """Check that a plain folder, read in place, is on the dataset tier: otherwise measurements would name a wrong tier.

    Raises
    ------
    InputError
        If a plain folder is on another mounted file system than the tier.
    """
    if dataset.kind == "folder" and is_on_other_file_system(dataset.path, tier.path):
        raise InputError(
            f"this plain folder is on {find_mount(dataset.path).mount_point}, not on the dataset tier {tier.name!r} "
            f"({tier.path})",
            f"dataset.source {dataset.source!r}",
            "declare a tier there and set placement.dataset to it, or make the folder a DataLad dataset",
        )


def requested_unreachable(unreachable: Reasons, participants: Sequence[str | int]) -> Reasons:
    """Unreachable sub-datasets, except those of participants who are not requested.

    >>> requested_unreachable({"NYU": "gone", "sub-01": "gone", "sub-02/ses-1": "gone"}, ["02"])
    {'NYU': 'gone', 'sub-02/ses-1': 'gone'}
    """
    is_asked_for = selector(participants, "sub")
    return {
        path: why
        for path, why in unreachable.items()
        if not path.startswith("sub-") or is_asked_for(path.split("/")[0])
    }


def require_sites(dataset: Dataset, participants: Sequence[str | int]) -> None:
    """Raise unless every selected site is installed, and every requested participant that is a sub-dataset.

    Raises
    ------
    SourceError
        Naming those that are not, and why.
    """
    if lost := requested_unreachable(dataset.unreachable, participants):
        named = "; ".join(f"{path!r}: {reason}" for path, reason in lost.items())
        raise SourceError(
            f"{len(lost)} of the sub-datasets asked for cannot be reached: {named}",
            f"dataset.source {dataset.source!r}",
            "start the same command again to analyse what is missing, or leave it out: a minus before its name in "
            "dataset.sites or dataset.participants",
        )


# Sites.

NO_SITES = re.compile(r"(.*/)?(derivatives|sourcedata|code|stimuli|phenotype)(/.*)?")
"""Sub-datasets without raw data; they are sites only if the configuration names them."""

IDENTIFIER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

LOOK_AGAIN_S = 1.0


def install_sites(settings: DatasetSettings, source: str, folder: Path, say: Say) -> tuple[Sites, Reasons]:
    """Install the chosen sub-datasets at the commits that the dataset records.

    Returns
    -------
    dict, dict
        The installed sites with their facts, and the sub-datasets that could not be installed, with the reason.

    Raises
    ------
    SourceError
        If no site could be installed.
    InputError
        If a requested site does not exist, or there is no site.
    """
    from datalad.api import subdatasets

    check_own_files(folder)
    if reason := hazard(folder):
        raise InputError(reason, f"dataset.source {source!r}")
    recorded = {
        Path(one["path"]).relative_to(folder).as_posix(): one["gitshasum"]
        for one in subdatasets(dataset=str(folder), result_renderer="disabled")
    }
    sites = choose_sites(settings.sites, sites_among(list(recorded), is_bids(folder)), source)
    # If each participant is a sub-dataset, all of them belong to one site, the dataset itself.
    wanted = [path for path in recorded if path in sites or ("" in sites and path.startswith("sub-"))]
    lacking = [path for path in wanted if commit(folder / path) != recorded[path] or fault_of(folder / path)]
    unreachable = refused_subdatasets(folder, lacking)
    missing = {path: recorded[path] for path in lacking if path not in unreachable}
    if missing:
        say(f"installing {len(missing)} of {len(recorded)} sub-datasets: {', '.join(missing)}")
        unreachable |= install_all(folder, missing, settings, say)
        flush_file_system(folder)
    unreachable |= {path: reason for path in wanted if path not in unreachable and (reason := hazard(folder / path))}
    mark_of(folder, "").mkdir(exist_ok=True)
    for path in set(wanted) - set(unreachable):
        mark_of(folder, path).touch()
    return {site: site_facts(folder / site, source, site) for site in reachable(sites, unreachable, say)}, unreachable


def reachable(sites: Sequence[str], unreachable: Reasons, say: Say) -> list[str]:
    """The sites that can be reached; for the others, tell the user why not.

    Raises
    ------
    SourceError
        If none can.
    """
    for path, reason in unreachable.items():
        say(f"{path!r} cannot be reached: {reason}")
    there = [site for site in sites if site not in unreachable]
    if not there:
        raise SourceError(f"cannot be reached: {next(iter(unreachable.values()))}", ", ".join(unreachable))
    return there


def install_all(folder: Path, recorded: dict[str, str], settings: DatasetSettings, say: Say) -> Reasons:
    """Install sub-datasets, with retries; returns those that could not be installed, with the reason.

    All are tried before any is retried, so that the pauses are spent once and not for each site that is down. Leftovers
    of an interrupted installation are removed first; no contents are fetched.
    """
    from datalad.api import get

    failed = dict.fromkeys(recorded, "")

    def attempt() -> None:
        for path in failed:
            clear(folder, path, say)
        results = get(
            path=[str(folder / path) for path in failed],
            dataset=str(folder),
            get_data=False,
            on_failure="ignore",
            result_renderer="disabled",
        )
        for path in list(failed):
            repository, wanted = folder / path, recorded[path]
            # if the source is on an adjusted branch, DataLad leaves the clone on it, at another commit
            is_at = commit(repository) == wanted or ask_git(repository, "checkout", "--detach", wanted) is not None
            if is_at and is_whole(repository):
                del failed[path]
            else:
                own = [
                    one
                    for one in results
                    if one["status"] in ("error", "impossible") and Path(one["path"]) == repository
                ]
                failed[path] = message_of(own, "DataLad gave no reason" if own else NOT_WHOLE)
        if failed:
            first = next(filter(TRANSIENT.search, failed.values()), next(iter(failed.values())))
            raise SourceError(f"cannot be installed: {first}", ", ".join(failed))

    with suppress(SourceError):  # ``failed`` has those that are left
        retry(attempt, settings, say)
    for path in failed:
        clear(folder, path, say)
    return failed


def hazard(clone: Path) -> str:
    """Why git-annex must not work with a clone, or with the repository that it was made from; empty if it may."""
    if hook := annex_hook(clone):
        by = "remove the hook, or put the dataset where it is fetched from by HTTP or SSH"
        return f"git-annex would run the hook {hook} of its repository: {by}"
    if program := annex_program(clone):
        by = "have its owner run `git annex enableremote NAME autoenable=false`, or take it from elsewhere"
        return f"its special remotes would have git-annex start {program!r}: {by}"
    key = r"^remote\..*\.annex-externaltype$"
    if (clone / ".datalad/providers").exists() and ask_git(clone, "config", "--get-regexp", key, "^datalad"):
        return "its .datalad/providers could have DataLad send your passwords to addresses that it names"
    if ask_git(clone, "config", "--type=bool", "annex.crippledfilesystem") == "true":  # its commits would differ
        return (
            "its tier has no symbolic links or permissions, which a DataLad dataset needs: place the dataset on another"
        )
    return ""


def annex_program(clone: Path) -> str:
    """The program that git-annex would have started in a clone, or starts in a clone that predates this check."""
    keys, others = rf"^{NOTE}$|^remote\..*\.annex-externaltype$", f"!^({'|'.join(OF_DATALAD)})$"
    found = ask_git(clone, "config", "--local", "--null", "--get-regexp", keys, others) or ""
    return one_line(found.partition("\n")[2].partition("\0")[0])[:200]


def clear(folder: Path, path: str, say: Say) -> None:
    """Empty the folder of a sub-dataset that is incomplete, damaged, or at another commit."""
    mark_of(folder, path).unlink(missing_ok=True)
    if (folder / path / ".git").exists():
        set_aside(folder / path, folder, say)


def is_installed(dataset: Dataset, site: str) -> bool:
    """Whether a site is completely installed, at the indexed commit: another process may just be installing it."""
    return mark_of(dataset.path, site).exists() and commit(dataset.path / site) == dataset.sites[site]["version"]


def mark_of(folder: Path, path: str) -> Path:
    """The marker of a complete sub-dataset, or the folder of markers, in the git folder, where a dataset cannot place
    files."""
    return folder / ".git" / "neurotier" / quote(path, safe="")


def sites_among(subdatasets: Sequence[str], root_is_bids: bool) -> list[str]:
    """Which sub-datasets are sites; the dataset itself (``""``) if it holds participants, or if there are no others.

    >>> sites_among(["NYU", "code/tools"], root_is_bids=False)
    ['NYU', 'code/tools']
    >>> sites_among(["derivatives/fmriprep", "sub-01", ".heudiconv"], root_is_bids=True)
    ['', 'derivatives/fmriprep']
    """
    others = sorted(path for path in subdatasets if not path.startswith(("sub-", ".")))
    return ([""] if root_is_bids or not others else []) + others


def commit(folder: Path, name: str = "HEAD") -> str:
    """The commit that a repository is at, or that a name stands for; empty if there is no repository or commit."""
    return ask_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") or ""


def choose_sites(wanted: Sequence[str], known: Sequence[str], source: str) -> list[str]:
    """The sites that the configuration names, by path or by last folder name; all if it names none.

    A name with a minus before it is left out, as in the filters of participants.

    >>> choose_sites(["NYU"], ["sites/NYU", "sites/UPSM"], "corr"), choose_sites(["."], ["", "inputs/x"], "corr")
    (['sites/NYU'], [''])
    >>> choose_sites(["-NYU"], ["derivatives/x", "sites/NYU", "sites/UPSM"], "corr")
    ['sites/UPSM']
    """
    shown = [site or "." for site in known]
    if wanted and list(known) == [""]:
        raise InputError(
            "has no sub-datasets to choose sites from", f"dataset.source {source!r}", "leave out dataset.sites"
        )
    named, left_out = list[str](), list[str]()
    for name in wanted:
        bare = name.removeprefix("-").strip("/")
        matching = [site for site in known if bare in (site or ".", site.rsplit("/", 1)[-1])]
        if not matching:
            raise InputError(
                f"the dataset has no site {bare!r}{suggestion(bare, shown)}",
                "dataset.sites",
                f"it has: {', '.join(shown)}",
            )
        (left_out if name.startswith("-") else named).extend(matching)
    chosen = dict.fromkeys(named or [site for site in known if not NO_SITES.fullmatch(site)])
    if sites := [site for site in chosen if site not in left_out]:
        return sites
    raise InputError(
        f"has {'no other' if left_out else 'neither participants nor'} sites",
        f"dataset.source {source!r}",
        f"name another source, or in dataset.sites one of: {', '.join(shown)}",
    )


def site_facts(folder: Path, source: str, site: str) -> dict[str, str]:
    """A URI of a site that does not depend on the location of the clone, and its commit.

    The URI is the site's address, if that is public; otherwise it is made from the DataLad identifier. User name and
    token are removed: the URI is published with the derivatives.
    """
    address = f"https://datasets.datalad.org/{source[3:]}" if source.startswith("///") else source
    if site:
        address = ask_git(folder, "config", "remote.origin.url") or ""
    if address.startswith(("http://", "https://")):
        url = without_credentials(address).rstrip("/").removesuffix("/.git")
    else:
        url = f"urn:uuid:{identifier}" if (identifier := identifier_of(folder)) else "urn:neurotier:unidentified"
    return {"url": url, "version": commit(folder)}


def identifier_of(folder: Path) -> str:
    """The DataLad identifier of a dataset; empty if it has none."""
    known, *_ = config_of(folder, ".datalad/config").get("datalad.dataset.id", [""])
    return known if IDENTIFIER.fullmatch(known) else ""


# Damage.

NOT_WHOLE = "its recorded commit is not there, or git or git-annex was ended while it was cloned"


def is_whole(repository: Path) -> bool:
    """Whether a new clone has all that its source has: if Ctrl-C ends git, neither git nor DataLad reports that.

    The checked-out files must be those of the commit, and git-annex's own branch must have every file of the source's.
    """
    branches = "refs/remotes/origin/git-annex", "refs/heads/git-annex"
    return (
        ask_git(repository, "diff-index", "--cached", "--quiet", "HEAD") is not None
        and ask_git(repository, "ls-files", "--deleted") == ""
        and (
            ask_git(repository, "rev-parse", "--verify", "-q", branches[0]) is None  # it has no annex
            or ask_git(repository, "diff-tree", "-r", "--diff-filter=D", *branches) == ""
        )
    )


def fault_of(repository: Path) -> str:
    """Why git or git-annex must not or cannot work in a repository; empty if they can.

    Git is asked twice, since a run for other results may share the clone and be fetching into it.
    """
    if program := annex_program(repository):
        return f"would have git-annex start {program!r}"
    if looks_broken(repository):
        time.sleep(LOOK_AGAIN_S)
        if looks_broken(repository):
            return "is damaged (after a power cut?)"
    return ""


def looks_broken(repository: Path) -> bool:
    """Whether git finds refs, objects or an index unusable, including git-annex's, or the annex has lost its UUID.

    Empty files of git-annex that a power cut has left are removed first, since git-annex itself can replace them.
    """
    git_folder = ask_git(repository, "rev-parse", "--absolute-git-dir")
    if git_folder is None or not commit(repository):
        return True
    annex = Path(git_folder, "annex")
    for file in (*annex.glob("journal/*"), annex / "keysdb/db"):
        # an empty file, left by a power cut, hides what git-annex's branch says, or makes git-annex fail for ever
        with suppress(FileNotFoundError):
            if not file.stat().st_size:
                file.unlink()
                # or git-annex would take the files of that index for known to a new database, and drop no unlocked one
                ask_git(repository, "update-ref", "-d", "refs/annex/last-index")
    # git has the empty tree built in, so it does not fetch it from a web server, but fsck wants it in the clone
    ask_git(repository, "hash-object", "-w", "-t", "tree", os.devnull)
    objects = ask_git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
    return (
        bool(commit(repository, "refs/heads/git-annex")) != bool(ask_git(repository, "config", "annex.uuid"))
        or objects is None
        or " missing" in objects  # git says so of an object that exists but cannot be read
        or ask_git(repository, "fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress") is None
        or ask_git(repository, "ls-files", GIT_INDEX_FILE=str(annex / "index")) is None
    )


def set_aside(folder: Path, clone: Path, say: Say) -> None:
    """Make way for a new clone of a dataset, or of a site in it; contents may exist nowhere else, and are kept.

    Parameters
    ----------
    folder
        The clone, or a site in it.
    clone
        The whole clone.
    say
        Prints a line that says where it is now, if it had contents.
    """
    if folder != clone and not any((folder / ".git" / "annex" / "objects").glob("*")):
        remove_tree(folder)
    else:
        name = "-".join((clone.name, *folder.relative_to(clone).parts))
        aside = clone.with_name(f"{name}-until-{time.strftime('%Y%m%dT%H%M%S')}")
        shutil.move(folder, aside)  # an overlay file system cannot rename a folder of its lower layers
        say(f"{folder} is now {aside}; remove that if nothing in it is needed")
    if folder != clone:
        folder.mkdir()  # a sub-dataset that is not installed is an empty folder


def renew_clone(places: Places, participants: Sequence[str | int], say: Say) -> None:
    """Set aside the indexed clone, or sites in it, if git can no longer use them, and have missing sites tried again.

    The jobs that need them clone them again. If sub-datasets could not be reached, the clone's record is removed, so
    that Snakemake runs the rule that completes it. Files missing from its sites are put back: clusters purge old files
    from scratch file systems. Call this at the start of a run, before Snakemake decides what to do, while no other run
    works on the results. Plain folders and other data of the user are never touched.
    """
    data = read_intact_json(places.dataset_facts)
    clone = places.datasets.absolute() / Path(data.get("path", "")).name
    if data.get("kind") == "datalad" and clone.exists():
        prepare_environment()
        with exclusive(clone):
            for folder in (clone, *(clone / site for site in data["sites"] if site)):
                if (folder / ".git").exists():
                    set_aside_if_broken(folder, clone, say)
                    ask_git(folder, "checkout-index", "--all", "--quiet")
    if requested_unreachable(data.get("unreachable", {}), participants):
        places.dataset_facts.unlink(missing_ok=True)


def set_aside_if_broken(folder: Path, clone: Path, say: Say) -> None:
    """Make way for a new clone (:func:`set_aside`) if git or git-annex cannot or must not work in this one."""
    if why := fault_of(folder):
        say(f"{folder} {why}, and is cloned again")
        set_aside(folder, clone, say)
