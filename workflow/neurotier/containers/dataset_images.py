"""Images from DataLad container datasets, as datalad-container makes them and ReproNim/containers is one.

Such a dataset says in its ``.datalad/config`` where each of its images lies: ``datalad.containers.NAME.image``. It is
cloned for as long as one image is fetched, of which the store keeps a copy. Whoever made the dataset is a stranger: a
path or a link that leads out of it is refused, and nothing that it would have us run is run. That is why it is read
here: datalad-container runs what such a dataset names, and for the one key that is read it saves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from neurotier.containers.reference import Reference
from neurotier.core.configuration import suggestion
from neurotier.core.errors import InputError, NeurotierError, SourceError, one_line
from neurotier.core.files import remove_tree
from neurotier.core.foreign import copy_file, open_in_dataset
from neurotier.core.quantities import first_of
from neurotier.core.settings import DatasetSettings
from neurotier.dataset.addresses import check_own_files, config_of
from neurotier.dataset.attempts import naming_commands, retry
from neurotier.dataset.contents import get_images
from neurotier.dataset.datalad_environment import ask_git, prepare_environment
from neurotier.dataset.sites import commit
from neurotier.dataset.source import clone

KEY = re.compile(r"datalad\.containers\.([^.\n]+)\.image")

SHOWN = 12
"""Names in an error; ReproNim/containers has hundreds."""

FOLDERS = ("040000", "160000")
"""Modes of folders and sub-datasets in git's trees."""


def fetch(image: Reference, target: Path, settings: DatasetSettings, say: Callable[[str], None]) -> dict[str, str]:
    """Fetch the file of an image from its dataset.

    Parameters
    ----------
    image
        The image.
    target
        The file to make; the clone lies beside it meanwhile.
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
    prepare_environment()
    where, folder = f"container dataset {image.source}", target.with_name("dataset")
    settings = replace(settings, links_to=[])
    with naming_commands():
        say(f"cloning {image.source} for its image {image.name_there}")
        retry(lambda: clone(image.source, folder, None, where), settings, say)
        path = path_of(folder, image.name_there, where)
        at = commit(folder)
        say(f"fetching {path} of commit {at[:12]}")
        try:
            get_images(folder, [path], settings, say)
            with open_in_dataset(folder, path) as file:
                copy_file(file, target, limit_bytes=2**62, write_back=True)
        except (InputError, FileNotFoundError) as error:
            what = error.what if isinstance(error, InputError) else "its content is not there"
            raise SourceError(what, where=f"{where}: {path}") from None
        except NeurotierError as error:
            raise type(error)(error.what, where=f"{where}: {error.where}", fix=error.fix) from None
    remove_tree(folder)
    return {"dataset": image.source, "commit": at, "path": path}


def path_of(dataset: Path, name: str, where: str) -> str:
    """Path of an image below its dataset, as that says it.

    Raises
    ------
    SourceError
        If the dataset has no image of this name, or the path is that of no file in it.
    """
    try:
        check_own_files(dataset)
    except InputError as error:
        raise SourceError(".datalad/config or .gitmodules is a link", where=where) from error
    config = config_of(dataset, ".datalad/config").items()
    known = {match[1]: values[-1] for key, values in config if (match := KEY.fullmatch(key))}
    if name not in known:
        fix = "it has none: name a dataset to which datalad containers-add has added images"
        if known:
            fix = f"use one of its {len(known)}: {first_of(list(map(one_line, sorted(known))), SHOWN)}"
        raise SourceError(f"has no image {name!r}{suggestion(name, list(known))}", where=where, fix=fix)
    path, lies = PurePosixPath(known[name]), f"its image {name!r} is at {one_line(known[name])[:200]!r}, which"
    if path.is_absolute() or {"..", ".git"} & {*path.parts} or not known[name].isprintable():
        raise SourceError(f"{lies} leads out of it", where=where)
    entry = ask_git(dataset, "ls-tree", "HEAD", "--", str(path))
    if not entry:
        fix = "if that is in a sub-dataset, name the sub-dataset as the source"
        raise SourceError(f"{lies} is not in it", where=where, fix=fix)
    if entry.startswith(FOLDERS):
        fix = "name one that is a file (docker-archive: and oci: take images of Docker)"
        raise SourceError(f"{lies} is a folder, and no image file", where=where, fix=fix)
    return str(path)
