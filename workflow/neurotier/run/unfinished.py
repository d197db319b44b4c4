"""Tables, figures and pages of a run that failed: they show a part, and Snakemake knows no difference to finished ones.

A target such as ``participants`` asks for what they are made from, and that is made first. A user who asks for such a
file by its path would hear that there is nothing to be done, since what is missing has been made by nobody yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from neurotier.core.errors import StateError
from neurotier.core.files import read_json, remove_whatever, write_json
from neurotier.core.places import Places


def note_unfinished(places: Places, page: Path, tables: Iterable[Path], others: Iterable[Path]) -> None:
    """Note a page of a part, with its tables and other files that are made with them.

    The tables are dated back, so that Snakemake makes them again as soon as anything is there that they are made from.
    """
    files = [page, *(table for table in tables if table.is_file())]
    for table in files[1:]:
        os.utime(table, (0, 0))
    files += [file for file in sorted(others) if file.is_file()]
    noted = noted_in(places)
    noted[page.name] = [str(file.relative_to(places.results)) for file in files]
    write_json(places.unfinished, noted)


def noted_in(places: Places) -> dict[str, list[str]]:
    """Files of each unfinished page, by its name; nothing if the note is not there or damaged."""
    try:
        noted = read_json(places.unfinished)
    except (FileNotFoundError, StateError):
        return {}
    pages = noted.items() if isinstance(noted, dict) else ()
    return {page: list(map(str, names)) for page, names in pages if isinstance(names, list)}


def forget_made(places: Places) -> None:
    """Forget the pages whose tables have all been made since."""
    noted = noted_in(places)
    left = {page: names for page, names in noted.items() if any(map(is_dated_back, files_of(places, names)))}
    if left != noted:
        write_json(places.unfinished, left)
    if not left:
        remove_whatever(places.unfinished)


def files_of(places: Places, names: Iterable[str]) -> set[Path]:
    """Noted files, but for those outside of the results: the note may be planted."""
    return {(places.results / name).absolute() for name in names if places.holds(name)}


def is_dated_back(file: Path) -> bool:
    """Whether a file is a table of a part: one that was made since has a date of its own."""
    try:
        return file.stat().st_mtime == 0
    except OSError:
        return False


def remove_asked_for(places: Places, targets: Sequence[str], remove: bool) -> list[str]:
    """Remove what is unfinished and asked for by its path, with all that is shown with it; lines that say so.

    Parameters
    ----------
    targets
        As the command line has them.
    remove
        Whether to do it; else it is only said what would be done.
    """
    if remove:
        forget_made(places)
    noted, lines = noted_in(places), []
    asked = {Path(target).absolute() for target in targets}
    for page, names in list(noted.items()):
        files = files_of(places, names)
        if not asked & files or not any(map(is_dated_back, files)):
            continue
        lines.append(f"{places.results / page} is of a run that failed; " + ("it is" if remove else "it would be"))
        lines[-1] += " made again, with its tables"
        if remove:
            for file in sorted(files, key=is_dated_back):  # these last: after a kill they tell that it goes on
                remove_whatever(file)
            del noted[page]
            write_json(places.unfinished, noted)
    return lines
