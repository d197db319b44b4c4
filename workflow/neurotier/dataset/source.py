"""The source of the dataset: cloned by DataLad, with its sites installed.

A clone is named after source and version: results folders that use the same ones share it, and no run changes the data
of another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.core.credentials import without_credentials
from neurotier.core.errors import InputError, SourceError
from neurotier.core.files import exclusive, made_whole
from neurotier.core.foreign import file_in_dataset
from neurotier.core.places import Places, dataset_name, short_hash
from neurotier.core.private import make_private, private_folder
from neurotier.core.settings import DatasetSettings, Say
from neurotier.core.tiers import Tier, find_mount, is_plain_folder
from neurotier.dataset.addresses import refusal
from neurotier.dataset.bids import is_bids
from neurotier.dataset.commands import ask_git, naming_commands, prepare_environment, retry
from neurotier.dataset.sites import (
    NOT_WHOLE,
    choose_sites,
    indexed_dataset,
    install_sites,
    is_whole,
    set_aside_if_broken,
)


@dataclass(frozen=True)
class Dataset:
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
        Sub-datasets of the selection that could not be installed, with the reason.
    """

    source: str
    path: Path
    kind: str
    sites: dict[str, dict[str, str]]
    unreachable: dict[str, str] = field(default_factory=dict)


def obtain(settings: DatasetSettings, source: str, datasets: Path, say: Say) -> Dataset:
    """Clone the dataset, unless there is a clone already, and install the selected sites.

    Parameters
    ----------
    settings
        Section ``dataset`` of the configuration.
    source
        The source, with ``demo`` already replaced by the demonstration dataset's path.
    datasets
        Folder of clones on the dataset tier.
    say
        Takes one line per step, for the user.

    Raises
    ------
    SourceError
        If the source is missing or cannot be reached.
    InputError
        If it is no dataset, or a site does not exist.
    """
    if is_address(source):
        if reason := refusal(source):
            raise InputError(reason, where="dataset.source", fix="correct it")
    else:
        source = str(local_folder(source))
        if is_plain_folder(Path(source)):
            sites = choose_sites(settings.sites, plain_sites(Path(source), settings.links_to), source)
            facts = {site: {"url": Path(source, site).as_uri(), "version": ""} for site in sites}
            return Dataset(source, Path(source), "folder", facts)
    prepare_environment()
    folder = datasets / dataset_name(source, settings.version)
    make_folder(datasets)
    with exclusive(folder):
        if folder.exists():
            set_aside_if_broken(folder, folder, say)
        if not folder.exists():
            say(f"cloning {without_credentials(source)}")
            retry(lambda: clone(source, folder, settings.version), settings, say)
        return Dataset(without_credentials(source), folder, "datalad", *install_sites(settings, source, folder, say))


def make_folder(datasets: Path) -> None:
    """Make the folder of clones, for this user alone where it lies on a tier that others can write to."""
    if private_folder(datasets).name in datasets.absolute().parts:
        make_private(datasets.absolute())
    else:
        datasets.mkdir(parents=True, exist_ok=True)


def is_address(source: str) -> bool:
    """Whether a source is a URL, a ``///`` name or an SSH address, not a local path.

    >>> is_address("///corr"), is_address("git@host:x"), is_address("ria+file:///x#~a"), is_address("../x")
    (True, True, True, False)
    """
    return bool(re.match(r"///|[A-Za-z][\w+.-]*:|[^/]+@[^/]+:", source))


def named_source(source: str) -> str:
    """A source as a parameter of a rule, which Snakemake keeps: other credentials are another source, but not told.

    >>> named_source("https://x.org/a"), named_source("https://me:secret@x.org/a")
    ('https://x.org/a', 'https://x.org/a (with credentials 1f5322f1)')
    """
    shown = without_credentials(source)
    return shown if shown == source else f"{shown} (with credentials {short_hash(source)})"


def local_folder(source: str) -> Path:
    """A local source as an absolute path: what a relative one means depends on the working folder.

    Raises
    ------
    SourceError
        If it does not exist.
    InputError
        If it is a file.
    """
    path = Path(source).expanduser().absolute()
    if not path.exists():
        raise SourceError("there is no such folder", where=f"dataset.source {source!r}", fix="correct the path")
    if not path.is_dir():
        raise InputError("is a file, not a dataset", where=f"dataset.source {source!r}")
    return path


def clone(source: str, folder: Path, version: str | None, where: str = "") -> None:
    """Clone by DataLad and check out the version; only a complete clone gets the final name.

    Errors name ``where``, or else the key ``dataset.source``.
    """
    from datalad.api import clone as datalad_clone

    where = where or f"dataset.source {source!r}"
    with naming_commands("cannot be cloned", where, "check the address and the network"), made_whole(folder) as partial:
        datalad_clone(source=source, path=str(partial), result_renderer="disabled")
        if version is not None:
            check_out(partial, version, where)
        if not is_whole(partial):
            raise SourceError(f"cannot be cloned: {NOT_WHOLE}", where=where, fix="start the same command again")


def check_out(repository: Path, version: str, where: str) -> None:
    """Check a branch, tag or commit out.

    git is given the hash of the commit, so that it never takes a version for an option.
    """
    # a branch that exists only at the source is known here as a branch of the remote
    names = [] if version.startswith("-") else [version, f"refs/remotes/origin/{version}"]
    for name in names:
        commit = ask_git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if commit and ask_git(repository, "checkout", "--quiet", "--detach", commit.strip()) is not None:
            return
    raise SourceError(f"has no branch, tag or commit {version!r}", where=where, fix="see dataset.version")


def plain_sites(folder: Path, links_to: Sequence[str] = ()) -> list[str]:
    """Sites of a plain folder: itself (``""``) if it holds participants, else its sub-folders that do."""
    if is_bids(folder):
        return [""]
    sites = []
    for path in folder.iterdir():
        with suppress(InputError):
            trusted, below = file_in_dataset(folder, path.name, links_to)
            if is_bids(trusted / below):
                sites.append(path.name)
    return sorted(sites) or [""]


def check_tier(dataset: Dataset, tier: Tier) -> None:
    """A plain folder is read in place, so it must be on the dataset tier, or measurements would name the wrong tier.

    Raises
    ------
    InputError
        If a plain folder is on another mounted file system than the tier.
    """
    if dataset.kind == "folder" and dataset.path.stat().st_dev != tier.path.stat().st_dev:
        raise InputError(
            f"this plain folder is on {find_mount(dataset.path).mount_point}, not on the dataset tier {tier.name!r} "
            f"({tier.path})",
            where=f"dataset.source {dataset.source!r}",
            fix="declare a tier there and set placement.dataset to it, or make the folder a DataLad dataset",
        )


def require_sites(dataset: Dataset) -> None:
    """Raise unless every selected site is installed.

    Raises
    ------
    SourceError
        With the sites that are not, and why.
    """
    if dataset.unreachable:
        named = "; ".join(f"{path!r}: {reason}" for path, reason in dataset.unreachable.items())
        raise SourceError(
            f"{len(dataset.unreachable)} of the sub-datasets asked for cannot be reached: {named}",
            where=f"dataset.source {dataset.source!r}",
            fix="start the same command again to clone and analyse what is missing",
        )


def unreachable_sites(places: Places) -> dict[str, str]:
    """Sub-datasets that could not be installed at the last cloning, with the reason; none if that is not known."""
    return dict(indexed_dataset(places).get("unreachable", {}))
