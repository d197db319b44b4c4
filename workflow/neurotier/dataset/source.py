"""The dataset's source: clone it by DataLad, install the sites asked for, and say where participants lie.

A clone is named by source and version: results folders that want the same share one, and none moves another's data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neurotier.configuration import suggestion
from neurotier.dataset.attempts import first_message, retry
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.errors import InputError, SourceError
from neurotier.files import exclusive, remove_tree
from neurotier.places import dataset_name
from neurotier.settings import DatasetSettings
from neurotier.tiers import Tier, find_mount

NO_SITES = re.compile(r"(.*/)?(derivatives|sourcedata|code|stimuli|phenotype)(/.*)?")
"""Sub-datasets that hold no raw data of their own; they are sites only when named."""


@dataclass(frozen=True)
class Dataset:
    """A dataset on the dataset tier, with its sites.

    Attributes
    ----------
    source
        What the configuration names.
    path
        Where it lies.
    kind
        ``datalad`` (a clone of ours) or ``folder`` (a plain BIDS folder, read in place and never written).
    sites
        Path of each installed sub-dataset below ``path`` to its facts (``url``, ``version``); the single key
        ``""`` if the dataset itself holds the participants.
    """

    source: str
    path: Path
    kind: str
    sites: dict[str, dict[str, str]]


def obtain(settings: DatasetSettings, source: str, datasets: Path, report: Callable[[str], None]) -> Dataset:
    """Clone the dataset (or take the clone that is there) and install the sites asked for.

    Parameters
    ----------
    settings
        Section ``dataset`` of the configuration.
    source
        The source, with ``demo`` already replaced by the demonstration dataset's path.
    datasets
        Folder of clones on the dataset tier.
    report
        Takes one line per step, for the user.

    Raises
    ------
    SourceError
        If the source is missing or cannot be reached.
    InputError
        If it is no dataset, or a site does not exist.
    """
    if not is_address(source):
        source = str(local_folder(source))
        if is_plain_folder(Path(source)):
            sites = choose_sites(settings.sites, plain_sites(Path(source)), source)
            facts = {site: {"url": Path(source, site).as_uri(), "version": ""} for site in sites}
            return Dataset(source, Path(source), "folder", facts)
    prepare_environment()
    folder = datasets / dataset_name(source, settings.version)
    with exclusive(folder):
        if not folder.exists():
            report(f"cloning {source}")
            retry(lambda: clone(source, folder, settings.version), settings, report)
        return Dataset(source, folder, "datalad", install_sites(settings, source, folder, report))


def is_address(source: str) -> bool:
    """Whether a source is a URL, a ``///`` name or an SSH address, not a local path.

    >>> is_address("///corr"), is_address("git@host:x"), is_address("ria+file:///x#~a"), is_address("../x")
    (True, True, True, False)
    """
    return bool(re.match(r"///|[A-Za-z][\w+.-]*:|[^/]+@[^/]+:", source))


def local_folder(source: str) -> Path:
    """A local source as an absolute path: a relative one means another dataset in every working folder.

    Raises
    ------
    SourceError
        If nothing is there.
    InputError
        If it is a file.
    """
    path = Path(source).expanduser().absolute()
    if not path.exists():
        raise SourceError("there is no such folder", where=f"dataset.source {source!r}", fix="correct the path")
    if not path.is_dir():
        raise InputError("is a file, not a dataset", where=f"dataset.source {source!r}")
    return path


def is_plain_folder(path: Path) -> bool:
    """Whether a local folder is no git repository, with a work tree or without."""
    return not (path / ".git").exists() and not ((path / "HEAD").exists() and (path / "objects").exists())


def clone(source: str, folder: Path, version: str | None) -> None:
    """Clone by DataLad and check the version out; the clone has its name only when it is whole."""
    from datalad.api import clone as datalad_clone
    from datalad.runner import CommandError
    from datalad.support.exceptions import IncompleteResultsError
    from datalad.support.gitrepo import GitRepo

    partial = folder.with_name(f".{folder.name}.partial")
    remove_tree(partial)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        datalad_clone(source=source, path=str(partial), result_renderer="disabled")
        if version is not None:
            GitRepo(str(partial)).call_git(["checkout", "--quiet", version, "--"])
    except IncompleteResultsError as error:
        raise SourceError(
            f"cannot be cloned: {first_message(error)}",
            where=f"dataset.source {source!r}",
            fix="check the address and the network",
        ) from None
    except CommandError:
        remove_tree(partial)
        raise SourceError(
            f"has no branch, tag or commit {version!r}", where=f"dataset.source {source!r}", fix="see dataset.version"
        ) from None
    partial.rename(folder)


def install_sites(
    settings: DatasetSettings, source: str, folder: Path, report: Callable[[str], None]
) -> dict[str, dict[str, str]]:
    """Install the sub-datasets asked for, at the commits that the dataset records, and no other."""
    recorded = subdatasets_of(folder)
    sites = choose_sites(settings.sites, sites_among(list(recorded), is_bids(folder)), source)
    # Where each participant is a sub-dataset, all of them belong to the one site that is the dataset itself.
    wanted = [site for site in sites if site] + [path for path in recorded if path.startswith("sub-") and "" in sites]
    missing = [path for path in wanted if commit(folder / path) != recorded[path]]
    if missing:
        report(f"installing {len(missing)} of {len(recorded)} sub-datasets: {', '.join(missing)}")
        retry(lambda: install(folder, missing), settings, report)
    return {site: site_facts(folder / site, source, site) for site in sites}


def subdatasets_of(folder: Path) -> dict[str, str]:
    """Sub-datasets that a dataset records: path to commit."""
    from datalad.api import subdatasets

    found = subdatasets(dataset=str(folder), result_renderer="disabled", return_type="list")
    return {Path(one["path"]).relative_to(folder).as_posix(): one["gitshasum"] for one in found}


def sites_among(subdatasets: Sequence[str], root_is_bids: bool) -> list[str]:
    """Which sub-datasets are sites; the dataset itself is one (``""``) if it holds participants, or nothing else does.

    >>> sites_among(["NYU", "code/tools"], root_is_bids=False)
    ['NYU', 'code/tools']
    >>> sites_among(["derivatives/fmriprep", "sub-01"], root_is_bids=True)
    ['', 'derivatives/fmriprep']
    """
    others = sorted(path for path in subdatasets if not path.startswith("sub-"))
    return ([""] if root_is_bids or not others else []) + others


def commit(folder: Path) -> str | None:
    """The commit that a repository is at; ``None`` if it is not there, or only begun."""
    from datalad.support.gitrepo import GitRepo

    if not (folder / ".git").exists() or not GitRepo.is_valid_repo(str(folder)):
        return None
    found: str | None = GitRepo(str(folder), create=False).get_hexsha()
    return found


def install(folder: Path, paths: Sequence[str]) -> None:
    """Install sub-datasets without contents; what an interrupted start left of them is removed first."""
    from datalad.api import get
    from datalad.support.exceptions import IncompleteResultsError

    for path in paths:
        if (folder / path / ".git").exists():
            remove_tree(folder / path)
            (folder / path).mkdir()
    try:
        get(
            path=[str(folder / path) for path in paths], dataset=str(folder), get_data=False, result_renderer="disabled"
        )
    except IncompleteResultsError as error:
        raise SourceError(f"cannot be installed: {first_message(error)}", where=", ".join(paths)) from None


def plain_sites(folder: Path) -> list[str]:
    """Sites of a plain folder: itself (``""``) if it holds participants, else its sub-folders that do."""
    if is_bids(folder):
        return [""]
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and is_bids(path)) or [""]


def is_bids(folder: Path) -> bool:
    """Whether a folder looks like a BIDS dataset: it describes itself as one, or holds participants."""
    return (folder / "dataset_description.json").exists() or any(folder.glob("sub-*/"))


def choose_sites(wanted: Sequence[str], known: Sequence[str], source: str) -> list[str]:
    """The sites asked for, by path or last folder name; all, if none is asked for.

    >>> choose_sites(["NYU"], ["sites/NYU", "sites/UPSM"], "corr")
    ['sites/NYU']
    """
    if not wanted:
        return [site for site in known if not NO_SITES.fullmatch(site)]
    if list(known) == [""]:
        raise InputError("has no sub-datasets to choose sites from", where=f"dataset.source {source!r}")
    chosen = []
    for name in wanted:
        found = [site for site in known if name.strip("/") in (site, site.rsplit("/", 1)[-1])]
        if not found:
            raise InputError(
                f"the dataset has no site {name!r}{suggestion(name, list(known))}",
                where="dataset.sites",
                fix=f"it has: {', '.join(known)}",
            )
        chosen += found
    return list(dict.fromkeys(chosen))


def site_facts(folder: Path, source: str, site: str) -> dict[str, str]:
    """A URI that names a site wherever its clone lies, and its commit.

    A public address is extended by the site's path; anything else is named by its DataLad identifier.
    """
    from datalad.distribution.dataset import Dataset as DataladDataset

    dataset = DataladDataset(str(folder))
    if source.startswith("///"):
        url = f"https://datasets.datalad.org/{source[3:]}/{site}".rstrip("/")
    elif source.startswith(("http://", "https://")):
        url = f"{source.rstrip('/')}/{site}".rstrip("/")
    else:
        url = f"urn:uuid:{dataset.id}" if dataset.id else "urn:neurotier:unidentified"
    return {"url": url, "version": dataset.repo.get_hexsha() or ""}


def check_tier(dataset: Dataset, tier: Tier) -> None:
    """A plain folder is read where it lies, so it must lie on the dataset tier: else figures name the wrong one.

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
