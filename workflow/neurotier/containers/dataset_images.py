"""Images from DataLad container datasets, as datalad-container makes them and ReproNim/containers is one.

Such a dataset says in its ``.datalad/config`` where each of its images lies: ``datalad.containers.NAME.image``. It is
cloned for as long as one image is fetched, of which the store keeps a copy. Whoever made the dataset is a stranger: a
path or a link that leads out of it is refused, and nothing that it would have us run is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from neurotier.core.configuration import suggestion
from neurotier.core.errors import InputError, NeurotierError, SettingsError, SourceError, one_line
from neurotier.core.files import remove_tree
from neurotier.core.foreign import copy_file, open_in_dataset
from neurotier.core.quantities import first_of
from neurotier.core.settings import DatasetSettings

DATASET = re.compile(r"datalad:(?P<source>.+)#(?P<name>[^#@]*)(?:@sha256:(?P<digest>[0-9a-f]{64}))?")
NAME = re.compile(r"[A-Za-z0-9_-]+")
KEY = re.compile(r"datalad\.containers\.(?P<name>[^.\n]+)\.image")

SHOWN = 12
"""Names in an error; ReproNim/containers has hundreds."""

FOLDER_MODE, SUBDATASET_MODE = "040000", "160000"
"""Modes of folders and sub-datasets in git's trees."""


@dataclass(frozen=True)
class DatasetImage:
    """An image by its dataset and its name there, and the digest that it must have, if one is given.

    Attributes
    ----------
    source
        Any DataLad source; that of a local dataset is absolute.
    """

    source: str
    name: str
    digest: str | None

    @property
    def text(self) -> str:
        """What distinguishes it from other images."""
        return f"datalad:{self.source}#{self.name}@{self.digest}"


def read_dataset_image(text: str, where: str) -> DatasetImage:
    """Read ``datalad:SOURCE#NAME`` or ``datalad:SOURCE#NAME@sha256:DIGEST``.

    Raises
    ------
    SettingsError
        If it is not of that form, or the source is a local folder and no dataset, or no address that git may be given.

    Examples
    --------
    >>> read_dataset_image("datalad:///repronim/containers#bids-mriqc", "app.image").source
    '///repronim/containers'
    """
    from neurotier.dataset.addresses import refusal
    from neurotier.dataset.source import is_address, is_plain_folder

    found = DATASET.fullmatch(text)
    if found is None or not NAME.fullmatch(found["name"]):
        fix = "write datalad:SOURCE#NAME, and @sha256:DIGEST after it if it must be that image"
        raise SettingsError("names no image of a dataset", where=where, fix=fix)
    source = found["source"]
    if is_address(source):
        if reason := refusal(source):
            raise SettingsError(reason, where=where, fix="correct it")
    else:
        folder = Path(source).expanduser().absolute()
        if not folder.is_dir() or is_plain_folder(folder):
            raise SettingsError(f"{folder} is no DataLad dataset", where=where, fix="correct the path")
        source = str(folder)
    return DatasetImage(source, found["name"], found["digest"])


def fetch(
    image: DatasetImage, target: Path, scratch: Path, settings: DatasetSettings, say: Callable[[str], None]
) -> dict[str, str]:
    """Fetch the file of an image from its dataset.

    Parameters
    ----------
    image
        The image.
    target
        The file to make.
    scratch
        Folder for the clone, which is removed again.
    settings
        Section ``dataset`` of the configuration, which says how often a source is tried.
    say
        Takes one line per step, for the user.

    Returns
    -------
    dict
        Where it was found: ``dataset``, ``commit``, and ``path`` in it.

    Raises
    ------
    SourceError
        If the dataset cannot be cloned, has no such image, or cannot give its content.
    """
    from neurotier.dataset.attempts import naming_commands, retry
    from neurotier.dataset.contents import get_images
    from neurotier.dataset.datalad_environment import prepare_environment
    from neurotier.dataset.health import ask_git
    from neurotier.dataset.source import clone

    prepare_environment()
    where, folder, settings = f"container dataset {image.source}", scratch / "dataset", replace(settings, links_to=[])
    with naming_commands():
        say(f"cloning {image.source} for its image {image.name}")
        retry(lambda: clone(image.source, folder, None, where), settings, say)
        path = path_of(folder, image.name, where)
        commit = (ask_git(folder, "rev-parse", "HEAD") or "").strip()
        say(f"fetching {path} of commit {commit[:12]}")
        try:
            get_images(folder, [path], settings, say)
            with open_in_dataset(folder, path) as file:
                copy_file(file, target, path, limit_bytes=2**62, write_back=True)
        except InputError as error:
            raise SourceError(error.what, where=f"{where}: {path}") from None
        except FileNotFoundError:
            raise SourceError("its content is not there", where=f"{where}: {path}") from None
        except NeurotierError as error:
            raise type(error)(error.what, where=f"{where}: {error.where}", fix=error.fix) from None
    remove_tree(folder)
    return {"dataset": image.source, "commit": commit, "path": path}


def path_of(dataset: Path, name: str, where: str) -> str:
    """Path of an image below its dataset, as that says it.

    Raises
    ------
    SourceError
        If the dataset has no image of this name, or the path is that of no file in it.
    """
    from neurotier.dataset.addresses import check_own_files, config_of
    from neurotier.dataset.health import ask_git

    try:
        check_own_files(dataset)
    except InputError as error:
        raise SourceError(".datalad/config or .gitmodules is a link", where=where) from error
    config = config_of(dataset, ".datalad/config").items()
    known = {match["name"]: values[-1] for key, values in config if (match := KEY.fullmatch(key))}
    if name not in known:
        raise SourceError(f"has no image {name!r}{suggestion(name, list(known))}", where=where, fix=listed(known))
    path = known[name]
    shown = one_line(path)[:200]
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts or not path.isprintable():
        raise SourceError(f"its image {name!r} is at {shown!r}, which leads out of it", where=where)
    entry = ask_git(dataset, "ls-tree", "HEAD", "--", str(pure))
    mode = (entry or "").split(" ", 1)[0]
    if not mode:
        fix = "if that is in a sub-dataset, name the sub-dataset as the source"
        raise SourceError(f"its image {name!r} is at {shown!r}, which is not in it", where=where, fix=fix)
    if mode in (FOLDER_MODE, SUBDATASET_MODE):
        fix = "name one that is a file (docker-archive: and oci: take images of Docker)"
        raise SourceError(f"its image {name!r} is the folder {shown!r}, and no image file", where=where, fix=fix)
    return str(pure)


def listed(names: Mapping[str, str]) -> str:
    """What there is, in a few words."""
    if not names:
        return "it has none: name a dataset to which datalad containers-add has added images"
    return f"use one of its {len(names)}: {first_of([one_line(name) for name in sorted(names)], SHOWN)}"
