"""The tree of a dataset: its files by name, with links followed only where allowed.

No file is opened here. A link to a folder outside the dataset is reported and not entered. Every folder is entered
once, so that a link to a folder above it does not loop.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from neurotier.core.errors import InputError
from neurotier.core.foreign import file_in_dataset
from neurotier.dataset.bids import EXTENSIONS


def list_tree(
    dataset: Path, top: str, may_enter: Callable[[str], bool], links_to: Sequence[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """List the files below a folder of a dataset, except names that begin with a dot.

    Parameters
    ----------
    dataset
        The dataset's folder.
    top
        The folder below it to list; empty for the dataset itself.
    may_enter
        Whether to enter a folder, by its path below the dataset.
    links_to
        Folders outside the dataset that links may lead into.

    Returns
    -------
    list
        Paths below the dataset of files, and of anything else that is no folder. A link out of the dataset is among
        them if it has a file's name, so that the job that needs it reports it.
    dict
        Folders that were not entered, with the reason.
    """
    files, refused, seen = list[str](), dict[str, str](), set[tuple[int, int]]()
    pending = deque([top])  # links wait at its left, until all folders that are none are listed
    while pending:
        here = pending.pop()
        try:
            facts = os.stat(dataset / here)
            with os.scandir(dataset / here) as entries:
                children = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
        except OSError as error:
            refused[here or "."] = f"cannot be read: {error.strerror}"
            continue
        if (facts.st_dev, facts.st_ino) in seen:
            refused[here or "."] = "is a link to a folder that is listed already"
            continue
        seen.add((facts.st_dev, facts.st_ino))
        for entry in children:
            path, why = f"{here}/{entry.name}" if here else entry.name, ""
            is_folder, is_link = entry.is_dir(follow_symlinks=False), entry.is_symlink()
            if is_link:
                try:
                    trusted, below = file_in_dataset(dataset, path, links_to)
                    is_folder = (trusted / below).is_dir()
                except InputError as error:
                    # its target is not examined; names of files have a dot, and those of folders in BIDS have none
                    is_folder, why = "." not in entry.name, error.what
            if not is_folder:
                files.append(path)
            elif entry.name.endswith(EXTENSIONS):
                refused[path] = "is a folder"
            elif may_enter(path):
                if why:
                    refused[path] = why
                elif is_link:
                    pending.appendleft(path)
                else:
                    pending.append(path)
    return sorted(files), refused


def is_bids(folder: Path) -> bool:
    """Whether a folder looks like a BIDS dataset: it has a description or participants.

    Only names count, since the description may be a link whose content is not here.
    """
    try:
        with os.scandir(folder) as entries:
            return any(
                entry.name == "dataset_description.json"
                or (entry.name.startswith("sub-") and (entry.is_dir(follow_symlinks=False) or entry.is_symlink()))
                for entry in entries
            )
    except OSError:
        return False
