"""The dataset's source: clone it, install sites, get and drop image contents, by DataLad.

``datalad run`` and ``datalad save`` are never used here: in parallel jobs they race on the same repository
(datalad#4606). Getting different files side by side is safe.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neurotier.datalad_environment import prepare_environment
from neurotier.errors import InputError, SourceError, one_line
from neurotier.settings import DatasetSettings, suggestion
from neurotier.tiers import Tier, find_mount

KEY_SIZE = re.compile(r"-s(\d+)-")
"""Size of the content in a git-annex key, such as ``MD5E-s1234--d41d8.nii.gz``."""

NETWORK_DOWN = re.compile(
    r"could not resolve|connection (refused|reset|timed out)|timed? ?out|unreachable|temporar|network"
    r"|unable to access|HTTP (4(08|29)|5\d\d)|early EOF|SSL|download failed",
    re.IGNORECASE,
)


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


def obtain(settings: DatasetSettings, source: str, folder: Path, report: Callable[[str], None]) -> Dataset:
    """Clone the dataset (or take the clone that is there) and install the sites asked for.

    Parameters
    ----------
    settings
        Section ``dataset`` of the configuration.
    source
        The source, with ``demo`` already replaced by the demonstration dataset's path.
    folder
        Where the clone belongs.
    report
        Takes one line per step, for the user.

    Raises
    ------
    SourceError
        If the source is missing or cannot be reached.
    InputError
        If it is no dataset, or a site does not exist.
    """
    if is_plain_folder(source):
        path = Path(source).absolute()
        sites = choose_sites(settings.sites, plain_sites(path), source)
        return Dataset(source, path, "folder", {site: {"url": (path / site).as_uri(), "version": ""} for site in sites})
    prepare_environment()
    with lock(folder):
        if not (folder / ".git").exists():
            report(f"cloning {source}")
            retry(lambda: clone(source, folder), settings, report)
        if settings.version is not None:
            check_out(folder, settings.version, source)
        return Dataset(source, folder, "datalad", install_sites(settings, source, folder, report))


def is_plain_folder(source: str) -> bool:
    """Whether a source is a local folder that is not a git repository.

    Raises
    ------
    SourceError
        If it is a local path and nothing is there.
    """
    if source.startswith("///") or re.match(r"[A-Za-z][\w+.-]*:", source) or re.match(r"[^/]+@[^/]+:", source):
        return False
    path = Path(source)
    if not path.exists():
        raise SourceError("there is no such folder", where=f"dataset.source {source!r}", fix="correct the path")
    if not path.is_dir():
        raise InputError("is a file, not a dataset", where=f"dataset.source {source!r}")
    return not (path / ".git").exists() and not (path / "HEAD").exists()


def clone(source: str, folder: Path) -> None:
    """Clone by DataLad; nothing is left of a clone that failed."""
    from datalad.api import clone as datalad_clone
    from datalad.support.exceptions import IncompleteResultsError

    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        datalad_clone(source=source, path=str(folder), result_renderer="disabled")
    except IncompleteResultsError as error:
        raise SourceError(
            f"cannot be cloned: {first_message(error)}",
            where=f"dataset.source {source!r}",
            fix="check the address and the network",
        ) from None


def check_out(folder: Path, version: str, source: str) -> None:
    """Check out the branch, tag or commit asked for."""
    from datalad.runner import CommandError
    from datalad.support.gitrepo import GitRepo

    try:
        GitRepo(str(folder)).call_git(["checkout", "--quiet", version, "--"])
    except CommandError:
        raise SourceError(
            f"has no branch, tag or commit {version!r}", where=f"dataset.source {source!r}", fix="see dataset.version"
        ) from None


def install_sites(
    settings: DatasetSettings, source: str, folder: Path, report: Callable[[str], None]
) -> dict[str, dict[str, str]]:
    """Install the sub-datasets asked for (all, if none is named), and no other."""
    from datalad.api import get, subdatasets
    from datalad.support.exceptions import IncompleteResultsError

    known = sorted(
        Path(found["path"]).relative_to(folder).as_posix()
        for found in subdatasets(dataset=str(folder), result_renderer="disabled", return_type="list")
    )
    sites = choose_sites(settings.sites, known or [""], source)
    missing = [site for site in sites if not (folder / site / ".git").exists()]
    if missing:
        report(f"installing {len(missing)} of {len(known)} sites: {', '.join(missing)}")

        def install() -> None:
            try:
                get(
                    path=[str(folder / site) for site in missing],
                    dataset=str(folder),
                    get_data=False,
                    result_renderer="disabled",
                )
            except IncompleteResultsError as error:
                raise SourceError(f"cannot be installed: {first_message(error)}", where=", ".join(missing)) from None

        retry(install, settings, report)
    return {site: site_facts(folder / site, source, site) for site in sites}


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
        return list(known)
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


def get_images(dataset: Path, paths: Sequence[str], settings: DatasetSettings, report: Callable[[str], None]) -> int:
    """Have the content of files on the dataset tier; how many had to be fetched.

    Raises
    ------
    SourceError
        If a content exists nowhere (at once), or could not be fetched in ``get_attempts`` attempts.
    """
    missing = [path for path in paths if not (dataset / path).exists()]
    if not missing:
        return 0
    prepare_environment()
    from datalad.api import get
    from datalad.support.exceptions import IncompleteResultsError

    def fetch() -> None:
        try:
            get(path=[str(dataset / path) for path in missing], dataset=str(dataset), result_renderer="disabled")
        except IncompleteResultsError as error:
            for path in missing:
                if not (dataset / path).exists():
                    check_known_somewhere(dataset, path)
            raise SourceError(f"could not be fetched: {first_message(error)}", where=missing[0]) from None

    retry(fetch, settings, report)
    return len(missing)


def check_known_somewhere(dataset: Path, path: str) -> None:
    """Raise :class:`SourceError` if git-annex knows of no copy of a file: then no retry can help."""
    from datalad.runner import CommandError
    from datalad.support.annexrepo import AnnexRepo

    file = dataset / path
    if not file.is_symlink():
        raise SourceError("is not in the dataset", where=path)
    root = next(parent for parent in file.parents if (parent / ".git").exists())
    try:
        copies = AnnexRepo(str(root)).whereis(str(file.relative_to(root)))
    except CommandError:
        copies = []
    if not any(copies):
        raise GoneError(
            "its content is nowhere: git-annex knows no copy",
            where=path,
            fix="ask the dataset's keepers, or leave the participant out",
        )


class GoneError(SourceError):
    """A content of which no copy is known; trying again is pointless."""


def drop_images(dataset: Path, paths: Sequence[str]) -> None:
    """Drop contents from the dataset tier; git-annex keeps what it cannot find elsewhere."""
    present = [path for path in paths if (dataset / path).exists() and (dataset / path).is_symlink()]
    if not present:
        return
    prepare_environment()
    from datalad.api import drop
    from datalad.support.exceptions import IncompleteResultsError

    try:
        drop(path=[str(dataset / path) for path in present], dataset=str(dataset), result_renderer="disabled")
    except IncompleteResultsError as error:
        raise SourceError(f"could not be dropped: {first_message(error)}", where=present[0]) from None


def annex_size_bytes(file: Path) -> int | None:
    """Size of a file's content: from its annex key if it is not here, which needs no download."""
    if file.is_symlink():
        key = KEY_SIZE.search(os.path.basename(os.readlink(file)))
        if key:
            return int(key[1])
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def retry(action: Callable[[], None], settings: DatasetSettings, report: Callable[[str], None]) -> None:
    """Try an action that depends on a network, pausing twice as long after each failure."""
    for attempt in range(1, settings.get_attempts + 1):
        try:
            action()
            return
        except GoneError:
            raise
        except SourceError as error:
            if attempt == settings.get_attempts or not NETWORK_DOWN.search(error.what):
                raise
            pause_s = settings.get_backoff_s * 2 ** (attempt - 1)
            report(f"attempt {attempt} of {settings.get_attempts} failed ({error}); next in {pause_s:g} s")
            time.sleep(pause_s)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep other runs that use the same clone out while it is made."""
    import fasteners

    folder.parent.mkdir(parents=True, exist_ok=True)
    with fasteners.InterProcessLock(str(folder.parent / f".{folder.name}.lock")):
        yield


def first_message(error: Any) -> str:
    """The reason that DataLad gives for a failure, without its markup and advice; git's own word if there is one."""
    texts = []
    for result in error.failed or []:
        message = result.get("message") or result.get("error_message") or ""
        texts.append(str(message[0] % message[1:] if isinstance(message, tuple) else message))
    text = "\n".join(filter(None, texts)) or str(error)
    fatal = re.findall(r"(?:fatal|error): ([^\n]+?)['\"\]]*(?:\n|\\n|$)", text)
    return one_line(fatal[-1] if fatal else text)[:300]


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
