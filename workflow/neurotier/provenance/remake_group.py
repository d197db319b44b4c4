"""The group level of an app, made again in a clone: on the derivatives that are there, and not on new ones."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from neurotier.analysis.activity import How
from neurotier.analysis.app import Share, group_arguments, run_level
from neurotier.containers.store import PlacedImage
from neurotier.core.errors import InputError, ToolError
from neurotier.core.files import make_folders, remove_whatever, written_whole
from neurotier.core.foreign import open_file
from neurotier.core.settings import Settings
from neurotier.core.work_folders import OUT
from neurotier.provenance.description import owner_of
from neurotier.provenance.source import RAW


def inputs_of_group(dataset: Path, how: How) -> list[str]:
    """The files that the group level was given, below the dataset of derivatives.

    Raises
    ------
    InputError
        If a participant has no derivatives here any more.
    """
    found: dict[str, list[str]] = {str(name): [] for name in how["group"]["participants"]}
    for entry in sorted(os.listdir(dataset)):
        if (owner := owner_of(entry)) in found:
            found[owner].append(entry)
    missing = next((name for name, entries in found.items() if not entries), None)
    if missing is not None:
        raise InputError("has no derivatives here, and the group level needs everyone's", where=str(dataset / missing))
    entries = [entry for of_one in found.values() for entry in of_one]
    files = [path for entry in entries for path in files_below(dataset, entry)]
    return sorted([*files, *map(str, how["group"]["shared"])])


def files_below(dataset: Path, entry: str) -> Iterable[str]:
    """Paths of the files and links of an entry of a dataset."""
    if not (dataset / entry).is_dir() or (dataset / entry).is_symlink():
        return [entry]
    found = [Path(folder, name) for folder, _, names in os.walk(dataset / entry) for name in names]
    return [str(path.relative_to(dataset)) for path in found]


def group_again(dataset: Path, how: How, settings: Settings, folder: Path, log: Path, placed: PlacedImage) -> None:
    """Run the group level in a work folder, and put what comes out in the place of what it had made.

    Parameters
    ----------
    dataset
        The dataset of derivatives, with the contents that the group level reads.
    how
        How it was called.
    settings, folder, log, placed
        Settings that do it again, the work folder, the file that takes what the app prints, and the app's image.

    Raises
    ------
    NeurotierError
        If the app fails, or does not make a file again; nothing is replaced then.
    """
    out, given = folder / OUT, inputs_of_group(dataset, how)

    def fill(emptied: Path) -> None:
        for path in given:
            copy_entry(dataset, emptied, path)

    out.mkdir()
    fill(out)
    share = Share(settings.app.threads, settings.app.memory_mb)
    run_level(group_arguments(settings.app, share), dataset / RAW, folder, settings, log, placed, fill)
    made = [str(path) for path in how["group"]["made"]]
    lost = next((path for path in made if not os.path.lexists(out / path)), None)
    if lost is not None:
        raise ToolError("was made by the group level before, and is not now", where=lost)
    for path in made:
        copy_entry(out, dataset, path)
    print("neurotier: the group level is made again", file=sys.stderr)


def copy_entry(source: Path, target: Path, path: str) -> None:
    """Copy a file or link to the same path below another folder, in the place of what is there."""
    make_folders((target / path).parent)
    if (source / path).is_symlink():
        remove_whatever(target / path)
        os.symlink(os.readlink(source / path), target / path)
        return
    with open_file(source, PurePosixPath(path), path, ToolError) as opened, written_whole(target / path) as file:
        shutil.copyfileobj(opened, file)
